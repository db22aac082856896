// The kernels of Blackwell that are compiled, in one table, as kernel/hopper/table.h is for Hopper.
#pragma once

#include <iterator>
#include <utility>

#include "warpwright/kernel/blackwell/config_fault.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// What is multiplied: the kind, or plain tokens by any format with ue8m0.
constexpr std::string_view operands_name(const BlackwellConfig& c) {
  return c.plain_tokens ? "e4m3xmx" : atom::name(c.kind);
}
/// What D is: a type, or the format of codes.
constexpr std::string_view result_name(const BlackwellConfig& c) {
  const bool is_one = quantises(c) && !makes_either_scale(c);
  return is_one ? micro_format(c.result, c.d_scale)->identifier : numeric::name(c.result);
}
/// Operands, result, CTAs of an MMA, where tiles come from; for swapped operands the most tokens of
/// a tile; then what is special.
constexpr Name name_of(const BlackwellConfig& c) {
  constexpr std::string_view sources[] = {"", "_static", "_clc"};
  Name name("blackwell_");
  (name += operands_name(c)) += "_";
  name += result_name(c);
  name += c.pair ? "_pair" : "_one";
  if (c.grouped) {  // always in static persistent tiles
    (name += "_grouped") += c.tile_n;
  } else {
    name += sources[static_cast<int>(c.tiles)];
    if (c.tile_m == 64) name += "_m64";
    if (c.swap_ab) (name += "_sw") += c.tile_n;
  }
  if (!c.swap_ab && c.tile_n != (c.pair ? 256 : 128)) (name += "_n") += c.tile_n;
  if (c.blockwise) name += "_bs";
  if (c.splits_k) name += "_sk";
  if (c.long_k) name += "_k96";
  if (c.gated) name += "_gated";
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
constexpr BlackwellConfig into(DType result, BlackwellConfig c) {
  c.result = result;
  return c;
}

/// The same for each kind of operands: into bf16 every source of tiles, into f16 and f32 CLC, which
/// plans take by themselves.
inline constexpr BlackwellConfig shapes[] = {
    one(128),
    pair(256),
    persistent(TileSource::static_persistent, one(128)),
    persistent(TileSource::static_persistent, pair(256)),
    persistent(TileSource::clc, one(128)),
    persistent(TileSource::clc, pair(256)),
    into(DType::f16, persistent(TileSource::clc, one(128))),
    into(DType::f16, persistent(TileSource::clc, pair(256))),
    into(DType::f32, persistent(TileSource::clc, one(128))),
    into(DType::f32, persistent(TileSource::clc, pair(256))),
};
inline constexpr atom::UmmaKind kinds[] = {atom::UmmaKind::f16, atom::UmmaKind::f8f6f4};

constexpr Row<BlackwellConfig> row(std::size_t i) {
  BlackwellConfig c = shapes[i % std::size(shapes)];
  c.kind = kinds[i / std::size(shapes)];
  return common(c);
}
template <std::size_t... i>
constexpr auto all_rows(std::index_sequence<i...> /*rows*/) {
  return std::array{row(i)...};
}

// --- few tokens, and groups of them: weights on M -----------------------------------------------
constexpr BlackwellConfig of(atom::UmmaKind kind, BlackwellConfig c) {
  c.kind = kind;
  return c;
}
/// Half of the rows: twice as many CTAs share the weights.
constexpr BlackwellConfig of_64_rows(BlackwellConfig c) {
  c.tile_m = 64;
  return c;
}
/// Up to 128 tokens a tile, of one SM, in tiles cut evenly. N of MMAs of 64 rows begins with 8.
constexpr BlackwellConfig swap_ab(BlackwellConfig c) {
  c.swap_ab = true;
  c.widths = c.pair           ? tile::TileWidths{{32, 64, 128, 192, 256}}
             : c.tile_m == 64 ? tile::TileWidths{{8, 16, 32, 64, 96, 128}}
                              : tile::TileWidths{{16, 32, 64, 96, 128}};
  return c;
}
constexpr BlackwellConfig grouped(BlackwellConfig c) {
  c = persistent(TileSource::static_persistent, swap_ab(c));
  c.grouped = true;
  return c;
}
constexpr BlackwellConfig gated(BlackwellConfig c) {
  c.gated = true;
  if (is_scaled(c)) {  // its two halves leave tensor memory for one accumulator of each
    c.tile_m *= 2;
    c.accumulators = 1;
  }
  return c;
}

constexpr auto f16 = atom::UmmaKind::f16;
constexpr auto f8 = atom::UmmaKind::f8f6f4;
inline constexpr auto token_rows = std::array{
    common(of(f16, persistent(TileSource::clc, swap_ab(one(128))))),
    more(of(f8, persistent(TileSource::clc, swap_ab(one(128))))),
    common(of(f16, grouped(one(128)))),
    common(of(f8, grouped(one(128)))),
    common(of(f16, gated(grouped(one(128))))),
    common(of(f8, gated(grouped(one(128))))),
    more(of(f8, grouped(pair(256)))),
    common(of(f16, gated(persistent(TileSource::clc, swap_ab(one(128)))))),
    more(of(f8, gated(persistent(TileSource::clc, swap_ab(one(128)))))),
};

// --- sums in registers, and the widest tile of one SM --------------------------------------------
/// As many accumulators as tensor memory has: k_tiles are short.
constexpr BlackwellConfig blockwise(BlackwellConfig c) {
  c.kind = f8;
  c.blockwise = true;
  c.accumulators = atom::kTmemColumns / c.tile_n;
  return c;
}
constexpr BlackwellConfig split_k(BlackwellConfig c) {
  c.tiles = TileSource::static_persistent;
  if (!c.blockwise) c.accumulators = 2;
  c.splits_k = true;
  return c;
}
inline constexpr auto sum_rows = std::array{
    common(blockwise(persistent(TileSource::clc, one(128)))),
    common(split_k(one(128))),
    common(split_k(of(f16, swap_ab(of_64_rows(one(128)))))),
    common(split_k(of(f8, swap_ab(of_64_rows(one(128)))))),
    more(blockwise(persistent(TileSource::clc, pair(128)))),
    more(blockwise(grouped(one(128)))),
    more(blockwise(gated(grouped(one(128))))),
    more(split_k(blockwise(one(128)))),
    more(persistent(TileSource::clc, one(256))),
};

// --- scales that the tensor core multiplies ----------------------------------------------------
/// Operands with scales: any two of mxf8, mxf6 and mxf4 (which types they are is a matter of the
/// launch), or packed ones, both of mxf4 or both of nvf4 (so is which of these).
constexpr BlackwellConfig mixed(DType result, BlackwellConfig c) {
  if (c.swap_ab) c.widths = {{8, 16, 32, 64, 96, 128}};  // N of these MMAs begins with 8
  c.kind = atom::UmmaKind::mxf8f6f4;
  c.scale = DType::ue8m0;
  c.result = result;
  return c;
}
constexpr BlackwellConfig packed(DType result, BlackwellConfig c) {
  c = mixed(result, c);
  c.kind = atom::UmmaKind::mxf4nvf4;
  c.scale = DType::ue4m3;
  return c;
}
/// For tokens of e4m3 with a scale each.
constexpr BlackwellConfig plain(BlackwellConfig c) {
  c.plain_tokens = true;
  return c;
}
/// By MMAs of K 96, of sm_103.
constexpr BlackwellConfig k96(BlackwellConfig c) {
  c.long_k = true;
  return c;
}
/// D as codes of the format of such elements, with their scales.
constexpr BlackwellConfig codes(DType scale, BlackwellConfig c) {
  c.d_scale = scale;
  return c;
}
constexpr auto by_static = TileSource::static_persistent;
constexpr auto by_clc = TileSource::clc;

// Each kind with each result, by one SM, and by pairs into bf16; each shape and source of tiles
// with some kind; for every usual build those that together have every part.
inline constexpr auto scaled_rows = std::array{
    common(mixed(DType::bf16, persistent(by_clc, one(128)))),
    more(mixed(DType::f16, persistent(by_clc, one(128)))),
    more(mixed(DType::f32, persistent(by_clc, one(128)))),
    common(mixed(DType::bf16, persistent(by_clc, pair(256)))),
    more(mixed(DType::bf16, persistent(by_static, pair(128)))),
    more(mixed(DType::bf16, persistent(by_clc, pair(192)))),
    common(packed(DType::bf16, persistent(by_clc, one(128)))),
    more(packed(DType::f16, persistent(by_clc, one(128)))),
    more(packed(DType::f32, persistent(by_clc, one(128)))),
    common(packed(DType::bf16, persistent(by_clc, pair(256)))),
    common(packed(DType::bf16, persistent(by_clc, one(64)))),
    more(packed(DType::bf16, persistent(by_static, one(192)))),
    more(packed(DType::bf16, persistent(by_clc, one(256)))),
    more(packed(DType::bf16, persistent(by_clc, pair(64)))),
    common(plain(mixed(DType::bf16, persistent(by_clc, one(128))))),
    more(plain(mixed(DType::bf16, persistent(by_clc, pair(256))))),
    more(k96(packed(DType::bf16, persistent(by_clc, one(128))))),
    more(k96(packed(DType::bf16, persistent(by_clc, pair(256))))),
    common(codes(DType::ue8m0, mixed(DType::e4m3, persistent(by_clc, one(128))))),
    common(codes(DType::ue4m3, packed(DType::e2m1, persistent(by_clc, one(128))))),
};

/// Tokens on N, an atom of scales of them a tile.
inline constexpr auto scaled_token_rows = std::array{
    common(mixed(DType::bf16, grouped(one(128)))),
    common(packed(DType::bf16, grouped(one(128)))),
    more(mixed(DType::bf16, persistent(by_clc, swap_ab(one(128))))),
    more(packed(DType::bf16, persistent(by_clc, swap_ab(one(128))))),
    common(split_k(mixed(DType::bf16, swap_ab(one(128))))),
    common(split_k(packed(DType::bf16, swap_ab(one(128))))),
    more(split_k(plain(mixed(DType::bf16, swap_ab(one(128)))))),
    common(gated(mixed(DType::bf16, grouped(one(128))))),
    common(gated(packed(DType::bf16, grouped(one(128))))),
    common(codes(DType::ue8m0, gated(mixed(DType::e4m3, grouped(one(128)))))),
    common(codes(DType::ue4m3, gated(packed(DType::e2m1, grouped(one(128)))))),
    more(codes(DType::ue8m0, mixed(DType::e4m3, grouped(one(128))))),
    more(codes(DType::ue4m3, packed(DType::e2m1, grouped(one(128))))),
    more(gated(mixed(DType::bf16, persistent(by_clc, swap_ab(one(128)))))),
    more(gated(packed(DType::bf16, persistent(by_clc, swap_ab(one(128)))))),
    common(plain(mixed(DType::bf16, grouped(one(128))))),
    more(gated(plain(mixed(DType::bf16, grouped(one(128)))))),
};

inline constexpr auto plain_rows =
    all_rows(std::make_index_sequence<std::size(shapes) * std::size(kinds)>{});
inline constexpr auto rows = joined(
    joined(joined(joined(plain_rows, token_rows), sum_rows), scaled_rows), scaled_token_rows);

}  // namespace blackwell

struct BlackwellRows {
  static constexpr const auto& rows = blackwell::rows;
};

}  // namespace warpwright::kernel
