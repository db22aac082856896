#include "cli/compute/check.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "cli/compute/reference.h"
#include "warpwright/facts/share.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::cli {
namespace {

// A task is one kTile x kTile tile of D. Each task's sums are its own, in an order that is fixed,
// so the result depends neither on how many threads there are nor on which of them takes which.
constexpr std::int64_t kTile = TileReference::tile;

// What an element was compared as.
enum class Kind : std::uint8_t {
  finite,      // by its distance from the reference
  infinite,    // infinite, as a reference beyond D's type asks for
  nan,         // NaN, as the reference is
  saturated,   // the largest number, for a reference beyond it
  overflowed,  // infinite or NaN, because fp32 may overflow on the way
};

// How one element compares.
struct Verdict {
  bool passed = true;
  double error = 0, allowed = 0, ratio = 0;
  Kind kind = Kind::finite;
};

// Judges D's value `got` against the reference `want`; `magnitude` is |alpha|*sum|ab| + |beta*c|
// and `slack` the E of the header.
Verdict judge(DType dtype, double got, double want, double magnitude, double slack) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Verdict wrong{false, kInf, 0, kInf};
  const auto right_if = [&wrong](bool right, Kind kind) {
    return right ? Verdict{true, 0, 0, 0, kind} : wrong;
  };
  const bool may_overflow = !(magnitude <= static_cast<double>(FLT_MAX));
  if (std::isnan(want)) return right_if(std::isnan(got), Kind::nan);
  const bool is_fp8 = numeric::bits(dtype) == 8;
  const auto rounded = [&](double x) {
    return numeric::to_double(dtype, numeric::from_double(dtype, x, numeric::Rounding::nearest_even,
                                                          is_fp8 ? numeric::Overflow::saturate
                                                                 : numeric::Overflow::special));
  };
  if (std::isinf(want)) {
    if (std::isnan(got)) return right_if(true, Kind::overflowed);
    return right_if(got == rounded(want), is_fp8 ? Kind::saturated : Kind::infinite);
  }
  if (std::isnan(got)) return right_if(may_overflow, Kind::overflowed);
  const double low = rounded(want - slack);
  const double high = rounded(want + slack);
  if (std::isinf(got)) {
    if (got == low || got == high) return right_if(true, Kind::infinite);
    return right_if(may_overflow, Kind::overflowed);
  }
  if (low == kInf || high == -kInf) return wrong;  // finite where even the nearest is infinite

  double target = want;
  if (is_fp8) {
    const double largest = numeric::format_of(dtype).max();
    target = std::clamp(want, -largest, largest);
  }
  Verdict verdict;
  if (target != want && got == target) return right_if(true, Kind::saturated);
  verdict.error = std::abs(got - target);
  verdict.allowed = slack + numeric::ulp(dtype, std::abs(want) + slack) / 2;
  verdict.passed = verdict.error <= verdict.allowed;
  verdict.ratio = verdict.error / verdict.allowed;
  return verdict;
}

void require(bool is_legal, const char* operand, DType dtype, const char* rule) {
  if (is_legal) return;
  throw InputError(std::string("Matrix ") + operand + " of type " +
                   std::string(numeric::word(dtype)) + " cannot be checked: the types are " + rule +
                   ".");
}

bool is_checked(DType t) {
  return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::e4m3 ||
         t == DType::e5m2;
}

// Columns of D.
std::int64_t result_columns(const GemmCheck& p) {
  return p.epilogue.gated ? p.n / 2 : p.n;
}

// The gate's product of two values, each with its error.
Approximate product(const Approximate& x, const Approximate& y) {
  const double value = x.value * y.value;
  const double slack = std::abs(x.value) * y.slack + std::abs(y.value) * x.slack +
                       x.slack * y.slack + 2 * 0x1p-24 * std::abs(value);
  return {value, slack, std::max(x.magnitude, std::max(y.magnitude, x.magnitude * y.magnitude))};
}

// One thread's buffers and its work on one tile of D.
class TileChecker {
 public:
  explicit TileChecker(const GemmCheck& problem) : p_(problem), product_(problem) {
    if (problem.epilogue.gated) gate_.emplace(problem);
  }

  CheckResult check(std::int64_t batch, std::int64_t row, std::int64_t column) {
    const std::int64_t columns = result_columns(p_);
    const std::int64_t rows = std::min(kTile, p_.m - row);
    const std::int64_t width = std::min(kTile, columns - column);
    product_.compute(batch, row, column, rows, width);
    if (gate_) gate_->compute(batch, row, column + columns, rows, width);
    const MatrixCodes d = of_batch(p_.d, batch);
    const MatrixCodes scale = of_batch(p_.scale_d, batch);
    scale_ = scale.codes == nullptr ? 1.0 : element(scale, 1, 1, 0, 0);
    CheckResult result;
    result.elements = rows * width;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        const double got = element(d, p_.m, columns, row + i, column + j);
        if (!note(result, due(i, j), got)) continue;
        result.worst_batch = batch;
        result.worst_row = row + i;
        result.worst_col = column + j;
      }
    }
    result.passed = result.failures == 0;
    result.dtype = p_.d.dtype;
    return result;
  }

 private:
  // What D should have at a place of the tile.
  [[nodiscard]] Approximate due(std::int64_t i, std::int64_t j) const {
    Approximate x = activate(p_.epilogue.activation, product_.at(i, j));
    if (gate_) x = product(x, gate_->at(i, j));
    if (p_.scale_d.codes == nullptr) return x;
    const double value = x.value * scale_;
    return {value, x.slack * std::abs(scale_) + 0x1p-24 * std::abs(value),
            std::max(x.magnitude, x.magnitude * std::abs(scale_))};
  }

  static std::int64_t& count_of(CheckResult& result, Kind kind) {
    if (kind == Kind::infinite) return result.infinite;
    if (kind == Kind::nan) return result.nan;
    return kind == Kind::saturated ? result.saturated : result.overflowed;
  }

  // Judges one element and tells whether it is the worst so far.
  [[nodiscard]] bool note(CheckResult& result, const Approximate& want, double got) const {
    const Verdict verdict = judge(p_.d.dtype, got, want.value, want.magnitude, want.slack);
    if (!verdict.passed) ++result.failures;
    if (verdict.kind != Kind::finite) {
      ++count_of(result, verdict.kind);
      return false;
    }
    if (result.worst_row >= 0 && !(verdict.ratio > result.worst_ratio)) return false;
    result.worst_ratio = verdict.ratio;
    result.worst_error = verdict.error;
    result.worst_allowed = verdict.allowed;
    result.worst_got = got;
    result.worst_want = want.value;
    return true;
  }

  const GemmCheck& p_;
  TileReference product_;
  std::optional<TileReference> gate_;  // the other half of the columns
  double scale_ = 1;
};

void require_checkable(const GemmCheck& p) {
  const char* const rule = "f32, fp16, bf16, e4m3 and e5m2";
  const char* const operands = "f32, tf32, fp16, bf16, e4m3, e5m2 and s8";
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0) {
    throw InputError("A GEMM of " + std::to_string(p.m) + " x " + std::to_string(p.n) + " x " +
                     std::to_string(p.k) + " cannot be checked: no extent may be below 0.");
  }
  const auto is_operand = [](DType t) {
    return is_checked(t) || t == DType::tf32 || t == DType::s8;
  };
  require(is_operand(p.a.dtype), "A", p.a.dtype, operands);
  require(is_operand(p.b.dtype), "B", p.b.dtype, operands);
  if (p.beta != 0) require(is_checked(p.c.dtype), "C", p.c.dtype, rule);
  require(is_checked(p.d.dtype), "D", p.d.dtype, rule);
  const bool narrow =
      numeric::bits(p.a.dtype) == 8 && (p.packed_b || numeric::bits(p.b.dtype) == 8);
  if (p.scaling != Scaling::none && !narrow) {
    throw InputError("A scaled product of " + std::string(numeric::word(p.a.dtype)) +
                     " cannot be checked: scales belong to operands of 8 bits.");
  }
}

}  // namespace

void merge(CheckResult& total, const CheckResult& part) {
  total.elements += part.elements;
  total.failures += part.failures;
  total.infinite += part.infinite;
  total.nan += part.nan;
  total.saturated += part.saturated;
  total.overflowed += part.overflowed;
  total.dtype = part.dtype;
  total.passed = total.failures == 0;
  if (part.worst_row < 0) return;
  const auto place = [](const CheckResult& r) {
    return std::tuple(r.worst_batch, r.worst_row, r.worst_col);
  };
  const bool is_earlier = place(part) < place(total);
  const bool is_worse =
      part.worst_ratio > total.worst_ratio || (part.worst_ratio == total.worst_ratio && is_earlier);
  if (total.worst_row >= 0 && !is_worse) return;
  total.worst_batch = part.worst_batch;
  total.worst_row = part.worst_row;
  total.worst_col = part.worst_col;
  total.worst_ratio = part.worst_ratio;
  total.worst_error = part.worst_error;
  total.worst_allowed = part.worst_allowed;
  total.worst_got = part.worst_got;
  total.worst_want = part.worst_want;
}

CheckResult check_gemm(const GemmCheck& problem) {
  require_checkable(problem);
  const std::int64_t tile_columns = (result_columns(problem) + kTile - 1) / kTile;
  const std::int64_t matrix_tiles = (problem.m + kTile - 1) / kTile * tile_columns;
  const std::int64_t tiles = matrix_tiles * problem.batch;
  CheckResult total;
  total.batch = problem.batch;
  total.dtype = problem.d.dtype;
  std::int64_t done = 0;
  std::mutex mutex;
  share(tiles, problem.threads, [&](int /*worker*/) {
    return [&, checker = TileChecker(problem)](std::int64_t tile) mutable {
      const CheckResult part =
          checker.check(tile / matrix_tiles, tile % matrix_tiles / tile_columns * kTile,
                        tile % tile_columns * kTile);
      const std::lock_guard lock(mutex);
      merge(total, part);
      ++done;
      if (problem.progress) {
        problem.progress(static_cast<double>(done) / static_cast<double>(tiles));
      }
    };
  });
  return total;
}

namespace {

// The largest finite number of D's type, for a reader.
std::string largest(DType type) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", numeric::format_of(type).max());
  return text;
}

}  // namespace

std::string describe(const CheckResult& result, const std::string& name) {
  if (result.elements == 0) return name + " has no elements, so there is nothing to check.";
  const auto number = [](double x) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", x);
    return std::string(text);
  };
  const std::string count = std::to_string(result.elements);
  // The elements without a distance, each kind with what was asked of it.
  const std::string type(numeric::word(result.dtype));
  const std::string beyond = "beyond " + type + "'s largest number, " + largest(result.dtype);
  std::string special;
  std::int64_t others = result.elements;
  const auto tell = [&](std::int64_t how_many, const std::string& are) {
    if (how_many == 0) return;
    others -= how_many;
    special += (special.empty() ? ": " : ", ") + std::to_string(how_many) +
               (how_many == 1 ? " is " : " are ") + are;
  };
  tell(result.infinite, "infinite as float64 is " + beyond);
  tell(result.saturated,
       type + "'s largest number, " + largest(result.dtype) + ", as float64 is beyond");
  tell(result.nan, "NaN as float64 is");
  tell(result.overflowed, "infinite or NaN where float32 may overflow on the way");
  if (result.passed && others == 0) return "All " + count + " elements are right" + special + ".";
  const std::string place =
      name + "[" + (result.batch > 1 ? std::to_string(result.worst_batch) + ", " : std::string()) +
      std::to_string(result.worst_row) + ", " + std::to_string(result.worst_col) + "]";
  std::string text;
  if (result.passed) {
    text = "All " + count + " elements are right" + special + "; the worst" +
           (special.empty() ? "" : " of the others") + ", " + place + ",";
  } else if (result.failures == 1) {
    text = "1 of " + count + " elements is wrong: " + place;
  } else {
    text = std::to_string(result.failures) + " of " + count + " elements are wrong; the worst, " +
           place + ",";
  }
  text += " is " + number(result.worst_got) + " where " + number(result.worst_want) + " is due";
  if (std::isinf(result.worst_ratio)) return text + ".";
  return text + ": off by " + number(result.worst_error) + ", allowed are " +
         number(result.worst_allowed) + ".";
}

}  // namespace warpwright::cli
