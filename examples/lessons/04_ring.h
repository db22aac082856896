// Lesson 4: a ring.
//
// Three stages let the producer run ahead of the consumer. Each stage has a full and an empty
// barrier; a thread's place in the ring is a stage and the parity of its round, and the parity
// flips where the ring goes round: CUTLASS's PipelineState (deck page 21).
#pragma once

#include "lessons/lesson.h"

namespace lessons::ring {

constexpr int stages = 3, tiles = 8, box_bytes = 1024;  // 8 rows of 64 bf16

/// The step to the next stage. The broken one forgets that the ring has gone round.
template <bool Broken>
WW_DEVICE void advance(pipeline::PipelineState& at) {
  at.advance(stages);
  if constexpr (Broken) at.parity = 0;
}

template <bool Broken>
WW_DEVICE void kernel(const isa::TensorMap& map, float* sums) {
  const SharedAddress base = isa::shared_base();
  const auto buffer = [&](int s) { return base + s * box_bytes; };
  const auto full = [&](int s) { return base + stages * box_bytes + 16 * s; };
  const auto empty = [&](int s) { return full(s) + 8; };
  if (isa::thread_index() == 32) {
    for (int s = 0; s < stages; ++s) {
      isa::mbarrier_init(full(s), 1, {"full", s}, "the producer");
      isa::mbarrier_init(empty(s), 1, {"empty", s}, "a lane of the consumer");
    }
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(64);
  pipeline::PipelineState at;
  if (isa::thread_index() == 32) {
    isa::set_role("producer");
    for (int tile = 0; tile < tiles; ++tile, at.advance(stages)) {
      const isa::Mark mark("tile %", tile);
      isa::mbarrier_wait<Scope::cta>(empty(at.stage), at.parity ^ 1, {"empty", at.stage});
      isa::mbarrier_arrive_expect(full(at.stage), box_bytes);
      isa::tensor_load(buffer(at.stage), map, full(at.stage), Coords{0, 8 * tile});
    }
  }
  if (isa::thread_index() >= 32) return;
  isa::set_role("consumer");
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile, advance<Broken>(at)) {
    const isa::Mark mark("tile %", tile);
    isa::mbarrier_wait<Scope::cta>(full(at.stage), at.parity, {"full", at.stage});
    for (int i = isa::lane_index(); i < box_bytes / 4; i += 32) {
      const std::uint32_t two = isa::SharedView<std::uint32_t>{buffer(at.stage)}.load(i);
      const isa::Pair pair = isa::unpack<DType::bf16>(&two);
      sum += pair.low + pair.high;
    }
    isa::sync_warp();  // all lanes have read, and one speaks for them
    if (isa::lane_index() == 0) isa::mbarrier_arrive<Scope::cta>(empty(at.stage));
  }
  isa::GlobalView<float>{sums}.store(isa::lane_index(), sum);
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<bf16_t> x("x", tiles * 8 * 64, Access::input);
  Buffer<float> sums("sums", 32);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t tile = i / 512;
    x[i] = bf16_t(float(tile));
  }
  const isa::TensorMap map =
      testing::tensor_map(x, {.rows = tiles * 8, .columns = 64, .box_rows = 8, .box_columns = 64});
  const Launch launch{.threads = 64,
                      .shared_bytes = stages * (box_bytes + 16),
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = [&]() -> std::string {
                        const int due = 16 * (tiles * (tiles - 1) / 2);
                        for (const float sum : sums) {
                          if (sum != float(due)) return "a sum is wrong";
                        }
                        return "";
                      }};
  return testing::run(
      [&] {
        if (ask.broken) return kernel<true>(map, sums.data());
        kernel<false>(map, sums.data());
      },
      launch, x, sums);
}

inline constexpr Lesson lesson{
    .number = 4,
    .name = "ring",
    .title = "A ring of three stages",
    .question = "Stage 0 comes again with tile 3. Which phase of its barrier is waited for then?",
    .answer = "Phase 1: the parity flips where the ring goes round.",
    .broken = "the consumer's parity stays 0, which is complete since the first round",
    .finding = Check::in_flight_access,
    .line = "SharedView<std::uint32_t>{buffer(at.stage)}.load(i)",
    .pages = "deck 20 to 22",
    .picture = Picture::barriers,
    .run = run,
};

}  // namespace lessons::ring
