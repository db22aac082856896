#include "warpwright/reference/tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "warpwright/numeric/vector_clones.h"

namespace warpwright::reference {
namespace {

// A tile is worked through in slices of kDepth along K: two slices of 256 KiB fit a core's L2
// cache. Its sums are its own, in an order that is fixed.
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kRows = 4;     // of one step of the inner kernel
constexpr std::int64_t kColumns = 8;  // two AVX2 registers of doubles
constexpr std::size_t kElements = most_of_tile * most_of_tile;

// Roundings of float32 around the sums: scales, alpha, and the additions of parts of K.
constexpr double kRoundings = 8;
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

// Packs rows of `depth` floats into panels of `width` rows, each panel depth-major, with zeros for
// the rows that a last panel lacks.
void pack(const float* lines, std::int64_t count, std::int64_t depth, std::int64_t width,
          double* out) {
  const std::int64_t padded = (count + width - 1) / width * width;
  for (std::int64_t r = 0; r < padded; ++r) {
    double* const to = out + r / width * depth * width + r % width;
    for (std::int64_t k = 0; k < depth; ++k) {
      to[k * width] = r < count ? static_cast<double>(lines[r * depth + k]) : 0.0;
    }
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
    loss[j] += narrow_step_loss * leading_bit(span > product ? span : product);
  }
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

}  // namespace

ProductTile::ProductTile(const GemmOperands& operands, double accumulator_epsilon)
    : o_(operands),
      epsilon_(accumulator_epsilon),
      kept_(sums_of(operands)),
      promoted_depth_(scale_block_of(operands)),
      operand_a_(operands, Side::a),
      operand_b_(operands, Side::b),
      leading_(operands.packed ? 2 : 1),
      lines_(most_of_tile * kDepth),
      a_(most_of_tile * kDepth),
      b_(most_of_tile * kDepth),
      a_abs_(most_of_tile * kDepth),
      b_abs_(most_of_tile * kDepth),
      sums_(kElements),
      sums_abs_(kElements),
      low_(kept_.narrow ? kElements : 0),
      high_(low_.size()),
      loss_(low_.size()),
      scale_a_(most_of_tile, 1.0),
      scale_b_(most_of_tile, 1.0),
      largest_a_(most_of_tile),
      largest_b_(most_of_tile),
      result_(kElements) {}

void ProductTile::compute(std::int64_t batch, std::int64_t group, std::int64_t row,
                          std::int64_t column, std::int64_t rows, std::int64_t columns,
                          std::int64_t step) {
  const Place place{batch, group, row, column, rows, columns, step};
  std::fill(result_.begin(), result_.end(), Expected{});
  if (kept_.narrow) {
    add_narrow(place);
  } else {
    add_wide(place);
  }
  finish(place);
}

// Packs A's and B's depths [k, k + depth).
void ProductTile::pack_slice(const Place& place, std::int64_t k, std::int64_t depth) {
  operand_a_.read(place.batch, place.group, place.row, place.rows, k, depth, lines_.data(), depth);
  pack(lines_.data(), place.rows, depth, kRows, a_.data());
  operand_b_.read(place.batch, place.group, place.column, place.columns, k, depth, lines_.data(),
                  depth, place.step);
  pack(lines_.data(), place.columns, depth, kColumns, b_.data());
  for (std::size_t i = 0; i < a_.size(); ++i) a_abs_[i] = std::abs(a_[i]);
  for (std::size_t i = 0; i < b_.size(); ++i) b_abs_[i] = std::abs(b_[i]);
}

// Adds depths [first, first + count) of a slice of `depth`.
void ProductTile::multiply(const std::vector<double>& a, const std::vector<double>& b,
                           const Place& place, std::int64_t depth, std::int64_t first,
                           std::int64_t count, std::vector<double>& sums) const {
  for (std::int64_t j = 0; j < place.columns; j += kColumns) {
    for (std::int64_t i = 0; i < place.rows; i += kRows) {
      multiply_panels(a.data() + i * depth + first * kRows, b.data() + j * depth + first * kColumns,
                      count, sums.data() + i * most_of_tile + j, most_of_tile);
    }
  }
}

// Sums in float32 (or better), or integers: their error is finish()'s.
void ProductTile::add_wide(const Place& place) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(sums_abs_.begin(), sums_abs_.end(), 0.0);
  const std::int64_t all = o_.a.columns;
  // K between two scales of blocks, which divides a slice.
  const std::int64_t reach = scale_reach(o_, Side::a).depth;
  const bool by_block = !scales_elements(o_.scaling) && reach > 0;
  for (std::int64_t k = 0; k < all; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, all - k);
    pack_slice(place, k, depth);
    for (std::int64_t first = 0; first < depth;) {
      const std::int64_t count = std::min(by_block ? reach : kDepth, depth - first);
      multiply(a_, b_, place, depth, first, count, sums_);
      multiply(a_abs_, b_abs_, place, depth, first, count, sums_abs_);
      first += count;
      if (by_block || k + first == all) promote(place, k + first - 1);
    }
  }
}

// Sums in the tensor core's narrow accumulator, step by step.
void ProductTile::add_narrow(const Place& place) {
  for (auto* sums : {&sums_, &sums_abs_, &low_, &high_, &loss_}) {
    std::fill(sums->begin(), sums->end(), 0.0);
  }
  for (std::int64_t k = 0; k < o_.a.columns; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, o_.a.columns - k);
    pack_slice(place, k, depth);
    for (std::int64_t first = 0; first < depth; first += narrow_step) {
      narrow_step_of(place, depth, first, std::min(narrow_step, depth - first));
      const std::int64_t done = k + std::min(first + narrow_step, depth);
      if (done == o_.a.columns || (kept_.promoted && done % promoted_depth_ == 0))
        promote(place, done - 1);
    }
  }
}

void ProductTile::narrow_step_of(const Place& place, std::int64_t depth, std::int64_t first,
                                 std::int64_t count) {
  multiply(a_, b_, place, depth, first, count, sums_);
  multiply(a_abs_, b_abs_, place, depth, first, count, sums_abs_);
  find_largest(a_abs_, kRows, depth, first, count, place.rows, largest_a_);
  find_largest(b_abs_, kColumns, depth, first, count, place.columns, largest_b_);
  for (std::int64_t i = 0; i < place.rows; ++i) {
    const std::int64_t at = i * most_of_tile;
    bound_step(sums_.data() + at, largest_a_[static_cast<std::size_t>(i)], largest_b_.data(),
               place.columns, low_.data() + at, high_.data() + at, loss_.data() + at);
  }
}

// Adds the sums, scaled, to the results and begins new ones. `k` is the last of them.
void ProductTile::promote(const Place& place, std::int64_t k) {
  if (!scales_elements(o_.scaling)) {
    for (std::int64_t i = 0; i < place.rows; ++i) {
      scale_a_[static_cast<std::size_t>(i)] =
          scale_of_a(o_, place.batch, place.group, place.row + i, k);
    }
    for (std::int64_t j = 0; j < place.columns; ++j) {
      scale_b_[static_cast<std::size_t>(j)] =
          scale_of(o_, Side::b, place.batch, place.group, place.column + j * place.step, k);
    }
  }
  for (std::int64_t i = 0; i < place.rows; ++i) {
    for (std::int64_t j = 0; j < place.columns; ++j) {
      const auto at = static_cast<std::size_t>(i * most_of_tile + j);
      const double scale =
          scale_a_[static_cast<std::size_t>(i)] * scale_b_[static_cast<std::size_t>(j)];
      result_[at].value += scale * sums_[at];
      if (kept_.narrow) result_[at].bound += std::abs(scale) * loss_[at] * leading_;
      result_[at].magnitude += std::abs(scale) * sums_abs_[at];
    }
  }
  for (auto* sums : {&sums_, &sums_abs_, &low_, &high_, &loss_}) {
    std::fill(sums->begin(), sums->end(), 0.0);
  }
}

// alpha, C and the bias, and what float32 loses.
void ProductTile::finish(const Place& place) {
  const std::int64_t k = o_.a.columns;
  const std::int64_t sums = kept_.exact    ? 0
                            : kept_.narrow ? (k + narrow_step - 1) / narrow_step
                                           : k;
  const double around = kept_.narrow || kept_.exact ? kRoundings : 0.0;
  const double alpha = factor_of_sums(o_, place.group);
  for (std::int64_t i = 0; i < place.rows; ++i) {
    for (std::int64_t j = 0; j < place.columns; ++j) {
      Expected& x = result_[static_cast<std::size_t>(i * most_of_tile + j)];
      x.bound += kept_.rounding.weights * x.magnitude;
      x.value = times_alpha(alpha, x.value);
      x.bound = times_alpha(std::abs(alpha), x.bound);
      x.magnitude = times_alpha(std::abs(alpha), x.magnitude);
      const Terms terms =
          terms_of(o_, place.batch, place.group, place.row + i, place.column + j * place.step);
      for (int t = 0; t < terms.count; ++t) {
        x.value += terms.term[t];
        x.magnitude += std::abs(terms.term[t]);
      }
      const double steps = static_cast<double>(sums) + around + terms.count;
      x.bound += epsilon_ * steps * x.magnitude;
      if (x.magnitude > 0) x.bound += steps * kUnderflow;
    }
  }
}

Tile::Tile(const GemmOperands& operands, double accumulator_epsilon)
    : o_(operands), product_(operands, accumulator_epsilon) {
  if (operands.epilogue.gated) up_.emplace(operands, accumulator_epsilon);
}

void Tile::compute(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t column,
                   std::int64_t rows, std::int64_t columns) {
  begin_ = {batch, row, column};
  const auto [step, apart] = gate_places(o_);
  product_.compute(batch, group, row, column * step, rows, columns, step);
  if (up_) up_->compute(batch, group, row, column * step + apart, rows, columns, step);
}

Expected Tile::at(std::int64_t i, std::int64_t j) const {
  const Expected& x = product_.at(i, j);
  const Expected up = up_ ? up_->at(i, j) : Expected{};
  const Bounded<double> before = unscaled<Roundings::counted, double>(o_, x, up);
  const Place place{begin_.batch, begin_.row + i, begin_.column + j};
  Expected due{scaled_d<Roundings::counted>(o_, place, before)};
  due.magnitude = std::max(x.magnitude, up.magnitude);
  // A gate's product, and scale_d's, may be beyond float32 as well.
  for (const Bounded<double>& on_the_way : {before, Bounded<double>(due)}) {
    if (std::isnan(on_the_way.value)) continue;
    due.magnitude = std::max(due.magnitude, std::abs(on_the_way.value) + on_the_way.bound);
  }
  return due;
}

}  // namespace warpwright::reference
