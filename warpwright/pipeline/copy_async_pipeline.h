// A ring of stages that the threads of a CTA fill by cp.async and read themselves: groups take the
// place of barriers, one group a stage, always closed, so that a wait for "all but so many" always
// means the same stage.
#pragma once

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/copy_async.h"

namespace warpwright::pipeline {

/// `Stages` stages, of which `Stages - 1` are filled ahead. Every thread copies its part of block 0
/// to Stages - 2, a `commit` behind each, and calls `advance`; then, for every block: it copies its
/// part of the block Stages - 1 ahead into the stage that `advance` has freed, or nothing at the
/// end, then `commit`, and `advance` when it has read the block.
template <int Stages>
struct CopyAsyncPipeline {
  static_assert(Stages >= 2, "one stage is read while another is filled");
  static constexpr int filled_ahead = Stages - 1;

  /// Closes this thread's copies of one block, also where there were none.
  WW_DEVICE static void commit([[maybe_unused]] isa::Site site = isa::Site::sync()) {
    isa::copy_async_commit(site);
  }

  /// Waits until the next block has landed, for all `threads` threads, and until all of them have
  /// read the block before: its stage may be filled again. One barrier says both. Behind the last
  /// block nothing is on its way, and the stages may serve others.
  WW_DEVICE static void advance(int threads, [[maybe_unused]] isa::Site site = isa::Site::sync()) {
    isa::copy_async_wait<Stages - 2>(site);
    isa::sync_threads(threads, site);
  }

  WW_DEVICE static int next(int stage) { return stage + 1 == Stages ? 0 : stage + 1; }
};

}  // namespace warpwright::pipeline
