// Division of 64-bit numbers that are small, mostly.
#pragma once

#include <cstdint>

#include "warpwright/isa/config.h"

namespace warpwright::kernel {

/// x / by, neither of them negative. Division takes a fifth of the time where both have 32 bits.
WW_DEVICE
std::int64_t quotient(std::int64_t x, std::int64_t by) {
  if (((x | by) >> 32) != 0) return x / by;
  return static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(by);
}

}  // namespace warpwright::kernel
