// Values whose type a launch's parameters say.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"

namespace warpwright::kernel {

/// The value of the bits of `type`, f32, bf16 or f16.
WW_DEVICE
float float_of(DType type, std::uint32_t bits) {
  if (type == DType::f32) return isa::float_of(bits);
  const auto code = static_cast<std::uint16_t>(bits);
  return type == DType::bf16 ? isa::to_float<DType::bf16>(code) : isa::to_float<DType::f16>(code);
}

/// Element `at` of those of `type`, f32, bf16 or f16, from `data` on in global memory.
WW_DEVICE
float float_at(const void* data, DType type, std::int64_t at) {
  if (type == DType::f32) {
    return isa::GlobalView<const float>{static_cast<const float*>(data)}.load(at);
  }
  return float_of(
      type, isa::GlobalView<const std::uint16_t>{static_cast<const std::uint16_t*>(data)}.load(at));
}

}  // namespace warpwright::kernel
