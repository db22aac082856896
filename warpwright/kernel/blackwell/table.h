// The kernels of Blackwell that are compiled, in one table, as kernel/hopper/table.h is for Hopper.
#pragma once

#include <iterator>
#include <utility>

#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// What is multiplied: the kind, or the format of operands that are packed.
constexpr std::string_view operands_name(const BlackwellConfig& c) {
  if (atom::is_packed(c.kind)) return micro_format(DType::e2m1, c.scale)->identifier;
  return atom::name(c.kind);
}
/// Operands, result, CTAs of an MMA with its columns where they are not the usual ones, and where
/// tiles come from.
constexpr Name name_of(const BlackwellConfig& c) {
  constexpr std::string_view sources[] = {"", "_static", "_clc"};
  Name name("blackwell_");
  (name += operands_name(c)) += "_";
  if (quantises(c)) {
    name += micro_format(c.result, c.d_scale)->identifier;
  } else {
    name += numeric::name(c.result);
  }
  name += c.pair ? "_pair" : "_one";
  if (c.tile_n != (c.pair ? 256 : 128)) name += c.tile_n;
  return name += sources[static_cast<int>(c.tiles)];
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
constexpr auto plain_rows(std::index_sequence<i...> /*rows*/) {
  return std::array{row(i)...};
}

/// Operands with scales: any two of mxf8, mxf6 and mxf4 (which types they are is a matter of the
/// launch), or packed ones, of mxf4 alone or of nvf4.
constexpr BlackwellConfig mixed(DType result, BlackwellConfig c) {
  c.kind = atom::UmmaKind::mxf8f6f4;
  c.scale = DType::ue8m0;
  c.result = result;
  return c;
}
constexpr BlackwellConfig mxf4(DType result, BlackwellConfig c) {
  c = mixed(result, c);
  c.kind = atom::UmmaKind::mxf4;
  return c;
}
constexpr BlackwellConfig nvf4(DType result, BlackwellConfig c) {
  c = mixed(result, c);
  c.kind = atom::UmmaKind::mxf4nvf4;
  c.scale = DType::ue4m3;
  return c;
}
/// Two accumulators, where tensor memory has room for them and the scales; with 256 columns it has
/// for one.
constexpr BlackwellConfig walks(TileSource tiles, BlackwellConfig c) {
  c.tiles = tiles;
  c.accumulators = c.tile_n == 256 ? 1 : 2;
  return c;
}
/// D as codes of the format of such elements, with their scales.
constexpr BlackwellConfig codes(DType scale, BlackwellConfig c) {
  c.d_scale = scale;
  return c;
}
constexpr auto by_static = TileSource::static_persistent;
constexpr auto by_clc = TileSource::clc;

// Each kind with each result, and each shape and source of tiles with some kind; of every usual
// build those that together have every part.
inline constexpr auto scaled_rows = std::array{
    common(mixed(DType::bf16, walks(by_static, one(128)))),
    common(mixed(DType::bf16, walks(by_clc, pair(256)))),
    more(mixed(DType::f16, walks(by_clc, pair(256)))),
    more(mixed(DType::f32, walks(by_clc, pair(256)))),
    more(mixed(DType::bf16, one(64))),
    more(mixed(DType::bf16, walks(by_clc, one(256)))),
    more(mixed(DType::bf16, walks(by_static, pair(128)))),
    more(mixed(DType::bf16, walks(by_clc, pair(192)))),
    common(mxf4(DType::bf16, walks(by_clc, one(64)))),
    more(mxf4(DType::bf16, walks(by_clc, pair(256)))),
    more(mxf4(DType::f16, walks(by_clc, pair(256)))),
    more(mxf4(DType::f32, walks(by_clc, pair(256)))),
    common(nvf4(DType::bf16, walks(by_clc, one(128)))),
    common(nvf4(DType::bf16, walks(by_clc, pair(256)))),
    more(nvf4(DType::f16, walks(by_clc, pair(256)))),
    more(nvf4(DType::f32, walks(by_clc, pair(256)))),
    more(nvf4(DType::bf16, walks(by_static, one(192)))),
    more(nvf4(DType::bf16, walks(by_clc, pair(64)))),
    more(nvf4(DType::bf16, one(256))),
    common(codes(DType::ue8m0, mixed(DType::e4m3, walks(by_clc, one(128))))),
    common(codes(DType::ue4m3, nvf4(DType::e2m1, walks(by_clc, pair(128))))),
    more(codes(DType::ue8m0, mixed(DType::e4m3, walks(by_clc, pair(256))))),
};

template <std::size_t plain, std::size_t scaled>
constexpr auto joined(const std::array<Row<BlackwellConfig>, plain>& first,
                      const std::array<Row<BlackwellConfig>, scaled>& second) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{
        (i < plain ? first[i % plain] : second[(i + scaled - plain % scaled) % scaled])...};
  }
  (std::make_index_sequence<plain + scaled>{});
}
inline constexpr auto rows = joined(
    plain_rows(
        std::make_index_sequence<std::size(shapes) * std::size(results) * std::size(kinds)>{}),
    scaled_rows);

}  // namespace blackwell

struct BlackwellRows {
  static constexpr const auto& rows = blackwell::rows;
};

}  // namespace warpwright::kernel
