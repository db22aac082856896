// Lesson 10: a cluster that shares its loads.
//
// Four CTAs, 2 x 2, each a 64 x 64 tile of D. CTAs with the same rows need the same tile of A,
// those with the same columns the same of B: each loads a half and multicasts it to the two that
// need it, so every byte leaves L2 once (seed 000, note 002). The price: a stage may be written
// only when all who read what is written there have done so. Its barrier counts (2 + 2 - 1) CTAs.
#pragma once

#include <warpwright/atom/cluster.h>

#include "lessons/lesson.h"

namespace lessons::multicast {

constexpr atom::ClusterShape cluster{2, 2};
constexpr int k_tiles = 6, stages = 2, threads = 160, stage_bytes = 2 * tile_bytes;
constexpr int half_bytes = tile_bytes / 2;  // 32 rows

struct Params {
  isa::TensorMap a, b;  // 128 x 384 bf16, boxes of 32 rows
  float* d;             // 128 x 128
};

template <bool Broken>
WW_DEVICE void kernel(const Params& p) {
  const SharedAddress base = isa::shared_base();
  const int rank = isa::cluster_rank();
  const atom::ClusterCoord at_cta = atom::coord_of(cluster, rank);
  const atom::Masks masks = atom::masks(cluster, rank, false);
  const auto full = [&](int s) { return base + stages * stage_bytes + 16 * s; };
  const auto empty = [&](int s) { return full(s) + 8; };
  // Whom this CTA's warps tell that a stage is read. The broken one thinks only of itself.
  const int told = Broken ? 1 << rank : masks.commit;
  if (isa::thread_index() == 128) {
    for (int s = 0; s < stages; ++s) {
      isa::mbarrier_init(full(s), 1, {"full", s}, "the own producer");
      isa::mbarrier_init(empty(s), 4 * (Broken ? 1 : masks.arrivals), {"empty", s},
                         "a lane of each warp of the CTAs in the same row or column");
    }
    isa::fence_mbarrier_init();
  }
  isa::cluster_arrive_relaxed();
  isa::cluster_wait();  // the peers' barriers are made
  pipeline::PipelineState at;
  if (isa::thread_index() == 128) {
    isa::set_role("producer");
    for (int k = 0; k < k_tiles; ++k, at.advance(stages)) {
      const isa::Mark mark("k_tile %", k);
      const int s = at.stage;
      isa::mbarrier_wait<Scope::cta>(empty(s), at.parity ^ 1, {"empty", s});
      isa::mbarrier_arrive_expect(full(s), stage_bytes);  // both halves of A and of B
      const SharedAddress a = base + s * stage_bytes + at_cta.y * half_bytes;
      const SharedAddress b = base + s * stage_bytes + tile_bytes + at_cta.x * half_bytes;
      isa::tensor_load_multicast(a, p.a, full(s), masks.a,
                                 Coords{64 * k, 64 * at_cta.x + 32 * at_cta.y});
      isa::tensor_load_multicast(b, p.b, full(s), masks.b,
                                 Coords{64 * k, 64 * at_cta.y + 32 * at_cta.x});
    }
  } else if (isa::thread_index() < 128) {
    isa::set_role("consumer");
    isa::Fragment<float, 32> sum;
    for (int k = 0; k < k_tiles; ++k, at.advance(stages)) {
      const isa::Mark mark("k_tile %", k);
      const int s = at.stage;
      isa::mbarrier_wait<Scope::cta>(full(s), at.parity, {"full", s});
      multiply_tile(sum, base + s * stage_bytes, base + s * stage_bytes + tile_bytes, k > 0);
      isa::wgmma_wait<0>(sum);
      const int lane = isa::lane_index();  // lane r tells the CTA of rank r
      if (lane < 4 && (told >> lane & 1) != 0) {
        isa::mbarrier_arrive<Scope::cta>(isa::map_rank(empty(s), lane));
      }
    }
    store_tile(sum, p.d + 64 * at_cta.x * 128 + 64 * at_cta.y, 128);
  }
  isa::cluster_arrive();
  isa::cluster_wait();  // nobody leaves while a peer may write or signal here
}

inline testing::Outcome run(const Ask& ask) {
  Product<bf16_t> product(128, 128, 64 * k_tiles);
  const Params p{product.map_a(32), product.map_b(32), product.d.data()};
  return product.run(
      [&] {
        if (ask.broken) return kernel<true>(p);
        kernel<false>(p);
      },
      {.ctas = 4,
       .cluster_size = 4,
       .threads = threads,
       .shared_bytes = stages * (stage_bytes + 16)},
      ask);
}

/// The CTAs of a 4 x 4 cluster, and those that a mask names.
inline Cells mask_cells(const char* title, int mask) {
  return {title, 4, 4, [](int r, int c) { return std::to_string(r + 4 * c); },
          [=](int r, int c) { return mask >> (r + 4 * c) & 1; }};
}
inline std::vector<Cells> cells() {
  const atom::Masks of = atom::masks({4, 4}, 0, false);
  return {mask_cells("CTA 0 of 4 x 4 sends A to 0x1111", of.a), mask_cells("and B to 0x000f", of.b),
          mask_cells("7 CTAs tell it that they have read: 0x111f", of.commit)};
}

inline constexpr Lesson lesson{
    .number = 10,
    .name = "multicast",
    .title = "A cluster that shares its loads by multicast",
    .question = "Whom must a CTA hear from before it loads into a stage again?",
    .answer = "All whose shared memory it writes: its row and its column, 2 + 2 - 1 CTAs.",
    .broken = "a CTA hears only from its own warps",
    .finding = Check::in_flight_access,
    .line = "isa::tensor_load_multicast(",
    .pages = "seed 000, note 002",
    .picture = Picture::timeline,
    .run = run,
    .cells = cells,
};

}  // namespace lessons::multicast
