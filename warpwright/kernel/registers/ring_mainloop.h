// The main loop by mma.sync out of a ring of stages that a producer fills by tensor copies: the
// fragments of the next step, of the next stage too, are loaded while those at hand are multiplied.
#pragma once

#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/kernel/registers/fragments.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/pipeline/tma_pipeline.h"

namespace warpwright::kernel {

/// The loop of one warp.
template <class Tag>
class RingMainloop {
  static constexpr RegisterConfig config = Tag::config;
  static constexpr int kSteps = k_steps(config);
  static_assert(kSteps % 2 == 0, "the two sets of fragments take turns");

 public:
  using Ring = pipeline::TmaPipeline<StagesOf<Tag>>;
  using Sums = typename RegisterFragments<Tag>::Sums;

  /// The stages begin at `stages`, a multiple of 1024 bytes; `thread` counts those that multiply a
  /// tile.
  WW_DEVICE RingMainloop(const Ring& ring, isa::SharedAddress stages, int thread)
      : ring_(ring), stages_(stages), fragments_(thread) {}

  /// Where the next tile's first K block lies in the ring.
  pipeline::PipelineState state;

  /// sums += A * B^T over `blocks` blocks of K. A stage is released when its last fragments are in
  /// registers; then, of the last stage, `leave` is called.
  template <class Leave>
  WW_DEVICE void run(int blocks, Sums& sums, const Leave& leave) {
    if (blocks == 0) {
      isa::sync_warp();  // no MMA does it: all lanes have their turn before one gives it
      leave();
      return;
    }
    ring_.wait(state);
    load(0);
    load_scales(0);
    WW_NO_UNROLL for (int block = 0; block < blocks; ++block) {
      const isa::Mark mark("k block %", block);
      WW_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        if (step < kSteps - 1) {
          load(step + 1);
        } else {
          isa::sync_warp();
          ring_.release(state);
          state.advance(config.stages);
          if (block + 1 < blocks) {
            ring_.wait(state);
            load(0);
          } else {
            leave();
          }
        }
        fragments_.multiply(sums, step);
        if (step < kSteps - 1 || block + 1 < blocks) load_scales((step + 1) % kSteps);
      }
    }
    RegisterFragments<Tag>::finish(sums);
  }

 private:
  WW_DEVICE isa::SharedAddress stage() const {
    return stages_ + static_cast<std::uint32_t>(state.stage * stage_bytes(config));
  }
  /// The fragments of a step of the stage at hand, and its scales, where there are some.
  WW_DEVICE void load(int step) { fragments_.load(stage(), step); }
  WW_DEVICE void load_scales([[maybe_unused]] int step) {
    if constexpr (is_block_scaled(config)) fragments_.load_scales(stage(), step);
  }

  const Ring& ring_;
  isa::SharedAddress stages_;
  RegisterFragments<Tag> fragments_;
};

}  // namespace warpwright::kernel
