// What every tensor of a checkpoint must be, whatever its layout. Internal to weights/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warpwright/plan/product/problem.h"
#include "warpwright/weights/source.h"

namespace warpwright::weights {

/// The name of a tensor in sentences, without a stem.
std::string tensor_name(std::string_view suffix);

/// A tensor of a layout: what is behind its stem, and the types it may have, in words.
struct CheckpointTensor {
  std::string_view layout;
  std::string_view suffix;
  const char* types;
  bool is_legal_type;  ///< has it one of these?
};

/// Why `v` is none of a checkpoint whose codes are of so many experts, or nothing.
std::optional<Refusal> checkpoint_fault(const CheckpointTensor& is, const MatrixView& v,
                                        std::int64_t experts);

/// Those with a format, and `read_places` and `look` of one of them.
std::span<const LayoutNames> micro_layouts();
Result<Source> read_micro_places(const LayoutNames& layout,
                                 std::span<const CheckpointTensors> tensors);
std::optional<Refusal> look_at_micro_scales(const Source& source);

}  // namespace warpwright::weights
