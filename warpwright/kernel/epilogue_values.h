// What becomes of a product's sums before they are stored: alpha, scales, bias, beta * C,
// activation, gating.
//
// A plain product multiplies by alpha and is done. Everything else goes a second way, which fetches
// the vectors of a chunk's columns into shared memory with a loop, so that the code stays short: a
// kernel that runs its epilogue once waits for every instruction of it to be fetched.
#pragma once

#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// Where 16 rows of a chunk begin in the (first half of the) product.
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
  const std::int64_t at = batch * v.batch_stride + (i < size ? i : size - 1) * v.stride;
  if (v.dtype == DType::f32) {
    return isa::GlobalView<const float>{static_cast<const float*>(v.data)}.load(at);
  }
  const std::uint16_t code =
      isa::GlobalView<const std::uint16_t>{static_cast<const std::uint16_t*>(v.data)}.load(at);
  return v.dtype == DType::bf16 ? isa::to_float<DType::bf16>(code)
                                : isa::to_float<DType::f16>(code);
}

/// Scales and biases of the rows and columns of a chunk. The columns' lie in shared memory, pairs
/// of a scale and a bias.
template <class Tag>
class ChunkVectors {
 public:
  /// Fetches those of `columns` columns from `at`, in one half of the product, to the 16-byte
  /// aligned `buffer`. All lanes of a warp call it and may read them afterwards.
  WW_DEVICE ChunkVectors(const OutputParams& p, const ScaleParams& scales, float alpha,
                         const Place& at, int half, int columns, isa::SharedAddress buffer)
      : buffer_(buffer) {
    constexpr EpilogueShape cfg = Tag::config;
    constexpr int halves = cfg.gated ? 2 : 1;
    const int all_rows = cfg.swapped ? p.d_columns * halves : p.d_rows;
    const int all_columns = cfg.swapped ? p.d_rows : p.d_columns * halves;
    const int row = at.row + (gated_rows(cfg) ? half * p.d_columns : 0) + isa::lane_index() / 4;
    const int column = at.column + (gated_columns(cfg) ? half * p.d_columns : 0);
    for (int i = 0; i < 2; ++i) {
      factor_[i] = alpha * element(scales.rows, at.batch, row + 8 * i, all_rows, 1);
      bias_[i] = element(p.row_bias, at.batch, row + 8 * i, all_rows, 0);
    }
    WW_NO_UNROLL for (int c = isa::lane_index(); c < columns; c += 32) {
      const float scale = element(scales.columns, at.batch, column + c, all_columns, 1);
      const float bias = element(p.column_bias, at.batch, column + c, all_columns, 0);
      isa::SharedView<isa::Words<2>>{buffer_}.store(
          c, {isa::float_bits(scale), isa::float_bits(bias)});
    }
    isa::sync_warp();
  }

  /// value = row's scale * column's scale * value + biases, for the four values of two columns that
  /// begin with value `i`.
  template <int N>
  WW_DEVICE void apply(int i, float (&value)[N]) const {
    const int pair = atom::c_col(isa::lane_index(), i) / 2;
    const isa::Words<4> w = isa::SharedView<isa::Words<4>>{buffer_}.load(pair);
    WW_UNROLL for (int v = 0; v < 4; ++v) {
      const float scale = isa::float_of(w.word[v % 2 * 2]);
      const float bias = isa::float_of(w.word[v % 2 * 2 + 1]);
      value[i + v] = factor_[v / 2] * scale * value[i + v] + (bias + bias_[v / 2]);
    }
  }

 private:
  isa::SharedAddress buffer_;
  float factor_[2];  // of the lane's two rows
  float bias_[2];
};

/// The activation, in place. NaN stays.
template <int N>
WW_DEVICE void activate(const ActivationParams& a, float (&value)[N]) {
  if (a.relu) {
    WW_UNROLL for (int i = 0; i < N; ++i) value[i] = value[i] < 0 ? 0.0F : value[i];
  } else if (a.smooth) {
    WW_UNROLL for (int i = 0; i < N; ++i) {
      const float x = value[i];
      value[i] = x * isa::sigmoid(x * (a.slope + a.cubic * (x * x)));
    }
  }
}

}  // namespace warpwright::kernel
