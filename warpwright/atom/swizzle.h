// The shared-memory swizzles that TMA writes and the tensor core reads.
#pragma once

#include <cstdint>

namespace warpwright::atom {

/// How 16-byte chunks are permuted in shared memory. The values are the swizzle's bit count.
enum class SmemSwizzle : std::uint8_t { none = 0, b32 = 1, b64 = 2, b128 = 3 };

/// B of CuTe's `Swizzle<B,4,3>`: the number of address bits XORed.
constexpr int swizzle_bits(SmemSwizzle swizzle) {
  return static_cast<int>(swizzle);
}
/// M of CuTe's `Swizzle<B,4,3>` on byte addresses: the lowest bit changed (chunks are 16 bytes).
inline constexpr int kSwizzleBase = 4;
/// S of CuTe's `Swizzle<B,4,3>`: bits M+S.. (the 128-byte line) are XORed into bits M...
inline constexpr int kSwizzleShift = 3;

/// Bytes of one row of the pattern: the inner extent of a TMA box (16 without swizzle, the width of
/// a core matrix).
constexpr int span_bytes(SmemSwizzle swizzle) {
  return 16 << swizzle_bits(swizzle);
}

/// Bytes after which the pattern repeats: 8 rows of the span. A tile starts at a multiple of it.
constexpr int repeat_bytes(SmemSwizzle swizzle) {
  return 8 * span_bytes(swizzle);
}

/// Where the byte at `address` lies physically. It is an XOR on the absolute shared-memory address,
/// whatever the tile's start (PTX ISA 5.5.7; probed on an H200 with boxes off the repeat), and its
/// own inverse.
constexpr std::uint32_t apply_swizzle(SmemSwizzle swizzle, std::uint32_t address) {
  const std::uint32_t mask = (1u << swizzle_bits(swizzle)) - 1u;
  return address ^ (((address >> (kSwizzleBase + kSwizzleShift)) & mask) << kSwizzleBase);
}

constexpr const char* name(SmemSwizzle swizzle) {
  switch (swizzle) {
    case SmemSwizzle::none:
      return "none";
    case SmemSwizzle::b32:
      return "32B";
    case SmemSwizzle::b64:
      return "64B";
    case SmemSwizzle::b128:
      return "128B";
  }
  return "unknown";
}

}  // namespace warpwright::atom
