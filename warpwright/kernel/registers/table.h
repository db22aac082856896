// The register kernels that are compiled, in one table, as kernel/hopper/table.h is for Hopper.
#pragma once

#include <array>

#include "warpwright/kernel/registers/config.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// The MMA, where it is not the usual one of 32 bytes of K; operands, result, tile, and whether
/// rows may begin anywhere; with a producer whether tiles are taken in turn, and asked for.
constexpr Name name_of(const RegisterConfig& c) {
  Name name("registers_");
  if (mmas_a_k_block(c) != 1) {
    (((((name += "m") += c.mma.m) += "n") += c.mma.n) += "k") += c.mma.k;
    name += "_";
  }
  const bool scaled = is_block_scaled(c);
  name += scaled ? std::string_view(format_a(c).identifier) : numeric::name(c.mma.a);
  if (c.mma.b != c.mma.a) {
    (name += "x") += scaled ? std::string_view(format_b(c).identifier) : numeric::name(c.mma.b);
  }
  (name += "_") += numeric::name(c.result);
  (((name += "_") += c.tile_m) += "x") += c.tile_n;
  if (c.any_alignment) name += "_any";
  if (has_producer(c)) name += "_tma";
  if (takes_turns(c)) name += "_pp";
  if (asks_for_tiles(c)) name += "_clc";
  if (is_grouped(c)) name += "_grouped";
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
inline constexpr RegisterConfig wide = tile(128, 256, 2, 4, 4, 1);
inline constexpr RegisterConfig tall = tile(256, 128, 4, 2, 4, 1);
inline constexpr RegisterConfig square = tile(128, 128, 2, 2, 3, 2);
/// Eight warps of 64 x 32: of 8-bit floats, which sm_90 converts in registers.
inline constexpr RegisterConfig eight_warps = tile(128, 128, 2, 4, 3, 1);

/// Operands of one type, results of another, MMAs of 32 bytes of K.
constexpr RegisterConfig of(DType operand, DType result, RegisterConfig c) {
  const int bits = numeric::bits(operand);
  c.mma = {atom::MmaKind::warp,
           16,
           8,
           256 / bits,
           operand,
           operand,
           numeric::is_float(operand) ? DType::f32 : DType::s32};
  c.tile_k = 512 / bits;
  c.result = result;
  return c;
}
/// Two types of 8-bit floats.
constexpr RegisterConfig mixed(DType a, DType b, DType result, RegisterConfig c) {
  c = of(a, result, c);
  c.mma.b = b;
  return c;
}
/// One CTA an SM less: threads hold more.
constexpr RegisterConfig roomier(RegisterConfig c) {
  --c.ctas_per_sm;
  return c;
}
/// Turing's and Volta's: m16n8k8 and m8n8k4 of f16, fed by plain loads. Fewer CTAs an SM, and eight
/// warps of 64 x 32, to hold what is loaded.
constexpr RegisterConfig loaded(DType result, RegisterConfig c) {
  c = roomier(of(DType::f16, result, c));
  c.feed = Feed::registers;
  c.stages = 2;
  if (c.tile_n == 128) c.warps_n = 4;
  return c;
}
/// With a producer, and as much of a ring as fits.
constexpr RegisterConfig fed(DType operand, DType result, RegisterConfig c, Schedule schedule) {
  c = of(operand, result, c);
  c.feed = Feed::producer;
  c.schedule = schedule;
  c.ctas_per_sm = 1;
  c.stages = 0;
  return c;
}
constexpr RegisterConfig in_turns(DType operand, DType result) {
  return fed(operand, result, square, Schedule::pingpong);
}
constexpr RegisterConfig shared_tile(DType operand, DType result) {
  return fed(operand, result, tile(128, 128, 2, 4, 0, 1), Schedule::cooperative);
}
/// Operands with scales for every few elements of K, in stages of 128 of K. Two of 4 bits are
/// packed, 64 bytes a row, and have an MMA of their own; for all others each element has a byte.
constexpr RegisterConfig block_scaled(const MicroFormat& a, const MicroFormat& b) {
  RegisterConfig c = shared_tile(DType::e4m3, DType::bf16);
  const bool packed = !multiplies_bytes(a.element, b.element);
  c.mma.kind = !packed                   ? atom::MmaKind::mxf8f6f4
               : a.scale == DType::ue8m0 ? atom::MmaKind::mxf4
                                         : atom::MmaKind::mxf4nvf4;
  c.mma.a = a.element;
  c.mma.b = b.element;
  c.mma.k = packed ? 64 : 32;
  c.mma.scale_block = micro_block(a.scale);
  c.mma.scale = a.scale;
  c.tile_k = 128;
  return c;
}
constexpr RegisterConfig block_scaled(const char* formats) {
  const auto [a, b] = micro_formats_of(formats).value();
  return block_scaled(a, b);
}
constexpr RegisterConfig in_groups(RegisterConfig c) {
  c.grouped = true;
  return c;
}
constexpr RegisterConfig asked_for(RegisterConfig c) {
  c.tiles = TileSource::clc;
  return c;
}
/// Tiles of which the ring leaves the epilogue of a warp one buffer.
constexpr RegisterConfig one_buffer(RegisterConfig c) {
  c.buffers = 1;
  return c;
}
constexpr RegisterConfig turing(DType result, RegisterConfig c) {
  c = loaded(result, c);
  c.mma.k = 8;
  return c;
}
constexpr RegisterConfig volta(DType result, RegisterConfig c) {
  c = loaded(result, c);
  c.mma = {atom::MmaKind::quad_pair, 8, 8, 4};
  return c;
}

// For every usual build: for each type of operands and results a kernel that takes all alignments
// and, where an architecture has no other family, a fast one; for each kind of MMA and each feed
// one; the schedules with a producer, with tiles by static persistent walks and from CLC.
inline constexpr auto rows = std::array{
    more(of(DType::bf16, DType::bf16, wide)),
    more(of(DType::bf16, DType::bf16, tall)),
    common(of(DType::bf16, DType::bf16, square)),
    more(of(DType::bf16, DType::bf16, small(false))),
    common(of(DType::bf16, DType::bf16, small(true))),
    more(of(DType::bf16, DType::f32, wide)),
    more(of(DType::bf16, DType::f32, square)),
    common(of(DType::bf16, DType::f32, small(true))),
    common(of(DType::bf16, DType::f16, small(true))),
    more(of(DType::f16, DType::f16, wide)),
    common(of(DType::f16, DType::f16, square)),
    common(of(DType::f16, DType::f16, small(true))),
    more(of(DType::f16, DType::f32, wide)),
    more(of(DType::f16, DType::f32, square)),
    common(of(DType::f16, DType::f32, small(true))),
    common(of(DType::f16, DType::bf16, small(true))),
    common(of(DType::e4m3, DType::bf16, eight_warps)),
    common(of(DType::e4m3, DType::bf16, small(true))),
    common(of(DType::e4m3, DType::f32, small(true))),
    common(mixed(DType::e5m2, DType::e4m3, DType::bf16, small(true))),
    more(mixed(DType::e4m3, DType::e5m2, DType::bf16, small(true))),
    more(of(DType::e5m2, DType::bf16, small(true))),
    common(of(DType::tf32, DType::f32, square)),
    common(of(DType::tf32, DType::f32, roomier(small(true)))),
    more(of(DType::s8, DType::bf16, square)),
    common(of(DType::s8, DType::bf16, small(true))),
    more(of(DType::s8, DType::f32, square)),
    more(of(DType::s8, DType::f32, small(true))),
    more(turing(DType::f16, square)),
    common(turing(DType::f16, small(true))),
    more(turing(DType::f32, square)),
    more(turing(DType::f32, small(true))),
    more(volta(DType::f16, square)),
    common(volta(DType::f16, small(true))),
    more(volta(DType::f32, small(true))),
    common(in_turns(DType::bf16, DType::bf16)),
    common(asked_for(in_turns(DType::bf16, DType::bf16))),
    common(shared_tile(DType::bf16, DType::bf16)),
    common(asked_for(shared_tile(DType::bf16, DType::bf16))),
    more(one_buffer(fed(DType::bf16, DType::bf16, wide, Schedule::cooperative))),
    more(in_turns(DType::f16, DType::f16)),
    more(in_turns(DType::e4m3, DType::bf16)),
    more(asked_for(in_turns(DType::e4m3, DType::bf16))),
    common(block_scaled("mxf8")),
    common(block_scaled("nvf4")),
    common(block_scaled("mxf4")),
    more(block_scaled("mxf6")),
    common(block_scaled("mxf8,mxf4")),
    more(block_scaled("mxf8-e5m2")),
    more(block_scaled("mxf6-e3m2")),
    more(block_scaled("mxf8,mxf6")),
    more(block_scaled("mxf8,mxf6-e3m2")),
    more(block_scaled("mxf8-e5m2,mxf4")),
    more(block_scaled("mxf6,mxf4")),
    more(block_scaled("mxf6-e3m2,mxf4")),
    more(block_scaled("mxf4,mxf8")),
    common(in_groups(block_scaled("mxf8"))),
    more(in_groups(block_scaled("nvf4"))),
    more(in_groups(block_scaled("mxf4"))),
    more(in_groups(block_scaled("mxf6"))),
    more(in_groups(block_scaled("mxf8,mxf4"))),
};

}  // namespace registers

struct RegistersRows {
  static constexpr const auto& rows = registers::rows;
};

}  // namespace warpwright::kernel
