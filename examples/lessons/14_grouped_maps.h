// Lesson 14: a grouped product, with tensor maps made on the device.
//
// The tokens of all experts lie in one matrix, group behind group, and a group may begin at any row
// and have any number of them, also none (note 004). A map of its own for each group ends where the
// group ends, so that a box reads zeros behind it and not its neighbour. Here the CTA of a group
// makes it: copies the host's map to shared memory, replaces address and extent, publishes it in
// global memory. TMA reads maps by a proxy of its own: what is released must also be acquired.
#pragma once

#include <warpwright/isa/tensor_map.h>

#include "lessons/lesson.h"

namespace lessons::grouped_maps {

constexpr int groups = 4, inner = 64, outer = 64;
constexpr int starts[groups + 1] = {0, 5, 5, 45, 61};  // tokens of a group: 5, 0, 40, 16
constexpr int all_tokens = starts[groups];
constexpr int at_map = 2 * tile_bytes, at_bar = at_map + 128, threads = 128;

struct Params {
  isa::TensorMap x;      // 61 x 64 bf16, of all groups: the template
  isa::TensorMap w;      // 4 * 64 x 64
  const bf16_t* tokens;  // x's memory
  isa::TensorMap* maps;  // one a group
  float* y;              // 61 x 64
  int starts[groups + 1];
};

/// One warp: the map of group `g`, in shared memory first, which the instructions ask for.
WW_DEVICE void make_map(const Params& p, int g, SharedAddress map) {
  const int lane = isa::lane_index();
  {
    const isa::Mark mark("map: copy the host's");
    if (lane < 16) isa::SharedView<std::uint64_t>{map}.store(lane, p.x.opaque[lane]);
    isa::sync_warp();
  }
  if (lane == 0) {
    const isa::Mark mark("map: replace address and extent");
    isa::tensormap_replace_global_address(map, p.tokens + p.starts[g] * inner);
    isa::tensormap_replace_global_dim<1>(map, std::uint32_t(p.starts[g + 1] - p.starts[g]));
  }
  isa::sync_warp();
  const isa::Mark mark("release map");
  isa::tensormap_cp_fenceproxy(p.maps + g, map);  // copies and releases
  isa::sync_warp();
}

template <bool Broken>
WW_DEVICE void kernel(const Params& p) {
  const SharedAddress base = isa::shared_base(), bar = base + at_bar;
  const int g = isa::cta_index(), tokens = p.starts[g + 1] - p.starts[g];
  isa::set_role("CTA");
  if (tokens == 0) return;
  if (isa::warp_index() == 0) {
    make_map(p, g, base + at_map);
    if (isa::elect_one()) {
      isa::mbarrier_init(bar, 1, {"bar"}, "thread 0");
      isa::fence_mbarrier_init();
      // The broken one trusts that who made the map also sees it.
      {
        const isa::Mark mark("acquire map");
        if constexpr (!Broken) isa::fence_proxy_tensormap_acquire(p.maps[g]);
      }
      isa::mbarrier_arrive_expect(bar, 2 * tile_bytes);  // rows behind the group count, as zeros
      isa::tensor_load(base, p.maps[g], bar, Coords{0, 0});  // row 0 is the group's
      isa::tensor_load(base + tile_bytes, p.w, bar, Coords{0, outer * g});
    }
  }
  isa::sync_threads(threads);
  isa::mbarrier_wait<Scope::cta>(bar, 0, {"bar"});
  isa::Fragment<float, 32> sum;
  multiply_tile(sum, base, base + tile_bytes, false);
  isa::wgmma_wait<0>(sum);
  const isa::GlobalView<float> y{p.y};
  for (int i = 0; i < 32; ++i) {
    const int row = atom::c_row(isa::thread_index(), i);
    if (row >= tokens) continue;
    y.store((p.starts[g] + row) * outer + atom::c_col(isa::thread_index(), i), sum[i]);
  }
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<bf16_t> x("x", all_tokens * inner, Access::input);
  Buffer<bf16_t> w("w", groups * outer * inner, Access::input);
  Buffer<isa::TensorMap> maps("maps", groups);
  Buffer<float> y("y", all_tokens * outer);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_t(float(int(i % 7) - 3));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = bf16_t(float(int(i % 11) - 5));
  const auto map = [](Buffer<bf16_t>& of, int rows) {
    return testing::tensor_map(of, {.rows = rows,
                                    .columns = inner,
                                    .box_rows = 64,
                                    .box_columns = 64,
                                    .swizzle = atom::SmemSwizzle::b128});
  };
  Params p{map(x, all_tokens), map(w, groups * outer), x.data(), maps.data(),
           y.data(),           {0, 5, 5, 45, 61}};
  const auto wrong = [&]() -> std::string {
    for (int g = 0; g < groups; ++g) {
      for (int i = starts[g] * outer; i < starts[g + 1] * outer; ++i) {
        float want = 0;
        for (int k = 0; k < inner; ++k) {
          want += float(x[i / outer * inner + k]) * float(w[(g * outer + i % outer) * inner + k]);
        }
        if (y[i] != want) return "an element of y is wrong";
      }
    }
    return "";
  };
  const Launch launch{.ctas = groups,
                      .threads = threads,
                      .shared_bytes = at_bar + 8,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = wrong};
  return testing::run([&] { ask.broken ? kernel<true>(p) : kernel<false>(p); }, launch, x, w, maps,
                      y);
}

inline constexpr Lesson lesson{
    .number = 14,
    .name = "grouped_maps",
    .title = "A grouped product, its maps made on the device",
    .question = "The CTA has written the map itself. May TMA read it at once?",
    .answer =
        "No: TMA reads maps through a proxy of its own, which must acquire what was released.",
    .broken = "nobody acquires the map",
    .finding = Check::tensor_map_changed,
    .line = "isa::tensor_load(base, p.maps[g]",
    .pages = "note 004",
    .picture = Picture::timeline,
    .run = run,
};

}  // namespace lessons::grouped_maps
