// Words of global memory that many threads update, each at once and in any order: what comes out is
// the same. Whoever reads the word needs an order behind all of them, as the end of the grid.
#pragma once

#include <bit>

#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// Makes the float at `to` (4-byte aligned) the larger of itself and `value`, neither of them
/// negative or NaN: their bits are in the order of integers (red.relaxed.gpu.max.u32, PTX ISA
/// 9.7.13.7).
WW_DEVICE
void global_max(float* to, float value, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(to), "r"(__float_as_uint(value))
               : "memory");
#else
  model::update_global(to, model::Update::largest, std::bit_cast<std::uint32_t>(value), 4, site);
#endif
}

/// Makes the word at `to` (8-byte aligned) the smaller of itself and `value`
/// (red.relaxed.gpu.min.u64, PTX ISA 9.7.13.7).
WW_DEVICE
void global_min(std::uint64_t* to, std::uint64_t value, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile("red.relaxed.gpu.global.min.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  model::update_global(to, model::Update::least, value, 8, site);
#endif
}

/// Adds to the word at `to` (8-byte aligned), modulo 2^64 (red.relaxed.gpu.add.u64, PTX
/// ISA 9.7.13.7).
WW_DEVICE
void global_add(std::uint64_t* to, std::uint64_t value, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  model::update_global(to, model::Update::add, value, 8, site);
#endif
}

}  // namespace warpwright::isa
