// What a bulk tensor copy moves: the rows of its box in global memory, and the places of their
// 16-byte pieces in shared memory. Internal to model/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/model/parts.h"

namespace warpwright::model {

struct BoxShape {
  int inner_bytes;   // of one row in shared memory
  int global_bytes;  // and in global memory: fewer, where it is padded
  int rows;
  int pitch;  // bytes from row to row in shared memory
  int piece;  // bytes of global memory in 16 of shared memory
};

inline BoxShape box_shape(const Copy& copy) {
  const TensorMapFields& map = copy.map;
  BoxShape box{row_bytes(map), row_global_bytes(map), 1, 0,
               map.padded ? kPaddedGroup * map.element_bits / 8 : 16};
  for (int d = 1; d < map.rank; ++d) box.rows *= map.box[static_cast<std::size_t>(d)];
  if (copy.mode == CopyMode::rows) box.rows = kCopiedRows;
  // Under a swizzle a row occupies the whole span even when the box is narrower.
  box.pitch =
      map.swizzle == atom::SmemSwizzle::none ? box.inner_bytes : atom::span_bytes(map.swizzle);
  return box;
}

/// Bytes of global memory that `count` elements take.
inline std::int64_t bytes_of(const TensorMapFields& map, std::int64_t count) {
  return count * map.element_bits / 8;
}

/// Calls visit(row, global address of the row's first element, first, count): elements
/// [first, first + count) of the row are inside the tensor; count is 0 when the row is outside.
template <class Visit>
void for_each_row(const Copy& copy, const Visit& visit) {
  const TensorMapFields& map = copy.map;
  const BoxShape box = box_shape(copy);
  const auto extent = [&](int d) {
    return static_cast<std::int64_t>(map.extents[static_cast<std::size_t>(d)]);
  };
  const std::int64_t x = copy.coords[0];
  const std::int64_t first = std::clamp<std::int64_t>(-x, 0, map.box[0]);
  const std::int64_t last = std::clamp<std::int64_t>(extent(0) - x, first, map.box[0]);
  for (int row = 0; row < box.rows; ++row) {
    std::int64_t address = static_cast<std::int64_t>(map.base) + bytes_of(map, x);
    bool inside = true;
    int rest = row;
    for (int d = 1; d < map.rank; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const std::int64_t c = copy.mode == CopyMode::rows
                                 ? copy.coords[static_cast<std::size_t>(1 + row)]
                                 : copy.coords[i] + rest % map.box[i];
      rest /= map.box[i];
      inside = inside && c >= 0 && c < extent(d);
      address += c * static_cast<std::int64_t>(map.strides[i - 1]);
    }
    visit(row, address, inside ? first : 0, inside ? last - first : 0);
  }
}

/// Calls visit(offset in the row-major box of global memory, its 16 bytes in shared memory).
template <class Visit>
void for_each_chunk(const Copy& copy, const Visit& visit) {
  const BoxShape box = box_shape(copy);
  for (int row = 0; row < box.rows; ++row) {
    for (int c = 0; c < box.inner_bytes; c += 16) {
      const std::uint32_t linear = copy.offset + static_cast<std::uint32_t>(row * box.pitch + c);
      visit(row * box.global_bytes + c / 16 * box.piece,
            atom::apply_swizzle(copy.map.swizzle, linear));
    }
  }
}

/// Where the bytes of a row end that a store brings to the tensor, of which elements up to `last`
/// lie inside. What lies past the last column is dropped by whole 16-byte pieces, not by elements,
/// of a reduce-add too (probed on an H200): a piece that begins inside is written whole.
inline std::int64_t stored_end(const TensorMapFields& map, std::int64_t last) {
  return std::min<std::int64_t>((bytes_of(map, last) + 15) / 16 * 16, row_global_bytes(map));
}

}  // namespace warpwright::model
