// Blackwell GEMM: warp-specialised, accumulators in tensor memory. One source for the GPU and the
// model, and for MMAs of one SM and of a pair of SMs.
//
//   role         warps   does
//   load         0       one lane: TMA loads of A and B, and of their scales, into a ring of stages
//   mma          1       one lane (of a pair: of the even CTA) issues the MMAs, and before those of
//                        a stage the copies of its scales to tensor memory, which the warp owns
//   scheduler    2       one lane asks CLC for tiles, where the tiles come from there
//   (idle)       3       checks the offsets of groups, where that is asked for
//   epilogue     4..7    tensor memory -> registers -> shared memory -> D, 32 rows a warp
//
//   barrier      copies        arrivals a phase                    waits      arrives
//   full         stages        1 + bytes of a stage, of a pair     mma        load, copies
//                              of both CTAs in the even one
//   empty        stages        (cm+cn-1), with pairs (cm/2+cn-1)   load       commits of the
//                                                                             cluster's row, column
//   acc_full     accumulators  1                                   epilogue   commit
//   acc_empty    accumulators  4, with pairs 8 in the even CTA     mma        epilogue warps
//   acc_read     1 where two       4, with pairs 8 in the even CTA     mma        epilogue warps,
//                share columns                                                    at their end
//   tmem_done    1 with pairs  1, in the odd CTA                   mma        mma of the even CTA
//   c_full       2 a warp      1 + bytes of a buffer               epilogue   its leader, copies
//   tile_full    2             1 + 16 bytes                        all        scheduler, answers
//   tile_empty   2             all roles of the cluster, in its    scheduler  all
//                              first CTA
//
// The roles are in load.h, multiply.h and store.h (with sums in registers: sums.h; D quantised:
// codes.h, token_codes.h), what they share in cta.h, scales that the tensor core multiplies in
// scales.h.
//
// A tile of a CTA has 128 rows, weights where operands are swapped. The CTAs of a pair are
// neighbours along M: each loads its rows of A and half of the columns of B, and the even one's
// MMAs multiply 256 rows by all columns.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/blackwell/codes.h"
#include "warpwright/kernel/blackwell/config_fault.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/blackwell/load.h"
#include "warpwright/kernel/blackwell/multiply.h"
#include "warpwright/kernel/blackwell/store.h"
#include "warpwright/kernel/blackwell/sums.h"
#include "warpwright/kernel/blackwell/token_codes.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr BlackwellConfig.
template <class Tag>
class BlackwellGemm {
 public:
  using Params = BlackwellParamsOf<Tag>;
  using Cta = BlackwellCta<Tag>;
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr BlackwellSmemMap smem = smem_map(config);
  static_assert(config_fault(config) == nullptr);

  /// The whole kernel, for one thread of `threads(config)`.
  WW_DEVICE static void run(const Params& p) {
    constexpr BlackwellConfig cfg = Tag::config;
    const Cta cta(p);
    const int warp = isa::warp_index();
    if (warp == load_warp) initialise(cta);
    if constexpr (cfg.plain_tokens) {
      if (warp == mma_warp) blackwell::write_ones(cta);
    }
    if constexpr (cfg.pair && cfg.plain_tokens) {
      isa::cluster_arrive();  // the ones too, which the even CTA copies for both
      isa::cluster_wait();
    } else if (atom::cluster_size(p.walk.cluster) > 1) {
      await_cluster();
    } else {
      isa::sync_threads(threads(cfg));
    }
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    isa::set_role("idle");
    if (warp == load_warp) {
      blackwell::load(cta, ready);
    } else if (warp == mma_warp) {
      blackwell::mma(cta, ready);
    } else if (warp >= first_epilogue_warp) {
      if constexpr (sums_in_registers(cfg)) {
        blackwell::store_sums(cta, ready);
      } else if constexpr (quantises(cfg)) {
        using Codes =
            std::conditional_t<cfg.swap_ab, blackwell::TokenCodes<Tag>, blackwell::CodeRow<Tag>>;
        blackwell::store_codes<Codes>(cta, ready);
      } else {
        blackwell::store(cta, ready);
      }
    } else if (controlled && warp == scheduler_warp && isa::elect_one()) {
      isa::set_role("scheduler");
      cta.ring.schedule(tile::CanceledClusters{p.cluster_size}, cta.rank);
    }
    if constexpr (cfg.grouped) {
      if (warp == offsets_warp && isa::cta_index() == 0 && p.walk.offsets_status != nullptr) {
        isa::set_role("checker of offsets");
        tile::check_offsets(p.walk.groups.offsets, ready, p.walk.offsets_status);
      }
    }
  }

 private:
  static constexpr bool controlled = asks_for_tiles(config);

  // One warp: makes the barriers and publishes them.
  WW_DEVICE static void initialise(const Cta& cta) {
    const Params& p = cta.p;
    initialise_barriers([&] {
      if (p.operands.k > 0) {
        isa::prefetch_map(p.operands.a);
        isa::prefetch_map(p.operands.b);
        if constexpr (is_scaled(config)) {
          if constexpr (!has_ones(config, true)) isa::prefetch_map(p.sfa);
          if constexpr (!has_ones(config, false)) isa::prefetch_map(p.sfb);
        }
      }
      cta.mainloop.initialise();
      cta.accumulators.initialise();
      if constexpr (controlled) cta.ring.initialise(p.walk.cluster);
      if constexpr (!quantises(config)) {
        if (p.output.c_by_tma) Epilogue<Tag>::initialise(cta.base + smem.c_barriers);
      }
    });
  }
};

}  // namespace warpwright::kernel
