// Operand tiles in shared memory as pictures: where TMA puts what, and how a descriptor finds it.
#pragma once

#include <cstdint>
#include <string>

#include "warpwright/atom/descriptor.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// What is drawn: a tile that begins at byte `start` of shared memory, and one of its k_blocks.
struct TileAsk {
  atom::OperandTile tile;
  std::string type;         ///< what its elements are called, "bf16"
  std::uint32_t start = 0;  ///< a multiple of atom::repeat_bytes
  int k_block = 0;          ///< whose bytes are framed
  bool long_k = false;      ///< k_blocks of K 96 (sm_103): 48 bytes, which may lie in two spans
};

/// Four views: the tile as TMA reads it beside its bytes in shared memory, the descriptors' 64 bits
/// with their fields (wgmma's where it takes such elements, and tcgen05's), the k_blocks with their
/// starts, and the banks that a load of eight chunks of 16 bytes takes with and without the
/// swizzle. Throws layout::Error with one sentence for a tile that cannot be an operand, a start
/// off the swizzle's repeat, and a k_block that the tile has not.
Picture tile_picture(const TileAsk& ask);

}  // namespace warpwright::pictures
