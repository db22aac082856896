// The tensor map as a kernel sees it: opaque, the same bytes on the GPU and on the model.
#pragma once

#include <cstdint>

namespace warpwright::model {

/// 128 opaque bytes, aligned as CUtensorMap is. The CUDA driver encodes it for the GPU,
/// model::encode for the model; a map made for one means nothing to the other.
struct alignas(64) TensorMap {
  std::uint64_t opaque[16] = {};
};

}  // namespace warpwright::model
