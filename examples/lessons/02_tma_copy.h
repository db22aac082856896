// Lesson 2: a TMA copy and one mbarrier.
//
// One thread asks TMA for 16 KB and expects 16 KB on the barrier; 128 threads wait for its phase 0.
// The phase is over when no arrival is outstanding (the one of the thread that expects) and no
// byte. The picture has the barrier event by event: deck pages 10 to 15.
#pragma once

#include "lessons/lesson.h"

namespace lessons::tma_copy {

constexpr int rows = 128, columns = 64;  // of bf16: 16 KB

template <bool Broken>
WW_DEVICE void kernel(const isa::TensorMap& map, float* sums) {
  const SharedAddress tile = isa::shared_base(), bar = tile + rows * columns * 2;
  if (isa::thread_index() == 128) {
    isa::mbarrier_init(bar, 1, {"bar"}, "the TMA thread");
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(160);  // nobody uses a barrier before it is made
  if (isa::thread_index() == 128) {
    isa::set_role("TMA warp");
    // The broken one counts elements where bytes are meant.
    isa::mbarrier_arrive_expect(bar, Broken ? rows * columns : rows * columns * 2);
    for (int row = 0; row < rows; row += 8) {  // 16 boxes of 1 KB, so that one sees them land
      isa::tensor_load(tile + row * columns * 2, map, bar, Coords{0, row});
    }
  }
  if (isa::thread_index() >= 128) return;
  isa::set_role("TC warps");
  isa::mbarrier_wait<Scope::cta>(bar, 0, {"bar"});  // of the phase whose parity is 0
  float sum = 0;
  for (int i = 0; i < columns; i += 2) {
    const int word = (isa::thread_index() * columns + i) / 2;
    const std::uint32_t two = isa::SharedView<std::uint32_t>{tile}.load(word);
    const isa::Pair pair = isa::unpack<DType::bf16>(&two);
    sum += pair.low + pair.high;
  }
  isa::GlobalView<float>{sums}.store(isa::thread_index(), sum);
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<bf16_t> x("x", rows * columns, Access::input);
  Buffer<float> sums("sums", rows);
  for (int i = 0; i < rows * columns; ++i) x[i] = bf16_t(float(i / columns % 8));
  const isa::TensorMap map = testing::tensor_map(
      x, {.rows = rows, .columns = columns, .box_rows = 8, .box_columns = columns});
  const Launch launch{.threads = 160,
                      .shared_bytes = rows * columns * 2 + 8,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = [&]() -> std::string {
                        for (int row = 0; row < rows; ++row) {
                          if (sums[row] != float(row % 8 * columns)) return "a sum is wrong";
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
    .number = 2,
    .name = "tma_copy",
    .title = "A TMA copy and one mbarrier",
    .question = "When may the 128 threads read what TMA copies?",
    .answer = "When the phase flips: 1 of 1 arrivals have come and 16384 bytes have landed.",
    .broken = "8192 bytes are expected, the number of elements, and 16384 come",
    .finding = Check::transaction_bytes,
    .line = "isa::tensor_load(tile",
    .pages = "deck 9 to 15",
    .picture = Picture::barriers,
    .run = run,
};

}  // namespace lessons::tma_copy
