// Two stages that the threads of a CTA fill by plain stores and read themselves: only the barrier
// orders them. The same words as of CopyAsyncPipeline, so that a main loop has either.
#pragma once

#include "warpwright/isa/barrier.h"

namespace warpwright::pipeline {

/// Every thread stores its part of block 0 and calls `advance`; then, for every block: it stores
/// its part of the next one into the stage that `advance` has freed, and calls `advance` when it
/// has read the block.
struct StoredPipeline {
  static constexpr int filled_ahead = 1;

  /// A thread's stores are done when it meets the others: there is nothing to close.
  WW_DEVICE static void commit([[maybe_unused]] isa::Site site = isa::Site::here()) {}

  /// The next block is there, and the block before has been read, by all `threads` threads.
  WW_DEVICE static void advance(int threads, [[maybe_unused]] isa::Site site = isa::Site::sync()) {
    isa::sync_threads(threads, site);
  }

  WW_DEVICE static int next(int stage) { return 1 - stage; }
};

}  // namespace warpwright::pipeline
