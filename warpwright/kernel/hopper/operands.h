// What a Hopper kernel multiplies, and where the sums are kept: parts of its configuration.
#pragma once

#include <cstdint>

#include "warpwright/atom/descriptor.h"
#include "warpwright/kernel/one_of.h"
#include "warpwright/numeric/types.h"

namespace warpwright::kernel {

/// Where the sums are kept.
enum class Sums : std::uint8_t {
  tensor_core,  ///< in wgmma's accumulators, from the first k_tile to the last
  promoted,     ///< added to float32 registers after every k_tile (128 of fp8), or group
  blockwise,    ///< the same, times the scales of the block (for packed weights: only of tokens)
};

/// A or B, as the tensor cores multiply it.
struct Operand {
  DType type = DType::bf16;
  atom::Major major = atom::Major::k;

  friend constexpr bool operator==(const Operand&, const Operand&) = default;
};

/// A and B from shared memory, multiplied as they are stored.
struct SharedOperands {
  Operand a = {};
  Operand b = {};
  Sums sums = Sums::tensor_core;
  /// Its A is the caller's B, so that few tokens lie on wgmma's N, which may be as small as 8, and
  /// its rows are the columns of D.
  bool swap_ab = false;
  int k_atoms = 1;  ///< 128-byte spans along K of a stage: more make a barrier serve more copies
  /// Over the columns of a tile, whose sums wait in registers: fewer accumulators at once.
  int passes = 1;
  /// Rows of weights, and K, that a block scale serves: a k_tile of 128, or parts of it.
  int scale_block = 128;

  friend constexpr bool operator==(const SharedOperands&, const SharedOperands&) = default;
};

/// How packed weights are summed: a GroupSums each. Exact sums are of groups, in registers.
struct ExactSums {
  enum class Way : std::uint8_t {
    plain,
    by_two,  ///< two groups at once, of stages of two k_tiles
    scaled,  ///< times the block scales of the tokens
  };
  Way way = Way::plain;
  bool zero_points = false;
  int passes = 1;  ///< over the tokens of a tile, as SharedOperands::passes

  friend constexpr bool operator==(const ExactSums&, const ExactSums&) = default;
};
struct ChainedSums {
  friend constexpr bool operator==(const ChainedSums&, const ChainedSums&) = default;
};
struct FoldedSums {
  friend constexpr bool operator==(const FoldedSums&, const FoldedSums&) = default;
};
struct TableSums {
  friend constexpr bool operator==(const TableSums&, const TableSums&) = default;
};

/// A are weights of 4 bits in their packed form: bytes that are copied as they lie, and converted
/// on the way to the registers: int4 to e4m3, e2m1 to e5m2 or, for tokens of 16 bits, both to their
/// type. B are tokens: operands are swapped.
struct PackedOperands {
  OneOf<ExactSums, ChainedSums, FoldedSums, TableSums> sums = ChainedSums{};
  DType code = DType::s4;  ///< or e2m1
  DType tokens = DType::e4m3;

  friend constexpr bool operator==(const PackedOperands&, const PackedOperands&) = default;
};

/// Are codes floats? Else they are whole numbers.
constexpr bool has_float_codes(const PackedOperands& p) {
  return numeric::is_float(p.code);
}
/// What they are multiplied as: for tokens of 8 bits floats of 4 bits become e5m2.
constexpr DType multiplied_as(const PackedOperands& p) {
  return has_float_codes(p) && numeric::is_8bit(p.tokens) ? DType::e5m2 : p.tokens;
}

/// Are there decoders for them (decode/)?
constexpr bool is_decoded(const PackedOperands& p) {
  const bool wide = numeric::bits(p.tokens) == 16;
  const ExactSums& exact = p.sums.as<ExactSums>();
  const bool is_exact = p.sums.is<ExactSums>();
  const bool is_folded = p.sums.is<FoldedSums>();
  if (has_float_codes(p)) return is_folded || (is_exact && !wide && !exact.zero_points);
  if (!wide) return true;
  return (is_exact && exact.way == ExactSums::Way::plain) || (is_folded && p.tokens == DType::bf16);
}

/// Does the tensor core sum all of K, of codes that have their scales?
constexpr bool sums_straight(const PackedOperands& p) {
  return p.sums.is<FoldedSums>() && (has_float_codes(p) || numeric::bits(p.tokens) == 16);
}

}  // namespace warpwright::kernel
