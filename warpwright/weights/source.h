// Weights of 4 bits as checkpoints have them: readers by tables of layouts. docs/packing.md and,
// for mxf4 and nvf4, docs/low_precision.md have the facts of each layout and where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/facts/micro_format.h"
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
  /// The elements and scales of floats (fp8 with a power of two for each 128 x 128 is mxf8).
  /// Null: int4.
  const MicroFormat* format = nullptr;
};

/// The layouts that are read, the most telling names first; null where there is none of a name.
std::span<const LayoutNames> layouts();
const LayoutNames* layout_named(std::string_view layout);

/// The tensors of one matrix of weights, or of the matrices of experts as a batch: packed and
/// row-major, of the types and shapes that the layout has.
struct CheckpointTensors {
  MatrixView codes = {};         ///< s32, s8 or u8; or e2m1
  MatrixView scales = {};        ///< bf16, f16 or f32; for e2m1 e4m3, u8 or ue8m0
  MatrixView zeros = {};         ///< zero points, s32; may be left out where the layout has it so
  MatrixView group_index = {};   ///< of each k its group (g_idx), s32, 1 x K; may be left out
  MatrixView tensor_scale = {};  ///< f32, 1 x 1, where the layout has one
  std::string stem = {};         ///< in front of their names, for sentences; may be left out
  std::int64_t k = 0;            ///< of the weights, where it is known apart from the codes' words
};

/// What a packed form depends on.
struct Sights {
  bool least_code = false;  ///< is a code -8?
  bool wide = false;        ///< has a row scales that kernels cannot fold for the wanted tokens?
};

/// Codes and scales of all experts, and where each of them lies. A value that points to memory of
/// the caller's.
struct Source {
  std::string origin;  ///< the layout's name
  packed::Extents extents;
  /// For floats: their codes (e4m3, or two e2m1 a byte) and scales lie row by row and without gaps.
  /// Null: int4, whose places the layouts below say.
  const MicroFormat* format = nullptr;
  int group = 128;               ///< along K that share a scale
  DType scale = DType::bf16;     ///< as they lie there
  bool is_unsigned = false;      ///< codes 0..15, which stand for -8..7 (or for code - zero point)
  bool has_zero_points = false;  ///< any that is not 8
  int zero_bias = 0;             ///< to be added to the zero points that lie there
  layout::Layout codes;          ///< (n, k) -> four bits, the low ones of byte 0 first
  layout::Layout scales;         ///< (n, k / group) -> element
  layout::Layout zeros;          ///< (n, k / group) -> four bits
  /// Fp8 weights: a scale for each 128 x 128, ue8m0 or f32, all powers of two.
  bool blocks_of_128 = false;
  struct Matrix {
    const std::byte* codes = nullptr;
    const std::byte* scales = nullptr;
    const std::byte* zeros = nullptr;
    float tensor = 1;  ///< what they are multiplied by: `alpha` of a product, or a part of it
  };
  std::vector<Matrix> experts;
  /// What was seen in weights of a device, which has looked; null in host memory, where whoever
  /// asks looks himself.
  std::optional<Sights> seen = {};
};

/// Tensors in a layout as a source; those of more than one element of `tensors` are experts one
/// after the other. Refuses types and shapes that the layout does not have, groups that are none of
/// 32, 64 and multiples of 128, a K that is no multiple of the group, act-order, zero points or
/// indices that are those of codes of another width, scales of a format that are NaN or negative,
/// and a scale of a tensor that is no positive number or points the wrong way.
Result<Source> read_checkpoint(std::string_view layout, std::span<const CheckpointTensors> tensors);

/// Its two parts. The first reads no codes, scales or zero points, which may lie on a device; the
/// other refuses what is wrong with these, and says whether there are zero points.
Result<Source> read_places(std::string_view layout, std::span<const CheckpointTensors> tensors);
std::optional<Refusal> look(Source& source);

/// What makes a K legal that is none: behind the nearest.
inline constexpr const char* zeros_behind = ", with zeros behind the rows of weights and tokens";

/// Whether a code is -8: such int4 weights need the encoding ex.
bool has_least_code(const Source& source);

/// Why weights in floats cannot become `format`, or nothing: there is a NaN or an infinity among
/// them, which would make a scale NaN, or become the largest code of a block of zeros.
std::optional<Refusal> not_finite_fault(std::span<const MatrixView> weights,
                                        std::string_view format);

/// Why a scale of a tensor of weights, as a factor, is none, or nothing: it must be positive and
/// finite, and with `largest`, the largest of its blocks' scales, give no weight beyond 6 * 448. A
/// divisor in its place does, of all weights that are smaller: the two are told apart by this.
/// `name` is that of the tensor in sentences, `stored` what lies there, `divides` how it is read.
std::optional<Refusal> tensor_scale_fault(const std::string& name, float stored, bool divides,
                                          float largest);

}  // namespace warpwright::weights
