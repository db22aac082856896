// TMA copies of elements of 4 and 6 bits: where they lie in shared memory, what their padding is,
// which bytes a load signals, and which maps there are.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "tests/draws.h"
#include "tests/model/harness.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"

namespace warpwright::model {
namespace {

using atom::SmemSwizzle;
using isa::Scope;
using isa::SharedAddress;

// Codes of `bits` bits that lie dense in rows of whole bytes, the first in the lowest bits.
struct Codes {
  Codes(int row_count, int column_count, int width, int pitch, unsigned seed)
      : rows(row_count),
        columns(column_count),
        bits(width),
        row_bytes(pitch),
        bytes(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(pitch)) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(random());
  }
  [[nodiscard]] bool bit(int row, int column, int of_code) {
    const int at = column * bits + of_code;
    return (bytes[index(row * row_bytes + at / 8)] >> at % 8 & 1) != 0;
  }
  int rows;
  int columns;
  int bits;
  int row_bytes;
  Memory<unsigned char> bytes;
};

TensorMapFields fields_of(Codes& c, int box_rows, bool padded, SmemSwizzle swizzle) {
  TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(c.bytes.data());
  f.rank = 2;
  f.extents = {static_cast<std::uint64_t>(c.columns), static_cast<std::uint64_t>(c.rows)};
  f.strides = {static_cast<std::uint64_t>(c.row_bytes)};
  const int span = swizzle == SmemSwizzle::none ? 128 : atom::span_bytes(swizzle);
  f.box = {static_cast<std::uint16_t>(padded ? 128 : span * 2),
           static_cast<std::uint16_t>(box_rows)};
  f.element_bits = static_cast<std::uint8_t>(c.bits);
  f.padded = padded;
  f.swizzle = swizzle;
  return f;
}

// What a byte of shared memory must be: its bits, and which of them an element has.
struct Expected {
  unsigned char value = 0;
  unsigned char owned = 0;
};

// The box at (column, row), bit by bit as the documents say.
std::vector<Expected> expected_box(Codes& c, const TensorMapFields& f, int column, int row) {
  const int pitch = f.swizzle == SmemSwizzle::none ? f.box[0] * (f.padded ? 8 : f.element_bits) / 8
                                                   : 16 << swizzle_bits(f.swizzle);
  std::vector<Expected> image(index(f.box[1] * pitch));
  for (int r = 0; r < f.box[1]; ++r) {
    for (int e = 0; e < f.box[0]; ++e) {
      for (int b = 0; b < c.bits; ++b) {
        const int in_row = f.padded ? e / 16 * 128 + e % 16 * c.bits + b : e * c.bits + b;
        auto at = static_cast<std::uint32_t>(r * pitch + in_row / 8);
        if (f.swizzle == SmemSwizzle::b32) at ^= (at >> 7 & 1) << 4;
        if (f.swizzle == SmemSwizzle::b64) at ^= (at >> 7 & 3) << 4;
        if (f.swizzle == SmemSwizzle::b128) at ^= (at >> 7 & 7) << 4;
        const int y = row + r;
        const int x = column + e;
        const bool inside = y >= 0 && y < c.rows && x >= 0 && x < c.columns;
        Expected& byte = image[at];
        byte.owned = static_cast<unsigned char>(byte.owned | 1 << in_row % 8);
        if (inside && c.bit(y, x, b)) {
          byte.value = static_cast<unsigned char>(byte.value | 1 << in_row % 8);
        }
      }
    }
  }
  return image;
}

// Loads the box over memory that threads have written, and compares all bytes that elements have.
void expect_loaded(Codes& c, const TensorMapFields& f, int column, int row, const Options& how) {
  ASSERT_EQ(invalid(f), std::nullopt);
  const TensorMap map = encode(f);
  const std::vector<Expected> image = expected_box(c, f, column, row);
  const int bytes = f.box[1] * f.box[0] * c.bits / 8;
  std::int64_t wrong = 0;
  const LaunchShape shape{.threads = 1, .shared_bytes = 1024 + static_cast<int>(image.size())};
  const Report report = run(shape, how, {c.bytes.allocation("codes", false)}, [&] {
    const SharedAddress bar = isa::shared_base();
    const isa::SharedView<unsigned char> view{bar + 1024};
    make_barrier(bar, 1);
    for (std::size_t i = 0; i < image.size(); ++i) view.store(static_cast<int>(i), 0x5a);
    isa::fence_proxy_async_shared();
    load_and_wait(bytes, view.address, map, bar, isa::Coords{column, row});
    for (std::size_t i = 0; i < image.size(); ++i) {
      // A byte is an element's as a whole or not at all.
      ASSERT_TRUE(image[i].owned == 0 || image[i].owned == 0xff);
      if (image[i].owned != 0 && view.load(static_cast<int>(i)) != image[i].value) ++wrong;
    }
  });
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_EQ(wrong, 0);
}

TEST(SubByteCopyTest, AnyBoxLiesAsTheDocumentsSay) {
  constexpr unsigned seed = 20261124;
  std::printf("boxes by seed %u\n", seed);
  tests::Draws draw(seed);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE("box " + std::to_string(i));
    const bool padded = draw(0, 2) > 0;
    const int bits = padded && draw(0, 1) == 1 ? 6 : 4;
    const int columns = padded ? 128 * draw(1, 4) : 2 * draw(1, 300);
    const int alignment = padded ? 32 : 16;
    const int row_bytes =
        ((columns * bits + 7) / 8 + alignment - 1) / alignment * alignment + alignment * draw(0, 2);
    Codes codes(draw(1, 40), columns, bits, row_bytes, draw.seed());
    const auto swizzle = padded ? (draw(0, 1) == 1 ? SmemSwizzle::b128 : SmemSwizzle::none)
                                : static_cast<SmemSwizzle>(draw(0, 3));
    const TensorMapFields f = fields_of(codes, draw(1, 24), padded, swizzle);
    const int column = padded ? 128 * draw(-1, 4) : 32 * draw(-3, 12);
    expect_loaded(codes, f, column, draw(-20, 44), random_schedule(static_cast<std::uint64_t>(i)));
  }
}

// A padded tile of one thread: loads it with `expected` bytes on the barrier, and looks at it.
Kernel load_padded(Codes& codes, const TensorMap& map, int expected,
                   const std::function<void(SharedAddress)>& look) {
  return {{.threads = 1, .shared_bytes = 4096},
          [=] {
            const SharedAddress bar = isa::shared_base();
            make_barrier(bar, 1);
            load_and_wait(expected, bar + 1024, map, bar, isa::Coords{0, 0});
            look(bar + 1024);
          },
          {codes.bytes.allocation("codes", false)}};
}

TEST(SubByteCopyTest, SignalsBytesOfGlobalMemory) {
  for (const int bits : {4, 6}) {
    Codes codes(8, 128, bits, 128, 1);
    const TensorMap map = encode(fields_of(codes, 8, true, SmemSwizzle::b128));
    const auto nothing = [](SharedAddress) {};
    expect_clean(load_padded(codes, map, 8 * 128 * bits / 8, nothing));
    // Those of shared memory are too many.
    expect_found(load_padded(codes, map, 8 * 128, nothing), Check::transaction_bytes, Shows::always,
                 {Check::deadlock});
  }
}

TEST(SubByteCopyTest, PaddingHasNoValue) {
  for (const int bits : {4, 6}) {
    Codes codes(8, 128, bits, 128, 2);
    const TensorMap map = encode(fields_of(codes, 8, true, SmemSwizzle::none));
    for (int byte = 0; byte < 16; ++byte) {
      const Kernel kernel = load_padded(codes, map, 8 * 128 * bits / 8, [=](SharedAddress at) {
        isa::SharedView<unsigned char>{at}.load(48 + byte);
      });
      SCOPED_TRACE(std::to_string(bits) + " bits, byte " + std::to_string(byte));
      if (byte < 2 * bits) {
        expect_clean(kernel);
      } else {
        expect_found(kernel, Check::uninitialised_read);
      }
    }
  }
}

// Stores a box over `c`, of codes drawn anew, and says what must be there then.
void expect_stored(Codes& c, const TensorMapFields& f, int column, int row, const Options& how,
                   unsigned seed) {
  ASSERT_EQ(invalid(f), std::nullopt);
  const TensorMap map = encode(f);
  std::mt19937 random(seed);
  std::vector<unsigned> codes(index(f.box[0] * f.box[1]));
  for (unsigned& code : codes) code = random() & ((1U << c.bits) - 1);
  const int span = row_bytes(f);
  const int pitch = f.swizzle == SmemSwizzle::none ? span : atom::span_bytes(f.swizzle);
  std::vector<unsigned char> image(index(f.box[1] * pitch));
  // What an element's byte has beside it is left out.
  const auto beside = static_cast<unsigned char>(f.padded ? 0xc0 : 0);
  for (int r = 0; r < f.box[1]; ++r) {
    for (int e = 0; e < f.box[0]; ++e) {
      auto at = static_cast<std::uint32_t>(r * pitch + (f.padded ? e : e / 2));
      at ^= (at >> 7 & ((1U << swizzle_bits(f.swizzle)) - 1)) << 4;
      const unsigned code = codes[index(r * f.box[0] + e)];
      image[at] =
          static_cast<unsigned char>(image[at] | beside | code << (f.padded ? 0 : 4 * (e % 2)));
    }
  }
  std::vector<unsigned char> before(c.bytes.data(), c.bytes.data() + c.bytes.size());
  const LaunchShape shape{.threads = 1, .shared_bytes = static_cast<int>(image.size())};
  const Report report = run(shape, how, {c.bytes.allocation("codes")}, [&] {
    const isa::SharedView<unsigned char> view{isa::shared_base()};
    for (std::size_t i = 0; i < image.size(); ++i) view.store(static_cast<int>(i), image[i]);
    isa::fence_proxy_async_shared();
    store_until_written(map, view.address, isa::Coords{column, row});
  });
  ASSERT_TRUE(report.clean()) << report.text();
  // For packed rows the bytes up to the next multiple of 16 come too, as of all stores.
  for (int y = 0; y < c.rows; ++y) {
    for (int bit = 0; bit < c.row_bytes * 8; ++bit) {
      const int x = bit / c.bits;
      const int last = (c.columns * c.bits + 127) / 128 * 128;
      const bool inside = y >= row && y < row + f.box[1] && x >= column && x < column + f.box[0] &&
                          bit < last && column < c.columns;
      const std::size_t at = index(y * c.row_bytes + bit / 8);
      const bool was = (before[at] >> bit % 8 & 1) != 0;
      const bool want =
          inside ? (codes[index((y - row) * f.box[0] + x - column)] >> bit % c.bits & 1) != 0 : was;
      ASSERT_EQ((c.bytes[at] >> bit % 8 & 1) != 0, want) << "row " << y << ", bit " << bit;
    }
  }
}

TEST(SubByteCopyTest, AnyBoxIsStoredAsTheDocumentsSay) {
  constexpr unsigned seed = 20261128;
  std::printf("stores by seed %u\n", seed);
  tests::Draws draw(seed);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE("box " + std::to_string(i));
    const bool padded = draw(0, 1) > 0;
    const int bits = padded ? 6 : 4;
    const int columns = padded ? 128 * draw(1, 3) : 2 * draw(1, 300);
    const int alignment = padded ? 32 : 16;
    const int row_bytes = ((columns * bits + 7) / 8 + alignment - 1) / alignment * alignment;
    Codes codes(draw(1, 30), columns, bits, row_bytes + alignment * draw(0, 1), draw.seed());
    const auto swizzle = draw(0, 1) == 1 ? SmemSwizzle::b128 : SmemSwizzle::none;
    const TensorMapFields f = fields_of(codes, draw(1, 16), padded, swizzle);
    const int column = padded ? 128 * draw(0, 3) : 32 * draw(0, 12);
    expect_stored(codes, f, column, draw(0, 34), random_schedule(static_cast<std::uint64_t>(i)),
                  draw.seed());
  }
}

TEST(SubByteCopyTest, AStoreOfSixBitsTakesEveryByte) {
  Codes codes(4, 128, 6, 96, 5);
  const TensorMap map = encode(fields_of(codes, 4, true, SmemSwizzle::b128));
  const auto with = [&](int unwritten) {
    const isa::SharedView<unsigned char> view{isa::shared_base()};
    for (int i = 0; i < 512; ++i) {
      if (i != unwritten) view.store(i, 1);
    }
    isa::fence_proxy_async_shared();
    store_until_written(map, view.address, isa::Coords{0, 0});
  };
  expect_clean(Kernel{one_thread, chosen(with, -1), {codes.bytes.allocation("codes")}});
  for (const int byte : {0, 13, 15, 255, 511})
    expect_found(Kernel{one_thread, chosen(with, byte), {codes.bytes.allocation("codes")}},
                 Check::uninitialised_read);
}

TEST(SubByteCopyTest, MapsThatThereAreNot) {
  Codes codes(8, 256, 4, 128, 3);
  const TensorMapFields padded = fields_of(codes, 8, true, SmemSwizzle::b128);
  const TensorMapFields packed = fields_of(codes, 8, false, SmemSwizzle::b128);
  ASSERT_EQ(invalid(padded), std::nullopt);
  ASSERT_EQ(invalid(packed), std::nullopt);
  const auto expect_refused = [](TensorMapFields f, auto change, const char* why) {
    change(f);
    const auto fault = must(invalid(f), why);
    expect_contains(*fault, why);
  };
  using F = TensorMapFields;
  expect_refused(
      padded, [](F& f) { f.base += 16; }, "multiple of 32 bytes");
  expect_refused(
      padded, [](F& f) { f.strides[0] += 16; }, "multiple of 32 bytes");
  expect_refused(
      padded, [](F& f) { f.extents[0] = 192; }, "multiple of 128 elements long, not 192");
  expect_refused(
      padded, [](F& f) { f.box[0] = 64; }, "exactly 128 elements, not 64");
  expect_refused(
      padded, [](F& f) { f.swizzle = SmemSwizzle::b64; }, "none or 128B");
  expect_refused(
      padded, [](F& f) { f.element_bits = 8; }, "elements of 4 or 6 bits, not of 8");
  expect_refused(
      packed, [](F& f) { f.element_bits = 6; }, "6 bits have no tensor map");
  expect_refused(
      packed, [](F& f) { f.extents[0] = 255; }, "whole bytes");
  expect_refused(
      packed, [](F& f) { f.base += 8; }, "multiple of 16 bytes");
  expect_refused(
      packed, [](F& f) { f.box[0] = 16; }, "multiple of 16 bytes, not 8");
}

TEST(SubByteCopyTest, CoordinatesAndCopiesThatThereAreNot) {
  Codes codes(8, 256, 4, 128, 4);
  const auto of = [&](const TensorMapFields& f, auto body) {
    const TensorMap map = encode(f);
    return Kernel{one_thread,
                  [=] {
                    const SharedAddress bar = isa::shared_base();
                    make_barrier(bar, 1);
                    body(map, bar);
                  },
                  {codes.bytes.allocation("codes", true)}};
  };
  const TensorMapFields padded = fields_of(codes, 2, true, SmemSwizzle::b128);
  const TensorMapFields packed = fields_of(codes, 2, false, SmemSwizzle::b128);
  const auto load = [](int column) {
    return [column](const TensorMap& map, SharedAddress bar) {
      isa::tensor_load(bar + 1024, map, bar, isa::Coords{column, 0});
    };
  };
  expect_contains(sentence(of(padded, load(64)), Check::tensor_map), "multiple of 128, not 64");
  expect_contains(sentence(of(packed, load(16)), Check::tensor_map), "16 elements of 4 bits");
  const auto store = [](const TensorMap& map, SharedAddress bar) {
    isa::tensor_store(map, bar + 1024, isa::Coords{0, 0});
  };
  expect_contains(sentence(of(padded, store), Check::tensor_map), "such maps are for loads");
  const auto add = [](const TensorMap& map, SharedAddress bar) {
    isa::tensor_reduce_add(map, bar + 1024, isa::Coords{0, 0});
  };
  expect_contains(sentence(of(packed, add), Check::tensor_map), "a tensor reduce-add through");
}

}  // namespace
}  // namespace warpwright::model
