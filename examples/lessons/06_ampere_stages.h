// Lesson 6: Ampere's stages.
//
// Before TMA every thread copies its own pieces by cp.async, and counts its copies in groups: one a
// stage. A prologue fills all stages but one (deck page 5); then each step waits until the oldest
// group is there, multiplies, and starts the group of the stage that the step before has read
// (page 6). A wait counts from the newest: "at most so many may be missing".
#pragma once

#include <warpwright/atom/mma.h>
#include <warpwright/isa/copy_async.h>
#include <warpwright/isa/mma.h>

#include "lessons/lesson.h"

namespace lessons::ampere {

constexpr atom::Mma mma{.kind = atom::MmaKind::warp, .m = 16, .n = 8, .k = 16};
constexpr int tiles = 12, rows = 16, columns = 8, depth = 16;
constexpr int bytes_a = rows * depth * 2, stage_bytes = bytes_a + columns * depth * 2;

struct Params {
  const std::uint16_t* a;  // 16 x 192 f16
  const std::uint16_t* b;  // 8 x 192 f16
  float* d;                // 16 x 8
};

/// One group: the k_tile's 16 x 16 of A and 8 x 16 of B. A lane copies 16 bytes of A, half of the
/// lanes 16 of B. Behind the last k_tile the group is empty, and still counts.
WW_DEVICE void copy(const Params& p, SharedAddress to, int tile) {
  const int lane = isa::lane_index(), row = lane / 2, half = lane % 2 * 8;
  if (tile < tiles) {
    const auto from = [&](const std::uint16_t* x) {
      return x + row * tiles * depth + tile * depth + half;
    };
    isa::copy_async<16>(to + lane * 16, from(p.a));
    if (row < columns) isa::copy_async<16>(to + bytes_a + lane * 16, from(p.b));
  }
  isa::copy_async_commit();
}

template <int Stages, bool Broken>
WW_DEVICE void kernel(const Params& p) {
  isa::set_role("warp");
  const SharedAddress base = isa::shared_base();
  const int lane = isa::lane_index();
  {
    const isa::Mark mark("prologue");
    for (int tile = 0; tile < Stages - 1; ++tile) copy(p, base + tile * stage_bytes, tile);
  }
  float sums[4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const isa::Mark mark("k_tile %", tile);
    // The groups of the k_tiles behind this one may be missing. The broken one lets its own, too.
    isa::copy_async_wait<Broken ? Stages - 1 : Stages - 2>();
    isa::sync_warp();  // each lane has waited for its own copies alone
    copy(p, base + (tile + Stages - 1) % Stages * stage_bytes, tile + Stages - 1);
    const SharedAddress at = base + tile % Stages * stage_bytes;
    std::uint32_t a[4], b[2];
    isa::load_matrix(at + lane % 16 * 32 + lane / 16 * 16, a);
    isa::load_matrix(at + bytes_a + lane % 8 * 32 + lane / 8 % 2 * 16, b);
    isa::mma_sync<mma>(sums, a, b);
    isa::sync_warp();  // all have read the stage: the next step may copy into it
  }
  for (int v = 0; v < 4; ++v) {
    isa::GlobalView<float>{p.d}.store((lane / 4 + v / 2 * 8) * columns + lane % 4 * 2 + v % 2,
                                      sums[v]);
  }
}

template <int Stages>
WW_DEVICE void either(const Params& p, bool broken) {
  if (broken) return kernel<Stages, true>(p);
  kernel<Stages, false>(p);
}

inline testing::Outcome run(const Ask& ask) {
  Product<numeric::fp16_t> product(rows, columns, tiles * depth);
  const auto bits = [](auto& of) { return reinterpret_cast<const std::uint16_t*>(of.data()); };
  const Params p{bits(product.a), bits(product.b), product.d.data()};
  const int stages = ask.stages == 0 ? 3 : ask.stages;
  return product.run(
      [&] {
        if (stages == 2) return either<2>(p, ask.broken);
        if (stages == 3) return either<3>(p, ask.broken);
        either<4>(p, ask.broken);
      },
      {.threads = 32, .shared_bytes = stages * stage_bytes}, ask);
}

inline constexpr Lesson lesson{
    .number = 6,
    .name = "ampere_stages",
    .title = "Ampere's stages: groups of cp.async",
    .question = "With three stages, how many groups may be missing when a k_tile is multiplied?",
    .answer = "One: the wait names stages - 2. More stages hide more of the copies' time.",
    .broken = "the wait lets stages - 1 groups be missing, one of them the k_tile's own",
    .finding = Check::in_flight_access,
    .line = "load_matrix(",
    .pages = "deck 4 to 7",
    .picture = Picture::timeline,
    .run = run,
    .stages = 4,
};

}  // namespace lessons::ampere
