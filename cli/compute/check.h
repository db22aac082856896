#pragma once

/// The check of a GEMM's result against float64, element by element.

#include <cstdint>
#include <functional>
#include <string>

#include "cli/files/tensor_file.h"
#include "warpwright/plan/problem.h"

namespace warpwright::cli {

/// A matrix operand: its element type and where its codes lie, row-major without gaps.
struct MatrixCodes {
  DType dtype = DType::f32;
  const void* codes = nullptr;
  bool transposed = false;        ///< the codes are those of the transpose: columns are contiguous
  std::int64_t batch_stride = 0;  ///< elements from matrix to matrix; 0 where a batch shares one
};

/// D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d, as GemmOperands has it.
struct GemmCheck {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  MatrixCodes a, b;
  bool packed_b = false;  ///< B are the values of int4 weights, in f32, multiplied with 8 bits
  bool folded = false;    ///< and they are rounded to e4m3 before
  MatrixCodes c;          ///< read only when beta is not 0
  MatrixCodes d;          ///< the result under test: f32, f16, bf16, e4m3 or e5m2
  double alpha = 1.0, beta = 0.0;
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  MatrixCodes scale_a, scale_b;  ///< f32, in the shapes that Scaling says; b's codes null: 1
  MatrixCodes scale_d;           ///< f32; codes null: 1
  Epilogue epilogue;
  MatrixCodes bias;  ///< with epilogue.bias
  /// The relative error of one step of a float32 accumulator.
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
  /// Right elements that no distance was measured of: infinite ones, as an R beyond D's type asks
  /// for; NaN as R is; of fp8 the largest number, R being beyond; infinite or NaN although R is
  /// not, for fp32 may overflow on the way.
  std::int64_t infinite = 0, nan = 0, saturated = 0, overflowed = 0;
  DType dtype = DType::f32;  ///< of D
  std::int64_t batch = 1;    ///< matrices of D
  /// The worst element: of the largest error / allowed; the first of several in row-major order.
  /// Row and column are -1 when no element was measured and none is wrong.
  std::int64_t worst_batch = -1, worst_row = -1, worst_col = -1;
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
/// with ulp that of D's type; the half ulp is the final rounding, taken where that happens at the
/// latest, so that no correct kernel fails for standing on the other side of a power of two. E
/// bounds what a correct kernel may lose before:
///
/// * 16-bit and wider operands: E = epsilon * K' * S, with S = |alpha| * sum|a*b| + |beta*c| +
///   |bias| and K' = K + 1 for each of C and bias that takes part: what an accumulator of relative
///   error epsilon loses over K' steps in any order (S not being 0, K' * 2^-150 more, for steps
///   that underflow in fp32).
/// * 8-bit operands: Hopper adds 32 exact products to the sum so far, each cut to multiples of
///   u = 2^(e - 13), where 2^e is the leading bit of the largest of them. A step so loses less
///   than 36 u: 32 products, and the sum before and after, twice, were the step done in halves.
///   e is bounded by max|a| * max|b| over the step's K and by the largest sum of consecutive
///   steps so far, errors included, wherever K may be split. Scaled by |alpha| * scales, these
///   losses add up over all of K; with promoted accumulation (and block scales, which are applied
///   then) the sum begins at 0 every 128 of K. float32's part follows as above, with
///   K' = ceil(K/32) + 8.
/// * An activation passes E on by its steepest slope (1, or 1.13 for GELU and SiLU) and adds its
///   own error: both are x / (1 + exp(-z)), good to (|z| + 8) 2^-21 of the result with the
///   hardware's exponential. The gate multiplies its two halves, errors and all; scale_d scales E.
///
/// Beyond D's range: an R that rounds past the largest value, whatever the error within E, requires
/// infinity of R's sign; fp8 requires the largest value, as its conversions saturate. A NaN R
/// requires NaN. Where fp32 may overflow on the way (S above its largest value) an infinity or NaN
/// passes too. Throws InputError for types that cannot be checked.
CheckResult check_gemm(const GemmCheck& problem);

/// Adds what was found in a part of D, whose places are those of D. Of equally bad elements the
/// first in row-major order stays, whichever part comes first.
void merge(CheckResult& total, const CheckResult& part);

/// The result as one sentence, naming the worst element of the tensor `name` and how many are
/// beyond its type.
std::string describe(const CheckResult& result, const std::string& name = "D");

}  // namespace warpwright::cli
