// Packing weights of 4 bits on a CUDA device, where they lie.
//
//   auto source = weights::read_places("gpt-oss", std::span(&tensors, 1));  // of the device
//   const auto there = device::look_on_cuda(std::move(*source), {.tokens = DType::bf16}, stream);
//   // there->bytes() of device memory at `packed`
//   const auto refused = device::pack_on_cuda(*there, packed, stream);
#pragma once

#include <optional>
#include <vector>

#include "warpwright/weights/pack.h"

namespace warpwright::device {

/// Weights in the memory of a CUDA device that were looked at, and what is packed of them.
struct WeightsThere {
  weights::Source source;  ///< which points there
  PackedFormat format;
  /// Weights that no kernel packs (codes at an address that is no multiple of 8, experts that lie
  /// apart), packed in host memory; empty for all others.
  std::vector<std::byte> packed = {};

  /// The size of the packed tensor.
  [[nodiscard]] std::int64_t bytes() const {
    return packed::kHeaderBytes + packed::data_bytes(format, source.extents);
  }
};

/// Looks at weights, what `read_places` or `plain_source` gave, in the memory of the current CUDA
/// device. Refuses what weights::look and weights::pack refuse, in their sentences: weights with a
/// fault are copied to host memory for that. Takes a little memory, waits for `stream`.
Result<WeightsThere> look_on_cuda(weights::Source source, const weights::PackOptions& options = {},
                                  void* stream = nullptr);

/// Packs them at `packed`, an address of the same device that is a multiple of 128: a header and
/// tiles, the very bytes that weights::pack gives. Waits for `stream`.
[[nodiscard]] std::optional<Refusal> pack_on_cuda(const WeightsThere& weights, void* packed,
                                                  void* stream = nullptr);

}  // namespace warpwright::device
