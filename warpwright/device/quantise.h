// Activations as e4m3: codes and the float32 scales that products multiply them by
// (Scaling::tensor, row_column and block), on the host or on a CUDA device, with the same bits.
//
//   x[i, k] is about codes[i, k] * scale
//
// A scale is the largest finite magnitude that shares it, over 448, rounded to nearest; never less
// than the least normal float, and 1 where there is none but 0. A code is x / scale, rounded once
// to float and then to the nearest e4m3, ties to even. Infinities become -448 or 448, NaN stays NaN
// (0x7f).
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// What is quantised, and to where. The scales are those of a product's A; the same call makes
/// those of row_column's B.
struct Quantisation {
  MatrixView x = {};       ///< M x K of f32, bf16 or f16; elements of a row next to each other
  MatrixView codes = {};   ///< M x K of e4m3, likewise; apart from x
  MatrixView scales = {};  ///< f32: 1 x 1, M x 1, or M x ceil(K / 128), of any strides from 1
  Scaling scaling = Scaling::row_column;  ///< tensor, row_column, or block: 1 x 128 of x
  /// Of Scaling::tensor alone: `scales` holds the scale, a positive finite number, which is read on
  /// the device. Otherwise it is found and written there, by three grids instead of one.
  bool given = false;
};

/// Why it cannot be carried out, or nothing.
[[nodiscard]] std::optional<Refusal> fault(const Quantisation& what);

/// Carries it out in host memory, on as many threads as the machine has.
[[nodiscard]] std::optional<Refusal> quantise_on_host(const Quantisation& what);

namespace device {

/// Puts it on `stream` (a cudaStream_t) of the current CUDA device: one grid, or three where a
/// scale of all of x is to be found. Takes no memory, does not wait, legal in a graph capture.
[[nodiscard]] std::optional<Refusal> quantise_on_cuda(const Quantisation& what, void* stream);

}  // namespace device
}  // namespace warpwright
