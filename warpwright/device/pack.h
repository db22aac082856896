// Packing int4 weights on a CUDA device, where they lie.
#pragma once

#include <optional>
#include <string>

#include "warpwright/plan/product/problem.h"
#include "warpwright/weights/header.h"

namespace warpwright::device {

/// Weights in the plain layout (weights::PlainWeights) in the memory of a CUDA device, of the group
/// that `format` has. Addresses are multiples of 4.
struct PlainInt4 {
  packed::Extents extents = {};
  DType scale = DType::bf16;  ///< as they lie there: bf16, f16 or f32
  const void* codes = nullptr;
  const void* scales = nullptr;
  const void* zeros = nullptr;  ///< null where `format` has none
  std::string origin;
};

/// Packs them at `packed`, an address of the same device that is a multiple of 128: a header and
/// tiles, the very bytes that weights::pack gives, packed::kHeaderBytes + data_bytes of them.
/// Refuses what weights::pack refuses; then the bytes mean nothing. Waits for `stream`.
[[nodiscard]] std::optional<Refusal> pack_on_cuda(const PlainInt4& weights,
                                                  const PackedFormat& format, void* packed,
                                                  void* stream = nullptr);

}  // namespace warpwright::device
