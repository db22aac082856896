// What kernels whose tensor core multiplies scales may be asked.
#pragma once

#include <string>
#include <vector>

#include "tests/kernel/problems.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/kernel/blackwell/config.h"

namespace warpwright::tests {

/// Those for whole products.
inline std::vector<Instance> scaled_instances() {
  return scaled_instances([](const KernelFacts& f) { return !f.grouped; });
}

inline std::string types(const Instance& i) {
  return std::string(numeric::name(i.a)) + " by " + std::string(numeric::name(i.b)) + ", " +
         std::string(numeric::name(micro_scale_of(i)));
}

/// Bits of shared memory that an element takes.
inline int atom_bits(const Instance& i) {
  return 1024 / i.facts->tile.k;
}

/// The nearest that a product with these types may ask.
inline Ask scaled_ask(const Instance& i, Ask ask) {
  fit_formats(i, ask);
  return ask;
}

/// Expects the codes and scales of one problem to be those of the other's values.
inline void expect_recipe(QuantiseD way, Problem& codes, Problem& values) {
  const QuantisedForm form = form_of(way);
  const MatrixView d = codes.d().view();
  const MatrixView s = codes.d_scales().view();
  const GemmOperands o = codes.operands();
  const float tensor =
      o.scale_d.data == nullptr ? 1.0F : *static_cast<const float*>(o.scale_d.data);
  const auto block = static_cast<int>(form.columns);
  for (std::int64_t b = 0; b < d.batch; ++b) {
    for (std::int64_t row = 0; row < d.rows; ++row) {
      for (std::int64_t first = 0; first < d.columns; first += block) {
        const std::int64_t end = std::min<std::int64_t>(d.columns, first + block);
        std::uint32_t largest = 0;
        for (std::int64_t j = first; j < end; ++j) {
          const auto x = static_cast<float>(values.d().get(b, row, j));
          largest = micro::larger(largest, micro::magnitude(x, form.codes));
        }
        const bool powers = form.scale == DType::ue8m0;
        const std::uint32_t scale = powers ? micro::power_scale(Recipe::up, form.codes, largest)
                                           : micro::nested_scale(largest, tensor);
        const auto at = block_scales::place(row, first / block, s.row_stride);
        ASSERT_EQ(std::to_integer<unsigned>(codes.d_scales().address(b, 0, 0)[at]), scale)
            << "row " << row << ", columns from " << first;
        for (std::int64_t j = first; j < end; ++j) {
          const auto x = static_cast<float>(values.d().get(b, row, j));
          const float scaled = powers ? unless_infinite(x * micro::power_inverse(scale), x)
                                      : x / micro::nested_divisor(scale, tensor);
          const std::uint32_t code =
              micro::clears(form.scale, scale) ? 0 : micro::code(form.codes, scaled);
          ASSERT_EQ(codes.d().get(b, row, j), static_cast<double>(micro::value(form.codes, code)))
              << "row " << row << ", column " << j;
        }
      }
    }
  }
}

}  // namespace warpwright::tests
