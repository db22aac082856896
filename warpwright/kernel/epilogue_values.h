// What becomes of a product's sums before they are stored: alpha, scales, bias, beta * C,
// activation, gate.
//
// A plain product multiplies by alpha and is done. Everything else goes a second way, which fetches
// the vectors of a subtile into shared memory with a loop, so that the code stays short: a kernel
// that runs its epilogue once waits for every instruction of it to be fetched.
#pragma once

#include <limits>

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

/// Element `i` of a vector of `size`, whatever its type; past the end the last one, and `otherwise`
/// where there is no vector.
WW_DEVICE
float element(const Vector& v, int batch, int i, int size, float otherwise) {
  if (v.data == nullptr) return otherwise;
  return float_at(v.data, v.dtype, batch * v.batch_stride + (i < size ? i : size - 1) * v.stride);
}

/// The same of the token that row `i` of D reads.
WW_DEVICE
float element_by(const tile::TokenIndex& index, const Vector& v, int batch, int i, int size) {
  if (v.data == nullptr) return 1;
  const int token = index.token(i < size ? i : size - 1);
  return token == tile::TokenIndex::none ? 0 : element(v, batch, token, index.tokens(), 1);
}

/// One of two vectors, which need not be the same for all lanes.
WW_DEVICE
Vector either(bool first, const Vector& a, const Vector& b) {
  return {first ? a.data : b.data, first ? a.batch_stride : b.batch_stride,
          first ? a.dtype : b.dtype, first ? a.stride : b.stride};
}

/// Scales and biases of the rows and columns of a subtile, in shared memory: pairs of a scale and a
/// bias, for each half of the product those of the columns, then of the rows.
template <class Tag>
class SubtileVectors {
 public:
  /// Fetches those of `columns` columns and a warp's rows from `at` to the 16-byte aligned
  /// `buffer`. All lanes of a warp call it and may read them afterwards.
  WW_DEVICE SubtileVectors(const OutputParams& p, const ScaleParams& scales, float alpha,
                           const Place& at, isa::SharedAddress buffer)
      : buffer_(buffer) {
    constexpr EpilogueShape cfg = Tag::config;
    const int all_rows = cfg.swap_ab ? p.d_columns * halves : p.d_rows;
    const int all_columns = cfg.swap_ab ? p.d_rows : p.d_columns * halves;
    WW_NO_UNROLL for (int i = isa::lane_index(); i < halves * places; i += 32) {
      const int half = halves == 1 ? 0 : i / places;
      const int place = i - half * places;
      const bool of_row = place >= columns;
      const int first = of_row ? at.row - columns : at.column;
      const bool is_gated = of_row ? gated_rows(cfg) : gated_columns(cfg);
      const int from = is_gated ? p.gate.row(first + place, half) : first + place;
      const int size = of_row ? all_rows : all_columns;
      const Vector of_scales = either(of_row, scales.rows, scales.columns);
      const bool by_index = cfg.by_index && (!cfg.by_index_or_not || scales.index.is_there()) &&
                            of_row != cfg.swap_ab;
      const float scale = by_index
                              ? element_by(scales.index, of_scales, at.batch, first + place, size)
                              : element(of_scales, at.batch, from, size, 1);
      const float bias =
          element(either(of_row, p.row_bias, p.column_bias), at.batch, from, size, 0);
      isa::SharedView<isa::Words<2>>{buffer_}.store(
          i, {isa::float_bits(of_row ? alpha * scale : scale), isa::float_bits(bias)});
    }
    isa::sync_warp();
    WW_UNROLL for (int half = 0; half < halves; ++half) {
      WW_UNROLL for (int i = 0; i < 2; ++i) {
        const isa::Words<2> w = isa::SharedView<isa::Words<2>>{buffer_}.load(
            half * places + columns + isa::lane_index() / 4 + 8 * i);
        factor_[half][i] = isa::float_of(w.word[0]);
        bias_[half][i] = isa::float_of(w.word[1]);
      }
    }
  }

  /// value = row's scale * column's scale * value + biases, for the values of a lane in one half
  /// that begin with value `first`.
  template <int N>
  WW_DEVICE void apply(int half, int first, float (&value)[N]) const {
    WW_UNROLL for (int i = 0; i < N; i += 4) {
      const int pair =
          (half * places + atom::c_col(isa::lane_index(), 0) + atom::c_col(0, first + i)) / 2;
      const isa::Words<4> w = isa::SharedView<isa::Words<4>>{buffer_}.load(pair);
      WW_UNROLL for (int v = 0; v < 4; ++v) {
        const float scale = isa::float_of(w.word[v % 2 * 2]);
        const float bias = isa::float_of(w.word[v % 2 * 2 + 1]);
        value[i + v] = factor_[half][v / 2] * scale * value[i + v] + (bias + bias_[half][v / 2]);
      }
    }
  }

 private:
  static constexpr int halves = static_cast<EpilogueShape>(Tag::config).gated ? 2 : 1;
  static constexpr int columns = subtile_columns(Tag::config);
  static constexpr int places = columns + warp_rows;  // in a half
  static_assert(halves * places == vector_places(Tag::config));

  isa::SharedAddress buffer_;
  float factor_[halves][2];  // of the lane's two rows
  float bias_[halves][2];
};

/// The first values of an array, and those behind the first in their place: registers have no index
/// at run time.
template <class T, int count, int all>
WW_DEVICE void copy_front(T (&front)[count], const T (&of)[all]) {
  WW_UNROLL for (int i = 0; i < count; ++i) front[i] = of[i];
}
template <int count, class T, int all>
WW_DEVICE void drop_front(T (&of)[all]) {
  WW_UNROLL for (int i = 0; i + count < all; ++i) of[i] = of[i + count];
}

/// The activation, in place. NaN stays; infinities have its limits: no infinity meets a 0, for
/// `cubic` is none, and -infinity is the least number where its sigmoid is 0. (That of NaN is NaN.)
template <int N>
WW_DEVICE void activate(const ActivationParams& a, float (&value)[N]) {
  if (a.relu) {
    WW_UNROLL for (int i = 0; i < N; ++i) value[i] = value[i] < 0 ? 0.0F : value[i];
    if (!a.squares) return;
    WW_UNROLL for (int i = 0; i < N; ++i) value[i] *= value[i];
  } else if (a.smooth) {
    WW_UNROLL for (int i = 0; i < N; ++i) {
      const float x = value[i];
      value[i] = isa::at_least(-std::numeric_limits<float>::max(), x) *
                 isa::sigmoid(x * (a.slope + a.cubic * (x * x)));
    }
  }
}

/// gate = activation(gate) * up, with the limits and the offset of an activation that has some.
template <int N>
WW_DEVICE void multiply_gate(const ActivationParams& a, float (&gate)[N], float (&up)[N]) {
  if (a.limit > 0) {
    // Comparisons, which are false for NaN, so that it stays.
    WW_UNROLL for (int i = 0; i < N; ++i) {
      gate[i] = gate[i] > a.limit ? a.limit : gate[i];
      up[i] = up[i] > a.limit ? a.limit : up[i] < -a.limit ? -a.limit : up[i];
      up[i] += a.offset;
    }
  }
  activate(a, gate);
  WW_UNROLL for (int i = 0; i < N; ++i) gate[i] *= up[i];
}

}  // namespace warpwright::kernel
