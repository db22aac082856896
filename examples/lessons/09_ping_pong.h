// Lesson 9: ping-pong.
//
// Two consumer warpgroups take tiles of D in turn: while one stores its tile, the other multiplies,
// and no epilogue but the last costs time (deck pages 31 and 37). What the tensor core waits for is
// loads: tiles of 64 x 64 are small. Whose turn it is, an OrderedSequence says. It does a second
// thing: consumer 1's first stage of the ring is in its second round. Asked too early, a fresh
// barrier answers "phase 1 is complete", and it reads what nobody has loaded.
#pragma once

#include <warpwright/pipeline/ordered_sequence.h>
#include <warpwright/pipeline/tma_pipeline.h>

#include "lessons/lesson.h"

namespace lessons::ping_pong {

constexpr int tiles = 4, k_tiles = 4, stages = 4, threads = 288;
constexpr int at_barriers = stages * 2 * tile_bytes;
constexpr int at_turns = at_barriers + pipeline::barrier_bytes(stages);

struct Ring {
  static constexpr pipeline::TmaPipelineShape value{stages, 4, 2 * tile_bytes};
};
using Loads = pipeline::TmaPipeline<Ring>;

struct Params {
  isa::TensorMap a;  // 64 x 256 bf16
  isa::TensorMap b;  // 256 x 256
  float* d;          // 64 x 256: four tiles side by side
};

WW_DEVICE void produce(const Params& p, SharedAddress base, const Loads& loads) {
  isa::set_role("producer");
  pipeline::PipelineState at;
  for (int tile = 0; tile < tiles; ++tile) {
    const isa::Mark mark("tile m % n %", 0, tile);
    for (int k = 0; k < k_tiles; ++k, at.advance(stages)) {
      const isa::Mark block("k_tile %", k);
      const SharedAddress full = loads.acquire(at);
      const SharedAddress stage = base + at.stage * 2 * tile_bytes;
      isa::tensor_load(stage, p.a, full, Coords{64 * k, 0});
      isa::tensor_load(stage + tile_bytes, p.b, full, Coords{64 * k, 64 * tile});
    }
  }
}

template <bool Broken>
WW_DEVICE void consume(const Params& p, SharedAddress base, const Loads& loads, int self) {
  isa::set_role(self == 0 ? "consumer 0" : "consumer 1");
  pipeline::OrderedSequence turn(base + at_turns, self);
  pipeline::PipelineState at;
  at.skip(self * k_tiles, stages);
  isa::Fragment<float, 32> sum;
  for (int tile = self; tile < tiles; tile += 2) {
    const isa::Mark mark("tile m % n %", 0, tile);
    if constexpr (!Broken) turn.enter();
    for (int k = 0; k < k_tiles; ++k, at.advance(stages)) {
      const isa::Mark block("k_tile %", k);
      loads.wait(at);
      const SharedAddress stage = base + at.stage * 2 * tile_bytes;
      multiply_tile(sum, stage, stage + tile_bytes, k > 0);
      isa::wgmma_wait<0>(sum);
      loads.release(at);
    }
    if constexpr (!Broken) turn.leave();
    at.skip(k_tiles, stages);  // the other warpgroup's
    const isa::Mark epilogue("epilogue subtile %", 0);
    store_tile(sum, p.d + 64 * tile, 64 * tiles);
  }
}

template <bool Broken>
WW_DEVICE void kernel(const Params& p) {
  const SharedAddress base = isa::shared_base();
  const Loads loads(base + at_barriers, {1, 1}, 1);
  if (isa::thread_index() == 256) {
    loads.initialise();
    pipeline::OrderedSequence::initialise(base + at_turns);
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(threads);
  const int warp = isa::warp_index();
  if (warp < 8) return consume<Broken>(p, base, loads, warp / 4);
  if (isa::elect_one()) produce(p, base, loads);
}

inline testing::Outcome run(const Ask& ask) {
  Product<bf16_t> product(64, 64 * tiles, 64 * k_tiles);
  const Params p{product.map_a(64), product.map_b(64), product.d.data()};
  return product.run(
      [&] {
        if (ask.broken) return kernel<true>(p);
        kernel<false>(p);
      },
      {.threads = threads, .shared_bytes = at_turns + 16}, ask);
}

inline constexpr Lesson lesson{
    .number = 9,
    .name = "ping_pong",
    .title = "Ping-pong: two warpgroups take turns",
    .question = "Why must consumer 1 wait for its turn before its first wait for the ring?",
    .answer = "Its first wait there is for the second round, which a fresh barrier calls complete.",
    .broken = "nobody waits for a turn",
    .finding = Check::in_flight_access,
    .line = "isa::tensor_load(stage",
    .pages = "deck 31, 37",
    .picture = Picture::timeline,
    .run = run,
};

}  // namespace lessons::ping_pong
