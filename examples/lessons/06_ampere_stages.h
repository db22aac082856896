// Lesson 6: Ampere's stages.
//
// Before TMA every thread copies its own pieces by cp.async, and counts its copies in groups: one a
// stage. A prologue fills all stages but one (deck page 5); then each step waits until the oldest
// group is there, starts the group of the stage that the step before has read, and multiplies
// (page 6). A wait counts from the newest: "at most so many may be missing".
#pragma once

#include <warpwright/atom/mma.h>
#include <warpwright/isa/copy_async.h>
#include <warpwright/isa/mma.h>

#include "lessons/lesson.h"

namespace lessons::ampere {

constexpr atom::Mma mma{.kind = atom::MmaKind::warp, .m = 16, .n = 8, .k = 16};
constexpr int tiles = 16, rows = 64, columns = 32, depth = 16;
constexpr int row_bytes = 2 * depth, stage_bytes = (rows + columns) * row_bytes;

struct Params {
  const std::uint16_t* a;  // 64 x 256 f16
  const std::uint16_t* b;  // 32 x 256 f16
  float* d;                // 64 x 32
};

/// One group: the k_tile's 64 x 16 of A and 32 x 16 of B, six pieces of 16 bytes a lane. Behind the
/// last k_tile the group is empty, and still counts.
WW_DEVICE void copy(const Params& p, SharedAddress to, int tile) {
  for (int i = isa::lane_index(); tile < tiles && i < 2 * (rows + columns); i += 32) {
    const int row = i / 2, at = tile * depth + i % 2 * 8;
    const std::uint16_t* from =
        row < rows ? p.a + row * tiles * depth + at : p.b + (row - rows) * tiles * depth + at;
    isa::copy_async<16>(to + i * 16, from);
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
  float sums[rows / 16][columns / 8][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    const isa::Mark mark("k_tile %", tile);
    // The groups of the k_tiles behind this one may be missing. The broken one lets its own, too.
    isa::copy_async_wait<Broken ? Stages - 1 : Stages - 2>();
    isa::sync_warp();  // each lane has waited only for its own copies
    copy(p, base + (tile + Stages - 1) % Stages * stage_bytes, tile + Stages - 1);
    const SharedAddress at = base + tile % Stages * stage_bytes;
    std::uint32_t a[rows / 16][4], b[columns / 8][2];
    WW_UNROLL for (int i = 0; i < rows / 16; ++i) {
      isa::load_matrix(at + (i * 16 + lane % 16) * row_bytes + lane / 16 * 16, a[i]);
    }
    WW_UNROLL for (int j = 0; j < columns / 8; ++j) {
      isa::load_matrix(at + (rows + j * 8 + lane % 8) * row_bytes + lane / 8 % 2 * 16, b[j]);
    }
    isa::sync_warp();  // all have read the stage: the next step may copy into it
    WW_UNROLL for (int i = 0; i < rows / 16; ++i) {
      WW_UNROLL for (int j = 0; j < columns / 8; ++j) isa::mma_sync<mma>(sums[i][j], a[i], b[j]);
    }
  }
  WW_UNROLL for (int i = 0; i < rows / 16; ++i) {
    WW_UNROLL for (int v = 0; v < columns / 2; ++v) {
      const int row = i * 16 + lane / 4 + v % 4 / 2 * 8, column = v / 4 * 8 + lane % 4 * 2 + v % 2;
      isa::GlobalView<float>{p.d}.store(row * columns + column, sums[i][v / 4][v % 4]);
    }
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
        if (stages == 4) return either<4>(p, ask.broken);
        if (stages == 5) return either<5>(p, ask.broken);
        either<6>(p, ask.broken);
      },
      {.threads = 32, .shared_bytes = stages * stage_bytes}, ask);
}

inline constexpr Lesson lesson{
    .number = 6,
    .name = "ampere_stages",
    .title = "Ampere's stages: groups of cp.async",
    .question = "With three stages, how many groups may be missing when a k_tile is multiplied?",
    .answer =
        "One: the wait names stages - 2. Three stages hide the copies' way here, more gain little.",
    .broken = "the wait lets stages - 1 groups be missing, one of them the k_tile's own",
    .finding = Check::in_flight_access,
    .line = "load_matrix(",
    .pages = "deck 4 to 7",
    .picture = Picture::timeline,
    .run = run,
    .stages = 6,
};

}  // namespace lessons::ampere
