// What a warp of the register kernels holds: two sets of fragments of A and B, of which ldmatrix
// fills one while mma.sync multiplies the other, and the sums. Whoever filled the stages, rows lie
// in them as the copy engine would leave them.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/registers/config.h"

namespace warpwright::kernel {

/// The fragments of one warp of those that multiply a tile of `Tag::config`.
template <class Tag>
class RegisterFragments {
  static constexpr RegisterConfig config = Tag::config;
  static constexpr atom::Mma mma = config.mma;
  static constexpr int kRowBytes = row_bytes(config);
  static constexpr int kMTiles = m_tiles(config);
  static constexpr int kNTiles = n_tiles(config);
  static constexpr std::uint32_t kTileA = static_cast<std::uint32_t>(config.tile_m * kRowBytes);

 public:
  /// Of a warp: its MMAs along M and N, and the registers of each.
  using Sums = isa::MmaSum<mma>[kMTiles][kNTiles][atom::mma_registers_c(mma)];

  /// `thread` counts those that multiply one tile.
  WW_DEVICE explicit RegisterFragments(int thread) {
    const int lane = thread % 32;
    const int warp = thread / 32;
    // Lanes of one ldmatrix: A's 16 rows, both halves of 32 bytes; B's 8 rows, both halves, and the
    // next 8. The registers are then those of the MMA.
    const int row_a = warp / config.warps_n * (config.tile_m / config.warps_m) + lane % 16;
    const int row_b =
        warp % config.warps_n * (config.tile_n / config.warps_n) + lane % 8 + lane / 16 * 8;
    place_a_ = place(row_a);
    place_b_ = place(row_b) + kTileA;
    half_a_ = half(row_a, lane / 16);
    half_b_ = half(row_b, lane / 8 % 2);
  }

  /// Fragments of step `step` of the stage at `stage` into set `set`. All lanes call it.
  WW_DEVICE void load(isa::SharedAddress stage, int step, int set) {
    const std::uint32_t k = static_cast<std::uint32_t>(step * 32);
    WW_UNROLL
    for (int m = 0; m < kMTiles; ++m) {
      isa::load_matrix<4>(stage + place_a_ + place(16 * m) + (half_a_ ^ k), a_[set][m]);
    }
    WW_UNROLL
    for (int n = 0; n < kNTiles; n += 2) {
      std::uint32_t pair[4];
      isa::load_matrix<4>(stage + place_b_ + place(8 * n) + (half_b_ ^ k), pair);
      b_[set][n][0] = pair[0];
      b_[set][n][1] = pair[1];
      b_[set][n + 1][0] = pair[2];
      b_[set][n + 1][1] = pair[3];
    }
  }

  /// sums += the products of set `set`.
  WW_DEVICE void multiply(Sums& sums, int set) const {
    WW_UNROLL
    for (int m = 0; m < kMTiles; ++m) {
      WW_UNROLL
      for (int n = 0; n < kNTiles; ++n) {
        isa::mma_sync<mma>(sums[m][n], a_[set][m], b_[set][n]);
      }
    }
  }

 private:
  WW_DEVICE static std::uint32_t place(int row) {
    return static_cast<std::uint32_t>(row * kRowBytes);
  }
  // Which 16 bytes of a row's first 32 are meant, as the swizzle turns them: later steps differ
  // from it in the bits above.
  WW_DEVICE static std::uint32_t half(int row, int chunk) {
    const std::uint32_t at = place(row);
    return atom::apply_swizzle(swizzle(config), at + static_cast<std::uint32_t>(chunk * 16)) - at;
  }

  std::uint32_t place_a_ = 0;
  std::uint32_t place_b_ = 0;
  std::uint32_t half_a_ = 0;
  std::uint32_t half_b_ = 0;
  std::uint32_t a_[2][kMTiles][4];
  std::uint32_t b_[2][kNTiles][2];
};

/// A warp's sums as the epilogue has them: those of 16 rows in one line.
template <class Tag>
struct WarpSums {
  struct Rows {
    float (&mmas)[n_tiles(Tag::config)][4];
    WW_DEVICE float& operator[](int i) const { return mmas[i / 4][i % 4]; }
  };
  WW_DEVICE Rows operator[](int m) { return {mmas[m]}; }

  typename RegisterFragments<Tag>::Sums mmas = {};
};

}  // namespace warpwright::kernel
