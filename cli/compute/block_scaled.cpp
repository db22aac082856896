#include "cli/compute/block_scaled.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::uint64_t saturated(DType type, double x) {
  return numeric::from_double(type, x, numeric::Rounding::nearest_even,
                              numeric::Overflow::saturate);
}

// The code of the scale of a block whose largest element is `most`.
std::uint64_t scale_of(DType type, double most) {
  if (type == DType::e2m1) return saturated(DType::ue4m3, most / 6);
  const int exponent = most > 0 ? std::ilogb(most) : 8;
  return saturated(DType::ue8m0, numeric::pow2(std::clamp(exponent - 8, -127, 127)));
}

}  // namespace

MicroTensor quantise(const HostTensor& values, DType type) {
  const std::size_t rank = values.shape.size();
  const std::int64_t k = values.shape[rank - 1];
  const std::int64_t rows = values.shape[rank - 2];
  const std::int64_t all = k == 0 ? 0 : values.elements() / k;
  const int bits = numeric::bits(type);
  const int block = micro_block(micro_scale(type));
  const DType scale_type = micro_scale(type);
  const std::int64_t columns = block_scales::padded_columns(k, block);
  const std::int64_t matrix = block_scales::padded_rows(rows) * columns;
  MicroTensor made;
  made.codes.resize(index((all * k * bits + 7) / 8));
  made.scales.resize(index(rows == 0 ? 0 : all / rows * matrix));
  const auto* const floats = reinterpret_cast<const float*>(values.bytes.data());
  for (std::int64_t row = 0; row < all; ++row) {
    for (std::int64_t first = 0; first < k; first += block) {
      const float* const x = floats + row * k + first;
      const std::int64_t count = std::min<std::int64_t>(block, k - first);
      float most = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        if (std::isfinite(x[i])) most = std::max(most, std::abs(x[i]));
      }
      const std::uint64_t scale = scale_of(type, static_cast<double>(most));
      made.scales[index(row / rows * matrix +
                        block_scales::place(row % rows, first / block, columns))] =
          static_cast<std::byte>(scale);
      const double factor = numeric::to_double(scale_type, scale);
      for (std::int64_t i = 0; i < count; ++i) {
        const double scaled = factor == 0 ? 0 : static_cast<double>(x[i]) / factor;
        const std::uint64_t code = std::isnan(scaled)
                                       ? saturated(type, numeric::format_of(type).max())
                                       : saturated(type, scaled);
        const std::int64_t at = row * k + first + i;
        made.codes[index(at * bits / 8)] |= static_cast<std::byte>(code << at * bits % 8);
      }
    }
  }
  return made;
}

MatrixView scales_view(MicroTensor& of, const HostTensor& values, DType type) {
  const std::size_t rank = values.shape.size();
  MatrixView view =
      matrix(of.scales.data(), micro_scale(type), block_scales::padded_rows(values.shape[rank - 2]),
             block_scales::padded_columns(values.shape[rank - 1], micro_block(micro_scale(type))));
  if (rank == 3) {
    view.batch = values.shape[0];
    view.batch_stride = view.rows * view.columns;
  }
  return view;
}

}  // namespace warpwright::cli
