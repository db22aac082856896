// A tile's sums: in the accumulator itself, or in registers beside it.
#pragma once

#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/hopper/mainloop.h"
#include "warpwright/kernel/hopper/rs_mainloop.h"

namespace warpwright::kernel {

/// Those of a consumer warpgroup.
template <class Tag>
struct TileSums {
  static constexpr GemmConfig config = Tag::config;
  static constexpr bool beside = sums_in_registers(config);
  using Beside = float[beside ? row_atoms(config) : 1][beside ? warpgroup_columns(config) / 2 : 1];

  /// Calls `leave` when all k_tiles of `work` are on their way through the tensor core.
  template <class Mainloop, class Leave>
  WW_DEVICE void run(Mainloop& mainloop, const tile::Work& work, const Leave& leave) {
    if constexpr (may_pass_by(config)) {
      if (mainloop.has_no_token(work)) return mainloop.pass_by(work);
    }
    if (work.end == work.first) {
      if constexpr (takes_turns(config)) {
        isa::sync_warp();  // no wgmma does it: all lanes have their turn before one gives it
      }
      leave();
    } else if constexpr (in_flight(config) > 1) {  // NOLINT(bugprone-branch-clone): others are none
      mainloop.sum(work, accumulator, total, leave);
    } else if constexpr (beside) {
      mainloop.sum(work, accumulator[0], total, leave);
    } else {
      mainloop.sum(work, accumulator[0], leave);
    }
  }
  WW_DEVICE auto& values() {
    if constexpr (beside) {
      return total;
    } else {
      return accumulator[0];
    }
  }

  using Accumulator = isa::Fragment<float, warpgroup_columns(config) / passes(config) / 2>;
  Accumulator accumulator[in_flight(config)][row_atoms(config)];
  Beside total;
};

}  // namespace warpwright::kernel
