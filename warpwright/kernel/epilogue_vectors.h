// Scales and biases of rows and columns, a subtile's at a time.
//
// A load of one and that of an index before it are some 1,500 clocks: where registers are left, a
// subtile's are asked for ahead (VectorLoads).
#pragma once

#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/float_at.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// Where 16 rows of a subtile begin in the (first half of the) product.
struct Place {
  int row = 0;
  int column = 0;
  int batch = 0;
};

/// Asks for element `i` of a vector where it is `wanted`: `bits` get those of its type, and stay
/// where there is no vector. Nothing waits for them before they are used.
WW_DEVICE
void load_element(const Vector& v, int batch, int i, bool wanted, std::uint32_t& bits) {
  if (v.data == nullptr) return;
  const std::int64_t at = batch * v.batch_stride + i * v.stride;
  if (v.dtype == DType::f32) {
    isa::load_if(wanted, static_cast<const std::uint32_t*>(v.data) + at, bits);
  } else {
    isa::load_if(wanted, static_cast<const std::uint16_t*>(v.data) + at, bits);
  }
}

/// What they are; `otherwise` where there is no vector.
WW_DEVICE
float element_of(const Vector& v, std::uint32_t bits, float otherwise) {
  if (v.data == nullptr) return otherwise;
  return float_of(v.dtype, bits);
}

/// One of two vectors, which need not be the same for all lanes.
WW_DEVICE
Vector either(bool first, const Vector& a, const Vector& b) {
  return {first ? a.data : b.data, first ? a.batch_stride : b.batch_stride,
          first ? a.dtype : b.dtype, first ? a.stride : b.stride};
}

/// What a lane has of the scales and biases of a subtile's rows and columns, as bits of their
/// types: in turn `turn` those of place lane + 32 * turn. The places are, for each half of the
/// product, those of the columns and then of the rows.
template <class Tag>
class VectorTurn {
 public:
  static constexpr int halves = static_cast<EpilogueShape>(Tag::config).gated ? 2 : 1;
  static constexpr int columns = subtile_columns(Tag::config);
  static constexpr int places = columns + warp_rows;  // in a half
  static constexpr int turns = (halves * places + 31) / 32;
  static_assert(halves * places == vector_places(Tag::config));

  /// As `load` and `store`: a scale a column, times `alpha`, and behind them the biases of rows, in
  /// turn 0.
  WW_DEVICE void load_scale(const OutputParams& p, const ScaleParams& scales, const Place& at,
                            int turn) {
    const int i = isa::lane_index() + 32 * turn;
    scale_ = bias_ = 0;
    if (turn == 0 && p.row_bias.data != nullptr) {
      const int row = at.row + i < p.d_columns ? at.row + i : p.d_columns - 1;
      load_element(p.row_bias, at.batch, row, i < warp_rows, bias_);
    }
    if (i >= columns) return;
    const int column = at.column + i < p.d_rows ? at.column + i : p.d_rows - 1;
    const Vector& v = scales.columns;
    scale_ = isa::GlobalView<const std::uint32_t>{static_cast<const std::uint32_t*>(v.data)}.load(
        at.batch * v.batch_stride + column * v.stride);
  }
  WW_DEVICE void store_scale(const OutputParams& p, float alpha, isa::SharedAddress buffer,
                             int turn) const {
    const int i = isa::lane_index() + 32 * turn;
    const isa::SharedView<float> words{buffer};
    if (i < columns) words.store(i, alpha * isa::float_of(scale_));
    if (turn == 0 && p.row_bias.data != nullptr && i < warp_rows) {
      words.store(columns + i, float_of(p.row_bias.dtype, bias_));
    }
  }

  /// Asks for those of `columns` columns and a warp's rows from `at`.
  WW_DEVICE void load(const OutputParams& p, const ScaleParams& scales, const Place& at, int turn) {
    constexpr EpilogueShape cfg = Tag::config;
    if (isa::lane_index() + 32 * turn >= halves * places) return;
    const bool row = of_row(turn);
    const int all = row == cfg.swap_ab ? p.d_columns * halves : p.d_rows;
    const int index = (row ? at.row - columns : at.column) + place(turn);
    const bool is_gated = row ? gated_rows(cfg) : gated_columns(cfg);
    const int from = is_gated ? p.gate.row(index, half(turn)) : index;
    int i = from < all ? from : all - 1;
    scale_ = bias_ = 0;
    load_element(either(row, p.row_bias, p.column_bias), at.batch, i, true, bias_);
    const bool by_index =
        cfg.by_index && (!cfg.by_index_or_not || scales.index.is_there()) && row != cfg.swap_ab;
    const Vector of_scales = either(row, scales.rows, scales.columns);
    if (by_index && of_scales.data != nullptr) i = scales.index.token(i);
    load_element(of_scales, at.batch, i, i != tile::TokenIndex::none, scale_);
  }

  /// Puts them into the 16-byte aligned `buffer`, the scales of rows times `alpha`.
  WW_DEVICE void store(const OutputParams& p, const ScaleParams& scales, float alpha,
                       isa::SharedAddress buffer, int turn) const {
    const int i = isa::lane_index() + 32 * turn;
    if (i >= halves * places) return;
    const bool row = of_row(turn);
    const float scale = element_of(either(row, scales.rows, scales.columns), scale_, 1);
    const float bias = element_of(either(row, p.row_bias, p.column_bias), bias_, 0);
    isa::SharedView<isa::Words<2>>{buffer}.store(
        i, {isa::float_bits(row ? alpha * scale : scale), isa::float_bits(bias)});
  }

 private:
  WW_DEVICE static int half(int turn) {
    return halves == 1 ? 0 : (isa::lane_index() + 32 * turn) / places;
  }
  WW_DEVICE static int place(int turn) {
    return isa::lane_index() + 32 * turn - half(turn) * places;
  }
  /// Where all lanes have the same, it is known when it is compiled.
  WW_DEVICE static bool of_row(int turn) {
    if (halves == 1 && 32 * turn + 32 <= columns) return false;
    if (halves == 1 && 32 * turn >= columns) return true;
    return place(turn) >= columns;
  }

  std::uint32_t scale_ = 0;
  std::uint32_t bias_ = 0;
};

/// Scales and biases of the rows and columns of a subtile, in shared memory: a pair a place. Where
/// a launch has none, `alpha` is all.
template <class Tag>
class SubtileVectors {
 public:
  using Turn = VectorTurn<Tag>;

  /// Reads those that all lanes of a warp have put into the 16-byte aligned `buffer`, where they
  /// are `there`: the same for all.
  WW_DEVICE SubtileVectors(isa::SharedAddress buffer, bool there, float alpha)
      : buffer_(buffer), there_(there), alpha_(alpha) {
    if (!there) return;
    isa::sync_warp();
    WW_UNROLL for (int half = 0; half < Turn::halves; ++half) {
      WW_UNROLL for (int i = 0; i < 2; ++i) {
        const isa::Words<2> w = isa::SharedView<isa::Words<2>>{buffer_}.load(
            half * Turn::places + Turn::columns + isa::lane_index() / 4 + 8 * i);
        factor_[half][i] = isa::float_of(w.word[0]);
        bias_[half][i] = isa::float_of(w.word[1]);
      }
    }
  }

  /// value = row's scale * column's scale * value + biases, for the values of a lane in one half
  /// that begin with value `first`.
  template <int N>
  WW_DEVICE void apply(int half, int first, float (&value)[N]) const {
    if (!there_) {
      WW_UNROLL for (float& each : value) each *= alpha_;
      return;
    }
    WW_UNROLL for (int i = 0; i < N; i += 4) {
      const int pair =
          (half * Turn::places + atom::c_col(isa::lane_index(), 0) + atom::c_col(0, first + i)) / 2;
      const isa::Words<4> w = isa::SharedView<isa::Words<4>>{buffer_}.load(pair);
      WW_UNROLL for (int v = 0; v < 4; ++v) {
        const float scale = isa::float_of(w.word[v % 2 * 2]);
        const float bias = isa::float_of(w.word[v % 2 * 2 + 1]);
        value[i + v] = factor_[half][v / 2] * scale * value[i + v] + (bias + bias_[half][v / 2]);
      }
    }
  }

 private:
  isa::SharedAddress buffer_;
  bool there_;
  float alpha_;
  float factor_[Turn::halves][2];  // of the lane's two rows
  float bias_[Turn::halves][2];
};

/// What a warp has asked for of them.
template <class Tag>
class LoadedVectors {
 public:
  static constexpr EpilogueShape config = Tag::config;
  static constexpr VectorLoads loads = config.vectors;

  /// Are there any? What is neither gated nor quantised has a way of its own without (is_plain),
  /// and gated rows of weights have no registers left for one.
  WW_DEVICE static bool are_there(const OutputParams& p) {
    constexpr bool knows_none = config.quantises || gated_columns(config);
    return !knows_none || p.vectors != VectorUse::none;
  }

  /// Columns have scales, rows perhaps biases, and nothing else becomes of the sums: a way of its
  /// own, where every tile has them. Those are tokens of e4m3 with packed weights.
  WW_DEVICE static bool scales_columns(const OutputParams& p) {
    return knows_scales && p.is_linear && p.vectors == VectorUse::column_scales;
  }

  /// Asks for those of the subtile at `at`. All lanes of a warp call it.
  WW_DEVICE void load(const OutputParams& p, const ScaleParams& scales, const Place& at) {
    if (!are_there(p) || (knows_scales && !scales_columns(p))) return;
    WW_UNROLL for (int turn = 0; turn < turns; ++turn) {
      if constexpr (knows_scales) {
        turn_[turn].load_scale(p, scales, at, turn);
      } else {
        turn_[turn].load(p, scales, at, turn);
      }
    }
  }

  /// Puts those of the subtile at `at` into its 16-byte aligned buffer; what was not asked for is
  /// asked for now.
  WW_DEVICE void put(const OutputParams& p, const ScaleParams& scales, float alpha, const Place& at,
                     isa::SharedAddress buffer) {
    if (!are_there(p)) return;
    if constexpr (loads == VectorLoads::by_turns || knows_scales) {
      WW_NO_UNROLL for (int turn = 0; turn < VectorTurn<Tag>::turns; ++turn) {
        VectorTurn<Tag> now;
        now.load(p, scales, at, turn);
        now.store(p, scales, alpha, buffer, turn);
      }
    } else {
      WW_UNROLL for (int turn = 0; turn < turns; ++turn) {
        turn_[turn].store(p, scales, alpha, buffer, turn);
      }
    }
  }

  /// The same where scales_columns.
  WW_DEVICE void put_scales(const OutputParams& p, float alpha, isa::SharedAddress buffer) const {
    WW_UNROLL for (int turn = 0; turn < turns; ++turn) {
      turn_[turn].store_scale(p, alpha, buffer, turn);
    }
    isa::sync_warp();
  }

  /// Then makes of a lane's values what they become. The buffer is free again behind it.
  template <int values>
  WW_DEVICE static void scale_columns(const OutputParams& p, isa::SharedAddress buffer,
                                      float (&value)[values]) {
    WW_UNROLL for (int i = 0; i < values; i += 4) {
      const isa::Words<2> w = isa::SharedView<isa::Words<2>>{buffer}.load(
          (atom::c_col(isa::lane_index(), 0) + atom::c_col(0, i)) / 2);
      WW_UNROLL for (int v = 0; v < 4; ++v) value[i + v] *= isa::float_of(w.word[v % 2]);
    }
    if (p.row_bias.data != nullptr) {
      const isa::SharedView<float> biases{buffer + 4 * VectorTurn<Tag>::columns};
      WW_UNROLL for (int i = 0; i < values; ++i) {
        value[i] += biases.load(atom::c_row(isa::lane_index(), i % 4));
      }
    }
    isa::sync_warp();
  }

 private:
  static constexpr bool knows_scales =
      config.swap_ab && !config.gated && loads == VectorLoads::early;
  static constexpr int turns = loads == VectorLoads::by_turns ? 0
                               : knows_scales                 ? (VectorTurn<Tag>::columns + 31) / 32
                                                              : VectorTurn<Tag>::turns;

  VectorTurn<Tag> turn_[turns == 0 ? 1 : turns];
};

}  // namespace warpwright::kernel
