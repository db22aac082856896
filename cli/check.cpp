#include "cli/check.h"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/vector_clones.h"

namespace warpwright::cli {
namespace {

// A task is one kTile x kTile tile of D, worked through in slices of kDepth along K: two slices of
// 256 KiB fit a core's L2 cache. Each task's sums are its own, in an order that is fixed, so the
// result depends neither on how many threads there are nor on which of them takes which task.
constexpr std::int64_t kTile = 128;
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kRows = 4;     // of one step of the inner kernel
constexpr std::int64_t kColumns = 8;  // two AVX2 registers of doubles

// What one step of an fp32 accumulator may lose below its smallest value.
constexpr double kUnderflow = 0x1p-150;

using Vector = double __attribute__((vector_size(32)));

// sums[4][8] += a[depth][4]^T * b[depth][8], the panels packed so that both are read in order. The
// products of two floats are exact in double, hence contraction to FMA does not change a bit.
WW_VECTOR_CLONES void multiply_panels(const double* a, const double* b, std::int64_t depth,
                                      double* sums, std::int64_t stride) {
  Vector acc[kRows][2];
  for (std::int64_t i = 0; i < kRows; ++i) {
    std::memcpy(&acc[i][0], sums + i * stride, sizeof(Vector));
    std::memcpy(&acc[i][1], sums + i * stride + 4, sizeof(Vector));
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector b0;
    Vector b1;
    std::memcpy(&b0, b + k * kColumns, sizeof(Vector));
    std::memcpy(&b1, b + k * kColumns + 4, sizeof(Vector));
    for (std::int64_t i = 0; i < kRows; ++i) {
      const double x = a[k * kRows + i];
      acc[i][0] += x * b0;
      acc[i][1] += x * b1;
    }
  }
  for (std::int64_t i = 0; i < kRows; ++i) {
    std::memcpy(sums + i * stride, &acc[i][0], sizeof(Vector));
    std::memcpy(sums + i * stride + 4, &acc[i][1], sizeof(Vector));
  }
}

// The value of element (row, column); extents are those of the matrix, not of its storage.
double element(const MatrixCodes& matrix, std::int64_t rows, std::int64_t columns, std::int64_t row,
               std::int64_t column) {
  const std::int64_t at = matrix.transposed ? column * rows + row : row * columns + column;
  const std::int64_t size = numeric::bits(matrix.dtype) / 8;
  float value = 0;
  numeric::widen_from(static_cast<const char*>(matrix.codes) + at * size, &value, 1, matrix.dtype);
  return static_cast<double>(value);
}

// Packs rows [row, row + count) x depths [k0, k0 + depth) of a rows x k_extent matrix into panels
// of `width` rows, each panel depth-major, with zeros for the rows that a last panel lacks.
void pack(const MatrixCodes& matrix, std::int64_t rows, std::int64_t k_extent, std::int64_t row,
          std::int64_t count, std::int64_t k0, std::int64_t depth, std::int64_t width,
          double* out) {
  const std::int64_t size = numeric::bits(matrix.dtype) / 8;
  const auto* codes = static_cast<const char*>(matrix.codes);
  const std::int64_t padded = (count + width - 1) / width * width;
  float line[std::max(kTile, kDepth)];
  const auto place = [&](std::int64_t r, std::int64_t k) -> double& {
    return out[(r / width * depth + k) * width + r % width];
  };
  for (std::int64_t r = count; r < padded; ++r) {
    for (std::int64_t k = 0; k < depth; ++k) place(r, k) = 0;
  }
  if (matrix.transposed) {
    for (std::int64_t k = 0; k < depth; ++k) {
      numeric::widen_from(codes + ((k0 + k) * rows + row) * size, line,
                          static_cast<std::size_t>(count), matrix.dtype);
      for (std::int64_t r = 0; r < count; ++r) place(r, k) = static_cast<double>(line[r]);
    }
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    numeric::widen_from(codes + ((row + r) * k_extent + k0) * size, line,
                        static_cast<std::size_t>(depth), matrix.dtype);
    for (std::int64_t k = 0; k < depth; ++k) place(r, k) = static_cast<double>(line[k]);
  }
}

// How one element compares.
struct Verdict {
  bool passed = true;
  double error = 0, allowed = 0, ratio = 0;
};

// Judges D's value `got` against the reference `want`; `magnitude` is |alpha|*sum|ab| + |beta*c|
// and `slack` the E of the header.
Verdict judge(DType dtype, double got, double want, double magnitude, double slack) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Verdict exact{true, 0, 0, 0};
  const Verdict wrong{false, kInf, 0, kInf};
  const bool may_overflow = !(magnitude <= static_cast<double>(FLT_MAX));
  if (std::isnan(want)) return std::isnan(got) ? exact : wrong;
  const bool is_fp8 = numeric::bits(dtype) == 8;
  const auto rounded = [&](double x) {
    return numeric::to_double(dtype, numeric::from_double(dtype, x, numeric::Rounding::nearest_even,
                                                          is_fp8 ? numeric::Overflow::saturate
                                                                 : numeric::Overflow::special));
  };
  if (std::isinf(want)) return got == rounded(want) || std::isnan(got) ? exact : wrong;
  if (std::isnan(got)) return may_overflow ? exact : wrong;
  const double low = rounded(want - slack);
  const double high = rounded(want + slack);
  if (std::isinf(got)) return may_overflow || got == low || got == high ? exact : wrong;
  if (low == kInf || high == -kInf) return wrong;  // finite where even the nearest is infinite

  double target = want;
  if (is_fp8) {
    const double largest = numeric::format_of(dtype).max();
    target = std::clamp(want, -largest, largest);
  }
  Verdict verdict;
  verdict.error = std::abs(got - target);
  verdict.allowed = slack + numeric::ulp(dtype, std::abs(want) + slack) / 2;
  verdict.passed = verdict.error <= verdict.allowed;
  verdict.ratio = verdict.error / verdict.allowed;
  return verdict;
}

void require(bool is_legal, const char* operand, DType dtype, const char* rule) {
  if (is_legal) return;
  throw InputError(std::string("Matrix ") + operand + " of type " +
                   std::string(numeric::name(dtype)) + " cannot be checked: the types are " + rule +
                   ".");
}

bool is_checked(DType t) {
  return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::e4m3 ||
         t == DType::e5m2;
}

// One thread's buffers and its work on one tile of D.
class TileChecker {
 public:
  explicit TileChecker(const GemmCheck& problem)
      : p_(problem),
        a_(kTile * kDepth),
        b_(kTile * kDepth),
        a_abs_(kTile * kDepth),
        b_abs_(kTile * kDepth),
        sums_(kTile * kTile),
        sums_abs_(kTile * kTile) {}

  CheckResult check(std::int64_t row, std::int64_t column) {
    const std::int64_t rows = std::min(kTile, p_.m - row);
    const std::int64_t columns = std::min(kTile, p_.n - column);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    std::fill(sums_abs_.begin(), sums_abs_.end(), 0.0);
    for (std::int64_t k = 0; k < p_.k; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, p_.k - k);
      pack(p_.a, p_.m, p_.k, row, rows, k, depth, kRows, a_.data());
      pack(p_.b, p_.n, p_.k, column, columns, k, depth, kColumns, b_.data());
      for (std::size_t i = 0; i < a_.size(); ++i) a_abs_[i] = std::abs(a_[i]);
      for (std::size_t i = 0; i < b_.size(); ++i) b_abs_[i] = std::abs(b_[i]);
      multiply(a_, b_, rows, columns, depth, sums_);
      multiply(a_abs_, b_abs_, rows, columns, depth, sums_abs_);
    }
    return compare(row, column, rows, columns);
  }

 private:
  static void multiply(const std::vector<double>& a, const std::vector<double>& b,
                       std::int64_t rows, std::int64_t columns, std::int64_t depth,
                       std::vector<double>& sums) {
    for (std::int64_t j = 0; j < columns; j += kColumns) {
      for (std::int64_t i = 0; i < rows; i += kRows) {
        multiply_panels(a.data() + i * depth, b.data() + j * depth, depth,
                        sums.data() + i * kTile + j, kTile);
      }
    }
  }

  CheckResult compare(std::int64_t row, std::int64_t column, std::int64_t rows,
                      std::int64_t columns) const {
    CheckResult result;
    result.elements = rows * columns;
    const bool has_c = p_.beta != 0;
    const double steps = static_cast<double>(p_.k) + (has_c ? 1.0 : 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t at = i * kTile + j;
        // As BLAS has it: alpha = 0 drops the product, NaN and all, and beta = 0 drops C.
        double want = p_.alpha == 0 ? 0.0 : p_.alpha * sums_[at];
        double magnitude = p_.alpha == 0 ? 0.0 : std::abs(p_.alpha) * sums_abs_[at];
        if (has_c) {
          const double c = p_.beta * element(p_.c, p_.m, p_.n, row + i, column + j);
          want += c;
          magnitude += std::abs(c);
        }
        const double got = element(p_.d, p_.m, p_.n, row + i, column + j);
        double slack = p_.accumulator_epsilon * steps * magnitude;
        if (magnitude > 0) slack += steps * kUnderflow;
        const Verdict verdict = judge(p_.d.dtype, got, want, magnitude, slack);
        if (!verdict.passed) ++result.failures;
        if (result.worst_row < 0 || verdict.ratio > result.worst_ratio) {
          result.worst_row = row + i;
          result.worst_col = column + j;
          result.worst_ratio = verdict.ratio;
          result.worst_error = verdict.error;
          result.worst_allowed = verdict.allowed;
          result.worst_got = got;
          result.worst_want = want;
        }
      }
    }
    result.passed = result.failures == 0;
    return result;
  }

  const GemmCheck& p_;
  std::vector<double> a_, b_, a_abs_, b_abs_, sums_, sums_abs_;
};

// Adds one tile's findings. Of equally bad elements the first in row-major order stays, whichever
// tile comes first.
void merge(CheckResult& total, const CheckResult& part) {
  total.elements += part.elements;
  total.failures += part.failures;
  total.passed = total.failures == 0;
  if (part.worst_row < 0) return;
  const bool is_earlier = part.worst_row < total.worst_row ||
                          (part.worst_row == total.worst_row && part.worst_col < total.worst_col);
  const bool is_worse =
      part.worst_ratio > total.worst_ratio || (part.worst_ratio == total.worst_ratio && is_earlier);
  if (total.worst_row >= 0 && !is_worse) return;
  CheckResult worst = part;
  worst.elements = total.elements;
  worst.failures = total.failures;
  worst.passed = total.passed;
  total = worst;
}

}  // namespace

CheckResult check_gemm(const GemmCheck& problem) {
  const char* const rule = "f32, f16, bf16, e4m3 and e5m2";
  if (problem.m < 0 || problem.n < 0 || problem.k < 0) {
    throw InputError("A GEMM of " + std::to_string(problem.m) + " x " + std::to_string(problem.n) +
                     " x " + std::to_string(problem.k) +
                     " cannot be checked: no extent may be below 0.");
  }
  require(is_checked(problem.a.dtype) || problem.a.dtype == DType::tf32, "A", problem.a.dtype,
          "f32, tf32, f16, bf16, e4m3 and e5m2");
  require(is_checked(problem.b.dtype) || problem.b.dtype == DType::tf32, "B", problem.b.dtype,
          "f32, tf32, f16, bf16, e4m3 and e5m2");
  if (problem.beta != 0) require(is_checked(problem.c.dtype), "C", problem.c.dtype, rule);
  require(is_checked(problem.d.dtype), "D", problem.d.dtype, rule);

  const std::int64_t tile_columns = (problem.n + kTile - 1) / kTile;
  const std::int64_t tiles = (problem.m + kTile - 1) / kTile * tile_columns;
  CheckResult total;
  std::atomic<std::int64_t> next = 0;
  std::int64_t done = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      TileChecker checker(problem);
      for (std::int64_t tile = next++; tile < tiles; tile = next++) {
        const CheckResult part =
            checker.check(tile / tile_columns * kTile, tile % tile_columns * kTile);
        const std::lock_guard lock(mutex);
        merge(total, part);
        ++done;
        if (problem.progress) {
          problem.progress(static_cast<double>(done) / static_cast<double>(tiles));
        }
      }
    } catch (...) {
      next = tiles;  // the others stop after their tile
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  const std::int64_t wanted = problem.threads > 0
                                  ? problem.threads
                                  : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < std::min(wanted, tiles); ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // The system refuses more threads: those that run, and this one, do the work.
    }
    work();
  }
  if (error) std::rethrow_exception(error);
  return total;
}

std::string describe(const CheckResult& result) {
  if (result.elements == 0) return "D has no elements, so there is nothing to check.";
  const auto number = [](double x) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", x);
    return std::string(text);
  };
  const std::string count = std::to_string(result.elements);
  const std::string place =
      "D[" + std::to_string(result.worst_row) + ", " + std::to_string(result.worst_col) + "]";
  std::string text;
  if (result.passed) {
    text = "All " + count + " elements are right; the worst, " + place + ",";
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
