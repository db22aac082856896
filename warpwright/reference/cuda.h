// The product in float64 on a GPU, by the formulas of the host's, and whether two results agree.
// Everything is enqueued on a stream; pointers are device pointers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "warpwright/plan/product/problem.h"

namespace warpwright::reference {

/// The product before the activation: product[b, m, n] = alpha * sum over k of the scaled elements
/// + beta * C + bias, packed, b-th matrix after b-th matrix. Computed in float64 and rounded once,
/// by a plain kernel that shares nothing with the library's. Refuses operands in groups and packed
/// weights (give a group as a product of its own, and the values of weights), and an N or a batch
/// that is too long for a grid.
[[nodiscard]] std::optional<Refusal> multiply_on_cuda(const GemmOperands& operands, float* product,
                                                      cudaStream_t on);

/// What two results are compared by.
struct Tolerance {
  /// Each side's error of a sum, as a share of the sum of |a b| (by Cauchy and Schwarz at most the
  /// product of the norms of the scaled rows).
  double loss = 0;
};

/// How two results differ.
struct Comparison {
  std::int64_t wrong = 0;  ///< elements beyond the bound
  std::int64_t batch = 0;  ///< the first of them
  std::int64_t row = 0;
  std::int64_t column = 0;
  double ours = 0;
  double theirs = 0;
  double relative = 0;  ///< the norm of the difference over the norm of theirs
};

/// Compares D of `ours` with D of `theirs` (operands alike, another D), or, when `product` is not
/// null, with the epilogue of that product of multiply_on_cuda. Waits for the answer.
Result<Comparison> compare_on_cuda(const GemmOperands& ours, const MatrixView& theirs,
                                   const float* product, const Tolerance& tolerance,
                                   cudaStream_t on);

}  // namespace warpwright::reference
