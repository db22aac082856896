// What TMA copies do, as probed on an H200: edges, swizzles, multicast, groups, additions.
#include <gtest/gtest.h>

#include "tests/draws.h"
#include "tests/model/harness.h"
#include "warpwright/atom/swizzle.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {
namespace {

using atom::SmemSwizzle;
using isa::Scope;
using isa::SharedAddress;

constexpr int image_bytes = 16 * 1024;
constexpr std::uint16_t untouched = 0x5aa5;

// Loads one box to `offset` after a start that repeats every swizzle, over memory that holds
// `untouched` everywhere; returns that memory.
std::vector<std::uint16_t> load_image(const Matrix& m, int column, int row, int offset,
                                      const Options& how) {
  const TensorMap map = map_of(m);
  std::vector<std::uint16_t> image(image_bytes / 2);
  const int bytes = m.box_rows * m.box_columns * m.element_bytes;
  const int pitch = m.pitch == 0 ? m.columns : m.pitch;
  const std::vector<Allocation> memory = {
      {m.data, std::int64_t{pitch} * m.rows * m.element_bytes, "source", false}};
  const LaunchShape shape{.threads = 1, .shared_bytes = 1024 + image_bytes};
  const Report report = run(shape, how, memory, [&] {
    const SharedAddress bar = isa::shared_base();
    const isa::SharedView<std::uint16_t> view{bar + 1024};
    make_barrier(bar, 1);
    for (int i = 0; i < image_bytes / 2; ++i) view.store(i, untouched);
    isa::fence_proxy_async_shared();
    load_and_wait(bytes, view.address + static_cast<SharedAddress>(offset), map, bar,
                  isa::Coords{column, row});
    for (int i = 0; i < image_bytes / 2; ++i) image[static_cast<std::size_t>(i)] = view.load(i);
  });
  EXPECT_TRUE(report.clean()) << report.text();
  return image;
}

// What must lie there: the rule of the documents, element by element.
std::vector<std::uint16_t> expected_image(const Matrix& m, int column, int row, int offset) {
  std::vector<std::uint16_t> image(image_bytes / 2, untouched);
  const int pitch = m.pitch == 0 ? m.columns : m.pitch;
  const auto* source = static_cast<const std::uint16_t*>(m.data);
  const int span =
      m.swizzle == SmemSwizzle::none ? m.box_columns * 2 : 16 << swizzle_bits(m.swizzle);
  for (int r = 0; r < m.box_rows; ++r) {
    for (int c = 0; c < m.box_columns; ++c) {
      // The image starts at 2048 of the window, a multiple of every pattern.
      auto at = static_cast<std::uint32_t>(offset + r * span + 2 * c);
      const std::uint32_t line = at >> 7;
      if (m.swizzle == SmemSwizzle::b32) at ^= (line & 1) << 4;
      if (m.swizzle == SmemSwizzle::b64) at ^= (line & 3) << 4;
      if (m.swizzle == SmemSwizzle::b128) at ^= (line & 7) << 4;
      const int y = row + r;
      const int x = column + c;
      const bool inside = y >= 0 && y < m.rows && x >= 0 && x < m.columns;
      image[at / 2] = inside ? source[y * pitch + x] : std::uint16_t{0};
    }
  }
  return image;
}

class CopyTest : public testing::Test {
 protected:
  CopyTest() {
    for (std::size_t i = 0; i < source_.size(); ++i) {
      source_[i] = static_cast<std::uint16_t>(i * 7 + 1);
    }
  }
  // 128 x 64, as it was probed.
  Memory<std::uint16_t> source_{128 * 64};
};

TEST_F(CopyTest, OutOfBoundsIsZeroAndCounts) {
  const Matrix m{source_.data(), 128, 64, 2, 16, 32};
  for (const auto& [column, row] : {std::pair{0, 0},
                                    {32, 112},
                                    {48, 0},
                                    {0, 120},
                                    {-8, 0},
                                    {0, -3},
                                    {-24, -15},
                                    {56, 127},
                                    {64, 0},
                                    {0, 128},
                                    {100000, 100000},
                                    {-100000, -100000}}) {
    SCOPED_TRACE(std::to_string(column) + ", " + std::to_string(row));
    for (const Options& how : {schedules()[0], schedules()[1], schedules()[2]}) {
      EXPECT_EQ(load_image(m, column, row, 0, how), expected_image(m, column, row, 0));
    }
  }
}

TEST_F(CopyTest, SwizzleGoesByTheAbsoluteAddress) {
  for (const SmemSwizzle swizzle :
       {SmemSwizzle::none, SmemSwizzle::b32, SmemSwizzle::b64, SmemSwizzle::b128}) {
    const int columns = swizzle == SmemSwizzle::none ? 24 : (16 << swizzle_bits(swizzle)) / 2;
    for (const int offset : {0, 128, 384, 1024, 1408}) {
      SCOPED_TRACE(std::string(atom::name(swizzle)) + " at " + std::to_string(offset));
      const Matrix m{source_.data(), 128, 64, 2, 20, columns, swizzle};
      EXPECT_EQ(load_image(m, 8, 3, offset, Options{}), expected_image(m, 8, 3, offset));
    }
  }
}

TEST_F(CopyTest, ANarrowBoxKeepsThePitchOfTheSpan) {
  for (const auto& [swizzle, columns] : {std::pair{SmemSwizzle::b128, 32},
                                         {SmemSwizzle::b128, 8},
                                         {SmemSwizzle::b128, 56},
                                         {SmemSwizzle::b64, 16},
                                         {SmemSwizzle::b32, 8}}) {
    SCOPED_TRACE(std::string(atom::name(swizzle)) + ", " + std::to_string(columns));
    const Matrix m{source_.data(), 128, 64, 2, 16, columns, swizzle};
    EXPECT_EQ(load_image(m, 8, 5, 0, Options{}), expected_image(m, 8, 5, 0));
    EXPECT_EQ(load_image(m, 56, 120, 384, Options{}), expected_image(m, 56, 120, 384));
  }
}

TEST_F(CopyTest, AnyBoxAnywhere) {
  constexpr unsigned seed = 20261121;
  std::printf("boxes by seed %u\n", seed);
  tests::Draws draw(seed);
  for (int i = 0; i < 60; ++i) {
    const auto swizzle = static_cast<SmemSwizzle>(draw(0, 3));
    const int widest = swizzle == SmemSwizzle::none ? 8 : 1 << swizzle_bits(swizzle);
    Matrix m{source_.data(), draw(1, 100),        draw(1, 64), 2,
             draw(1, 40),    8 * draw(1, widest), swizzle};
    m.pitch = 64;
    const int column = 8 * draw(-9, 9);
    const int row = draw(-50, 120);
    const int offset = 128 * draw(0, 20);
    SCOPED_TRACE("box " + std::to_string(i));
    const Options how = random_schedule(static_cast<std::uint64_t>(i));
    EXPECT_EQ(load_image(m, column, row, offset, how), expected_image(m, column, row, offset));
  }
}

TEST_F(CopyTest, FiveDimensions) {
  TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(source_.data());
  f.rank = 5;
  f.element_bits = 16;
  f.extents = {8, 3, 4, 2, 5};
  f.strides = {16, 48, 192, 384};
  f.box = {8, 2, 2, 2, 2};
  const TensorMap map = encode(f);
  std::vector<std::uint16_t> got(128);
  const LaunchShape shape{.threads = 1, .shared_bytes = 1024};
  const Report report = run(shape, Options{}, {source_.allocation("source", false)}, [&] {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1);
    load_and_wait(256, bar + 128, map, bar, isa::Coords{0, 2, 1, 0, 3});
    for (int i = 0; i < 128; ++i) {
      got[static_cast<std::size_t>(i)] = isa::SharedView<std::uint16_t>{bar + 128}.load(i);
    }
  });
  EXPECT_TRUE(report.clean()) << report.text();
  std::size_t i = 0;
  for (int e = 3; e < 5; ++e) {
    for (int d = 0; d < 2; ++d) {
      for (int c = 1; c < 3; ++c) {
        for (int b = 2; b < 4; ++b) {
          for (int a = 0; a < 8; ++a) {
            const auto at = index(a + 8 * b + 24 * c + 96 * d + 192 * e);
            EXPECT_EQ(got[i++], b < 3 ? source_[at] : 0) << i;
          }
        }
      }
    }
  }
}

// Stores one box of the numbers 1, 2, ... (or adds it) to a matrix that holds `before`.
template <class T>
void store_box(const Matrix& m, const std::vector<T>& box, int column, int row, bool add,
               const Options& how) {
  const TensorMap map = map_of(m);
  const std::vector<Allocation> memory = {
      {m.data, std::int64_t{m.pitch == 0 ? m.columns : m.pitch} * m.rows * m.element_bytes,
       "target", true}};
  const LaunchShape shape{.threads = 1, .shared_bytes = 8192};
  const Report report = run(shape, how, memory, [&] {
    const isa::SharedView<T> view{isa::shared_base()};
    for (std::size_t i = 0; i < box.size(); ++i) {
      auto at = static_cast<std::uint32_t>(i * sizeof(T));
      if (m.swizzle == SmemSwizzle::b128) at ^= (at >> 7 & 7) << 4;
      view.store(static_cast<int>(at / sizeof(T)), box[i]);
    }
    isa::fence_proxy_async_shared();
    if (add) {
      isa::tensor_reduce_add(map, view.address, isa::Coords{column, row});
    } else {
      isa::tensor_store(map, view.address, isa::Coords{column, row});
    }
    isa::bulk_commit();
    isa::bulk_wait_read<0>();
  });
  EXPECT_TRUE(report.clean()) << report.text();
}

TEST(StoreTest, OutOfBoundsIsSkipped) {
  for (const SmemSwizzle swizzle : {SmemSwizzle::none, SmemSwizzle::b128}) {
    for (const auto& [column, row] :
         {std::pair{0, 0}, {16, 12}, {64, 8}, {0, 16}, {72, 15}, {80, 0}, {0, 1 << 20}}) {
      for (const Options& how : {schedules()[0], schedules()[1], schedules()[3]}) {
        SCOPED_TRACE(std::to_string(column) + ", " + std::to_string(row) + ", " + text(how));
        Memory<std::uint16_t> target(16 * 80);
        std::fill_n(target.data(), target.size(), untouched);
        std::vector<std::uint16_t> box(8 * 64);
        for (std::size_t i = 0; i < box.size(); ++i) box[i] = static_cast<std::uint16_t>(i + 1);
        store_box<std::uint16_t>({target.data(), 16, 80, 2, 8, 64, swizzle}, box, column, row,
                                 false, how);
        for (int r = 0; r < 16; ++r) {
          for (int c = 0; c < 80; ++c) {
            const int y = r - row;
            const int x = c - column;
            const bool inside = y >= 0 && y < 8 && x >= 0 && x < 64;
            ASSERT_EQ(target[index(r * 80 + c)], inside ? box[index(y * 64 + x)] : untouched)
                << r << ", " << c;
          }
        }
      }
    }
  }
}

TEST(StoreTest, APieceThatBeginsInsideIsWrittenWhole) {
  // 77 columns, 80 apart: the last 16 bytes of a row begin inside (probed on an H200, additions
  // too).
  for (const bool add : {false, true}) {
    for (const Options& how : {schedules()[0], schedules()[1], schedules()[3]}) {
      SCOPED_TRACE(std::string(add ? "addition, " : "store, ") + text(how));
      Memory<std::uint32_t> target(8 * 80);
      std::fill_n(target.data(), target.size(), 0U);
      Matrix m{target.data(), 8, 77, 4, 8, 16};
      m.pitch = 80;
      store_box<std::uint32_t>(m, std::vector<std::uint32_t>(8 * 16, 5), 64, 0, add, how);
      for (std::size_t i = 0; i < target.size(); ++i) {
        const std::size_t column = i % 80;
        EXPECT_EQ(target[i], column >= 64 && column < 80U ? 5U : 0U) << i;
      }
    }
  }
}

template <class T>
void expect_sums(int kind, const std::function<T(int)>& number) {
  // Every addend lands twice on the left half and once on the right.
  Memory<T> target(4 * 16);
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = number(static_cast<int>(i) % 5);
  std::vector<T> box(4 * 16);
  for (std::size_t i = 0; i < box.size(); ++i) box[i] = number(static_cast<int>(i) % 7);
  const Matrix m{target.data(), 4, 16, sizeof(T), 4, 16, SmemSwizzle::none, kind};
  store_box<T>(m, box, 0, 0, true, Options{});
  store_box<T>(m, box, 8, 0, true, random_schedule(3));
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 16; ++c) {
      const int i = r * 16 + c;
      int sum = i % 5 + i % 7;
      if (c >= 8) sum += (i - 8) % 7;
      const T got = target[static_cast<std::size_t>(i)];
      const T want = number(sum);
      EXPECT_EQ(got, want) << i;
    }
  }
}

TEST(StoreTest, ReduceAdd) {
  const auto code = [](DType t) {
    return [t](int i) { return static_cast<std::uint16_t>(numeric::from_double(t, 0.5 * i)); };
  };
  expect_sums<float>(0, [](int i) { return 0.25F * static_cast<float>(i); });
  expect_sums<std::uint16_t>(1, code(DType::f16));
  expect_sums<std::uint16_t>(2, code(DType::bf16));
  expect_sums<std::uint32_t>(3, [](int i) { return static_cast<std::uint32_t>(i) * 100000007U; });
  expect_sums<std::uint64_t>(
      3, [](int i) { return static_cast<std::uint64_t>(i) * 0x0123456789abcdefULL; });
}

TEST(StoreTest, CompleteGroupsAreVisibleToTheirThread) {
  // bulk_wait<1>: the older group's bytes are in global memory; the newer one's may not be.
  Memory<std::uint32_t> target(64);
  const TensorMap map = map_of({target.data(), 2, 32, 4, 1, 32});
  int late = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::fill_n(target.data(), target.size(), 0U);
    const LaunchShape shape{.threads = 1, .shared_bytes = 1024};
    const Report report = run(shape, random_schedule(seed), {target.allocation("target")}, [&] {
      const isa::SharedView<std::uint32_t> view{isa::shared_base()};
      for (int i = 0; i < 64; ++i) view.store(i, 7);
      isa::fence_proxy_async_shared();
      for (int row = 0; row < 2; ++row) {
        isa::tensor_store(map, view.address + static_cast<SharedAddress>(row) * 128,
                          isa::Coords{0, row});
        isa::bulk_commit();
      }
      isa::bulk_wait<1>();
      const isa::GlobalView<const std::uint32_t> global{target.data()};
      EXPECT_EQ(global.load(0), 7U);
      if (target[32] != 7U) ++late;  // seen from outside: a thread may not look yet
      isa::bulk_wait<0>();
      EXPECT_EQ(global.load(32), 7U);
    });
    EXPECT_TRUE(report.clean()) << report.text();
  }
  EXPECT_GT(late, 0);
}

TEST(StoreTest, ReadIsNotComplete) {
  Memory<std::uint32_t> target(32);
  const TensorMap map = map_of({target.data(), 1, 32, 4, 1, 32});
  int late = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    target[0] = 0;
    const Report report = run({.threads = 1, .shared_bytes = 1024}, random_schedule(seed),
                              {target.allocation("target")}, [&] {
                                const isa::SharedView<std::uint32_t> view{isa::shared_base()};
                                for (int i = 0; i < 32; ++i) view.store(i, 7);
                                isa::fence_proxy_async_shared();
                                store_until_read(map, view.address, isa::Coords{0, 0});
                                view.store(0, 9);             // must not reach the tensor
                                if (target[0] != 7U) ++late;  // seen from outside
                              });
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_EQ(target[0], 7U) << "seed " << seed;
  }
  EXPECT_GT(late, 0);
}

TEST(MulticastTest, DataAndSignalsAtTheSameOffsets) {
  Memory<std::uint16_t> source(64 * 64);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint16_t>(i);
  const TensorMap map = map_of({source.data(), 64, 64, 2, 8, 64});
  for (const std::uint16_t mask : {0b0001, 0b1000, 0b0101, 0b1111}) {
    for (const Options& how : schedules()) {
      SCOPED_TRACE(std::to_string(mask) + ", " + text(how));
      int received = 0;
      const LaunchShape shape{.ctas = 4, .cluster_size = 4, .threads = 1, .shared_bytes = 4096};
      const Report report = run(shape, how, {source.allocation("source", false)}, [&] {
        const int rank = isa::cluster_rank();
        const SharedAddress bar = isa::shared_base() + 24;
        const SharedAddress to = isa::shared_base() + 1152;
        make_barrier(bar, 1);
        cluster_sync();
        const bool mine = (mask >> rank & 1) != 0;
        if (mine) isa::mbarrier_arrive_expect(bar, 1024);
        if (rank == 1) isa::tensor_load_multicast(to, map, bar, mask, isa::Coords{0, 16});
        if (mine) {
          isa::mbarrier_wait<Scope::cluster>(bar, 0);
          for (int i = 0; i < 512; ++i) {
            ASSERT_EQ(isa::SharedView<std::uint16_t>{to}.load(i),
                      source[1024 + static_cast<std::size_t>(i)]);
          }
          ++received;
        }
        cluster_sync();
      });
      EXPECT_TRUE(report.clean()) << report.text();
      EXPECT_EQ(received, __builtin_popcount(mask));
      EXPECT_EQ(report.statistics.copies, received);
    }
  }
}

TEST(MulticastTest, SlicesOfTwoCtasMakeOneTile) {
  // Each CTA loads half and multicasts it; signals may come before the own expectation: the count
  // of transaction bytes then goes below zero, which is harmless.
  Memory<std::uint16_t> source(16 * 64);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint16_t>(i);
  const TensorMap map = map_of({source.data(), 16, 64, 2, 8, 64});
  const Kernel kernel{
      {.ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 4096},
      [&] {
        const SharedAddress bar = isa::shared_base();
        const int rank = isa::cluster_rank();
        isa::mbarrier_init(bar, 1);
        isa::mbarrier_init(bar + 8, 1);
        isa::fence_mbarrier_init();
        cluster_sync();
        const auto half = static_cast<SharedAddress>(rank) * 1024;
        isa::tensor_load_multicast(bar + 1024 + half, map, bar, 0b11, isa::Coords{0, 8 * rank});
        // Rank 1 expects only when both halves may have landed long ago.
        if (rank == 1) {
          isa::mbarrier_wait<Scope::cluster>(bar + 8, 0);
          isa::mbarrier_arrive_expect(bar, 2048);
          isa::mbarrier_wait<Scope::cluster>(bar, 0);
        } else {
          isa::mbarrier_arrive_expect(bar, 2048);
          isa::mbarrier_wait<Scope::cluster>(bar, 0);
          isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(bar + 8, 1));
        }
        for (int i = 0; i < 1024; ++i) {
          ASSERT_EQ(isa::SharedView<std::uint16_t>{bar + 1024}.load(i), i);
        }
        cluster_sync();
      },
      {source.allocation("source", false)}};
  expect_clean(kernel);
}

TEST(TransactionTest, BytesMayComeBeforeTheyAreExpected) {
  Memory<std::uint16_t> source(8 * 64);
  const TensorMap map = map_of({source.data(), 8, 64, 2, 8, 64});
  expect_clean({{.threads = 1, .shared_bytes = 4096},
                [&] {
                  const SharedAddress bar = isa::shared_base();
                  make_barrier(bar, 2);
                  isa::tensor_load(bar + 1024, map, bar, isa::Coords{0, 0});
                  isa::mbarrier_arrive<Scope::cta>(bar);
                  EXPECT_FALSE(isa::mbarrier_test_wait<Scope::cta>(bar, 0));
                  isa::mbarrier_arrive_expect(bar, 1024);
                  isa::mbarrier_wait<Scope::cta>(bar, 0);
                },
                {source.allocation("source", false)}});
}

}  // namespace
}  // namespace warpwright::model
