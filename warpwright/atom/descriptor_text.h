// The descriptor by which wgmma or tcgen05 reads an operand in shared memory, and its swizzle, in
// words: what `warpwright mma --descriptor` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/mma.h"

namespace warpwright::atom {

/// An operand's tile as TMA brings it, at shared-memory address 0, and its descriptors.
struct OperandDescriptor {
  char operand = 'A';
  bool umma = false;  ///< tcgen05's word, else wgmma's
  OperandTile tile;
  DType type = DType::bf16;
  Descriptor fields;
  std::vector<std::uint32_t> starts;  ///< where each k_block begins: bytes
  std::vector<std::uint64_t> words;   ///< and its descriptor
  int k = 0;                          ///< elements of a k_block
};

/// That of A or B of an MMA; for a pair's, of one CTA. `depth` elements of K are in the tile, or,
/// if 0, as many as fill a span. Throws layout::Error where the operand lies in registers or there
/// is no such tile.
OperandDescriptor operand_descriptor(const Mma& mma, char operand, SmemSwizzle swizzle, int depth);

/// Bits `last` to `first` of a descriptor's word, and what they say.
struct DescriptorField {
  std::string name;
  int first = 0, last = 0;
  std::uint64_t value = 0;
  std::string meaning;
};

/// For the word by which wgmma, or tcgen05 (`umma`), reads the tile through this descriptor, from
/// the lowest bit on. What is between them is 0.
std::vector<DescriptorField> descriptor_fields(const OperandTile& tile, const Descriptor& d,
                                               bool umma);

/// The word of a swizzle ("none", "32B", "64B", "128B"). Throws layout::Error.
SmemSwizzle parse_swizzle(const std::string& word);

/// Fields by their bits, k_blocks, and where the 16-byte chunks of eight rows lie; several lines.
std::string print(const OperandDescriptor& descriptor);

}  // namespace warpwright::atom
