// The register kernels that are compiled, in one table, as kernel/hopper/table.h is for Hopper.
#pragma once

#include <iterator>
#include <utility>

#include "warpwright/kernel/registers/config.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// Operands, result, tile, whether rows may begin anywhere; of those with a producer whether they
/// take turns, and where tiles come from.
constexpr Name name_of(const RegisterConfig& c) {
  Name name("registers_");
  ((name += numeric::name(c.mma.a)) += "_") += numeric::name(c.result);
  (((name += "_") += c.tile_m) += "x") += c.tile_n;
  if (c.any_alignment) name += "_any";
  if (has_producer(c)) name += "_tma";
  if (c.schedule == Schedule::pingpong) name += "_pp";
  if (asks_for_tiles(c)) name += "_clc";
  return name;
}

namespace registers {

/// A tile of a CTA and of its warps. Stages are rows of 64 bytes of K.
constexpr RegisterConfig tile(int m, int n, int warps_m, int warps_n, int stages, int ctas_per_sm) {
  return {.tile_m = m,
          .tile_n = n,
          .warps_m = warps_m,
          .warps_n = warps_n,
          .stages = stages,
          .ctas_per_sm = ctas_per_sm};
}
/// Few rows or columns, or many that begin anywhere: small tiles, whose sums leave registers.
constexpr RegisterConfig small(bool any_alignment) {
  RegisterConfig c = tile(64, 64, 2, 2, 4, 3);
  c.splits_k = true;
  c.any_alignment = any_alignment;
  return c;
}

/// The same for each pair of types.
inline constexpr RegisterConfig shapes[] = {
    tile(128, 256, 2, 4, 4, 1),
    tile(256, 128, 4, 2, 4, 1),
    tile(128, 128, 2, 2, 3, 2),
    small(false),
    small(true),
};
struct Types {
  DType operand;
  DType result;
};
inline constexpr Types types[] = {
    {DType::bf16, DType::bf16}, {DType::bf16, DType::f32},  {DType::f16, DType::f16},
    {DType::f16, DType::f32},   {DType::e4m3, DType::bf16}, {DType::e4m3, DType::f16},
    {DType::e4m3, DType::f32},
};

/// With these types.
constexpr RegisterConfig of(RegisterConfig c, const Types& t) {
  const int bits = numeric::bits(t.operand);
  c.mma = {atom::MmaKind::warp, 16, 8, 256 / bits, t.operand, t.operand, DType::f32};
  c.tile_k = 512 / bits;
  c.result = t.result;
  return c;
}

/// With a producer, as much of the ring as fits.
constexpr RegisterConfig fed(RegisterConfig c, Schedule schedule, int buffers = 2,
                             TileSource tiles = TileSource::static_persistent) {
  c.schedule = schedule;
  c.buffers = buffers;
  c.tiles = tiles;
  c.ctas_per_sm = 1;
  c.stages = 0;
  return c;
}
inline constexpr RegisterConfig shared_tile =
    fed(tile(128, 128, 2, 4, 0, 1), Schedule::cooperative);
inline constexpr RegisterConfig large_tile =
    fed(tile(128, 256, 2, 4, 0, 1), Schedule::cooperative, 1);
inline constexpr RegisterConfig in_turns = fed(tile(128, 128, 2, 2, 0, 1), Schedule::pingpong);
inline constexpr RegisterConfig in_asked_turns =
    fed(tile(128, 128, 2, 2, 0, 1), Schedule::pingpong, 2, TileSource::launch_control);
inline constexpr Row<RegisterConfig> fed_rows[] = {
    more(of(shared_tile, {DType::bf16, DType::bf16})),
    more(of(large_tile, {DType::bf16, DType::bf16})),
    common(of(in_turns, {DType::bf16, DType::bf16})),
    more(of(in_asked_turns, {DType::bf16, DType::bf16})),
    more(of(in_turns, {DType::f16, DType::f16})),
    more(of(in_turns, {DType::e4m3, DType::bf16})),
    more(of(in_asked_turns, {DType::e4m3, DType::bf16})),
};

constexpr Row<RegisterConfig> row(std::size_t i) {
  constexpr std::size_t copying = std::size(shapes) * std::size(types);
  if (i >= copying) return fed_rows[i - copying];
  const Types t = types[i / std::size(shapes)];
  const RegisterConfig c = of(shapes[i % std::size(shapes)], t);
  // Of every usual build: the fast ones of bf16, and of each operand one that takes all layouts.
  const bool bf16 = t.operand == DType::bf16;
  const bool fast = c.tile_n * c.tile_m >= 128 * 128 && c.tile_m == 128;
  const bool same = t.result == t.operand || t.result == DType::bf16;
  const bool usual = (bf16 && same && fast) || (c.any_alignment && (bf16 || same));
  return usual ? common(c) : more(c);
}
template <std::size_t... i>
constexpr auto all_rows(std::index_sequence<i...> /*rows*/) {
  return std::array{row(i)...};
}
inline constexpr auto rows = all_rows(
    std::make_index_sequence<std::size(shapes) * std::size(types) + std::size(fed_rows)>{});

}  // namespace registers

struct RegistersRows {
  static constexpr const auto& rows = registers::rows;
};

}  // namespace warpwright::kernel
