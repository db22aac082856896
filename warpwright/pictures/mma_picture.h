// MMA instructions as pictures: who holds which element of A, B and C, and which scales.
#pragma once

#include "warpwright/atom/tiled_mma.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// What the colours of an MMA's cells tell.
enum class MmaColour { threads, values };

/// Where the part of the tile begins that is drawn, where it is too large to be drawn as a whole.
struct MmaPart {
  int m = 0, n = 0, k = 0;
};

/// The tile of a TiledMMA: A left of C, B above it, each element with the threads that hold it and
/// as which of their values. Operands in shared memory are shown by core matrices, those of tcgen05
/// with their CTA and, of D, their place in tensor memory. MMAs with scales have a second view of
/// these. Throws layout::Error where the part lies outside of the tile.
Picture mma_picture(const atom::TiledMma& mma, MmaColour colour = MmaColour::threads,
                    MmaPart from = {});

}  // namespace warpwright::pictures
