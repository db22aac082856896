#pragma once

/// The check of a GEMM's result against float64, element by element.

#include <cstdint>
#include <functional>
#include <string>

#include "cli/tensor_file.h"

namespace warpwright::cli {

/// A matrix operand: its element type and where its codes lie, row-major without gaps.
struct MatrixCodes {
  DType dtype = DType::f32;
  const void* codes = nullptr;
  bool transposed = false;  ///< the codes are those of the transpose: columns are contiguous
};

/// D[M, N] = alpha * A[M, K] * B[N, K]^T + beta * C[M, N].
struct GemmCheck {
  std::int64_t m = 0, n = 0, k = 0;
  MatrixCodes a, b;
  MatrixCodes c;  ///< read only when beta is not 0
  MatrixCodes d;  ///< the result under test: f32, f16, bf16, e4m3 or e5m2
  double alpha = 1.0, beta = 0.0;
  /// The relative error of one step of the accumulator: 2^-24 is that of an fp32 one.
  double accumulator_epsilon = 0x1p-24;
  int threads = 0;  ///< 0: as many as the machine has. The result does not depend on it.
  /// Called now and then from one of the threads, never from two at once, with the share done.
  std::function<void(double)> progress;
};

/// What `check_gemm` found.
struct CheckResult {
  bool passed = true;
  std::int64_t elements = 0;
  std::int64_t failures = 0;
  /// The worst element: of the largest error / allowed; the first of several in row-major order.
  /// Row and column are -1 when D has no elements.
  std::int64_t worst_row = -1, worst_col = -1;
  double worst_ratio = 0;    ///< worst_error / worst_allowed; infinite for a wrong NaN or infinity
  double worst_error = 0;    ///< |got - want|
  double worst_allowed = 0;  ///< the tolerance at this element
  double worst_got = 0;      ///< D's value
  double worst_want = 0;     ///< the reference in float64, not rounded to D's type
};

/// Compares D with a float64 reference R over the operands as they are, that is their codes.
///
/// A finite element passes when
///     |D - R| <= E + ulp(|R| + E) / 2
/// with ulp that of D's type, E = epsilon * K' * S, S = |alpha| * sum|a*b| + |beta*c|, and K' = K,
/// plus one when beta is not 0. E bounds what an accumulator of relative error epsilon may lose
/// over K' steps in any order, beta*c being one more product (S not being 0, it is K' * 2^-150
/// more, for steps that underflow in fp32); the half ulp is the final rounding. The ulp is taken
/// where that rounding happens at the latest, so that no correct kernel fails for standing on the
/// other side of a power of two.
///
/// Beyond D's range: an R that rounds past the largest value, whatever the error within E, requires
/// infinity of R's sign; fp8 requires the largest value, as its conversions saturate. A NaN R
/// requires NaN. Where fp32 may overflow on the way (S above its largest value) an
/// infinity or NaN passes too. Throws InputError for types that cannot be checked.
CheckResult check_gemm(const GemmCheck& problem);

/// The result as one sentence, naming the worst element.
std::string describe(const CheckResult& result);

}  // namespace warpwright::cli
