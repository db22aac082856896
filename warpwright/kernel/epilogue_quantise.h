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
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// Where a subtile begins in D.
struct TileCoord {
  int row;
  int column;
};

/// Finds the scales of the epilogue for `Tag::config`, and divides by them. For each block of
/// columns of a tile: `begin`, `look` at the values of its subtiles inside D, `find_scales`, and
/// `divide` them. All lanes of a warp call them; where warps meet all of the CTA, once a tile.
template <class Tag>
class Quantiser {
 public:
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int values = subtile_columns(config) / 2;  // a lane's of one subtile
  /// Do the warps of a CTA wait for each other?
  static constexpr bool meets = quantises_together(config);
  /// Side by side, that share scales.
  static constexpr int subtiles = (meets ? config.tile_n : 128) / subtile_columns(config);

  /// `buffers` are those of all consumer warps, of which this is number `warp`.
  WW_DEVICE Quantiser(isa::SharedAddress buffers, int warp)
      : maxima_(buffers + config.warps * config.buffers * epilogue_buffer_bytes(config)),
        warp_(warp) {}

  WW_DEVICE void begin() {
    if constexpr (meets) {
      turn_ ^= 1;
      for (int column = isa::lane_index(); column < config.tile_n; column += 32) {
        maxima(column).store(warp_, 0.0F);
      }
      isa::sync_warp();
    } else {
      scale_[0] = scale_[1] = 0;
    }
  }

  /// Notes the magnitudes of the block's subtile `which`, of whose columns of D `inside` are any.
  WW_DEVICE void look(int which, int inside, const float (&value)[values]) {
    if constexpr (meets) {
      put_maxima(which, inside, value);
    } else {
      float largest[2] = {scale_[0], scale_[1]};
      WW_UNROLL for (int i = 0; i < values; ++i) {
        largest[i / 2 % 2] = isa::larger_magnitude(largest[i / 2 % 2], value[i]);
      }
      if (inside < subtile_columns(config) || !is_finite(largest[0]) || !is_finite(largest[1])) {
        largest_of_some(inside, value, largest);
      }
      scale_[0] = largest[0];
      scale_[1] = largest[1];
    }
  }

  /// Finds the scales and stores those of the rows of D before `end_row`. `at` is where the block
  /// begins.
  WW_DEVICE void find_scales(const ScalesOfD& to, const TileCoord& at, int batch, int end_row) {
    const int lane = isa::lane_index();
    if constexpr (meets) {
      isa::named_barrier_sync(1, 32 * config.warps);
      WW_UNROLL for (int i = 0; i < scales; ++i) {
        const int column = (lane + 32 * i) % config.tile_n;
        set_scale(i, largest_of_column(column));
        // By the warp that has the first columns of the block: outside D, all of it is.
        const bool mine = warp_ == 0 && lane + 32 * i < config.tile_n;
        if (mine && at.row + column < end_row) {
          store(to, batch, at.row + column, at.column, scale_[i]);
        }
      }
    } else {
      WW_UNROLL for (int i = 0; i < scales; ++i) {
        set_scale(i, largest_of_lanes<1, lanes_of_row>(scale_[i]));
        const int row = at.row + atom::c_row(lane, 2 * i);
        if (lane % lanes_of_row == 0 && row < end_row) {
          store(to, batch, row, at.column, scale_[i]);
        }
      }
    }
  }

  /// Values of the block's subtile `which` become what is to be rounded to codes.
  WW_DEVICE void divide([[maybe_unused]] int which, float (&value)[values]) const {
    if constexpr (meets) {
      WW_UNROLL for (int i = 0; i < values; i += 4) {
        WW_UNROLL for (int j = i; j < i + 2; ++j) {
          const E4m3Divisor by = divisor_of_column(which, j);
          value[j] = by.quotient(value[j]);
          value[j + 2] = by.quotient(value[j + 2]);
        }
      }
    } else {
      E4m3Divisor by[2] = {{scale_[0], inverse_[0]}, {scale_[1], inverse_[1]}};
      if (!by[0].is_usual() || !by[1].is_usual()) [[unlikely]] {
        WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= by[i / 2 % 2].lift();
        WW_UNROLL for (E4m3Divisor& each : by) each = each.lifted();
      }
      WW_UNROLL for (int i = 0; i < values; ++i) {
        value[i] = by[i / 2 % 2].usual_quotient(value[i]);
      }
    }
  }

 private:
  static constexpr int lanes_of_row = 4;
  static constexpr int scales = meets ? (config.tile_n + 31) / 32 : 2;  // a lane's

  WW_DEVICE static bool is_finite(float size) { return size <= std::numeric_limits<float>::max(); }

  /// The same of the values inside that are finite.
  WW_DEVICE void largest_of_some(int inside, const float (&value)[values],
                                 float (&largest)[2]) const {
    largest[0] = scale_[0];
    largest[1] = scale_[1];
    float left[values];
    copy_front(left, value);
    // By a loop, which is short: the next four come to the front.
    WW_NO_UNROLL for (int column = atom::c_col(isa::lane_index(), 0), i = 0; i < values;
                      i += 4, column += atom::c_col(0, 4)) {
      WW_UNROLL for (int j = 0; j < 4; ++j) {
        const float size = column + atom::c_col(0, j) < inside ? finite_magnitude(left[j]) : 0;
        largest[j / 2] = isa::larger_magnitude(largest[j / 2], size);
      }
      drop_front<4>(left);
    }
  }

  WW_DEVICE void set_scale(int i, float largest) {
    const E4m3Divisor by(e4m3_scale(largest));
    scale_[i] = by.scale;
    inverse_[i] = by.inverse;
  }

  WW_DEVICE static void store(const ScalesOfD& to, int batch, int row, int column, float scale) {
    isa::GlobalView<float>{static_cast<float*>(to.data)}.store(
        batch * to.batch_stride + row * to.row_stride + column / 128 * to.block_stride, scale);
  }

  // --- swapped: a warp's rows are 16 columns of D, its columns rows of D ------------------------

  /// Those of all warps, for the row of D that is `column` of the tile. Two tiles have them in
  /// turns: who writes the next but one has met, at the next, all who read this one.
  WW_DEVICE isa::SharedView<float> maxima(int column) const {
    return {maxima_ + (turn_ * config.tile_n + column) * config.warps * 4};
  }

  /// This warp's, of its rows before `inside`.
  WW_DEVICE void put_maxima(int which, int inside, const float (&value)[values]) const {
    const int lane = isa::lane_index();
    const int row = atom::c_row(lane, 0);
    WW_UNROLL for (int i = 0; i < values; i += 4) {
      WW_UNROLL for (int j = i; j < i + 2; ++j) {
        const float upper = row < inside ? finite_magnitude(value[j]) : 0;
        const float lower = row + 8 < inside ? finite_magnitude(value[j + 2]) : 0;
        const float largest =
            largest_of_lanes<lanes_of_row, 32>(isa::larger_magnitude(upper, lower));
        if (lane < lanes_of_row) {
          maxima(which * subtile_columns(config) + atom::c_col(lane, 0) + atom::c_col(0, j))
              .store(warp_, largest);
        }
      }
    }
  }

  WW_DEVICE float largest_of_column(int column) const {
    float largest = 0;
    WW_UNROLL for (int i = 0; i < config.warps / 4; ++i) {
      const auto four = isa::SharedView<isa::Words<4>>{maxima(column).address}.load(i);
      WW_UNROLL for (int j = 0; j < 4; ++j) {
        largest = isa::larger_magnitude(largest, isa::float_of(four.word[j]));
      }
    }
    return largest;
  }

  /// For the column of value `i` of a subtile, from the lane that has it. Subtiles of several have
  /// 32 columns.
  WW_DEVICE E4m3Divisor divisor_of_column(int which, int i) const {
    static_assert(scales == 1 || subtile_columns(config) == 32);
    float scale = scale_[0];
    float inverse = inverse_[0];
    WW_UNROLL for (int of = 1; of < scales; ++of) {
      scale = which == of ? scale_[of] : scale;
      inverse = which == of ? inverse_[of] : inverse;
    }
    const int lane = atom::c_col(isa::lane_index(), 0) + atom::c_col(0, i);
    return {isa::float_of(isa::shuffle(isa::float_bits(scale), lane)),
            isa::float_of(isa::shuffle(isa::float_bits(inverse), lane))};
  }

  isa::SharedAddress maxima_;
  int warp_;
  int turn_ = 0;
  float scale_[scales] = {};  // of a lane's rows of D; before they are found, what they follow from
  float inverse_[scales] = {};
};

/// In the place of one, where D is not quantised.
struct NoQuantiser {
  WW_DEVICE NoQuantiser(isa::SharedAddress /*buffers*/, int /*warp*/) {}
};

}  // namespace warpwright::kernel
