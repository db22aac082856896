// Lesson 13: int4 weights and scales of blocks.
//
// The tensor core has no int4 x fp8. So codes become e4m3 in registers, where wgmma can take A from
// (deck pages 41 to 48); tokens, few, lie on N. A scale each 128 weights of a row: the sums of a
// group of four k_blocks are multiplied by it and added to the total (pages 55 to 57). The next
// group is converted while this one is multiplied: into registers of its own.
#pragma once

#include "lessons/lesson.h"

namespace lessons::int4_scales {

constexpr int rows = 64, tokens = 16, groups = 4, depth = groups * 128;
constexpr atom::OperandTile tile{tokens, 128, 8, atom::Major::k, atom::SmemSwizzle::b128};
constexpr int group_bytes = atom::tile_bytes(tile);

struct Params {
  isa::TensorMap x;            // 16 x 512 e4m3
  const std::uint32_t* codes;  // 64 x 512 of 4 bits, eight a word
  const float* scales;         // 64 x 4
  float* y;                    // 64 x 16
};
using Codes = isa::Fragment<std::uint32_t, 4>;  // of one k_block: 16 elements of e4m3

/// The thread's part of a group's weights as e4m3: a register is four neighbours of a row.
WW_DEVICE void convert(const Params& p, int group, Codes (&a)[4]) {
  const isa::Mark mark("convert %", group);
  WW_UNROLL for (int k_block = 0; k_block < 4; ++k_block) {
    WW_UNROLL for (int r = 0; r < 4; ++r) {
      const int row = atom::a_row<8>(isa::thread_index(), 4 * r);
      const int k = 128 * group + 32 * k_block + atom::a_k<8>(isa::thread_index(), 4 * r);
      const isa::GlobalView<const std::uint32_t> codes{p.codes};
      const std::uint32_t word = codes.load((row * depth + k) / 8) >> k % 8 * 4;
      const auto value = [&](int i) { return float(int(word << (28 - 4 * i)) >> 28); };
      a[k_block][r] = isa::pack_bytes<DType::e4m3>(value(0), value(1)) |
                      std::uint32_t(isa::pack_bytes<DType::e4m3>(value(2), value(3))) << 16;
    }
  }
}

template <bool Broken>
WW_DEVICE void kernel(const Params& p) {
  isa::set_role("warpgroup");
  const SharedAddress base = isa::shared_base(), bar = base + groups * group_bytes;
  if (isa::thread_index() == 0) {
    isa::mbarrier_init(bar, 1, {"tokens"}, "thread 0");
    isa::fence_mbarrier_init();
    isa::mbarrier_arrive_expect(bar, groups * group_bytes);
    for (int g = 0; g < groups; ++g) {
      isa::tensor_load(base + g * group_bytes, p.x, bar, Coords{128 * g, 0});
    }
  }
  isa::sync_threads(128);
  isa::mbarrier_wait<Scope::cta>(bar, 0, {"tokens"});

  Codes a[2][4];
  isa::Fragment<float, tokens / 2> sum[2];
  float total[tokens / 2] = {};
  const auto add = [&](int group) {  // scaling_B & add
    const isa::Mark mark("scale and add %", group);
    WW_UNROLL for (int i = 0; i < tokens / 2; ++i) {
      const int row = atom::c_row(isa::thread_index(), i);
      total[i] +=
          isa::GlobalView<const float>{p.scales}.load(row * groups + group) * sum[group % 2][i];
    }
  };
  WW_UNROLL for (int g = 0; g < groups; ++g) {
    // The broken one has one set of registers, which the group before may still be read from.
    Codes(&codes)[4] = a[Broken ? 0 : g % 2];
    convert(p, g, codes);
    isa::mark_begin("multiply %", g);
    isa::wgmma_fence(sum[g % 2], codes);
    constexpr atom::OperandTile of_b = tile;
    const std::uint64_t b = atom::encode(atom::descriptor(of_b, base + g * group_bytes));
    WW_UNROLL for (int k_block = 0; k_block < 4; ++k_block) {
      isa::wgmma_registers<DType::e4m3, tokens>(sum[g % 2], codes[k_block],
                                                atom::advance(b, 32U * k_block), k_block > 0);
    }
    isa::wgmma_commit();
    isa::mark_end();
    if (g == 0) continue;
    isa::wgmma_wait<1>(sum[1 - g % 2], a[1 - g % 2]);
    add(g - 1);
  }
  isa::wgmma_wait<0>(sum[1 - groups % 2], a[1 - groups % 2]);
  add(groups - 1);
  for (int i = 0; i < tokens / 2; ++i) {
    isa::GlobalView<float>{p.y}.store(
        atom::c_row(isa::thread_index(), i) * tokens + atom::c_col(isa::thread_index(), i),
        total[i]);
  }
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<numeric::e4m3_t> x("x", tokens * depth, Access::input);
  Buffer<std::uint32_t> codes("codes", rows * depth / 8, Access::input);
  Buffer<float> scales("scales", rows * groups, Access::input), y("y", rows * tokens);
  const auto code = [](int i) { return i % 13 - 6; };
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = numeric::e4m3_t(float(int(i % 5) - 2));
  for (std::uint32_t& word : codes) word = 0;
  for (int i = 0; i < rows * depth; ++i) codes[i / 8] |= (std::uint32_t(code(i)) & 15) << i % 8 * 4;
  for (int i = 0; i < rows * groups; ++i) scales[i] = float(1 << i % 3) / 4;
  const Params p{testing::tensor_map(x, {.rows = tokens,
                                         .columns = depth,
                                         .box_rows = tokens,
                                         .box_columns = 128,
                                         .swizzle = atom::SmemSwizzle::b128}),
                 codes.data(), scales.data(), y.data()};
  const auto wrong = [&]() -> std::string {
    for (int i = 0; i < rows * tokens; ++i) {
      const int row = i / tokens, token = i % tokens;
      float want = 0;
      for (int k = 0; k < depth; ++k) {
        want += scales[row * groups + k / 128] * float(code(row * depth + k)) *
                float(x[token * depth + k]);
      }
      if (y[i] != want) return "an element of y is wrong";
    }
    return "";
  };
  const Launch launch{.threads = 128,
                      .shared_bytes = groups * group_bytes + 8,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = wrong};
  return testing::run([&] { ask.broken ? kernel<true>(p) : kernel<false>(p); }, launch, x, codes,
                      scales, y);
}

inline constexpr Lesson lesson{
    .number = 13,
    .name = "int4_scales",
    .title = "int4 weights, scales of blocks",
    .question = "Into which registers may the next group's weights be converted?",
    .answer = "Not into those that a wgmma in flight takes A from: two sets take turns.",
    .broken = "there is one set of registers",
    .finding = Check::fragment_in_flight,
    .line = "isa::wgmma_registers<DType::e4m3",
    .pages = "deck 41 to 57",
    .picture = Picture::timeline,
    .run = run,
};

}  // namespace lessons::int4_scales
