// Int4 weights as checkpoints have them: readers by a table of layouts. docs/packing.md has the
// facts of each layout and where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/facts/packed_weights.h"
#include "warpwright/layout/value.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::weights {

/// How checkpoints of a layout name the tensors of a matrix: a stem, and these behind it. Empty
/// where it has no such tensor.
struct LayoutNames {
  std::string_view layout;  ///< for `read_checkpoint`
  std::string_view codes;
  std::string_view scales;
  std::string_view zeros;
  std::string_view group_index;
  std::string_view tensor_scale = {};
};

/// The layouts of int4 weights that are read.
std::span<const LayoutNames> layouts();

/// The tensors of one matrix of weights, or of the matrices of experts as a batch: packed and
/// row-major, of the types and shapes that the layout has.
struct CheckpointTensors {
  MatrixView codes = {};         ///< s32, s8 or u8; or e2m1
  MatrixView scales = {};        ///< bf16, f16 or f32; for e2m1 e4m3, u8 or ue8m0
  MatrixView zeros = {};         ///< zero points, s32; may be left out where the layout has it so
  MatrixView group_index = {};   ///< of each k its group (g_idx), s32, 1 x K; may be left out
  MatrixView tensor_scale = {};  ///< f32, 1 x 1, where the layout has one (weights/micro_source.h)
  std::string stem = {};         ///< in front of their names, for sentences; may be left out
  std::int64_t k = 0;            ///< of the weights, where it is known apart from the codes' words
};

/// Codes and scales of all experts, and where each of them lies. A value that points to memory of
/// the caller's.
struct Source {
  std::string origin;  ///< the layout's name
  packed::Extents extents;
  int group = 128;               ///< along K that share a scale
  DType scale = DType::bf16;     ///< as they lie there
  bool is_unsigned = false;      ///< codes 0..15, which stand for -8..7 (or for code - zero point)
  bool has_zero_points = false;  ///< any that is not 8
  int zero_bias = 0;             ///< to be added to the zero points that lie there
  layout::Layout codes;          ///< (n, k) -> four bits, the low ones of byte 0 first
  layout::Layout scales;         ///< (n, k / group) -> element
  layout::Layout zeros;          ///< (n, k / group) -> four bits
  struct Matrix {
    const std::byte* codes = nullptr;
    const std::byte* scales = nullptr;
    const std::byte* zeros = nullptr;
  };
  std::vector<Matrix> experts;
};

/// Tensors in one of `layouts` as a source; those of more than one element of `tensors` are experts
/// one after the other. Refuses types and shapes that the layout does not have, groups that are
/// none of 32, 64 and multiples of 128, a K that is no multiple of the group, act-order, and zero
/// points or indices that are those of codes of another width.
Result<Source> read_checkpoint(std::string_view layout, std::span<const CheckpointTensors> tensors);

/// What makes a K legal that is none: behind the nearest.
inline constexpr const char* zeros_behind = ", with zeros behind the rows of weights and tokens";

/// Whether a code is -8: such weights need the encoding ex.
bool has_least_code(const Source& source);

}  // namespace warpwright::weights
