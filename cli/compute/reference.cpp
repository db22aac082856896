#include "cli/compute/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/vector_clones.h"

namespace warpwright::cli {
namespace {

// A tile is worked through in slices of kDepth along K: two slices of 256 KiB fit a core's L2
// cache. Its sums are its own, in an order that is fixed.
constexpr std::int64_t kReferenceTile = TileReference::tile;
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kRows = 4;     // of one step of the inner kernel
constexpr std::int64_t kColumns = 8;  // two AVX2 registers of doubles

// The tensor core's steps over 8-bit operands (see check.h): K of one, K between two promotions,
// and what one loses of its largest term's leading bit.
constexpr std::int64_t kStep = 32;
constexpr std::int64_t kBlock = 128;
constexpr double kStepLoss = 36 * 0x1p-13;
// Roundings of float32 around the sums: scales, alpha, and the additions of parts of K.
constexpr double kRoundings = 8;

// What one step of an fp32 accumulator may lose below its smallest value.
constexpr double kUnderflow = 0x1p-150;
// A bound of the slopes of GELU and SiLU.
constexpr double kSteepest = 1.13;

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

// Packs rows [row, row + count) x depths [k0, k0 + depth) of a rows x k_extent matrix into panels
// of `width` rows, each panel depth-major, with zeros for the rows that a last panel lacks.
void pack(const MatrixCodes& matrix, std::int64_t rows, std::int64_t k_extent, std::int64_t row,
          std::int64_t count, std::int64_t k0, std::int64_t depth, std::int64_t width,
          double* out) {
  const std::int64_t size = numeric::bits(matrix.dtype) / 8;
  const auto* codes = static_cast<const char*>(matrix.codes);
  const std::int64_t padded = (count + width - 1) / width * width;
  float line[std::max(kReferenceTile, kDepth)];
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

// The leading bit of a positive number.
double leading_bit(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000U);
}

// One row of sums after a step: the range they have been in, and what the step may have lost.
WW_VECTOR_CLONES void bound_step(const double* sums, double largest_a, const double* largest_b,
                                 std::int64_t columns, double* low, double* high, double* loss) {
  for (std::int64_t j = 0; j < columns; ++j) {
    high[j] = sums[j] > high[j] ? sums[j] : high[j];
    low[j] = sums[j] < low[j] ? sums[j] : low[j];
    const double span = high[j] - low[j] + loss[j];
    const double product = largest_a * largest_b[j];
    loss[j] += kStepLoss * leading_bit(span > product ? span : product);
  }
}

bool is_narrow(DType t) {
  return t == DType::e4m3 || t == DType::e5m2;
}

// The largest |x| of each of `count` panel rows over depths [first, first + depths).
void find_largest(const std::vector<double>& panels, std::int64_t width, std::int64_t depth,
                  std::int64_t first, std::int64_t depths, std::int64_t count,
                  std::vector<double>& largest) {
  for (std::int64_t r = 0; r < count; ++r) {
    const double* at = panels.data() + (r / width * depth + first) * width + r % width;
    double most = 0;
    for (std::int64_t k = 0; k < depths; ++k) most = std::max(most, at[k * width]);
    largest[static_cast<std::size_t>(r)] = most;
  }
}

// z of activation(x) = x / (1 + exp(-z)): SiLU's, quick GELU's, or GELU's in its tanh form.
double gate_of(Activation activation, double x) {
  if (activation == Activation::silu) return x;
  if (activation == Activation::quick_gelu) return 1.702 * x;
  return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

}  // namespace

double element(const MatrixCodes& matrix, std::int64_t rows, std::int64_t columns, std::int64_t row,
               std::int64_t column) {
  const std::int64_t at = matrix.transposed ? column * rows + row : row * columns + column;
  const std::int64_t size = numeric::bits(matrix.dtype) / 8;
  float value = 0;
  numeric::widen_from(static_cast<const char*>(matrix.codes) + at * size, &value, 1, matrix.dtype);
  return static_cast<double>(value);
}

MatrixCodes of_batch(MatrixCodes matrix, std::int64_t batch) {
  if (matrix.codes == nullptr) return matrix;
  const std::int64_t size = numeric::bits(matrix.dtype) / 8;
  matrix.codes = static_cast<const char*>(matrix.codes) + batch * matrix.batch_stride * size;
  return matrix;
}

Approximate activate(Activation activation, const Approximate& x) {
  if (activation == Activation::none) return x;
  if (activation == Activation::relu) {
    return {x.value < 0 ? 0.0 : x.value, x.slack, x.magnitude};
  }
  if (!std::isfinite(x.value)) return {x.value < 0 ? 0.0 : x.value, 0, x.magnitude};
  const double z = gate_of(activation, x.value);
  const double value = x.value / (1 + std::exp(-z));
  const double own = std::abs(value) * (std::abs(z) + 8) * 0x1p-21 + 0x1p-100;
  return {value, kSteepest * x.slack + own, x.magnitude};
}

TileReference::TileReference(const GemmCheck& problem)
    : p_(problem),
      narrow_(is_narrow(problem.a.dtype) && (problem.packed_b || is_narrow(problem.b.dtype))),
      leading_(problem.packed_b ? 2 : 1),
      a_(kReferenceTile * kDepth),
      b_(kReferenceTile * kDepth),
      a_abs_(kReferenceTile * kDepth),
      b_abs_(kReferenceTile * kDepth),
      sums_(kReferenceTile * kReferenceTile),
      sums_abs_(kReferenceTile * kReferenceTile),
      low_(narrow_ ? kReferenceTile * kReferenceTile : 0),
      high_(low_.size()),
      loss_(low_.size()),
      scale_a_(kReferenceTile, 1.0),
      scale_b_(kReferenceTile, 1.0),
      largest_a_(kReferenceTile),
      largest_b_(kReferenceTile),
      result_(kReferenceTile * kReferenceTile) {}

void TileReference::compute(std::int64_t batch, std::int64_t row, std::int64_t column,
                            std::int64_t rows, std::int64_t columns) {
  const Place place{batch, row, column, rows, columns};
  std::fill(result_.begin(), result_.end(), Approximate{});
  if (narrow_) {
    add_narrow(place);
  } else {
    add_wide(place);
  }
  finish(place);
}

// Packs A's and B's depths [k, k + depth).
void TileReference::pack_slice(const Place& place, std::int64_t k, std::int64_t depth) {
  pack(of_batch(p_.a, place.batch), p_.m, p_.k, place.row, place.rows, k, depth, kRows, a_.data());
  pack(of_batch(p_.b, place.batch), p_.n, p_.k, place.column, place.columns, k, depth, kColumns,
       b_.data());
  for (std::size_t i = 0; i < a_.size(); ++i) a_abs_[i] = std::abs(a_[i]);
  for (std::size_t i = 0; i < b_.size(); ++i) b_abs_[i] = std::abs(b_[i]);
}

// Adds depths [first, first + count) of a slice of `depth`.
void TileReference::multiply(const std::vector<double>& a, const std::vector<double>& b,
                             const Place& place, std::int64_t depth, std::int64_t first,
                             std::int64_t count, std::vector<double>& sums) const {
  for (std::int64_t j = 0; j < place.columns; j += kColumns) {
    for (std::int64_t i = 0; i < place.rows; i += kRows) {
      multiply_panels(a.data() + i * depth + first * kRows, b.data() + j * depth + first * kColumns,
                      count, sums.data() + i * kReferenceTile + j, kReferenceTile);
    }
  }
}

// Sums in float32 (or better), or integers: their error is finish()'s.
void TileReference::add_wide(const Place& place) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(sums_abs_.begin(), sums_abs_.end(), 0.0);
  for (std::int64_t k = 0; k < p_.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, p_.k - k);
    pack_slice(place, k, depth);
    multiply(a_, b_, place, depth, 0, depth, sums_);
    multiply(a_abs_, b_abs_, place, depth, 0, depth, sums_abs_);
  }
  promote(place, 0);
}

// Sums in the tensor core's narrow accumulator, step by step.
void TileReference::add_narrow(const Place& place) {
  const bool blocks = p_.scaling == Scaling::block || p_.accumulation == Accumulation::promoted;
  for (auto* sums : {&sums_, &sums_abs_, &low_, &high_, &loss_}) {
    std::fill(sums->begin(), sums->end(), 0.0);
  }
  for (std::int64_t k = 0; k < p_.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, p_.k - k);
    pack_slice(place, k, depth);
    for (std::int64_t first = 0; first < depth; first += kStep) {
      narrow_step(place, depth, first, std::min(kStep, depth - first));
      const std::int64_t done = k + std::min(first + kStep, depth);
      if (done == p_.k || (blocks && done % kBlock == 0)) promote(place, (done - 1) / kBlock);
    }
  }
}

void TileReference::narrow_step(const Place& place, std::int64_t depth, std::int64_t first,
                                std::int64_t count) {
  multiply(a_, b_, place, depth, first, count, sums_);
  multiply(a_abs_, b_abs_, place, depth, first, count, sums_abs_);
  find_largest(a_abs_, kRows, depth, first, count, place.rows, largest_a_);
  find_largest(b_abs_, kColumns, depth, first, count, place.columns, largest_b_);
  for (std::int64_t i = 0; i < place.rows; ++i) {
    const std::int64_t at = i * kReferenceTile;
    bound_step(sums_.data() + at, largest_a_[static_cast<std::size_t>(i)], largest_b_.data(),
               place.columns, low_.data() + at, high_.data() + at, loss_.data() + at);
  }
}

// Adds the sums, scaled, to the results and begins new ones.
void TileReference::promote(const Place& place, std::int64_t block) {
  const bool by_block = p_.scaling == Scaling::block;
  const std::int64_t blocks = by_block ? (p_.k + kBlock - 1) / kBlock : 1;
  const std::int64_t column = by_block ? block : 0;
  const auto fill = [&](const MatrixCodes& scale, std::int64_t first, std::int64_t count,
                        std::int64_t rows_of_one, std::vector<double>& out) {
    if (p_.scaling == Scaling::none || scale.codes == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = p_.scaling == Scaling::tensor ? 0 : (first + i) / rows_of_one;
      out[static_cast<std::size_t>(i)] =
          element(of_batch(scale, place.batch), 0, blocks, row, column);
    }
  };
  fill(p_.scale_a, place.row, place.rows, 1, scale_a_);
  fill(p_.scale_b, place.column, place.columns, by_block ? kBlock : 1, scale_b_);
  for (std::int64_t i = 0; i < place.rows; ++i) {
    for (std::int64_t j = 0; j < place.columns; ++j) {
      const auto at = static_cast<std::size_t>(i * kReferenceTile + j);
      const double scale =
          scale_a_[static_cast<std::size_t>(i)] * scale_b_[static_cast<std::size_t>(j)];
      result_[at].value += scale * sums_[at];
      if (narrow_) result_[at].slack += std::abs(scale) * loss_[at] * leading_;
      result_[at].magnitude += std::abs(scale) * sums_abs_[at];
    }
  }
  for (auto* sums : {&sums_, &sums_abs_, &low_, &high_, &loss_}) {
    std::fill(sums->begin(), sums->end(), 0.0);
  }
}

// alpha, C and the bias, and what float32 loses.
void TileReference::finish(const Place& place) {
  const MatrixCodes c = of_batch(p_.c, place.batch);
  const MatrixCodes bias = of_batch(p_.bias, place.batch);
  const bool has_c = p_.beta != 0;
  const bool has_bias = p_.epilogue.bias != Bias::none;
  // Those of integers are exact until they become a float.
  const bool exact = p_.a.dtype == DType::s8;
  const std::int64_t sums = exact ? 0 : narrow_ ? (p_.k + kStep - 1) / kStep : p_.k;
  const double steps = static_cast<double>(sums) + (narrow_ || exact ? kRoundings : 0.0) +
                       (has_c ? 1.0 : 0.0) + (has_bias ? 1.0 : 0.0);
  for (std::int64_t i = 0; i < place.rows; ++i) {
    for (std::int64_t j = 0; j < place.columns; ++j) {
      Approximate& x = result_[static_cast<std::size_t>(i * kReferenceTile + j)];
      // Folded weights are rounded to e4m3, by a sixteenth at most, and their scales to f16.
      if (p_.folded) x.slack += 0.0635 * x.magnitude;
      // As BLAS has it: alpha = 0 drops the product, NaN and all, and beta = 0 drops C.
      if (p_.alpha == 0) {
        x = {};
      } else {
        x = {p_.alpha * x.value, std::abs(p_.alpha) * x.slack, std::abs(p_.alpha) * x.magnitude};
      }
      const auto add = [&x](double term) {
        x.value += term;
        x.magnitude += std::abs(term);
      };
      if (has_c) add(p_.beta * element(c, p_.m, p_.n, place.row + i, place.column + j));
      if (has_bias) {
        const bool rows = p_.epilogue.bias == Bias::rows;
        add(element(bias, 0, 1, rows ? place.row + i : place.column + j, 0));
      }
      x.slack += p_.accumulator_epsilon * steps * x.magnitude;
      if (x.magnitude > 0) x.slack += steps * kUnderflow;
    }
  }
}

}  // namespace warpwright::cli
