#include "warpwright/numeric/bulk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "warpwright/numeric/vector_clones.h"

namespace warpwright::numeric {
namespace {

// The loops below are branch-free on purpose: every case is computed and one selected, which is
// what lets the compiler turn them into vector code.

// A select by mask: with ?: the compiler keeps a branch around floating-point work, which might
// trap.
inline std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

WW_VECTOR_CLONES void widen_bf16(const std::uint16_t* codes, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(codes[i]) << 16);
  }
}

WW_VECTOR_CLONES void widen_f16(const std::uint16_t* codes, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = codes[i];
    const std::uint32_t magnitude = code & 0x7fffu;
    const std::uint32_t sign = (code & 0x8000u) << 16;
    // Moves the exponent's bias from 15 to 127; the special codes to the top binade.
    const std::uint32_t rebias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;
    const std::uint32_t normal = (magnitude << 13) + rebias;
    // A subnormal is a small integer times 2^-24: converting it avoids float's own subnormals.
    const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
    const std::uint32_t result =
        select(magnitude < 0x400u, std::bit_cast<std::uint32_t>(small), normal);
    out[i] = std::bit_cast<float>(result | sign);
  }
}

WW_VECTOR_CLONES void narrow_bf16(const float* in, std::uint16_t* codes, std::size_t n,
                                  std::uint32_t limit) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    // Just under half a unit, plus one when the kept part is odd: nearest, ties to even.
    std::uint32_t result = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
    result = result > limit ? limit : result;
    result |= (word >> 16) & 0x8000u;
    codes[i] = static_cast<std::uint16_t>(magnitude > 0x7f800000u ? 0x7fffu : result);
  }
}

WW_VECTOR_CLONES void narrow_f16(const float* in, std::uint16_t* codes, std::size_t n,
                                 std::uint32_t limit) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    const std::uint32_t normal =
        (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Beside 0.5 floats are spaced by 2^-24, the subnormals' unit: the addition does the rounding.
    const std::uint32_t small =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    std::uint32_t result = select(magnitude < 0x38800000u, small, normal);
    result = select(magnitude >= 0x47800000u, 0x7c00u, result);
    result = result > limit ? limit : result;
    result |= (word >> 16) & 0x8000u;
    codes[i] = static_cast<std::uint16_t>(select(magnitude > 0x7f800000u, 0x7fffu, result));
  }
}

using ByteTable = std::array<float, 256>;

template <DType T>
constexpr ByteTable make_byte_table() {
  ByteTable table{};
  for (unsigned code = 0; code < 256; ++code) {
    table[code] = static_cast<float>(to_double(T, code));
  }
  return table;
}

template <DType T>
constexpr ByteTable kByteTable = make_byte_table<T>();

// For each type that a byte holds.
template <int... I>
const ByteTable* byte_table(DType t, std::integer_sequence<int, I...> /*types*/) {
  const ByteTable* found = nullptr;
  const auto look = [&]<DType T>() {
    if constexpr (bits(T) <= 8) {
      if (t == T) found = &kByteTable<T>;
    }
  };
  (look.template operator()<static_cast<DType>(I)>(), ...);
  return found;
}
const ByteTable* byte_table(DType t) {
  return byte_table(t, std::make_integer_sequence<int, kDTypeCount>());
}

}  // namespace

void widen(const std::uint16_t* codes, float* out, std::size_t n, DType t) {
  assert(t == DType::f16 || t == DType::bf16);
  if (t == DType::f16) {
    widen_f16(codes, out, n);
  } else {
    widen_bf16(codes, out, n);
  }
}

void widen(const std::uint8_t* codes, float* out, std::size_t n, DType t) {
  const ByteTable* table = byte_table(t);
  assert(table != nullptr);
  for (std::size_t i = 0; i < n; ++i) out[i] = (*table)[codes[i]];
}

void widen_from(const void* codes, float* out, std::size_t n, DType t) {
  assert(widens_from_memory(t));
  if (n == 0) return;
  const auto* bytes = static_cast<const unsigned char*>(codes);
  switch (bits(t)) {
    case 8:
      widen(bytes, out, n, t);
      return;
    case 16: {
      std::array<std::uint16_t, 512> aligned;  // tensors in a file may start at any byte
      for (std::size_t i = 0; i < n; i += aligned.size()) {
        const std::size_t count = std::min(n - i, aligned.size());
        std::memcpy(aligned.data(), bytes + i * 2, count * 2);
        widen(aligned.data(), out + i, count, t);
      }
      return;
    }
    default:
      std::memcpy(out, bytes, n * 4);
      if (t != DType::tf32) return;
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(out[i]) & ~0x1fffu);
      }
  }
}

void narrow(const float* in, std::uint16_t* codes, std::size_t n, DType t, Overflow overflow) {
  assert(t == DType::f16 || t == DType::bf16);
  const auto largest = static_cast<std::uint32_t>(format_of(t).max_code());
  const std::uint32_t limit = overflow == Overflow::saturate ? largest : largest + 1;
  if (t == DType::f16) {
    narrow_f16(in, codes, n, limit);
  } else {
    narrow_bf16(in, codes, n, limit);
  }
}

void narrow(const float* in, std::uint8_t* codes, std::size_t n, DType t, Overflow overflow) {
  assert(bits(t) <= 8);
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(
        from_double(t, static_cast<double>(in[i]), Rounding::nearest_even, overflow));
  }
}

}  // namespace warpwright::numeric
