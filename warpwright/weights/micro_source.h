// Weights with a scale for every few elements of K (mxf4, nvf4), or fp8 with one for each 128 x 128
// that is a power of two (mxf8 then), as checkpoints have them: readers
// by a table of layouts. docs/low_precision.md has the facts of each and where they come from.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/facts/micro_format.h"
#include "warpwright/facts/packed_weights.h"
#include "warpwright/plan/product/problem.h"
#include "warpwright/weights/source.h"

namespace warpwright::weights {

/// The layouts that are read: the most telling names first.
std::span<const LayoutNames> micro_layouts();
/// The element type and the scales of such a layout.
const MicroFormat& format_of_layout(const LayoutNames& layout);

/// Codes and scales of all experts as they lie in the caller's memory, row by row and without gaps.
struct MicroSource {
  std::string origin;  ///< the layout's name
  const MicroFormat* format = nullptr;
  packed::Extents extents;
  struct Matrix {
    const std::byte* codes = nullptr;   ///< N x K: two e2m1 a byte, the first in the low half; e4m3
    const std::byte* scales = nullptr;  ///< N x K / 32 ue8m0, or N x K / 16 ue4m3, or as below
    float tensor = 1;  ///< what they are multiplied by: `alpha` of a product, or a part of it
  };
  std::vector<Matrix> experts;
  /// Scales of 128 x 128 of fp8 weights: ceil(N / 128) x ceil(K / 128), ue8m0 or f32, powers of
  /// two.
  bool blocks_of_128 = false;
  DType scale_type = DType::ue8m0;  ///< of the scales as they lie
};

/// Tensors in one of `micro_layouts` as a source; those of more than one element of `tensors` are
/// experts one after the other. Refuses types and shapes that the layout does not have, scales that
/// are NaN or negative, and a scale of a tensor that is no positive number or points the wrong way.
Result<MicroSource> read_micro_checkpoint(std::string_view layout,
                                          std::span<const CheckpointTensors> tensors);

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
