#include "cli/compute/block_scaled.h"

#include <algorithm>
#include <random>

#include "warpwright/device/quantise.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/modes.h"

namespace warpwright::cli {
namespace {

std::size_t index_of(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

MicroTensor quantise(const HostTensor& values, const MicroFormat& f) {
  const std::int64_t k = values.shape.back();
  const std::int64_t all = k == 0 ? 0 : values.elements() / k;
  const std::int64_t blocks = ScaleReach::count(k, micro_block(f.scale));
  MicroTensor made;
  if (f == plain_tokens) {
    made.codes.resize(index_of(all * k));
    made.scales.resize(index_of(all) * sizeof(float));
    Quantisation q;
    q.x = matrix(packed_view(values).data, DType::f32, all, k);
    q.codes = matrix(made.codes.data(), f.element, all, k);
    q.scales = matrix(made.scales.data(), f.scale, all, 1);
    if (const auto refused = quantise_on_host(q)) throw InputError(*refused);
    return made;
  }
  made.codes.resize(index_of((all * k * numeric::bits(f.element) + 7) / 8));
  made.scales.resize(index_of(all * blocks));
  Quantisation q;
  q.x = matrix(packed_view(values).data, DType::f32, all, k);
  q.codes = matrix(made.codes.data(), f.element, all, k);
  q.scales = matrix(made.scales.data(), f.scale, all, blocks);
  q.scaling = Scaling::block_scaled;
  q.recipe = f.scale == DType::ue8m0 ? Recipe::floor : Recipe::nested;
  q.order = ScaleOrder::rows;
  if (const auto refused = quantise_on_host(q)) throw InputError(*refused);
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
        const std::int64_t its = index.empty() ? row : index[index_of(row)];
        const std::int64_t from = its < 0 ? -1 : m * rows + its;
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
