// One load of a slice of A or B, whatever its major.
#pragma once

#include <cstdint>

#include "warpwright/isa/tma.h"
#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/blackwell/params.h"

namespace warpwright::kernel::blackwell {

/// One thread: a k_tile's slice of one operand, `rows` rows from `row` on, for the CTAs of `ctas`:
/// a box of all of them, or, MN-major, boxes of a span of rows each.
template <class Tag>
WW_DEVICE void load_slice([[maybe_unused]] const StagedOperand& staged, std::uint16_t ctas,
                          isa::SharedAddress to, const isa::TensorMap& map, isa::SharedAddress full,
                          int k, int row, [[maybe_unused]] int rows, int batch) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr int group = ctas_of_mma(cfg);
  if constexpr (takes_any_major(cfg)) {
    if (staged.mn_major) {
      constexpr atom::OperandTile tile = tile_a(cfg);
      constexpr int box = atom::span_elements(tile);
      WW_NO_UNROLL for (int r = 0; r < rows; r += box) {
        isa::tensor_load_to<group>(ctas, to + r * atom::span_bytes(tile.swizzle), map, full,
                                   isa::Coords{row + r, k, batch});
      }
      return;
    }
  }
  isa::tensor_load_to<group>(ctas, to, map, full, isa::Coords{k, row, batch});
}

}  // namespace warpwright::kernel::blackwell
