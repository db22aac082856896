// The functions of expressions (layout/expression.h) that know instructions: `warpwright layout`
// and `warpwright mma --eval` have them.
#pragma once

#include <span>
#include <vector>

#include "warpwright/atom/tiled_mma.h"
#include "warpwright/layout/call.h"

namespace warpwright::atom {

/// make_copy_atom: ldmatrix, cp.async and plain copies by their CuTe names.
std::span<const layout::Function> copy_functions();

/// The functions of a TiledMMA, whose threads have `thread` unless they are given one:
/// partition_A, partition_fragment_A, make_fragment_A, make_tiled_copy_A, make_tma_atom_A_sm100,
/// and those of B and C. Keeps a copy of `mma`.
std::vector<layout::Function> mma_functions(const TiledMma& mma, int thread);

/// A thread's part of operand 'A', 'B' or 'C': a layout or a tensor of the argument's kind.
layout::Value partition(const TiledMma& mma, char operand, const layout::Value& tensor, int thread);

/// What holds such a part: registers (CuTe's make_fragment_like; for C compact), descriptors of
/// matrices in shared memory, or tensor memory.
layout::Value fragment(const TiledMma& mma, char operand, const layout::Value& partition);

}  // namespace warpwright::atom
