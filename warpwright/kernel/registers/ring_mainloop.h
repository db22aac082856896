// The main loop by mma.sync out of a ring of stages that a producer fills by TMA copies: the
// fragments of the next k_block, of the next stage too, are loaded while those at hand are
// multiplied.
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
  static constexpr int kBlocks = k_blocks(config);
  static_assert(kBlocks % 2 == 0, "the two sets of fragments take turns");

 public:
  using Ring = pipeline::TmaPipeline<StagesOf<Tag>>;
  using Sums = typename RegisterFragments<Tag>::Sums;

  /// The stages begin at `stages`, a multiple of 1024 bytes; `thread` counts those that multiply a
  /// tile.
  WW_DEVICE RingMainloop(const Ring& ring, isa::SharedAddress stages, int thread)
      : ring_(ring), stages_(stages), fragments_(thread) {}

  /// Where the next tile's first k_tile lies in the ring.
  pipeline::PipelineState state;

  /// sums += A * B^T over `k_tiles` k_tiles. A stage is released when its last fragments are in
  /// registers; then, of the last stage, `leave` is called.
  template <class Leave>
  WW_DEVICE void run(int k_tiles, Sums& sums, const Leave& leave) {
    if (k_tiles == 0) {
      isa::sync_warp();  // no MMA does it: all lanes have their turn before one gives it
      leave();
      return;
    }
    ring_.wait(state);
    load(0);
    load_scales(0);
    WW_NO_UNROLL for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      WW_UNROLL
      for (int k_block = 0; k_block < kBlocks; ++k_block) {
        if (k_block < kBlocks - 1) {
          load(k_block + 1);
        } else {
          isa::sync_warp();
          ring_.release(state);
          state.advance(config.stages);
          if (k_tile + 1 < k_tiles) {
            ring_.wait(state);
            load(0);
          } else {
            leave();
          }
        }
        fragments_.multiply(sums, k_block);
        if (k_block < kBlocks - 1 || k_tile + 1 < k_tiles) load_scales((k_block + 1) % kBlocks);
      }
    }
    RegisterFragments<Tag>::finish(sums);
  }

 private:
  WW_DEVICE isa::SharedAddress stage() const {
    return stages_ + static_cast<std::uint32_t>(state.stage * stage_bytes(config));
  }
  /// The fragments of a k_block of the stage at hand, and its scales, where there are some.
  WW_DEVICE void load(int k_block, isa::Site site = isa::Site::here()) {
    fragments_.load(stage(), k_block, site);
  }
  WW_DEVICE void load_scales([[maybe_unused]] int k_block) {
    if constexpr (is_block_scaled(config)) fragments_.load_scales(stage(), k_block);
  }

  const Ring& ring_;
  isa::SharedAddress stages_;
  RegisterFragments<Tag> fragments_;
};

}  // namespace warpwright::kernel
