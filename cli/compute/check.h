#pragma once

/// The check of a GEMM's result against float64, element by element.

#include <cstdint>
#include <functional>
#include <string>

#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// What a check is told beside the product.
struct CheckSettings {
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
  /// for; NaN as R is; for fp8 the largest number, R being beyond; infinite or NaN although R is
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

/// Compares D of operands in host memory with float64 over A, B and the others as they are, that is
/// their codes. For a product in groups the rows in a group are compared. What an element is (R),
/// and what it may be off (E), is reference::Tile's; how the two compare is reference::judge's. For
/// a D that is quantised elements are codes times their scales, by reference::judge_code; where the
/// scale of a block is none of its values', all of its elements are wrong.
/// Throws InputError for types that cannot be checked.
CheckResult check_gemm(const GemmOperands& operands, const CheckSettings& settings = {});

/// The result as one sentence, naming the worst element of the tensor `name` and how many are
/// beyond its type.
std::string describe(const CheckResult& result, const std::string& name = "D");

}  // namespace warpwright::cli
