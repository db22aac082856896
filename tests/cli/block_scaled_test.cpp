// Where scales of blocks lie. What codes and scales are: run/quantise_micro_test.cpp.
#include "cli/compute/block_scaled.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/compute/random.h"
#include "warpwright/facts/block_scales.h"

namespace warpwright::cli {
namespace {

// Tiles of 128 rows x 4 scales: rows 32 apart side by side, the tiles of a row along K.
TEST(BlockScaled, ScalesLieInTiles) {
  EXPECT_EQ(block_scales::place(0, 0, 8), 0);
  EXPECT_EQ(block_scales::place(0, 3, 8), 3);
  EXPECT_EQ(block_scales::place(1, 0, 8), 16);
  EXPECT_EQ(block_scales::place(32, 0, 8), 4);
  EXPECT_EQ(block_scales::place(33, 5, 8), 512 + 16 + 4 + 1);
  EXPECT_EQ(block_scales::place(128, 0, 8), 1024);
  EXPECT_EQ(block_scales::place(127, 7, 8), 1023);
  EXPECT_EQ(block_scales::padded_rows(129), 256);
  EXPECT_EQ(block_scales::padded_columns(129, 32), 8);
  EXPECT_EQ(block_scales::padded_columns(64, 16), 4);
}

// Each group's scales begin at a tile; rows by index have those of their tokens.
TEST(BlockScaled, ScalesOfGroupsBeginAtTiles) {
  const HostTensor t = [] {
    HostTensor all = random_normal(DType::f32, {140, 32}, 5, 1);
    spread_blocks(all, 8);
    return all;
  }();
  const MicroTensor made = quantise(t, *micro_format("mxf8"));
  const MatrixShape shape{DType::ue8m0, 512, 4, 4};
  const std::vector<std::byte> tiles = scale_tiles(made, shape, 140, 1, {{0, 3}, {3, 3}, {3, 138}});
  const auto at = [&](std::int64_t row) {
    return tiles[static_cast<std::size_t>(block_scales::place(row, 0, 4))];
  };
  EXPECT_EQ(at(2), made.scales[2]);
  EXPECT_EQ(at(3), std::byte{0xff});
  EXPECT_EQ(at(128), made.scales[3]);
  EXPECT_EQ(at(128 + 134), made.scales[137]);
  EXPECT_EQ(at(128 + 135), std::byte{0xff});
  const std::vector<std::byte> picked = scale_tiles(made, shape, 2, 1, {{0, 1}, {1, 2}}, {139, -1});
  EXPECT_EQ(picked[0], made.scales[139]);
  EXPECT_EQ(picked[512], std::byte{0}) << "no such token";
}

}  // namespace
}  // namespace warpwright::cli
