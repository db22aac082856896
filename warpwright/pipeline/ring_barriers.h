// The barriers of a ring of slots: one full and one empty barrier a slot, all full ones first.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/pipeline/pipeline_state.h"

namespace warpwright::pipeline {

/// Bytes of shared memory that the barriers of `slots` slots take.
constexpr int barrier_bytes(int slots) {
  return 2 * slots * 8;
}

/// The barriers of `Slots` slots in shared memory from `base` on, 8-byte aligned. `FullFirst` and
/// `EmptyFirst` are the parities of the first waits on them, as their rows declare.
template <int Slots, int FullFirst, int EmptyFirst>
struct RingBarriers {
  isa::SharedAddress base = 0;

  WW_DEVICE isa::SharedAddress full(int slot) const {
    return base + static_cast<isa::SharedAddress>(slot) * 8;
  }
  WW_DEVICE isa::SharedAddress empty(int slot) const { return full(Slots + slot); }
  /// What lies behind them.
  WW_DEVICE isa::SharedAddress end() const { return full(2 * Slots); }

  /// The parities that a wait at `state` waits for.
  WW_DEVICE static int full_parity(const PipelineState& state) { return state.parity ^ FullFirst; }
  WW_DEVICE static int empty_parity(const PipelineState& state) {
    return state.parity ^ EmptyFirst;
  }

  /// Waits until the slot at `state` is released.
  WW_DEVICE void acquire(const PipelineState& state, isa::Site site) const {
    isa::mbarrier_wait<isa::Scope::cta>(empty(state.stage), empty_parity(state),
                                        {"empty", state.stage}, site);
  }

  /// Waits until every slot is released, so that no peer signals this CTA after its end. `state` is
  /// where the next use would have gone.
  WW_DEVICE void producer_tail(PipelineState state, isa::Site site) const {
    WW_NO_UNROLL for (int s = 0; s < Slots; ++s) {
      acquire(state, site);
      state.advance(Slots);
    }
  }
};

}  // namespace warpwright::pipeline
