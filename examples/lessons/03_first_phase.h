// Lesson 3: whose wait passes first?
//
// Two barriers hand a buffer to and fro: the one says "full" and expects 1 arrival, of the
// producer, the other "empty" and 128, of the consumers. A barrier begins in phase 0, and nothing
// has arrived. Two of our textbooks (docs/seeds.md) write the producer's turn in two orders:
//
//   the deck, pages 16 to 19   load, then wait for empty     right: both sides wait for phase 0
//   note 004's pseudo-code     wait for writable, then load  hangs with phase 0 on both sides
//
// In the second the producer waits until the buffer was read, and nobody reads before it was
// filled. Page 20 asks for the mend: on a fresh barrier a wait for parity 1, the phase before the
// first, returns. Here are both, side by side: warps 0 to 3 and 8 by the deck, 4 to 7 and 9 by the
// note, with their own names of the barriers.
#pragma once

#include "lessons/lesson.h"

namespace lessons::first_phase {

constexpr int iterations = 4, box_bytes = 1024;  // 8 rows of 64 bf16
constexpr int consumers = 128, threads = 2 * consumers + 64;

/// A buffer and its two barriers.
struct Hands {
  SharedAddress buffer, full, empty;
  WW_DEVICE explicit Hands(int pair)
      : buffer(isa::shared_base() + pair * box_bytes),
        full(isa::shared_base() + 2 * box_bytes + pair * 16),
        empty(full + 8) {}
};

WW_DEVICE void load(const isa::TensorMap& map, const Hands& at, int i) {
  isa::mbarrier_arrive_expect(at.full, box_bytes);
  isa::tensor_load(at.buffer, map, at.full, Coords{0, 8 * i});
}

/// Deck pages 16 to 19: load, expect, wait until it is read, and again.
WW_DEVICE void load_first(const isa::TensorMap& map, const Hands& at) {
  isa::set_role("TMA warp");
  int empty_phase = 0;
  for (int i = 0; i < iterations; ++i, empty_phase ^= 1) {
    load(map, at, i);
    isa::mbarrier_wait<Scope::cta>(at.empty, empty_phase, {"bar_empty"});
  }
}

/// Note 004: wait until it may be written, load, and again.
template <bool Broken>
WW_DEVICE void wait_first(const isa::TensorMap& map, const Hands& at) {
  isa::set_role("producer");
  int phase = Broken ? 0 : 1;  // the note has `int phase = 0;`
  for (int i = 0; i < iterations; ++i, phase ^= 1) {
    isa::mbarrier_wait<Scope::cta>(at.empty, phase, {"writable"});
    load(map, at, i);
  }
}

/// The same in both: wait until it is full, read, say so.
WW_DEVICE float read(const Hands& at) {
  float sum = 0;
  int phase = 0;
  for (int i = 0; i < iterations; ++i, phase ^= 1) {
    isa::mbarrier_wait<Scope::cta>(at.full, phase);
    for (int word = 0; word < 2; ++word) {  // the thread's four elements: what a WGMMA would read
      const std::uint32_t two = isa::SharedView<std::uint32_t>{at.buffer}.load(
          2 * (isa::thread_index() % consumers) + word);
      const isa::Pair pair = isa::unpack<DType::bf16>(&two);
      sum += pair.low + pair.high;
    }
    isa::mbarrier_arrive<Scope::cta>(at.empty);
  }
  return sum;
}

template <bool Broken>
WW_DEVICE void kernel(const isa::TensorMap& map, float* sums) {
  const int thread = isa::thread_index(), pair = thread / consumers;
  if (thread == 2 * consumers) {
    const Hands deck(0), note(1);
    isa::mbarrier_init(deck.full, 1, {"bar_full"}, "the TMA thread");
    isa::mbarrier_init(deck.empty, consumers, {"bar_empty"}, "the TC warps");
    isa::mbarrier_init(note.full, 1, {"readable"}, "the producer");
    isa::mbarrier_init(note.empty, consumers, {"writable"}, "the consumers");
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(threads);
  if (thread == 2 * consumers) load_first(map, Hands(0));
  if (thread == 2 * consumers + 32) wait_first<Broken>(map, Hands(1));
  if (pair > 1) return;
  isa::set_role(pair == 0 ? "TC warps" : "consumers");
  isa::GlobalView<float>{sums}.store(thread, read(Hands(pair)));
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<bf16_t> x("x", iterations * 8 * 64, Access::input);
  Buffer<float> sums("sums", 2 * consumers);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t iteration = i / 512 + 1;
    x[i] = bf16_t(float(iteration));
  }
  const isa::TensorMap map = testing::tensor_map(
      x, {.rows = iterations * 8, .columns = 64, .box_rows = 8, .box_columns = 64});
  const Launch launch{.threads = threads,
                      .shared_bytes = 2 * (box_bytes + 16),
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
    .title = "Whose wait passes first?",
    .question = "Producer and consumer both begin with phase = 0. Who goes first?",
    .answer =
        "Who loads before it waits, as the deck does. A producer that waits first, as note 004's, "
        "must begin with parity 1, which passes on a fresh barrier.",
    .broken =
        "both of note 004's phases start at 0, as its pseudo-code has it; the deck's side "
        "goes on",
    .finding = Check::deadlock,
    .line = "mbarrier_wait<Scope::cta>(at.",
    .pages = "deck 16 to 20, note 004's pseudo-code",
    .picture = Picture::barriers,
    .run = run,
};

}  // namespace lessons::first_phase
