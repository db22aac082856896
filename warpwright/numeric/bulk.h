#pragma once

/// Conversions of whole arrays on the host, fast enough for the machine model's tensor core.

#include <cstddef>
#include <cstdint>

#include "warpwright/numeric/float_format.h"

namespace warpwright::numeric {

/// Widens `n` 16-bit codes (f16 or bf16) to float, exactly.
void widen(const std::uint16_t* codes, float* out, std::size_t n, DType t);

/// Widens `n` codes of one byte each to float, exactly: fp8, scale factors, 8-bit integers, and the
/// fp6, fp4 and int4 types when every element has a byte of its own (its low bits).
void widen(const std::uint8_t* codes, float* out, std::size_t n, DType t);

/// Does `widen_from` take the type?
constexpr bool widens_from_memory(DType t) {
  return t != DType::f64 && t != DType::s32 && bits(t) % 8 == 0;
}

/// Widens `n` elements that lie at `codes` (of any alignment) as they lie in a tensor file, of any
/// type for which `widens_from_memory` holds. An f32 is copied, a tf32 loses its low 13 bits.
void widen_from(const void* codes, float* out, std::size_t n, DType t);

/// Rounds `n` floats to 16-bit codes (f16 or bf16), to nearest even.
void narrow(const float* in, std::uint16_t* codes, std::size_t n, DType t,
            Overflow overflow = Overflow::special);

/// Rounds `n` floats to codes of one byte each, to nearest even.
void narrow(const float* in, std::uint8_t* codes, std::size_t n, DType t,
            Overflow overflow = Overflow::special);

}  // namespace warpwright::numeric
