// Lesson 5: Volta's quad pairs.
//
// mma.m8n8k4 is a product of eight threads: QP0 is lanes 0 to 3 and 16 to 19, QP1 lanes 4 to 7 and
// 20 to 23, ... A warp does four of them at a time. As 2 x 2 quad pairs they make one product of
// 16 x 16 x 4: QP0 and QP1 share rows of one operand, QP0 and QP2 of the other (note 003). Which
// element is whose comes from the atom's layouts, (thread, value) -> element, not from a table.
#pragma once

#include <warpwright/atom/mma.h>
#include <warpwright/isa/mma.h>

#include "lessons/lesson.h"

namespace lessons::quad_pairs {

constexpr atom::Mma mma{.kind = atom::MmaKind::quad_pair, .m = 8, .n = 8, .k = 4};

/// The quad pair of a lane, and the lane's place in it. The broken one takes eight lanes in a row.
template <bool Broken>
constexpr int pair_of(int lane) {
  return Broken ? lane / 8 : lane % 16 / 4;
}
template <bool Broken>
constexpr int place_of(int lane) {
  return Broken ? lane % 8 : lane % 4 + lane / 16 * 4;
}

inline constexpr layout::Layout of_a = atom::mma_layout_a(mma), of_b = atom::mma_layout_b(mma),
                                of_c = atom::mma_layout_c(mma);

/// For the thread at `place` of a quad pair value `value`: an element of the 8 rows of an operand
/// or of the sums, row and column (i + 8 * j in the layouts).
struct Element {
  int row, column;
};
template <layout::Layout Of>
constexpr Element element(int place, int value) {
  const int at = int(layout::offset_of<Of>(place, value));
  return {at % 8, at / 8};
}
/// One warp: D[16 x 16] = A[16 x 4] * B[16 x 4]^T, f16 operands as bits.
template <bool Broken>
WW_DEVICE void kernel(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  const int pair = pair_of<Broken>(isa::lane_index()), place = place_of<Broken>(isa::lane_index());
  const int rows = pair / 2 * 8, columns = pair % 2 * 8;  // quad pairs as (2,2):(2,1)
  std::uint32_t words_a[2] = {}, words_b[2] = {};
  for (int v = 0; v < 4; ++v) {
    const auto load = [&](const std::uint16_t* from, int first, Element e) {
      return std::uint32_t(
                 isa::GlobalView<const std::uint16_t>{from}.load((first + e.row) * 4 + e.column))
             << 16 * (v % 2);
    };
    words_a[v / 2] |= load(a, rows, element<of_a>(place, v));
    words_b[v / 2] |= load(b, columns, element<of_b>(place, v));
  }
  float sums[8] = {};
  isa::mma_sync<mma>(sums, words_a, words_b);
  for (int v = 0; v < 8; ++v) {
    const Element e = element<of_c>(place, v);
    isa::GlobalView<float>{d}.store((rows + e.row) * 16 + columns + e.column, sums[v]);
  }
}

inline testing::Outcome run(const Ask& ask) {
  Product<numeric::fp16_t> p(16, 16, 4);
  const auto bits = [](auto& of) { return reinterpret_cast<const std::uint16_t*>(of.data()); };
  return p.run(
      [&] {
        if (ask.broken) return kernel<true>(bits(p.a), bits(p.b), p.d.data());
        kernel<false>(bits(p.a), bits(p.b), p.d.data());
      },
      {.threads = 32}, ask);
}

/// Which lane holds each element of D, coloured by quad pair.
template <bool Broken>
Cells holders(const char* title) {
  const auto holder = [](int row, int column) {
    for (int lane = 0; lane < 32; ++lane) {
      const int pair = pair_of<Broken>(lane);
      for (int v = 0; v < 8; ++v) {
        const Element e = element<of_c>(place_of<Broken>(lane), v);
        if (pair / 2 * 8 + e.row == row && pair % 2 * 8 + e.column == column) return lane;
      }
    }
    return -1;
  };
  const auto pair = [=](int r, int c) { return pair_of<Broken>(holder(r, c)); };
  const auto word = [=](int r, int c) {
    return "q" + std::to_string(pair(r, c)) + " T" + std::to_string(holder(r, c));
  };
  return {title, 16, 16, word, pair};
}

inline std::vector<Cells> cells() {
  return {holders<false>(
      "D of 2 x 2 quad pairs: which of them (q), and which thread (T), has an element")};
}

inline constexpr Lesson lesson{
    .number = 5,
    .name = "quad_pairs",
    .title = "Volta's quad pairs",
    .question = "Which eight lanes multiply together?",
    .answer = "Lanes 4q to 4q + 3 and 16 more: T0 to T3 and T16 to T19 are quad pair 0.",
    .broken = "eight lanes in a row are taken for a quad pair",
    .finding = Check::wrong_result,
    .line = "",
    .pages = "note 003",
    .picture = Picture::cells,
    .run = run,
    .cells = cells,
};

}  // namespace lessons::quad_pairs
