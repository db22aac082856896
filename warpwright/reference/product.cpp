#include "warpwright/reference/product.h"

#include <algorithm>
#include <cmath>

#include "warpwright/numeric/vector_clones.h"
#include "warpwright/reference/operand.h"

namespace warpwright::reference {
namespace {

// For `n` products of exact values.
WW_VECTOR_SUMS Sum dot(const float* x, const float* y, std::int64_t n) {
  double value = 0;
  double size = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const double term = static_cast<double>(x[k]) * static_cast<double>(y[k]);
    value += term;
    size += std::fabs(term);  // of this name compilers know their own
  }
  return {value, size};
}

}  // namespace

std::vector<Part> parts_of(const GemmOperands& o) {
  std::vector<Part> parts;
  if (!o.groups) {
    for (std::int64_t batch = 0; batch < o.d.batch; ++batch) {
      parts.push_back({batch, batch, 0, o.d.rows});
    }
    return parts;
  }
  for (std::int64_t group = 0; group < o.b.batch; ++group) {
    const auto [begin, end] = rows_of_group(o, group);
    if (begin < end) parts.push_back({0, group, begin, end});
  }
  return parts;
}

Product::Values::Values(const GemmOperands& o, Side side) {
  const Operand operand(o, side);
  matrices = operand.matrices();
  rows = operand.rows();
  depth = o.a.columns;
  all.resize(static_cast<std::size_t>(matrices * rows * depth));
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
    operand.read(matrix, matrix, 0, rows, 0, depth, all.data() + matrix * rows * depth, depth);
  }
}

Product::Product(const GemmOperands& operands)
    : o_(operands), a_(operands, Side::a), b_(operands, Side::b) {}

Sum Product::before(std::int64_t batch, std::int64_t group, std::int64_t row,
                    std::int64_t column) const {
  const float* const x = a_.row(batch, row);
  const float* const y = b_.row(group, column);
  const std::int64_t reach = scale_reach(o_, Side::a).depth;
  const bool is_scaled = !scales_elements(o_.scaling);
  const std::int64_t step = is_scaled && reach > 0 ? reach : std::max<std::int64_t>(1, a_.depth);
  Sum sum;
  for (std::int64_t k = 0; k < a_.depth; k += step) {
    const Sum part = dot(x + k, y + k, std::min(step, a_.depth - k));
    const double scale = !is_scaled ? 1
                                    : scale_of_a(o_, batch, group, row, k) *
                                          scale_of(o_, Side::b, batch, group, column, k);
    sum.value += part.value * scale;
    sum.size += part.size * std::abs(scale);
  }
  sum.value = before_activation(o_, batch, group, row, column, sum.value);
  sum.size = times_alpha(std::abs(factor_of_sums(o_, group)), sum.size);
  return sum;
}

double Product::result(std::int64_t batch, std::int64_t group, std::int64_t row,
                       std::int64_t column) const {
  return bounded(batch, group, row, column, [](const Sum&) { return 0.0; }).value;
}

}  // namespace warpwright::reference
