// Operand tiles in shared memory: how TMA lays them out, and how a wgmma descriptor finds them.
//
// An operand is always seen as rows x k: A is M x K, B is N x K. "K-major" means that neighbours
// along K are neighbours in memory, "MN-major" that neighbours along the rows are. The tensor core
// reads 16-byte chunks ("core matrices" of 8 chunks); the descriptor's two strides say where the
// next core matrix lies, and which stride means what depends on major and swizzle.
// Facts: PTX ISA 9.7.15 (matrix descriptor, strides, canonical layouts) and the same layouts as
// written in CUTLASS mma_traits_sm90_gmma.hpp (make_gmma_desc).
// Confirmed on an H200: m64n128 products of tiles stored by `tile_offset` and read by `descriptor`
// and `k_block_offset` are exact for f16 in every swizzle and major of A and of B, and for e4m3
// K-major in every swizzle.
#pragma once

#include <cstdint>

#include "warpwright/atom/swizzle.h"
#include "warpwright/layout/value.h"

namespace warpwright::atom {

/// The dimension of an operand that is contiguous in memory.
enum class Major : std::uint8_t { k, mn };

/// A wgmma shared-memory matrix descriptor with its fields in bytes.
struct Descriptor {
  std::uint32_t start = 0;    ///< shared-memory address of element (0, 0), a multiple of 16
  std::uint32_t leading = 0;  ///< LBO: leading dimension byte offset, a multiple of 16
  std::uint32_t stride = 0;   ///< SBO: stride dimension byte offset, a multiple of 16
  int base_offset = 0;        ///< 0 where the swizzle pattern starts on its repeat, as we demand
  SmemSwizzle swizzle = SmemSwizzle::none;
  /// The leading field is no offset: it is where the bytes behind a row's span lie (tcgen05.mma of
  /// K 96, whose 48 bytes of K may begin in one span and end in the next).
  bool leading_is_address = false;

  friend constexpr bool operator==(const Descriptor&, const Descriptor&) = default;
};

/// Addresses and offsets are written without their low four bits into 14-bit fields, so 18 bits of
/// address survive; in a cluster this drops the CTA rank: a descriptor means the own CTA.
inline constexpr std::uint32_t kDescriptorAddressMask = 0x3ffff;

/// The 64-bit word: [13:0] start >> 4, [29:16] LBO >> 4, [45:32] SBO >> 4, [51:49] base offset,
/// [63:62] swizzle (0 none, 1 128B, 2 64B, 3 32B).
constexpr std::uint64_t encode(const Descriptor& d) {
  const auto field = [](std::uint32_t bytes) {
    return static_cast<std::uint64_t>((bytes & kDescriptorAddressMask) >> 4);
  };
  // The code runs 1 128B .. 3 32B where ours runs 1 32B .. 3 128B.
  const int code = d.swizzle == SmemSwizzle::none ? 0 : 4 - swizzle_bits(d.swizzle);
  return field(d.start) | field(d.leading) << 16 | field(d.stride) << 32 |
         static_cast<std::uint64_t>(d.base_offset & 7) << 49 |
         static_cast<std::uint64_t>(code) << 62;
}

constexpr Descriptor decode(std::uint64_t word) {
  const auto field = [word](int at) {
    return static_cast<std::uint32_t>((word >> at) & 0x3fff) << 4;
  };
  const int code = static_cast<int>(word >> 62);
  Descriptor d;
  d.start = field(0);
  d.leading = field(16);
  d.stride = field(32);
  d.base_offset = static_cast<int>((word >> 49) & 7);
  d.swizzle = code == 0 ? SmemSwizzle::none : static_cast<SmemSwizzle>(4 - code);
  return d;
}

/// The same descriptor with its start moved by `bytes` (a multiple of 16; the sum must stay below
/// 256 KiB).
constexpr std::uint64_t advance(std::uint64_t word, std::uint32_t bytes) {
  return word + (bytes >> 4);
}

/// The two halves of the word. Only the low one depends on the start, so a main loop keeps that one
/// and moves it by 32-bit adds.
constexpr std::uint32_t low_word(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}
constexpr std::uint32_t high_word(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
constexpr std::uint64_t join_words(std::uint32_t low, std::uint32_t high) {
  return static_cast<std::uint64_t>(high) << 32 | low;
}

/// The same, only on the low word: what a main loop does between k_blocks.
constexpr std::uint32_t advance(std::uint32_t low_word, std::uint32_t bytes) {
  return low_word + (bytes >> 4);
}

/// Why the tensor core could not read through this descriptor, as a sentence; null when it can.
constexpr const char* descriptor_fault(const Descriptor& d) {
  if (d.start % 16 != 0) return "a descriptor's start address must be a multiple of 16 bytes";
  if (d.leading % 16 != 0) return "the leading byte offset must be a multiple of 16";
  if (d.stride % 16 != 0) return "the stride byte offset must be a multiple of 16";
  if ((d.leading | d.stride) > kDescriptorAddressMask) {
    return "the byte offsets of a descriptor must be below 256 KiB";
  }
  if (d.base_offset != 0) {
    return "the base offset must be 0: start every operand tile where its swizzle pattern repeats";
  }
  return nullptr;
}

/// Bytes of K that one MMA instruction consumes, whatever the element: 16 x 2, 32 x 1 or 8 x 4.
inline constexpr int k_block_bytes = 32;

/// Address, before the swizzle, of the byte where element (row, k) of the operand begins. `row` and
/// `k` count from the descriptor's start; `stored_bits` is 4, 8, 16 or 32, and 8 of padded
/// elements, of which it is the place: see `stored_bits(OperandTile)`.
///
/// With T = 16 bytes of elements and S = the span:
///   K-major  none     (row%8)*16 + (row/8)*SBO + (k/T)*LBO + k%T
///   K-major  swizzled (row%8)*S  + (row/8)*SBO + k                      (LBO is not read)
///   MN-major none     (k%8)*16   + (k/8)*LBO   + (row/T)*SBO + row%T
///   MN-major swizzled (k%8)*S    + (k/8)*SBO   + (row/S)*LBO + row%S
/// where the contiguous index is counted in bytes.
constexpr std::uint32_t linear_address(const Descriptor& d, int row, int k, int stored_bits,
                                       Major major) {
  const auto along = static_cast<std::uint32_t>((major == Major::k ? k : row) * stored_bits / 8);
  const auto across = static_cast<std::uint32_t>(major == Major::k ? row : k);
  const auto span = static_cast<std::uint32_t>(span_bytes(d.swizzle));
  const std::uint32_t in_core = across % 8 * span;
  if (d.swizzle != SmemSwizzle::none) {
    if (d.leading_is_address) {
      const std::uint32_t in_span = d.start % span + along;
      const std::uint32_t from = in_span < span ? d.start / span * span : d.leading;
      return from + in_core + across / 8 * d.stride + in_span % span;
    }
    // In K-major the whole of an instruction's K lies in one span, hence no step from span to span.
    if (major == Major::k) return d.start + in_core + across / 8 * d.stride + along;
    return d.start + in_core + across / 8 * d.stride + along / span * d.leading + along % span;
  }
  // Without swizzle the strides go by dimension, not by contiguity: LBO steps along K, SBO along
  // the rows.
  const std::uint32_t next_along = major == Major::k ? d.leading : d.stride;
  const std::uint32_t next_across = major == Major::k ? d.stride : d.leading;
  return d.start + in_core + across / 8 * next_across + along / span * next_along + along % span;
}

/// Address at which the tensor core reads element (row, k): `linear_address`, then the XOR of the
/// swizzle on the absolute address. The descriptor must be without fault.
constexpr std::uint32_t element_address(const Descriptor& d, int row, int k, int stored_bits,
                                        Major major) {
  return apply_swizzle(d.swizzle, linear_address(d, row, k, stored_bits, major));
}

/// An operand tile as TMA leaves it in shared memory: the contiguous dimension is cut into boxes of
/// one span, and the boxes lie one after the other. Starts at a multiple of `repeat_bytes`.
struct OperandTile {
  int rows = 0;   ///< extent in M (of A) or N (of B)
  int depth = 0;  ///< extent in K
  int element_bits = 16;
  Major major = Major::k;
  SmemSwizzle swizzle = SmemSwizzle::b128;
  /// Elements of 4 or 6 bits, of which 16 lie packed at the beginning of each 16 bytes (8 and 12
  /// bytes of them); the rest of the 16 bytes is padding, which has no value. Elements of 4 bits
  /// that are not padded lie packed, the first in the low half of its byte.
  bool padded = false;

  friend constexpr bool operator==(const OperandTile&, const OperandTile&) = default;
};

/// Bits of shared memory that an element takes, the padding shared out among 16 elements. Offsets
/// and descriptors count in these.
constexpr int stored_bits(const OperandTile& tile) {
  return tile.padded ? 8 : tile.element_bits;
}

/// Elements in one span, the inner extent of a TMA box.
constexpr int span_elements(const OperandTile& tile) {
  return span_bytes(tile.swizzle) * 8 / stored_bits(tile);
}

/// Extent across the contiguous dimension, the outer extent of a TMA box.
constexpr int box_outer(const OperandTile& tile) {
  return tile.major == Major::k ? tile.rows : tile.depth;
}

/// Boxes in the tile, along the contiguous dimension.
constexpr int box_count(const OperandTile& tile) {
  return (tile.major == Major::k ? tile.depth : tile.rows) / span_elements(tile);
}

constexpr int box_bytes(const OperandTile& tile) {
  return box_outer(tile) * span_bytes(tile.swizzle);
}

constexpr int tile_bytes(const OperandTile& tile) {
  return box_count(tile) * box_bytes(tile);
}

/// Bytes of global memory in the tile: what its loads signal on their mbarrier. Fewer than
/// `tile_bytes` where it is padded.
constexpr int loaded_bytes(const OperandTile& tile) {
  return tile.rows * tile.depth * tile.element_bits / 8;
}

/// Elements along K that one MMA instruction consumes.
constexpr int k_block_elements(const OperandTile& tile) {
  return k_block_bytes * 8 / stored_bits(tile);
}

/// MMA instructions along K.
constexpr int k_block_count(const OperandTile& tile) {
  return tile.depth / k_block_elements(tile);
}

/// Why the tile cannot be a wgmma operand, as a sentence; null when it can.
constexpr const char* tile_fault(const OperandTile& tile) {
  if (tile.padded ? tile.element_bits != 4 && tile.element_bits != 6
                  : tile.element_bits != 4 && tile.element_bits != 8 && tile.element_bits != 16 &&
                        tile.element_bits != 32) {
    return "an operand in shared memory has elements of 8, 16 or 32 bits, of 4 bits packed or "
           "padded, or of 6 bits padded";
  }
  if (tile.padded && tile.swizzle != SmemSwizzle::b128) {
    return "a tile of padded elements has swizzle 128B: TMA brings 128 of them, 128 bytes, a row";
  }
  if (tile.major == Major::mn && tile.element_bits != 16) {
    return "only 16-bit operands may be MN-major: wgmma cannot transpose other elements";
  }
  if (tile.rows < 8 || tile.rows % 8 != 0) {
    return "an operand tile's rows must be a positive multiple of 8";
  }
  if (tile.depth < 1 || tile.depth % k_block_elements(tile) != 0) {
    return "an operand tile's K extent must be a positive multiple of 32 bytes, one instruction's "
           "K";
  }
  if ((tile.major == Major::k ? tile.depth : tile.rows) % span_elements(tile) != 0) {
    return "an operand tile's contiguous extent must be a multiple of the swizzle span";
  }
  if (box_outer(tile) > 256) return "a TMA box extent is at most 256 elements";
  return nullptr;
}

/// The stored tile as a layout: (row, k) -> byte, before the swizzle. The tile must be without
/// fault. For packed elements of 4 bits two have a byte. Padded elements have a byte each here, and
/// there is where the 16 bytes begin that hold elements k, k + 1, ... + 15, for k a multiple of 16.
constexpr layout::Layout tile_layout(const OperandTile& tile) {
  using layout::tuple;
  const int bytes = stored_bits(tile) / 8;
  const int span = span_bytes(tile.swizzle);
  const bool halves = bytes == 0;
  const layout::Tuple boxes = halves ? tuple(2, span_elements(tile) / 2, box_count(tile))
                                     : tuple(span_elements(tile), box_count(tile));
  const layout::Tuple box_strides =
      halves ? tuple(0, 1, box_bytes(tile)) : tuple(bytes, box_bytes(tile));
  return tile.major == Major::k
             ? layout::make_layout(tuple(tile.rows, boxes), tuple(span, box_strides))
             : layout::make_layout(tuple(boxes, tile.depth), tuple(box_strides, span));
}

/// Byte offset, before the swizzle, of element (row, k) in the stored tile. Kernels name the tile
/// while compiling, and only the multiplications are left.
constexpr std::uint32_t tile_offset(const OperandTile& tile, int row, int k) {
  return static_cast<std::uint32_t>(tile_layout(tile)(row, k));
}
template <OperandTile tile>
constexpr std::uint32_t tile_offset(int row, int k) {
  return static_cast<std::uint32_t>(layout::offset_of<tile_layout(tile)>(row, k));
}

/// The descriptor of a stored tile for an MMA that begins at byte `start`, the place of an element
/// (row, k): row a multiple of 8 (K-major) or of the span (MN-major), k a multiple of the
/// instruction's K.
///
/// Strides in bytes, with S = the span (16, 32, 64, 128):
///   K-major  none      LBO = 16 rows (the next box)   SBO = 128
///   K-major  swizzled  LBO = 16 (ignored; CUTLASS and the ISA use 1)   SBO = 8 S
///   MN-major none      LBO = 128    SBO = 16 depth (the next box)
///   MN-major swizzled  LBO = S depth (the next box)    SBO = 8 S
constexpr Descriptor descriptor(const OperandTile& tile, std::uint32_t start) {
  const auto next_box = static_cast<std::uint32_t>(box_bytes(tile));
  const auto next_group = static_cast<std::uint32_t>(repeat_bytes(tile.swizzle));
  Descriptor d;
  d.start = start;
  d.swizzle = tile.swizzle;
  if (tile.swizzle == SmemSwizzle::none) {
    d.leading = tile.major == Major::k ? next_box : next_group;
    d.stride = tile.major == Major::k ? next_group : next_box;
  } else {
    d.leading = tile.major == Major::k ? 16 : next_box;
    d.stride = next_group;
  }
  return d;
}

/// Bytes from the tile's start to where k_block `step` begins. K-major: +32 inside a span, then the
/// next box; MN-major: +32 rows of k (16 of them) of one span each, always inside the box.
constexpr std::uint32_t k_block_offset(const OperandTile& tile, int step) {
  return tile_offset(tile, 0, step * k_block_elements(tile));
}
template <OperandTile tile>
constexpr std::uint32_t k_block_offset(int step) {
  return tile_offset<tile>(0, step * k_block_elements(tile));
}

}  // namespace warpwright::atom
