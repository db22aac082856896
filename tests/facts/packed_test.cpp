#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "warpwright/atom/wgmma.h"
#include "warpwright/facts/packed_places.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/numeric/scalar.h"

namespace warpwright::packed {
namespace {

using layout::make_layout;
using layout::offset_of;
using layout::tuple;

constexpr Int4Encoding kEncodings[] = {Int4Encoding::sm, Int4Encoding::ex};

// The layouts that the comments and docs/packing.md name.
static_assert(kNibbles == make_layout(tuple(tuple(8, 2, 4), tuple(4, 4, 2, 2, 2)),
                                      tuple(tuple(128, 1, 1024), tuple(2, 32, 8, 16, 4096))));

std::vector<PackedFormat> all_formats() {
  std::vector<PackedFormat> formats;
  for (const Int4Encoding encoding : kEncodings) {
    for (const int group : {32, 64, 128}) {
      for (const DType scale : {DType::bf16, DType::f16, DType::f32}) {
        for (const ZeroPoints zero : {ZeroPoints::none, ZeroPoints::groups}) {
          const PackedFormat format{encoding, group, scale, zero};
          if (weight_form(format) != nullptr) formats.push_back(format);
        }
      }
    }
  }
  return formats;
}

TEST(PackedTest, EachWeightHasItsOwnFourBits) {
  std::set<int> seen;
  for (int row = 0; row < kTileRows; ++row) {
    for (int k = 0; k < kTileK; ++k) seen.insert(offset_of<kNibbles>(row, k));
  }
  EXPECT_EQ(seen.size(), 8192U);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 8191);
}

// A thread reads its 16 bytes of a half and turns them into wgmma's registers, word by word: every
// byte of theirs must be the weight that wgmma takes it for.
TEST(PackedTest, WordsBecomeTheRegistersOfWgmma) {
  for (const Int4Encoding encoding : kEncodings) {
    std::vector<std::uint32_t> bits(kTileCodeBytes / 4);
    std::vector<int> codes(kTileRows * kTileK);
    for (int row = 0; row < kTileRows; ++row) {
      for (int k = 0; k < kTileK; ++k) {
        const int range = 8 - least_code(encoding);
        const int code = (row * 37 + k * 11 + k / 16 * 5 + row / 8) % range + least_code(encoding);
        codes[row * kTileK + k] = code;
        const int nibble = offset_of<kNibbles>(row, k);
        bits[nibble / 8] |= code_bits(code, encoding) << nibble % 8 * 4;
      }
    }
    for (int thread = 0; thread < 128; ++thread) {
      for (int step = 0; step < 4; ++step) {
        for (int p = 0; p < 2; ++p) {
          const int at = lane_begin(step / 2, thread) + 4 * (2 * (step % 2) + p);
          const std::uint32_t word = word_of(bits[at / 4]);
          EXPECT_EQ(bits_of(word), bits[at / 4]);
          const std::uint32_t registers[] = {first_values(word, carries_of(encoding)),
                                             second_values(word, carries_of(encoding))};
          for (int value = 0; value < 8; ++value) {
            const int of_a = 8 * p + value;  // wgmma's own number of it
            const int row = atom::a_row<8>(thread, of_a);
            const int k = 32 * step + atom::a_k<8>(thread, of_a);
            const auto byte =
                static_cast<std::uint8_t>(registers[value / 4] >> value % 4 * 8 & 0xff);
            const double seen = static_cast<double>(numeric::e4m3_t::from_code(byte));
            ASSERT_EQ(seen * kScaleFactor, codes[row * kTileK + k])
                << "thread " << thread << ", step " << step << ", value " << of_a;
          }
        }
      }
    }
  }
}

TEST(PackedTest, AThreadFindsTheScalesOfItsRows) {
  for (const PackedFormat& format : all_formats()) {
    const int size = numeric::bits(format.scale) / 8;
    for (int thread = 0; thread < 128; ++thread) {
      for (int slice = 0; slice < slices(format); ++slice) {
        for (int below = 0; below < 2; ++below) {
          const int row = atom::a_row<8>(thread, 4 * below);
          EXPECT_EQ(scale_pair_begin(format, slice, thread) + below * size,
                    scales_begin() + offset_of<kScales>(row, slice) * size);
        }
      }
    }
  }
}

TEST(PackedTest, PartsOfATileAreMultiplesOf128Bytes) {
  EXPECT_EQ(all_formats().size(), 27U);
  for (const PackedFormat& format : all_formats()) {
    EXPECT_EQ(zero_points_begin(format) % 128, 0);
    EXPECT_EQ(tile_bytes(format) % 128, 0);
  }
  const auto bytes = [](int group, DType scale, ZeroPoints zero = ZeroPoints::none) {
    return tile_bytes({Int4Encoding::ex, group, scale, zero});
  };
  EXPECT_EQ(bytes(128, DType::bf16), 4224);
  EXPECT_EQ(bytes(64, DType::f16), 4352);
  EXPECT_EQ(bytes(32, DType::bf16), 4608);
  EXPECT_EQ(bytes(128, DType::f32), 4352);
  EXPECT_EQ(bytes(32, DType::f32), 5120);
  EXPECT_EQ(bytes(128, DType::bf16, ZeroPoints::groups), 4352);
  EXPECT_EQ(bytes(32, DType::f32, ZeroPoints::groups), 5248);
}

TEST(PackedTest, CodesAndTheirBits) {
  for (const Int4Encoding encoding : kEncodings) {
    std::set<std::uint32_t> seen;
    for (int code = least_code(encoding); code <= 7; ++code) {
      const std::uint32_t bits = code_bits(code, encoding);
      EXPECT_LT(bits, 16U);
      EXPECT_EQ(code_of(bits, encoding), code);
      seen.insert(bits);
    }
    EXPECT_EQ(seen.size(), static_cast<unsigned>(8 - least_code(encoding)));
  }
  EXPECT_EQ(code_of(8, Int4Encoding::sm), 0);
}

TEST(PackedTest, TilesOfKAreNeighbours) {
  const Extents e{3, 130, 300};
  EXPECT_EQ(row_tiles(e), 3);
  EXPECT_EQ(k_tiles(e), 3);
  EXPECT_EQ(tile_index(e, 0, 0, 1), 1);
  EXPECT_EQ(tile_index(e, 0, 1, 0), 3);
  EXPECT_EQ(tile_index(e, 1, 0, 0), 9);
  EXPECT_EQ(tile_index(e, 2, 2, 2) + 1, tiles(e));
  EXPECT_EQ(data_bytes(PackedFormat{}, e), 27 * 4224);
}

}  // namespace
}  // namespace warpwright::packed
