// The formats of a product's operands whose scales the tensor core multiplies
// (Scaling::block_scaled), and how far scales reach.
#pragma once

#include <string>

#include "warpwright/facts/block_scales.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// The type of the scales of A or B that the tensor core multiplies (f32: of plain tokens). Where
/// they do not say it: as the other operand's, if its elements are the same, else what is usual of
/// such elements beside the other's.
template <class Matrix>
constexpr DType micro_scale(const Product<Matrix>& p, bool of_a) {
  const DType said = (of_a ? p.scale_a : p.scale_b).dtype;
  if (is_micro_scale(said)) return said;
  if (of_a && is_plain_tokens(p.a.dtype, said)) return said;
  const DType others = (of_a ? p.scale_b : p.scale_a).dtype;
  if (p.a.dtype != p.b.dtype) return DType::ue8m0;
  return is_micro_scale(others) ? others : micro_scale(p.a.dtype);
}

/// The format of A, or of B; null where that is none.
template <class Matrix>
constexpr const MicroFormat* micro_format_of(const Product<Matrix>& p, bool of_a) {
  return micro_format((of_a ? p.a : p.b).dtype, micro_scale(p, of_a));
}

/// Has A no scales in the tensor core, but a float32 for each row?
template <class Matrix>
constexpr bool has_plain_tokens(const Product<Matrix>& p) {
  return scales_elements(p.scaling) && micro_scale(p, true) == plain_tokens.scale;
}

/// The word of A's or B's format, or of its type.
template <class Matrix>
std::string operand_name(const Product<Matrix>& p, bool of_a) {
  const MicroFormat* const format = scales_elements(p.scaling) ? micro_format_of(p, of_a) : nullptr;
  return format != nullptr ? format->word : std::string(numeric::word((of_a ? p.a : p.b).dtype));
}

/// Rows of B, and K, that a scale of Scaling::blockwise serves.
template <class Matrix>
constexpr std::int64_t scale_block_of(const Product<Matrix>& p) {
  if (p.scaling != Scaling::blockwise || p.packed) return scale_block;
  return nearest_scale_block(p.b, p.scale_b);
}

/// The reach of the scales of A, or of B.
template <class Matrix>
constexpr ScaleReach scale_reach(const Product<Matrix>& p, bool of_a) {
  return scale_reach(p.scaling, of_a, micro_scale(p, of_a), scale_block_of(p));
}

/// Rows of the scales of the gates, in tiles, of a gated product: those of what they are for begin
/// behind them, with a tile of their own, whichever way rows of B alternate.
template <class Matrix>
constexpr std::int64_t gate_scale_rows(const Product<Matrix>& p) {
  return block_scales::padded_rows(p.b.rows / 2);
}
/// The row of tiles in which row `n` of a matrix of B has its scales.
template <class Matrix>
constexpr std::int64_t scale_row_of_b(const Product<Matrix>& p, std::int64_t n) {
  if (!p.is_gated()) return n;
  const std::int64_t half = p.b.rows / 2;
  const bool is_up = p.epilogue.interleaved ? n % 2 == 1 : n >= half;
  const std::int64_t row = p.epilogue.interleaved ? n / 2 : is_up ? n - half : n;
  return is_up ? gate_scale_rows(p) + row : row;
}

/// Does A, or B, come into shared memory with padding?
template <class Matrix>
constexpr bool is_padded(const Product<Matrix>& p, bool of_a) {
  return scales_elements(p.scaling) &&
         is_padded_in_shared((of_a ? p.a : p.b).dtype, (of_a ? p.b : p.a).dtype);
}

}  // namespace warpwright
