// The kernels of Blackwell that are compiled, in one table, as kernel/hopper/table.h is for Hopper.
#pragma once

#include <array>
#include <iterator>
#include <utility>

#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// Kind of the operands, result, CTAs of an MMA, where tiles come from, then what is special.
constexpr Name name_of(const BlackwellConfig& c) {
  constexpr std::string_view kinds[] = {"f16", "tf32", "f8f6f4"};
  constexpr std::string_view sources[] = {"", "_static", "_clc"};
  Name name("blackwell_");
  ((name += kinds[static_cast<int>(c.kind)]) += "_") += numeric::name(c.result);
  (name += c.pair ? "_pair" : "_one") += sources[static_cast<int>(c.tiles)];
  if (c.tile_n != (c.pair ? 256 : 128)) (name += "_n") += c.tile_n;
  if (c.block_scaled) name += "_bs";
  if (c.splits_k) name += "_sk";
  return name;
}

namespace blackwell {

constexpr BlackwellConfig one(int tile_n) {
  return {.tile_n = tile_n, .stages = 0};
}
constexpr BlackwellConfig pair(int tile_n) {
  return {.tile_n = tile_n, .stages = 0, .pair = true};
}
/// Kernels of many tiles have two accumulators.
constexpr BlackwellConfig persistent(TileSource tiles, BlackwellConfig c) {
  c.tiles = tiles;
  c.accumulators = 2;
  return c;
}

constexpr BlackwellConfig fp8(BlackwellConfig c) {
  c.kind = atom::UmmaKind::f8f6f4;
  return c;
}
constexpr BlackwellConfig to(DType result, BlackwellConfig c) {
  c.result = result;
  return c;
}
/// As many accumulators as tensor memory has: k_tiles are short.
constexpr BlackwellConfig block_scaled(BlackwellConfig c) {
  c.kind = atom::UmmaKind::f8f6f4;
  c.block_scaled = true;
  c.accumulators = atom::kTmemColumns / c.tile_n;
  return c;
}
constexpr BlackwellConfig split_k(BlackwellConfig c) {
  c = persistent(TileSource::static_persistent, c);
  if (c.block_scaled) c.accumulators = atom::kTmemColumns / c.tile_n;
  c.splits_k = true;
  return c;
}

/// The same for each kind of operands and each result.
inline constexpr BlackwellConfig shapes[] = {
    one(128),
    pair(256),
    persistent(TileSource::static_persistent, one(128)),
    persistent(TileSource::static_persistent, pair(256)),
    persistent(TileSource::clc, one(128)),
    persistent(TileSource::clc, pair(256)),
};
inline constexpr atom::UmmaKind kinds[] = {atom::UmmaKind::f16, atom::UmmaKind::f8f6f4};
inline constexpr DType results[] = {DType::bf16, DType::f16, DType::f32};

constexpr Row<BlackwellConfig> row(std::size_t i) {
  constexpr std::size_t each = std::size(shapes);
  BlackwellConfig c = shapes[i % each];
  c.result = results[i / each % std::size(results)];
  c.kind = kinds[i / each / std::size(results)];
  return common(c);
}
template <std::size_t... i>
constexpr auto all_rows(std::index_sequence<i...> /*rows*/) {
  return std::array{row(i)...};
}
inline constexpr auto plain_rows =
    all_rows(std::make_index_sequence<std::size(shapes) * std::size(results) * std::size(kinds)>{});

/// fp8 with scales of blocks, tiles that are split along K, the widest tile of one SM.
inline constexpr auto special_rows = std::to_array<Row<BlackwellConfig>>({
    common(block_scaled(persistent(TileSource::clc, one(128)))),
    common(split_k(one(128))),
    more(block_scaled(persistent(TileSource::clc, pair(128)))),
    more(block_scaled(to(DType::f32, persistent(TileSource::clc, one(128))))),
    more(split_k(block_scaled(one(128)))),
    more(split_k(fp8(one(128)))),
    more(split_k(to(DType::f32, one(128)))),
    more(persistent(TileSource::clc, one(256))),
});

inline constexpr auto rows = joined(plain_rows, special_rows);

}  // namespace blackwell

struct BlackwellRows {
  static constexpr const auto& rows = blackwell::rows;
};

}  // namespace warpwright::kernel
