// Lesson 7: wgmma, single-buffered and pipelined.
//
// One warpgroup does everything: its first thread asks TMA for a k_tile of A and of B, all 128
// multiply. wgmma is asynchronous: wait<k> lets the newest k groups run on, so the tensor core has
// its next work before it is done (deck pages 26 to 28). What may be refilled is the stage of the
// group that the wait covers, k behind the newest.
//   --stages 1 --in-flight 0   page 26: a single buffer, the tensor core idles
//   --stages 2                 page 27: the next k_tile comes while this one is multiplied
//   --in-flight 1 ... 3        page 28: MMAs are kept in flight; each takes a stage from the loads,
//                              so it pays where the ring is long: --stages 8
#pragma once

#include "lessons/lesson.h"

namespace lessons::in_flight {

constexpr int tiles = 12, stage_bytes = 2 * tile_bytes;

struct Params {
  isa::TensorMap a, b;  // 64 x 768 bf16
  float* d;             // 64 x 64
  int stages;
};

template <int InFlight, bool Broken>
WW_DEVICE void kernel(const Params& p) {
  const SharedAddress base = isa::shared_base();
  const auto full = [&](int s) { return base + p.stages * stage_bytes + s * 8; };
  const bool loads = isa::thread_index() == 0;
  const auto load = [&](int tile) {
    if (!loads || tile >= tiles) return;
    const isa::Mark mark("k_tile %", tile);
    const int s = tile % p.stages;
    const SharedAddress at = base + s * stage_bytes;
    isa::mbarrier_arrive_expect(full(s), stage_bytes);
    isa::tensor_load(at, p.a, full(s), Coords{64 * tile, 0});
    isa::tensor_load(at + tile_bytes, p.b, full(s), Coords{64 * tile, 0});
  };
  isa::set_role("warpgroup");
  if (loads) {
    for (int s = 0; s < p.stages; ++s) isa::mbarrier_init(full(s), 1, {"full", s}, "thread 0");
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(128);
  for (int tile = 0; tile < p.stages; ++tile) load(tile);  // prologue

  isa::Fragment<float, 32> sum;
  pipeline::PipelineState at;
  for (int tile = 0; tile < tiles; ++tile, at.advance(p.stages)) {
    const isa::Mark mark("k_tile %", tile);
    isa::mbarrier_wait<Scope::cta>(full(at.stage), at.parity, {"full", at.stage});
    const SharedAddress stage = base + at.stage * stage_bytes;
    multiply_tile(sum, stage, stage + tile_bytes, tile > 0);
    // Behind the wait the group of k_tile `tile - InFlight` has read its stage. The broken one lets
    // one group more run.
    isa::wgmma_wait<InFlight + (Broken ? 1 : 0)>();
    isa::sync_threads(128);  // that goes for all four warps
    if (tile >= InFlight) load(tile - InFlight + p.stages);
  }
  isa::wgmma_wait<0>(sum);
  store_tile(sum, p.d, 64);
}

template <int InFlight>
WW_DEVICE void either(const Params& p, bool broken) {
  if (broken) return kernel<InFlight, true>(p);
  kernel<InFlight, false>(p);
}

inline testing::Outcome run(const Ask& ask) {
  Product<bf16_t> product(64, 64, 64 * tiles);
  const Params p{product.map_a(64), product.map_b(64), product.d.data(),
                 ask.stages == 0 ? 4 : ask.stages};
  const int in_flight = ask.in_flight < 0 ? std::min(1, p.stages - 1) : ask.in_flight;
  return product.run(
      [&] {
        if (in_flight == 0) return either<0>(p, ask.broken);
        if (in_flight == 1) return either<1>(p, ask.broken);
        if (in_flight == 2) return either<2>(p, ask.broken);
        either<3>(p, ask.broken);
      },
      {.threads = 128, .shared_bytes = p.stages * (stage_bytes + 8)}, ask);
}

inline constexpr Lesson lesson{
    .number = 7,
    .name = "wgmma_in_flight",
    .title = "wgmma: a single buffer, stages, MMAs in flight",
    .question = "Which stage may be refilled while one group of wgmmas is in flight?",
    .answer = "That of the group before it, and no sooner than a wait has covered that group.",
    .broken = "the wait lets one group more run than the refill counts with",
    .finding = Check::in_flight_access,
    .line = "isa::tensor_load(at",
    .pages = "deck 4, 24 to 28",
    .picture = Picture::timeline,
    .run = run,
    .stages = 8,
    .in_flight = 3,
};

}  // namespace lessons::in_flight
