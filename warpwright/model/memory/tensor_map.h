// Tensor maps of the model's TMA: what cuTensorMapEncodeTiled encodes, as plain fields.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "warpwright/atom/swizzle.h"
#include "warpwright/model/memory/tensor_map_type.h"

namespace warpwright::model {

/// A tiled tensor map. Dimension 0 is the innermost (contiguous) one. Extents and box in elements,
/// strides in bytes; `strides[d]` belongs to dimension d + 1. (CUDA driver API, tensor memory.)
struct TensorMapFields {
  static constexpr int max_rank = 5;
  std::uint64_t base = 0;
  std::array<std::uint64_t, max_rank> extents{};
  std::array<std::uint64_t, max_rank - 1> strides{};
  std::array<std::uint16_t, max_rank> box{};
  std::uint8_t rank = 0;
  std::uint8_t element_bits = 0;
  /// For elements of 4 and 6 bits: each 16 of them take 16 bytes of shared memory, the last 8 or 4
  /// of which are padding (16U4_ALIGN16B, 16U6_ALIGN16B). In global memory they lie dense.
  bool padded = false;
  atom::SmemSwizzle swizzle = atom::SmemSwizzle::none;
  /// How a reduce-add store reads an element: 0 float32, 1 float16, 2 bfloat16, 3 integer.
  std::uint8_t element_kind = 3;
};

/// Elements that lie together in 16 bytes of shared memory, where a map pads them; the extent of
/// the box along a row, which a padded map must have; and what its addresses and strides must be
/// multiples of.
inline constexpr int kPaddedGroup = 16;
inline constexpr int kPaddedBox = 128;
inline constexpr int kPaddedAlignment = 32;

/// Bytes of shared memory that a row of the box takes, and those that it brings from global memory,
/// which are what a load signals.
constexpr int row_bytes(const TensorMapFields& f) {
  return f.box[0] * (f.padded ? 8 : f.element_bits) / 8;
}
constexpr int row_global_bytes(const TensorMapFields& f) {
  return f.box[0] * f.element_bits / 8;
}

/// The rule that `fields` break, as a sentence, or nothing (the checks the driver makes).
std::optional<std::string> invalid(const TensorMapFields& fields);
/// Packs the fields; only the model reads them back. Call `invalid` first.
TensorMap encode(const TensorMapFields& fields);
/// The fields of an encoded map, or nothing when the bytes were not made by `encode`.
std::optional<TensorMapFields> decode(const TensorMap& map);

}  // namespace warpwright::model
