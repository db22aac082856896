// Values whose type a launch's parameters say.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"

namespace warpwright::kernel {

/// Element `at` of those of `type`, f32, bf16 or f16, from `data` on in global memory.
WW_DEVICE
float float_at(const void* data, DType type, std::int64_t at) {
  if (type == DType::f32) {
    return isa::GlobalView<const float>{static_cast<const float*>(data)}.load(at);
  }
  const std::uint16_t code =
      isa::GlobalView<const std::uint16_t>{static_cast<const std::uint16_t*>(data)}.load(at);
  return type == DType::bf16 ? isa::to_float<DType::bf16>(code) : isa::to_float<DType::f16>(code);
}

}  // namespace warpwright::kernel
