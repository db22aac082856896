// Rows of tokens of a layer in one launch, which its warps bring from global to shared memory: to
// where a unit's words are read by lanes (layer_units.h), and where weights are e4m3 in blocks as
// codes by then, each as an f16, with the scale of each 128 behind the row. The bits are those of a
// launch that quantises (moe/token_rows.h).
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/hopper/layer_units.h"
#include "warpwright/kernel/quantise/codes.h"
#include "warpwright/kernel/quantise/row_pieces.h"

namespace warpwright::kernel {

/// Rows of `k` elements in shared memory from `at` on, `pitch` bytes apart.
template <class Units>
class StagedRows {
 public:
  WW_DEVICE StagedRows(isa::SharedAddress at, int k, int pitch) : at_(at), k_(k), pitch_(pitch) {}

  [[nodiscard]] WW_DEVICE isa::SharedAddress row(int i) const {
    return at_ + static_cast<isa::SharedAddress>(i * pitch_);
  }
  [[nodiscard]] WW_DEVICE isa::SharedAddress scales(int i) const {
    return row(i) + static_cast<isa::SharedAddress>(2 * k_);
  }

  /// The whole warp: brings rows from where `row_at` says that each begins, 32 pieces of eight
  /// elements at a time, of these each `step`-th from `turn` on. Behind `there` elements, a
  /// multiple of eight, rows are 0.
  template <class RowAt>
  WW_DEVICE void bring(int rows, int there, const RowAt& row_at, int turn, int step) const {
    const int turns = (k_ / each + 31) / 32;
    Turn next{0, turn};
    next.settle(turns);
    WW_NO_UNROLL while (next.row < rows) {
      Turn at[at_once];
      isa::Words<4> piece[at_once];
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        at[i] = next;
        const int first = next.first();
        piece[i] = {};
        if (next.row < rows && first < there) {
          piece[i] = isa::global_view<const isa::Words<4>>(row_at(next.row)).load(first / each);
        }
        next.turn += step;
        next.settle(turns);
      }
      put_all(at, piece, rows);
    }
  }

 private:
  static constexpr int each = 8;
  static constexpr int at_once = Units::quantises ? 2 : 3;  ///< pieces of a lane on their way

  struct Turn {
    int row;
    int turn;

    WW_DEVICE void settle(int turns) {
      WW_NO_UNROLL while (turn >= turns) {
        turn -= turns;
        ++row;
      }
    }
    /// This lane's first element.
    [[nodiscard]] WW_DEVICE int first() const { return (turn * 32 + isa::lane_index()) * each; }
  };

  WW_DEVICE void put_all(const Turn (&at)[at_once], isa::Words<4> (&piece)[at_once],
                         int rows) const {
    if constexpr (!Units::quantises) {
      WW_UNROLL for (int i = 0; i < at_once; ++i) put(at[i], piece[i], rows);
    } else {
      // One after the other: code that runs once is waited for.
      Turn now[at_once];
      WW_UNROLL for (int i = 0; i < at_once; ++i) now[i] = at[i];
      WW_NO_UNROLL for (int n = 0; n < at_once; ++n) {
        if (now[0].row >= rows) break;
        put(now[0], quantised(now[0], piece[0]), rows);
        WW_UNROLL for (int i = 0; i + 1 < at_once; ++i) {
          now[i] = now[i + 1];
          piece[i] = piece[i + 1];
        }
      }
    }
  }

  WW_DEVICE void put(const Turn& at, const isa::Words<4>& piece, int rows) const {
    if (at.row < rows && at.first() < k_) Units::put(row(at.row), at.first() / each, piece);
  }

  /// Codes of a piece, each as an f16; the first of 16 lanes stores their scale.
  WW_DEVICE isa::Words<4> quantised(const Turn& at, const isa::Words<4>& piece) const {
    float value[each];
    WW_UNROLL for (int w = 0; w < each / 2; ++w) {
      const isa::Pair pair = isa::unpack<DType::bf16>(&piece.word[w]);
      value[2 * w] = pair.low;
      value[2 * w + 1] = pair.high;
    }
    const E4m3Divisor by(e4m3_scale(largest_of_lanes<1, 16>(larger_finite(0, value))));
    const std::uint64_t codes = codes_of(by, value);
    if (isa::lane_index() % 16 == 0 && at.first() < k_) {
      isa::SharedView<float>{scales(at.row)}.store(at.first() / 128, by.scale);
    }
    isa::Words<4> halves;
    WW_UNROLL for (int w = 0; w < 4; ++w) {
      halves.word[w] = isa::halves_of_bytes(static_cast<std::uint16_t>(codes >> 16 * w));
    }
    return halves;
  }

  isa::SharedAddress at_;
  int k_;
  int pitch_;
};

}  // namespace warpwright::kernel
