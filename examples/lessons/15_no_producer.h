// Lesson 15: loads by TMA without a producer warp, in a cluster.
//
// Two CTAs, one below the other, each a 64 x 64 tile of D; B is theirs together, and each
// multicasts half of it (note 002's multistage kernel). There is no warp that only loads: thread 0
// starts the wgmmas of a k_tile with all others, then asks for a later one, and then waits for the
// wgmmas. So it is a reader too. A stage is free when all readers have said so, itself among them:
// it can ask for stages - 1 k_tiles ahead, one less than a producer can.
#pragma once

#include <warpwright/atom/cluster.h>

#include "lessons/lesson.h"

namespace lessons::no_producer {

constexpr atom::ClusterShape cluster{2, 1};
constexpr int k_tiles = 8, stages = 3, threads = 128, stage_bytes = 2 * tile_bytes;

struct Params {
  isa::TensorMap a;  // 128 x 512 bf16, boxes of 64 rows
  isa::TensorMap b;  // 64 x 512, boxes of 32
  float* d;          // 128 x 64
};

template <bool Broken>
WW_DEVICE void kernel(const Params& p) {
  // The broken one keeps every stage full, as a producer would.
  constexpr int ahead = Broken ? stages : stages - 1;
  const SharedAddress base = isa::shared_base();
  const int rank = isa::cluster_rank();
  const atom::Masks masks = atom::masks(cluster, rank, false);
  const auto full = [&](int s) { return base + stages * stage_bytes + 16 * s; };
  const auto empty = [&](int s) { return full(s) + 8; };
  const bool loads = isa::thread_index() == 0;
  if (loads) {
    for (int s = 0; s < stages; ++s) {
      isa::mbarrier_init(full(s), 1, {"full", s}, "thread 0 of the own CTA");
      isa::mbarrier_init(empty(s), 4 * masks.arrivals, {"empty", s}, "a lane of each warp of both");
    }
    isa::fence_mbarrier_init();
  }
  isa::cluster_arrive_relaxed();
  isa::cluster_wait();  // the peer's barriers are made
  isa::set_role("multiplier");
  pipeline::PipelineState to, at;
  const auto load = [&](int k) {
    const isa::Mark mark("ask for k_tile %", k);
    const int s = to.stage;
    const SharedAddress a = base + s * stage_bytes;
    isa::mbarrier_wait<Scope::cta>(empty(s), to.parity ^ 1, {"empty", s});
    isa::mbarrier_arrive_expect(full(s), stage_bytes);  // both halves of B
    isa::tensor_load(a, p.a, full(s), Coords{64 * k, 64 * rank});
    isa::tensor_load_multicast(a + tile_bytes + rank * tile_bytes / 2, p.b, full(s), masks.b,
                               Coords{64 * k, 32 * rank});
    to.advance(stages);
  };
  if (loads) {
    for (int k = 0; k < ahead; ++k) load(k);
  }
  isa::sync_warp();
  isa::Fragment<float, 32> sum;
  for (int k = 0; k < k_tiles; ++k, at.advance(stages)) {
    const isa::Mark mark("k_tile %", k);
    const int s = at.stage;
    isa::mbarrier_wait<Scope::cta>(full(s), at.parity, {"full", s});
    multiply_tile(sum, base + s * stage_bytes, base + s * stage_bytes + tile_bytes, k > 0);
    // Beside the wgmmas, into the stage that was read last.
    if (loads && k + ahead < k_tiles) load(k + ahead);
    isa::sync_warp();
    isa::wgmma_wait<0>(sum);
    const int lane = isa::lane_index();  // lane r tells the CTA of rank r
    if (lane < 2) isa::mbarrier_arrive<Scope::cta>(isa::map_rank(empty(s), lane));
  }
  store_tile(sum, p.d + 64 * rank * 64, 64);
  isa::cluster_arrive();
  isa::cluster_wait();  // nobody leaves while the peer may write or signal here
}

inline testing::Outcome run(const Ask& ask) {
  Product<bf16_t> product(128, 64, 64 * k_tiles);
  const Params p{product.map_a(64), product.map_b(32), product.d.data()};
  return product.run(
      [&] {
        if (ask.broken) return kernel<true>(p);
        kernel<false>(p);
      },
      {.ctas = 2,
       .cluster_size = 2,
       .threads = threads,
       .shared_bytes = stages * (stage_bytes + 16)},
      ask);
}

inline constexpr Lesson lesson{
    .number = 15,
    .name = "no_producer",
    .title = "Loads without a producer, shared in a cluster",
    .question = "Who loads also multiplies. How many k_tiles may it ask for ahead?",
    .answer = "One less than there are stages: the one at hand it gives back itself, later.",
    .broken = "it asks for as many k_tiles as there are stages",
    .finding = Check::deadlock,
    .line = "isa::mbarrier_wait<Scope::cta>(empty(s)",
    .pages = "note 002",
    .picture = Picture::timeline,
    .run = run,
};

}  // namespace lessons::no_producer
