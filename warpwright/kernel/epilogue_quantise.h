// Codes and scales instead of values: the last step of an epilogue whose D is quantised. The
// largest finite magnitude of 128 columns of a row of D gives their scale; then all of them are
// divided by it. As device/quantise.h does it, from the epilogue's float32 values: the same bits.
//
// Where D's columns are the kernel's, four lanes hold a row's 128, and meet by shuffles. Swapped,
// each warp holds 16 of them: the warps of the CTA meet through shared memory, once a tile.
#pragma once

#include <limits>

#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/e4m3_divisor.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// Where a subtile begins in D.
struct TileCoord {
  int row;
  int column;
};

/// The quantising step of the epilogue for `Tag::config`.
template <class Tag>
class Quantiser {
 public:
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int values = subtile_columns(config) / 2;  // a lane's of one subtile
  /// Do the warps of a CTA wait for each other?
  static constexpr bool meets = quantises_together(config);

  /// `buffers` are those of all consumer warps, of which this is number `warp`.
  WW_DEVICE Quantiser(isa::SharedAddress buffers, int warp)
      : maxima_(buffers + config.warps * config.buffers * epilogue_buffer_bytes(config)),
        warp_(warp) {}

  /// Divides the lane's values of the subtile at `at`, of matrix `batch` of D, by the scales of
  /// their blocks, and stores these for the rows before `end_row`. All lanes of a warp call it;
  /// where they meet, all warps of the CTA, for every tile once: it, or `leave_out`.
  WW_DEVICE void run(const OutputParams& p, const TileCoord& at, int batch, int end_row,
                     float (&value)[values]) {
    if constexpr (meets) {
      clear_rows(p.d_columns - at.column, value);
      put_maxima(value);
      meet();
      if (warp_ == 0) store_scales(p, at, batch, end_row);
      divide_columns(value);
      turn_ ^= 1;
    } else {
      divide_rows(p, at, batch, end_row, value);
    }
  }

  /// For a warp whose part of the tile is outside D, where warps meet.
  WW_DEVICE void leave_out() {
    for (int column = isa::lane_index(); column < config.tile_n; column += 32) {
      maxima(column).store(warp_, 0.0F);
    }
    meet();
    turn_ ^= 1;
  }

 private:
  static constexpr int lanes_of_row = 4;

  WW_DEVICE static float largest_of(const float (&value)[values], int first, int step) {
    float largest = 0;
    WW_UNROLL for (int i = first; i < values; i += step) {
      WW_UNROLL for (int j = i; j < i + 2; ++j) largest = isa::larger_magnitude(largest, value[j]);
    }
    if (largest <= std::numeric_limits<float>::max()) return largest;
    largest = 0;
    WW_UNROLL for (int i = first; i < values; i += step) {
      WW_UNROLL for (int j = i; j < i + 2; ++j) {
        largest = isa::larger_magnitude(largest, finite_magnitude(value[j]));
      }
    }
    return largest;
  }

  /// The largest of what lanes hold whose numbers differ in a bit from `first` to before `end`.
  template <int first, int end>
  WW_DEVICE static float largest_of_lanes(float largest) {
    WW_UNROLL for (int other = first; other < end; other *= 2) {
      largest = isa::larger_magnitude(
          largest,
          isa::float_of(isa::shuffle(isa::float_bits(largest), isa::lane_index() ^ other)));
    }
    return largest;
  }

  WW_DEVICE static void store_scale(const OutputParams& p, int row, int column, int batch,
                                    float scale) {
    const ScalesOfD& to = p.d_scales;
    isa::GlobalView<float>{to.data}.store(
        batch * to.batch_stride + row * to.row_stride + column / 128 * to.block_stride, scale);
  }

  /// A scale below 2^-60, and the values with it, times 2^64: quotients have all of their bits
  /// then.
  WW_DEVICE static float lift(float scale) { return scale < 0x1p-60F ? 0x1p64F : 1.0F; }

  /// Rows lie in four lanes each, two in a lane: values 0 and 1 of four are of the first.
  WW_DEVICE static void divide_rows(const OutputParams& p, const TileCoord& at, int batch,
                                    int end_row, float (&value)[values]) {
    const int lane = isa::lane_index();
    const int columns = p.d_columns - at.column;
    if (columns < subtile_columns(config)) {  // a short block: what lies behind it does not count
      WW_UNROLL for (int i = 0; i < values; ++i) {
        if (atom::c_col(lane, 0) + atom::c_col(0, i) >= columns) value[i] = 0;
      }
    }
    float scale[2];
    WW_UNROLL for (int half = 0; half < 2; ++half) {
      scale[half] = e4m3_scale(largest_of_lanes<1, lanes_of_row>(largest_of(value, 2 * half, 4)));
      const int row = at.row + atom::c_row(lane, 2 * half);
      if (lane % lanes_of_row == 0 && row < end_row) {
        store_scale(p, row, at.column, batch, scale[half]);
      }
    }
    const float lifts[2] = {lift(scale[0]), lift(scale[1])};
    if (lifts[0] != 1 || lifts[1] != 1) {
      WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= lifts[i / 2 % 2];
    }
    const E4m3Divisor by[2] = {E4m3Divisor(scale[0] * lifts[0]), E4m3Divisor(scale[1] * lifts[1])};
    WW_UNROLL for (int i = 0; i < values; ++i) value[i] = by[i / 2 % 2].quotient(value[i]);
  }

  // --- swapped: a warp's rows are 16 columns of D, its columns rows of D ------------------------

  /// Those of all warps, for the row of D that is `column` of the tile. Two tiles have them in
  /// turns: who writes the next but one has met, at the next, all who read this one.
  WW_DEVICE isa::SharedView<float> maxima(int column) const {
    return {maxima_ + ((turn_ * config.tile_n) + column) * config.warps * 4};
  }
  WW_DEVICE static void meet() { isa::named_barrier_sync(1, 32 * config.warps); }

  /// Clears the rows from `rows` on.
  WW_DEVICE static void clear_rows(int rows, float (&value)[values]) {
    if (rows >= warp_rows) return;
    WW_UNROLL for (int i = 0; i < values; ++i) {
      if (atom::c_row(isa::lane_index(), 0) + atom::c_row(0, i) >= rows) value[i] = 0;
    }
  }

  WW_DEVICE void put_maxima(const float (&value)[values]) const {
    const int lane = isa::lane_index();
    WW_UNROLL for (int i = 0; i < values; i += 4) {
      WW_UNROLL for (int j = i; j < i + 2; ++j) {
        float largest = finite_magnitude(value[j]);
        largest = isa::larger_magnitude(largest, finite_magnitude(value[j + 2]));
        largest = largest_of_lanes<lanes_of_row, 32>(largest);
        if (lane < lanes_of_row) {
          maxima(atom::c_col(lane, 0) + atom::c_col(0, j)).store(warp_, largest);
        }
      }
    }
  }

  WW_DEVICE float scale_of(int column) const {
    float largest = 0;
    WW_UNROLL for (int i = 0; i < config.warps / 4; ++i) {
      const auto four = isa::SharedView<isa::Words<4>>{maxima(column).address}.load(i);
      WW_UNROLL for (int j = 0; j < 4; ++j) {
        largest = isa::larger_magnitude(largest, isa::float_of(four.word[j]));
      }
    }
    return e4m3_scale(largest);
  }

  /// By the warp that has the first columns of the block, which are never outside D.
  WW_DEVICE void store_scales(const OutputParams& p, const TileCoord& at, int batch,
                              int end_row) const {
    for (int column = isa::lane_index(); column < config.tile_n; column += 32) {
      if (at.row + column >= end_row) return;
      store_scale(p, at.row + column, at.column, batch, scale_of(column));
    }
  }

  WW_DEVICE void divide_columns(float (&value)[values]) const {
    const int first = atom::c_col(isa::lane_index(), 0);
    WW_UNROLL for (int i = 0; i < values; i += 4) {
      WW_UNROLL for (int j = i; j < i + 2; ++j) {
        const float scale = scale_of(first + atom::c_col(0, j));
        const float lifted = lift(scale);
        const E4m3Divisor by(scale * lifted);
        value[j] = by.quotient(value[j] * lifted);
        value[j + 2] = by.quotient(value[j + 2] * lifted);
      }
    }
  }

  isa::SharedAddress maxima_;
  int warp_;
  int turn_ = 0;
};

/// In the place of one, where D is not quantised.
template <class Tag>
class NoQuantiser {
 public:
  static constexpr bool meets = false;
  WW_DEVICE NoQuantiser(isa::SharedAddress /*buffers*/, int /*warp*/) {}
  template <class Values>
  WW_DEVICE void run(const OutputParams& /*p*/, const TileCoord& /*at*/, int /*batch*/,
                     int /*end_row*/, Values& /*value*/) const {}
  WW_DEVICE void leave_out() const {}
};

}  // namespace warpwright::kernel
