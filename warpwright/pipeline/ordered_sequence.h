// Taking turns: two warpgroups execute a section alternately, in a fixed order.
//
//   turn[w]   4 arrivals a phase, one lane of each warp of the other warpgroup when it has left the
//             section; warpgroup w waits for it. Warpgroup 0 goes first: its first wait passes.
#pragma once

#include "warpwright/facts/declaration.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/thread.h"

namespace warpwright::pipeline {

/// Arrivals a phase on a turn barrier: the warps of a warpgroup.
inline constexpr int turn_arrivals = 4;

/// The barriers as a row of the table that `explain` prints.
constexpr BarrierRow turn_row() {
  return {"turn",
          2,
          turn_arrivals,
          0,
          "one lane of each warp of the other consumer warpgroup",
          "a consumer warpgroup",
          1,
          true};
}

/// The sequence as one thread of warpgroup `self` (0 or 1) uses it. `barriers` is 8-byte aligned
/// shared memory of 16 bytes.
class OrderedSequence {
 public:
  WW_DEVICE OrderedSequence(isa::SharedAddress barriers, int self)
      : barriers_(barriers), self_(self), parity_(self == 0 ? first_of_0 : first_of_1) {}

  /// Initialises both barriers. One thread of the CTA calls it, before the CTA barrier.
  WW_DEVICE static void initialise(isa::SharedAddress barriers) {
    WW_UNROLL for (int w = 0; w < 2; ++w) {
      isa::mbarrier_init(barriers + w * 8, turn_arrivals, {"turn", w},
                         "each warp of the other consumer warpgroup");
    }
  }

  /// Waits for this warpgroup's turn.
  WW_DEVICE void enter(isa::Site site = isa::Site::sync()) {
    isa::mbarrier_wait<isa::Scope::cta>(barriers_ + self_ * 8, parity_, {"turn", self_}, site);
    parity_ ^= 1;
  }

  /// Gives the turn to the other warpgroup. All lanes call it.
  WW_DEVICE void leave(isa::Site site = isa::Site::sync()) const {
    if (isa::lane_index() == 0) {
      isa::mbarrier_arrive<isa::Scope::cta>(barriers_ + (1 - self_) * 8, site);
    }
  }

 private:
  static constexpr int first_of_0 = first_parity(turn_row(), 0);
  static constexpr int first_of_1 = first_parity(turn_row(), 1);

  isa::SharedAddress barriers_;
  int self_;
  int parity_;
};

}  // namespace warpwright::pipeline
