// Parts of a tile's sums in the workspace, a CTA's each: where a warp leaves its rows, and finds
// those that the same warp of another CTA left.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/epilogue_geometry.h"

namespace warpwright::kernel {

/// Floats of a part: all sums of a tile.
constexpr std::int64_t part_floats(const EpilogueShape& c) {
  return std::int64_t{1} * c.warps * c.row_atoms * warp_rows * c.tile_n;
}

/// A lane's sums of eight columns, the `j`th of an atom.
template <class Sums>
WW_DEVICE isa::Words<4> sums_word(Sums&& sums, int j) {
  return {{isa::float_bits(sums[4 * j]), isa::float_bits(sums[4 * j + 1]),
           isa::float_bits(sums[4 * j + 2]), isa::float_bits(sums[4 * j + 3])}};
}

/// As one warp of those that store sees them: about its own 16 rows of every atom.
template <EpilogueShape Shape>
class SumParts {
 public:
  static constexpr int atoms = Shape.row_atoms;
  static constexpr int words = Shape.tile_n / 8;  // of four floats, in an atom of a thread
  using View = isa::GlobalView<isa::Words<4>>;

  /// Part `number`, as warp `warp` has it. (What a word of it is: `place`.)
  WW_DEVICE static View part(float* partials, int number, int warp) {
    return isa::global_words<4>(partials + number * part_floats(Shape) +
                                warp * (atoms * words * 128));
  }
  /// Where this lane's word `j` of atom `i` lies: those of the lanes side by side.
  WW_DEVICE static int place(int i, int j) { return (i * words + j) * 32 + isa::lane_index(); }

  /// Leaves this warp's sums there; `count`: the words of an atom that are some.
  template <class Sums>
  WW_DEVICE static void leave(const View& to, Sums& sums, int count = words) {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int j = 0; j < words; ++j) {
        if (j >= count) continue;
        to.store(place(i, j), sums_word(sums[i], j));
      }
    }
  }
};

}  // namespace warpwright::kernel
