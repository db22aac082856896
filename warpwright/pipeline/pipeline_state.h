// Where a thread stands in a ring of stages.
#pragma once

#include "warpwright/isa/config.h"

namespace warpwright::pipeline {

/// The stage a thread uses next, and the parity of its round through the ring: 0 in the first. What
/// it waits for there is that parity, from the first one that the barrier's row declares on
/// (RingBarriers). Producer and consumers of one ring each keep their own and advance it after
/// every use.
struct PipelineState {
  int stage = 0;
  int parity = 0;

  WW_DEVICE void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }

  /// As `count` times `advance`.
  WW_DEVICE void skip(int count, int stages) {
    const int at = stage + count;
    parity ^= (at / stages) & 1;
    stage = at % stages;
  }
};

}  // namespace warpwright::pipeline
