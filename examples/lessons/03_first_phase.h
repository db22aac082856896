// Lesson 3: whose wait passes first? A find in the seeds.
//
// Two barriers hand one buffer to and fro (deck pages 16 to 19): bar_full expects 1 arrival, of the
// TMA thread, bar_empty 128, of the TC warps. The pseudo-code of note 004 begins with
// `int phase = 0;` on both sides, and so does the deck's producer. Written down literally it hangs:
// the TMA thread waits until the buffer was read, and nobody reads before it was filled. Page 20
// asks for the answer: on a fresh barrier a wait for parity 1, the phase before the first, returns.
#pragma once

#include "lessons/lesson.h"

namespace lessons::first_phase {

constexpr int iterations = 4, box_bytes = 1024;  // 8 rows of 64 bf16

template <bool Broken>
WW_DEVICE void kernel(const isa::TensorMap& map, float* sums) {
  const SharedAddress buffer = isa::shared_base();
  const SharedAddress bar_full = buffer + box_bytes, bar_empty = bar_full + 8;
  if (isa::thread_index() == 128) {
    isa::mbarrier_init(bar_full, 1, {"bar_full"}, "the TMA thread");
    isa::mbarrier_init(bar_empty, 128, {"bar_empty"}, "the TC warps");
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(160);
  if (isa::thread_index() == 128) {
    isa::set_role("TMA warp");
    int phase = Broken ? 0 : 1;  // the broken one is what stands in the seeds
    for (int i = 0; i < iterations; ++i, phase ^= 1) {
      isa::mbarrier_wait<Scope::cta>(bar_empty, phase, {"bar_empty"});
      isa::mbarrier_arrive_expect(bar_full, box_bytes);
      isa::tensor_load(buffer, map, bar_full, Coords{0, 8 * i});
    }
  }
  if (isa::thread_index() >= 128) return;
  isa::set_role("TC warps");
  float sum = 0;
  int phase = 0;
  for (int i = 0; i < iterations; ++i, phase ^= 1) {
    isa::mbarrier_wait<Scope::cta>(bar_full, phase, {"bar_full"});
    for (int word = 0; word < 2; ++word) {  // the thread's four elements: what a WGMMA would read
      const std::uint32_t two =
          isa::SharedView<std::uint32_t>{buffer}.load(2 * isa::thread_index() + word);
      const isa::Pair pair = isa::unpack<DType::bf16>(&two);
      sum += pair.low + pair.high;
    }
    isa::mbarrier_arrive<Scope::cta>(bar_empty);
  }
  isa::GlobalView<float>{sums}.store(isa::thread_index(), sum);
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<bf16_t> x("x", iterations * 8 * 64, Access::input);
  Buffer<float> sums("sums", 128);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t iteration = i / 512 + 1;
    x[i] = bf16_t(float(iteration));
  }
  const isa::TensorMap map = testing::tensor_map(
      x, {.rows = iterations * 8, .columns = 64, .box_rows = 8, .box_columns = 64});
  const Launch launch{.threads = 160,
                      .shared_bytes = box_bytes + 16,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = [&]() -> std::string {
                        for (const float sum : sums) {
                          if (sum != 4 * (1 + 2 + 3 + 4)) return "a sum is wrong";
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
    .number = 3,
    .name = "first_phase",
    .title = "Whose wait passes first? A find in the seeds",
    .question = "Producer and consumer both begin with phase = 0. Who goes first?",
    .answer = "Nobody. The producer must begin with parity 1, which passes on a fresh barrier.",
    .broken = "both phases start at 0, as note 004's pseudo-code and the deck's page 16 have it",
    .finding = Check::deadlock,
    .line = "mbarrier_wait<Scope::cta>(bar_",
    .pages = "deck 16 to 20, note 004's pseudo-code",
    .picture = Picture::barriers,
    .run = run,
};

}  // namespace lessons::first_phase
