// Lesson 12: launch control.
//
// The grid has a CTA a tile, more than fit on the SMs. A CTA that is done asks the launcher for the
// work of one that has not started: it is cancelled, and its number is the next tile. So an SM that
// another grid holds gets nothing and delays nothing (deck pages 35 and 36). The answer comes by
// the asynchronous proxy into shared memory, and may say no: then the CTA leaves.
#pragma once

#include <warpwright/isa/clc.h>

#include "lessons/lesson.h"

namespace lessons::launch_control {

constexpr int tiles = 16, rows = 64;

template <bool Broken>
WW_DEVICE void kernel(const float* x, float* sums) {
  isa::set_role("worker");
  const SharedAddress answer = isa::shared_base(), bar = answer + 16;
  const bool one = isa::thread_index() == 0;
  if (one) {
    isa::mbarrier_init(bar, 1, {"answer"}, "the asking thread");
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(32);
  int tile = isa::cta_index();
  for (int parity = 0;; parity ^= 1) {
    if (one) {  // ask first: the answer comes while this tile is worked on
      isa::mbarrier_arrive_expect(bar, 16);
      isa::try_cancel(answer, bar);
    }
    {
      const isa::Mark mark("tile m % n %", tile, 0);
      float sum = 0;
      for (int row = 0; row < rows; ++row) {
        sum += isa::GlobalView<const float>{x}.load((tile * rows + row) * 32 + isa::lane_index());
      }
      const isa::Mark epilogue("epilogue subtile %", 0);
      isa::GlobalView<float>{sums}.store(tile * 32 + isa::lane_index(), sum);
    }
    isa::mbarrier_wait<Scope::cta>(bar, parity, {"answer"});
    const isa::LaunchAnswer got = isa::load_launch_answer(answer);
    isa::fence_proxy_async_shared();  // the next answer is written by the asynchronous proxy
    isa::sync_warp();
    // The broken one does not look whether there was a CTA to cancel.
    if (!Broken && !isa::cluster_canceled(got)) return;
    tile = isa::canceled_first_cta(got);
  }
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<float> x("x", tiles * rows * 32, Access::input), sums("sums", tiles * 32);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t tile = i / (rows * 32);
    x[i] = float(tile);
  }
  const Launch launch{.ctas = tiles,
                      .threads = 32,
                      .shared_bytes = 32,
                      .sms = 4,
                      .occupied_sm = 2,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = [&]() -> std::string {
                        for (int i = 0; i < tiles * 32; ++i) {
                          const int due = i / 32 * rows;
                          if (sums[i] != float(due)) return "a tile is not done";
                        }
                        return "";
                      }};
  return testing::run(
      [&] {
        if (ask.broken) return kernel<true>(x.data(), sums.data());
        kernel<false>(x.data(), sums.data());
      },
      launch, x, sums);
}

inline constexpr Lesson lesson{
    .number = 12,
    .name = "launch_control",
    .title = "Launch control: tiles from CTAs that have not started",
    .question = "SM 2 belongs to another grid. Who does the tiles that it would have had?",
    .answer = "Whoever is done first: each of SMs 0, 1 and 3 takes the next one left.",
    .broken = "nobody looks whether a CTA was cancelled, and the number of none is taken",
    .finding = Check::clc,
    .line = "canceled_first_cta(",
    .pages = "deck 35, 36, 38",
    .picture = Picture::grid,
    .run = run,
    .occupied_sm = 2,
};

}  // namespace lessons::launch_control
