#include "warpwright/atom/descriptor.h"

#include <gtest/gtest.h>

#include <vector>

#include "warpwright/layout/text.h"

#include "warpwright/atom/swizzle.h"

namespace warpwright::atom {
namespace {

constexpr SmemSwizzle kSwizzles[] = {SmemSwizzle::none, SmemSwizzle::b32, SmemSwizzle::b64,
                                     SmemSwizzle::b128};

TEST(SwizzleTest, SpansAndXor) {
  static_assert(span_bytes(SmemSwizzle::none) == 16 && span_bytes(SmemSwizzle::b32) == 32);
  static_assert(span_bytes(SmemSwizzle::b64) == 64 && span_bytes(SmemSwizzle::b128) == 128);
  static_assert(repeat_bytes(SmemSwizzle::b128) == 1024 && repeat_bytes(SmemSwizzle::b32) == 256);
  for (std::uint32_t address = 0; address < 4096; ++address) {
    const std::uint32_t line = address >> 7;
    EXPECT_EQ(apply_swizzle(SmemSwizzle::none, address), address);
    EXPECT_EQ(apply_swizzle(SmemSwizzle::b32, address), address ^ (line & 1) << 4);
    EXPECT_EQ(apply_swizzle(SmemSwizzle::b64, address), address ^ (line & 3) << 4);
    EXPECT_EQ(apply_swizzle(SmemSwizzle::b128, address), address ^ (line & 7) << 4);
    for (const SmemSwizzle s : kSwizzles) {
      EXPECT_EQ(apply_swizzle(s, apply_swizzle(s, address)), address);
      EXPECT_EQ(apply_swizzle(s, address + static_cast<std::uint32_t>(repeat_bytes(s))),
                apply_swizzle(s, address) + static_cast<std::uint32_t>(repeat_bytes(s)));
    }
  }
}

TEST(DescriptorTest, Bits) {
  constexpr Descriptor d{0x2c400, 16, 1024, 0, SmemSwizzle::b128};
  static_assert(encode(d) == (0x2c40ull | 1ull << 16 | 64ull << 32 | 1ull << 62));
  static_assert(encode({0, 0, 0, 0, SmemSwizzle::none}) == 0);
  static_assert(encode({0, 0, 0, 0, SmemSwizzle::b64}) >> 62 == 2);
  static_assert(encode({0, 0, 0, 0, SmemSwizzle::b32}) >> 62 == 3);
  static_assert(encode({0, 0, 0, 5, SmemSwizzle::none}) == 5ull << 49);
  static_assert(decode(advance(encode(d), 32)).start == d.start + 32);
  // In a cluster a shared address carries the CTA's rank above bit 24: it must not leak.
  static_assert(encode({7u << 24 | 0x400, 16, 1024, 0, SmemSwizzle::b128}) ==
                encode({0x400, 16, 1024, 0, SmemSwizzle::b128}));
  for (const SmemSwizzle s : kSwizzles) {
    const Descriptor all{0x3fff0, 0x3fff0, 0x3ffe0, 7, s};
    EXPECT_EQ(decode(encode(all)), all);
  }
}

TEST(DescriptorTest, StridesInBytes) {
  const auto strides = [](Major major, SmemSwizzle swizzle) {
    const Descriptor d = descriptor({128, 64, 16, major, swizzle}, 0);
    return std::pair<int, int>(d.leading, d.stride);
  };
  using P = std::pair<int, int>;
  EXPECT_EQ(strides(Major::k, SmemSwizzle::none), P(2048, 128));
  EXPECT_EQ(strides(Major::k, SmemSwizzle::b32), P(16, 256));
  EXPECT_EQ(strides(Major::k, SmemSwizzle::b64), P(16, 512));
  EXPECT_EQ(strides(Major::k, SmemSwizzle::b128), P(16, 1024));
  EXPECT_EQ(strides(Major::mn, SmemSwizzle::none), P(128, 1024));
  EXPECT_EQ(strides(Major::mn, SmemSwizzle::b32), P(2048, 256));
  EXPECT_EQ(strides(Major::mn, SmemSwizzle::b64), P(4096, 512));
  EXPECT_EQ(strides(Major::mn, SmemSwizzle::b128), P(8192, 1024));
}

TEST(DescriptorTest, StepsAlongK) {
  constexpr OperandTile k_major{128, 64, 16, Major::k, SmemSwizzle::b128};
  static_assert(k_block_count(k_major) == 4);
  static_assert(k_block_offset(k_major, 1) == 32 && k_block_offset(k_major, 3) == 96);
  constexpr OperandTile narrow{128, 64, 16, Major::k, SmemSwizzle::b64};
  static_assert(k_block_offset(narrow, 1) == 32 && k_block_offset(narrow, 2) == 128 * 64);
  constexpr OperandTile plain{128, 64, 16, Major::k, SmemSwizzle::none};
  static_assert(k_block_offset(plain, 1) == 2 * 128 * 16);
  constexpr OperandTile mn_major{128, 64, 16, Major::mn, SmemSwizzle::b128};
  static_assert(k_block_offset(mn_major, 1) == 16 * 128);
  constexpr OperandTile fp8{128, 128, 8, Major::k, SmemSwizzle::b128};
  static_assert(k_block_count(fp8) == 4 && k_block_offset(fp8, 3) == 96);
}

TEST(DescriptorTest, ElementsOfLessThanAByte) {
  // Packed: an instruction's 32 bytes hold 64 elements. Padded: 32, whatever their bits.
  constexpr OperandTile packed{128, 256, 4, Major::k, SmemSwizzle::b128};
  static_assert(tile_fault(packed) == nullptr && tile_bytes(packed) == 128 * 128);
  static_assert(loaded_bytes(packed) == tile_bytes(packed) && span_elements(packed) == 256);
  static_assert(k_block_count(packed) == 4 && k_block_offset(packed, 3) == 96);
  static_assert(tile_offset(packed, 1, 0) == 128 && tile_offset(packed, 0, 7) == 3);
  constexpr OperandTile wide{64, 512, 4, Major::k, SmemSwizzle::b128};
  static_assert(box_count(wide) == 2 && k_block_offset(wide, 5) == 64 * 128 + 32);
  for (const int bits : {4, 6}) {
    const OperandTile padded{128, 256, bits, Major::k, SmemSwizzle::b128, true};
    EXPECT_EQ(tile_fault(padded), nullptr);
    EXPECT_EQ(span_elements(padded), 128);
    EXPECT_EQ(box_count(padded), 2);
    EXPECT_EQ(tile_bytes(padded), 128 * 256);
    EXPECT_EQ(loaded_bytes(padded), 128 * 32 * bits);
    EXPECT_EQ(k_block_count(padded), 8);
    EXPECT_EQ(k_block_offset(padded, 3), 96U);
    EXPECT_EQ(k_block_offset(padded, 5), 128U * 128 + 32);
    // Its descriptors are those of the same tile of bytes.
    EXPECT_EQ(descriptor(padded, 4096), descriptor({128, 256, 8}, 4096));
  }
}

// What TMA does with a tile: one box of one span after the other, each row of a box at a pitch of
// one span, every 16-byte chunk XORed on its absolute address. memory[address] = element + 1.
std::vector<int> write_like_tma(const OperandTile& tile, std::uint32_t base) {
  std::vector<int> memory(base + tile_bytes(tile), 0);
  const int element_bytes = tile.element_bits / 8;
  const int span = span_bytes(tile.swizzle);
  std::uint32_t at = base;
  for (int box = 0; box < box_count(tile); ++box) {
    for (int outer = 0; outer < box_outer(tile); ++outer) {
      for (int byte = 0; byte < span; byte += element_bytes, at += element_bytes) {
        const int along = (box * span + byte) / element_bytes;
        const int row = tile.major == Major::k ? outer : along;
        const int k = tile.major == Major::k ? along : outer;
        int& cell = memory[apply_swizzle(tile.swizzle, at)];
        EXPECT_EQ(cell, 0) << "two elements on one address";
        cell = row * tile.depth + k + 1;
      }
    }
  }
  return memory;
}

// Reads the whole tile through descriptors, `mma_rows` rows and one instruction's K at a time.
void expect_readable(const OperandTile& tile, int mma_rows) {
  SCOPED_TRACE(testing::Message() << tile.rows << "x" << tile.depth << " bits " << tile.element_bits
                                  << " swizzle " << name(tile.swizzle) << " major "
                                  << (tile.major == Major::k ? "K" : "MN"));
  ASSERT_EQ(tile_fault(tile), nullptr);
  const std::uint32_t base = 3 * 1024;
  const std::vector<int> memory = write_like_tma(tile, base);
  const int mma_k = k_block_bytes * 8 / tile.element_bits;
  for (int row0 = 0; row0 < tile.rows; row0 += mma_rows) {
    const std::uint64_t first = encode(descriptor(tile, base + tile_offset(tile, row0, 0)));
    for (int step = 0; step < k_block_count(tile); ++step) {
      const Descriptor d = decode(advance(first, k_block_offset(tile, step)));
      ASSERT_EQ(d, descriptor(tile, base + tile_offset(tile, row0, step * mma_k)));
      ASSERT_EQ(descriptor_fault(d), nullptr);
      for (int row = 0; row < mma_rows; ++row) {
        for (int k = 0; k < mma_k; ++k) {
          const std::uint32_t at = element_address(d, row, k, tile.element_bits, tile.major);
          ASSERT_LT(at, memory.size());
          ASSERT_EQ(memory[at], (row0 + row) * tile.depth + step * mma_k + k + 1)
              << "row " << row0 + row << " k " << step * mma_k + k;
        }
      }
    }
  }
}

TEST(DescriptorTest, TensorCoreReadsWhatTmaWrote) {
  for (const SmemSwizzle swizzle : kSwizzles) {
    for (const int rows : {64, 128, 192, 256}) {
      for (const int depth : {64, 128}) {
        for (const int mma_rows : {64, rows}) {
          expect_readable({rows, depth, 16, Major::k, swizzle}, mma_rows);
          expect_readable({rows, depth, 16, Major::mn, swizzle}, mma_rows);
        }
        expect_readable({rows, 2 * depth, 8, Major::k, swizzle}, 64);
        expect_readable({rows, depth, 32, Major::k, swizzle}, 64);
      }
    }
    expect_readable({24, 64, 16, Major::k, swizzle}, 8);
    expect_readable({64, 16, 16, Major::mn, swizzle}, 64);
  }
}

// Against the formulas, in bytes: boxes of a span side by side, rows of a span below each other.
template <OperandTile tile>
void expect_places() {
  ASSERT_EQ(tile_fault(tile), nullptr);
  const int span = span_bytes(tile.swizzle);
  for (int row = 0; row < tile.rows; ++row) {
    for (int k = 0; k < tile.depth; ++k) {
      const int along = (tile.major == Major::k ? k : row) * tile.element_bits / 8;
      const int across = tile.major == Major::k ? row : k;
      const auto place =
          static_cast<std::uint32_t>(along / span * box_bytes(tile) + across * span + along % span);
      ASSERT_EQ(tile_offset<tile>(row, k), place);
      ASSERT_EQ(tile_offset(tile, row, k), place);
    }
  }
  for (int step = 0; step < k_block_count(tile); ++step) {
    ASSERT_EQ(k_block_offset<tile>(step), k_block_offset(tile, step));
  }
}

TEST(DescriptorTest, TilesAreLayouts) {
  expect_places<OperandTile{128, 64, 16, Major::k, SmemSwizzle::b128}>();
  expect_places<OperandTile{192, 128, 8, Major::k, SmemSwizzle::b128}>();
  expect_places<OperandTile{16, 128, 16, Major::k, SmemSwizzle::b64}>();
  expect_places<OperandTile{24, 64, 32, Major::k, SmemSwizzle::none}>();
  expect_places<OperandTile{128, 64, 16, Major::mn, SmemSwizzle::b128}>();
  expect_places<OperandTile{64, 16, 16, Major::mn, SmemSwizzle::b32}>();
  EXPECT_EQ(layout::to_text(tile_layout({128, 64, 16, Major::k, SmemSwizzle::b128})),
            "(128,(64,1)):(128,(2,16384))");
  EXPECT_EQ(layout::to_text(tile_layout({128, 64, 16, Major::mn, SmemSwizzle::b128})),
            "((64,2),64):((2,8192),128)");
}

TEST(DescriptorTest, TileOffsetIsTheUnswizzledPlace) {
  for (const SmemSwizzle swizzle : kSwizzles) {
    for (const Major major : {Major::k, Major::mn}) {
      const OperandTile tile{128, 64, 16, major, swizzle};
      const std::vector<int> memory = write_like_tma(tile, 0);
      for (int row = 0; row < tile.rows; ++row) {
        for (int k = 0; k < tile.depth; ++k) {
          const std::uint32_t at = apply_swizzle(swizzle, tile_offset(tile, row, k));
          ASSERT_EQ(memory[at], row * tile.depth + k + 1);
        }
      }
    }
  }
}

// The canonical layouts as CuTe prints them, in units of T = 16 bytes of elements (8 of 16 bits):
// K-major ((8,m),(T,2)), MN-major ((T,w,m),(8,k)); CUTLASS, make_gmma_desc.
TEST(DescriptorTest, CanonicalLayouts) {
  constexpr std::uint32_t lbo = 4096;
  constexpr std::uint32_t sbo = 8192;
  for (const SmemSwizzle swizzle : kSwizzles) {
    const Descriptor d{0, lbo, sbo, 0, swizzle};
    const std::uint32_t w = 1u << swizzle_bits(swizzle);  // chunks in a span
    for (std::uint32_t row = 0; row < 128; ++row) {
      for (std::uint32_t k = 0; k < 16; ++k) {
        const int r = static_cast<int>(row);
        const int c = static_cast<int>(k);
        const std::uint32_t k_major =
            row % 8 * 16 * w + row / 8 * sbo + k % 8 * 2 + k / 8 * (w == 1 ? lbo : 16);
        EXPECT_EQ(linear_address(d, r, c, 16, Major::k), k_major);
        const std::uint32_t mn_major =
            w == 1
                ? row % 8 * 2 + row / 8 * sbo + k % 8 * 16 + k / 8 * lbo
                : row % 8 * 2 + row / 8 % w * 16 + row / 8 / w * lbo + k % 8 * 16 * w + k / 8 * sbo;
        EXPECT_EQ(linear_address(d, r, c, 16, Major::mn), mn_major);
      }
    }
  }
}

TEST(DescriptorTest, Refusals) {
  const OperandTile good{128, 64, 16, Major::k, SmemSwizzle::b128};
  EXPECT_EQ(tile_fault(good), nullptr);
  const auto refused = [](OperandTile tile) { return tile_fault(tile) != nullptr; };
  EXPECT_TRUE(refused({128, 128, 6, Major::k, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({128, 128, 8, Major::k, SmemSwizzle::b128, true}));
  EXPECT_TRUE(refused({128, 128, 4, Major::k, SmemSwizzle::b64, true}));
  EXPECT_TRUE(refused({128, 64, 4, Major::k, SmemSwizzle::b128, true}));
  EXPECT_TRUE(refused({128, 128, 4, Major::k, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({128, 128, 8, Major::mn, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({128, 32, 16, Major::k, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({32, 64, 16, Major::mn, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({128, 8, 16, Major::mn, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({12, 64, 16, Major::k, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({512, 64, 16, Major::k, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({128, 64, 4, Major::k, SmemSwizzle::b128}));
  EXPECT_TRUE(refused({0, 64, 16, Major::k, SmemSwizzle::b128}));
  EXPECT_NE(descriptor_fault({8, 16, 1024, 0, SmemSwizzle::b128}), nullptr);
  EXPECT_NE(descriptor_fault({0, 8, 1024, 0, SmemSwizzle::b128}), nullptr);
  EXPECT_NE(descriptor_fault({0, 16, 1 << 18, 0, SmemSwizzle::b128}), nullptr);
  EXPECT_NE(descriptor_fault({0, 16, 1024, 3, SmemSwizzle::b128}), nullptr);
}

}  // namespace
}  // namespace warpwright::atom
