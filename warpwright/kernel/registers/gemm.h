// Register GEMM: no roles (with them: ring_gemm.h). All warps of a CTA copy A and B to shared
// memory (cp.async), multiply (ldmatrix, mma.sync) and store their own part of the tile. One source
// for the GPU and the model.
//
//   what is ordered                    by
//   a stage has landed, another free   cp.async.wait_group and a CTA barrier, one a block of K
//   the ring is the epilogue's         the barrier behind the last block
//   the ring is free again             a CTA barrier before the next tile's copies
//   a part of a tile is there          a flag in the workspace, from warp to warp
//
// Tiles are whole, or, where there are fewer than CTAs and the configuration says so, split along K
// through the workspace.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/trace.h"
#include "warpwright/kernel/epilogue.h"
#include "warpwright/kernel/registers/mainloop.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/kernel/registers/ring_gemm.h"
#include "warpwright/kernel/stream_k_fixup.h"
#include "warpwright/tile/cta_tiles.h"
#include "warpwright/tile/split.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr RegisterConfig without a producer.
template <class Tag>
struct CopyingGemm {
  using Params = RegisterGemmParams;
  static constexpr RegisterConfig config = Tag::config;
  static_assert(config_fault(config) == nullptr);

  /// The whole kernel, for one thread of `threads(config)`.
  WW_DEVICE static void run(const Params& p) {
    constexpr RegisterConfig cfg = Tag::config;
    const isa::SharedAddress base = isa::shared_base();
    isa::set_role("multiply");
    isa::wait_for_prerequisites();
    auto walk = tile::cta_tiles<cfg.tile_m, cfg.tile_n, false>(
        tile::SplitPersistent(p.walk.raster, p.walk.split), p.walk.cluster, {0, 0});
    tile::Work work;
    const auto find = [&work](auto next) { return next.next(work); };
    while (find(walk)) {
      const isa::Mark tile_mark("tile m % n %", work.tile.m, work.tile.n);
      Sums sums;
      if constexpr (config.mma.sums == DType::f32) {
        multiply(p, base, work, sums.mmas);
      } else {
        typename Loop::Sums whole = {};
        multiply(p, base, work, whole);
        sums.convert(whole);
      }
      walk.forget();  // the sums leave no registers to keep `work` in
      walk.next(work);
      const int warp = isa::warp_index();
      if (const CompleteSums complete = finish(p, sums, work, walk, warp)) {
        work.column += warp % cfg.warps_n * (cfg.tile_n / cfg.warps_n);
        Epilogue store(p.output, p.scales, base + smem_map(cfg).epilogue, base, warp);
        store.begin(work, warp / cfg.warps_n * (cfg.tile_m / cfg.warps_m));
        store.write(sums, complete);
        if (isa::thread_index() == 0) isa::count_tile();
        if (find(walk)) isa::sync_threads(threads(cfg));  // the buffers become stages
      }
    }
  }

 private:
  using Loop = RegisterMainloop<Tag>;
  using Epilogue = kernel::Epilogue<Tag>;
  using Sums = WarpSums<Tag>;

  /// Completes a warp's sums, or gives them away.
  template <class Walk>
  WW_DEVICE static CompleteSums finish(const Params& p, Sums& sums, const tile::Work& work,
                                       const Walk& walk, int warp) {
    if constexpr (config.splits_k) {
      return StreamKFixup<Tag::config>(p.walk, 0, warp).finish(sums, work, walk);
    } else {
      return {true, 0, config.tile_n};
    }
  }

  /// sums += the products of the k_tiles of `work`.
  WW_DEVICE static void multiply(const Params& p, isa::SharedAddress base, const tile::Work& work,
                                 typename Loop::Sums& sums) {
    constexpr RegisterConfig cfg = Tag::config;
    const int k = work.first * row_bytes(cfg);
    Loop(base, p.a, {work.tile.batch, work.row, k}, p.b, {work.tile.batch, work.column, k},
         isa::thread_index())
        .run(work.end - work.first, sums);
  }
};

/// The kernel for `Tag::config`, a static constexpr RegisterConfig.
template <class Tag>
using RegistersGemm =
    std::conditional_t<has_producer(Tag::config), RingGemm<Tag>, CopyingGemm<Tag>>;

}  // namespace warpwright::kernel
