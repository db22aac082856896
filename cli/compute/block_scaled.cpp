#include "cli/compute/block_scaled.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::cli {
namespace {

std::size_t index_of(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::uint64_t saturated(DType type, double x) {
  return numeric::from_double(type, x, numeric::Rounding::nearest_even,
                              numeric::Overflow::saturate);
}

// The code of the scale of a block whose largest element is `most`.
std::uint64_t scale_of(const MicroFormat& f, double most) {
  const numeric::FloatFormat element = numeric::format_of(f.element);
  if (f.scale == DType::ue4m3) return saturated(f.scale, most / element.max());
  const int exponent = most > 0 ? std::ilogb(most) - element.max_exponent() : 0;
  return saturated(f.scale, numeric::pow2(std::clamp(exponent, -127, 127)));
}

void put_code(std::vector<std::byte>& codes, std::int64_t at, int bits, std::uint64_t code) {
  const auto shift = static_cast<int>(at * bits % 8);
  const std::size_t first = index_of(at * bits / 8);
  codes[first] |= static_cast<std::byte>(code << shift);
  if (shift + bits > 8) codes[first + 1] |= static_cast<std::byte>(code >> (8 - shift));
}

}  // namespace

MicroTensor quantise(const HostTensor& values, const MicroFormat& f) {
  const std::int64_t k = values.shape.back();
  const std::int64_t all = k == 0 ? 0 : values.elements() / k;
  const int bits = numeric::bits(f.element);
  const int block = micro_block(f.scale);
  const std::int64_t blocks = (k + block - 1) / block;
  MicroTensor made;
  made.codes.resize(index_of((all * k * bits + 7) / 8));
  made.scales.resize(index_of(all * blocks));
  const auto* const floats = reinterpret_cast<const float*>(values.bytes.data());
  for (std::int64_t row = 0; row < all; ++row) {
    for (std::int64_t first = 0; first < k; first += block) {
      const float* const x = floats + row * k + first;
      const std::int64_t count = std::min<std::int64_t>(block, k - first);
      float most = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        if (std::isfinite(x[i])) most = std::max(most, std::abs(x[i]));
      }
      const std::uint64_t scale = scale_of(f, static_cast<double>(most));
      made.scales[index_of(row * blocks + first / block)] = static_cast<std::byte>(scale);
      const double factor = numeric::to_double(f.scale, scale);
      for (std::int64_t i = 0; i < count; ++i) {
        const double scaled = factor == 0 ? 0 : static_cast<double>(x[i]) / factor;
        const double finite = std::isnan(scaled) ? numeric::format_of(f.element).max() : scaled;
        put_code(made.codes, row * k + first + i, bits, saturated(f.element, finite));
      }
    }
  }
  return made;
}

std::vector<std::byte> scale_tiles(const MicroTensor& of, const MatrixShape& view,
                                   std::int64_t rows, std::int64_t blocks,
                                   const std::vector<ScaleRows>& groups,
                                   const std::vector<std::int64_t>& index) {
  const std::int64_t matrices = view.batch;
  const std::int64_t matrix = view.rows * view.columns;
  const std::byte nan{static_cast<std::uint8_t>(numeric::format_of(view.dtype).magnitude_mask())};
  std::vector<std::byte> tiles(index_of(matrices * matrix), nan);
  const std::vector<ScaleRows> whole = {{0, rows}};
  const std::int64_t stored =
      blocks == 0 ? 0 : static_cast<std::int64_t>(of.scales.size()) / blocks;
  for (std::int64_t m = 0; m < matrices; ++m) {
    std::int64_t tile = 0;
    for (const ScaleRows& group : groups.empty() ? whole : groups) {
      for (std::int64_t row = group.begin; row < group.end; ++row) {
        const std::int64_t to = tile + row - group.begin;
        const std::int64_t from = index.empty() ? m * rows + row : index[index_of(row)];
        if (to >= view.rows) break;
        for (std::int64_t block = 0; block < view.columns; ++block) {
          const bool is_there = block < blocks && from >= 0 && from < stored;
          tiles[index_of(m * matrix + block_scales::place(to, block, view.columns))] =
              is_there ? of.scales[index_of(from * blocks + block)] : std::byte{0};
        }
      }
      tile += block_scales::padded_rows(std::max<std::int64_t>(0, group.end - group.begin));
    }
  }
  return tiles;
}

void spread_blocks(HostTensor& values, std::uint64_t seed) {
  constexpr std::int64_t each = 32;
  const std::int64_t k = values.shape.back();
  if (k == 0) return;
  std::mt19937_64 random(seed);
  auto* const floats = reinterpret_cast<float*>(values.bytes.data());
  for (std::int64_t row = 0; row < values.elements() / k; ++row) {
    for (std::int64_t first = 0; first < k; first += each) {
      const auto factor = static_cast<float>(numeric::pow2(static_cast<int>(random() % 7) - 3));
      for (std::int64_t i = first; i < std::min(k, first + each); ++i)
        floats[row * k + i] *= factor;
    }
  }
}

}  // namespace warpwright::cli
