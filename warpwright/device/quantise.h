// Activations (or weights) as 8-, 6- or 4-bit codes and the scales that products multiply them by,
// on the host or on a CUDA device, with the same bits.
//
//   x[i, k] is about codes[i, k] * scale
//
// Scaling::tensor, row_column, blockwise: codes of e4m3, scales of float32. A scale is the largest
// finite magnitude that shares it, over 448, rounded to nearest; never less than the least normal
// float, and 1 where there is none but 0. A code is x / scale, rounded once to float and then to
// the nearest e4m3, ties to even. Infinities and NaN become NaN (0x7f): a value that overflowed is
// seen in what is made of it.
//
// Scaling::block_scaled: mxf8, mxf6, mxf4 and nvf4 by the recipes of facts/micro_scale.h
// (docs/low_precision.md, "Recipes"). Codes of 4 bits lie two in a byte, the first in the low half,
// those of 6 bits four in three bytes, the first in the lowest bits.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/device/scale_order.h"
#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// What is quantised, and to where. The scales are those of a product's A; the same call makes
/// those of row_column's and block_scaled's B.
struct Quantisation {
  MatrixView x = {};  ///< M x K of f32, bf16 or f16; elements of a row next to each other
  /// M x K of e4m3 (block_scaled: or e5m2, e2m3, e3m2, e2m1; rows of whole bytes), likewise; apart
  /// from x.
  MatrixView codes = {};
  /// f32: 1 x 1, M x 1, or M x ceil(K / block()), of any strides from 1. block_scaled: ue8m0 or
  /// ue4m3, in tiles or rows, padding included (scale_order.h).
  MatrixView scales = {};
  Scaling scaling = Scaling::row_column;  ///< tensor, row_column, blockwise or block_scaled
  /// `scales` of Scaling::tensor, or `tensor_scale`, holds the scale: a positive finite number,
  /// which is read on the device. Otherwise it is found and written there, by three grids instead
  /// of one.
  bool given = false;

  // Only for block_scaled.
  /// Not given: `up` for ue8m0, `nested` for ue4m3.
  std::optional<Recipe> recipe = {};
  /// f32, 1 x 1, only for ue4m3: what codes and scales are multiplied by, as `alpha` of a product
  /// is. No address: there is none, it counts as 1.
  MatrixView tensor_scale = {};
  ScaleOrder order = ScaleOrder::tiles;
  ScaleGroups groups = {};  ///< of the rows, whose scales in tiles begin anew for each

  /// Elements that share a scale of blockwise, 128, 64 or 32: as the number of these says.
  [[nodiscard]] constexpr std::int64_t block() const {
    return nearest_scale_block(0, x.columns, 0, scales.columns);
  }
  /// The recipe that is taken.
  [[nodiscard]] constexpr Recipe its_recipe() const {
    return recipe.value_or(scales.dtype == DType::ue4m3 ? Recipe::nested : Recipe::up);
  }
};

/// Why it cannot be carried out, or nothing.
[[nodiscard]] std::optional<Refusal> fault(const Quantisation& what);

/// Carries it out in host memory, on as many threads as the machine has.
[[nodiscard]] std::optional<Refusal> quantise_on_host(const Quantisation& what);

namespace device {

/// Puts it on `stream` (a cudaStream_t) of the current CUDA device: one grid, or three where a
/// scale of all of x is to be found; before them scales of groups are cleared. Takes no memory,
/// does not wait, legal in a graph capture.
[[nodiscard]] std::optional<Refusal> quantise_on_cuda(const Quantisation& what, void* stream);

}  // namespace device
}  // namespace warpwright
