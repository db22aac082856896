// MMAs in words: what `warpwright mma` reads and prints.
#pragma once

#include <string>
#include <string_view>

#include "warpwright/atom/tiled_mma.h"

namespace warpwright::atom {

/// "m16n8k16" of the kind a word names ("mma", "f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4", "wgmma",
/// "wgmma_rs", "tcgen05", "tcgen05_pair"; behind these two the word of a kind with scales, as in
/// "tcgen05 mxf8f6f4"), with the first types that multiply in it. Throws
/// layout::Error with a sentence where there is none. The types are then the caller's to change.
Mma parse_mma(std::string_view kind, std::string_view shape);

/// The word of a kind.
const char* name(MmaKind kind);

/// "m16n8k16 bf16 x bf16 + f32".
std::string to_text(const Mma& mma);

/// One sentence that says why no target has the MMA (or this one has not, unless it is 0), and what
/// would be legal; empty when there is nothing to say.
std::string mma_refusal(const Mma& mma, int target = 0);

/// Which targets have it, and which do it by others: "sm_89, 120, 121; made of others on sm_90".
std::string targets_of(const Mma& mma);

/// The MMA, and a TiledMMA, as CuTe prints them, without underscores; several lines.
std::string print(const Mma& mma);
std::string print(const TiledMma& mma);

/// What each thread's registers hold of a tile of the TiledMMA: a table of A, of B and of C, a line
/// a thread, or that of one thread. Operands that are not in registers get a sentence.
std::string register_table(const TiledMma& mma, int thread = -1);

}  // namespace warpwright::atom
