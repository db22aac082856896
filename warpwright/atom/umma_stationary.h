// tcgen05.mma.ws, whose weights, B, stay in a buffer of the tensor core: the descriptor that says
// which columns of B are zeros, whatever lies in shared memory.
// Facts: PTX ISA 9.7.16.4.3 (zero-column mask descriptor), its examples.
#pragma once

#include <cstdint>

#include "warpwright/atom/umma.h"

namespace warpwright::atom {

/// Why an instruction cannot take the 64-bit word, as a sentence; null when it can: [7:0] to
/// [31:24] what the parts of the mask skip, [35:32] what they begin with, 39 whether there is a
/// mask, [47:40] and [55:48] columns of zeros, and columns that are used, less 1, [61:56] a shift.
constexpr const char* zero_columns_fault(std::uint64_t word) {
  if ((word >> 36 & 7) != 0 || word >> 62 != 0) {
    return "a zero-column mask descriptor sets a reserved bit";
  }
  return (word >> 56) != 0 ? "a zero-column mask descriptor that shifts columns is not used here"
                           : nullptr;
}

/// Does the word, which is without fault, make this column of B zeros? The columns of each part of
/// N that lies in lanes of its own have a mask of their own: columns that are used and zeros take
/// turns.
constexpr bool is_zero_column(std::uint64_t word, const UmmaAtom& atom, int column) {
  if ((word >> 39 & 1) == 0) return false;
  const int part = column / umma_columns(atom);
  const int zeros = static_cast<int>(word >> 40 & 0xff) + 1;
  const int used = static_cast<int>(word >> 48 & 0xff) + 1;
  const int skipped = static_cast<int>(word >> 8 * part & 0xff);
  const int at = (column % umma_columns(atom) + skipped) % (zeros + used);
  const bool zeros_first = (word >> (32 + part) & 1) != 0;
  return zeros_first ? at < zeros : at >= used;
}

}  // namespace warpwright::atom
