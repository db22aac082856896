// Pictures of MMAs against seed 003's quad pairs, the deck's pages 24 and 48 to 54, and for every
// instruction against its layouts.
#include "warpwright/pictures/mma_picture.h"

#include <gtest/gtest.h>

#include "tests/pictures/drawn.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::pictures {
namespace {

using atom::Mma;
using atom::MmaKind;
using atom::TiledMma;
using tests::boxes;
using tests::number;
using tests::word;

// "4-7" as its first number and how many there are.
std::pair<int, int> range_of(const std::string& text) {
  const int first = std::atoi(text.c_str());
  const auto dash = text.find('-');
  return {first, dash == std::string::npos ? 1 : std::atoi(text.c_str() + dash + 1) - first + 1};
}

// (row, column) of an operand -> thread and value of its cell.
std::map<std::pair<int, int>, std::pair<int, int>> holders(const View& view, const char* operand) {
  std::map<std::pair<int, int>, std::pair<int, int>> all;
  for (std::size_t i = 0; i < view.table.rows.size(); ++i) {
    if (word(view, i, "operand") != operand) continue;
    const int row = number(view, i, "row");
    const auto [column, count] = range_of(word(view, i, "column"));
    const int thread = std::atoi(word(view, i, "thread").c_str() + 1);
    const auto [value, values] = range_of(word(view, i, "value").substr(1));
    EXPECT_EQ(values, count);
    for (int c = 0; c < count; ++c) all[{row, column + c}] = {thread, value + c};
  }
  return all;
}

bool is_of_quad_pair(int thread, int pair) {
  return thread / 4 == pair || thread / 4 == pair + 4;
}

// Seed 003: quad pair 0 is threads 0 to 3 and 16 to 19, and one MMA's result stays in it.
TEST(MmaPicture, AQuadPair) {
  const Picture picture = mma_picture(atom::make_tiled_mma(atom::parse_mma("mma", "m8n8k4")));
  tests::expect_sound(picture);
  const View& view = picture.views.front();
  for (const char* operand : {"A", "B", "C"}) {
    const auto all = holders(view, operand);
    EXPECT_EQ(all.size(), operand[0] == 'C' ? 64U : 32U);
    std::set<int> threads;
    for (const auto& [at, holder] : all) threads.insert(holder.first);
    EXPECT_EQ(threads, (std::set<int>{0, 1, 2, 3, 16, 17, 18, 19}));
  }
  EXPECT_EQ(holders(view, "A").at({0, 0}), std::pair(0, 0));
  EXPECT_EQ(holders(view, "A").at({4, 0}), std::pair(16, 0));
  EXPECT_EQ(holders(view, "C").at({0, 0}), std::pair(0, 0));
  EXPECT_EQ(holders(view, "C").at({2, 0}), std::pair(0, 2));
}

// Seed 003's 2 x 2 with strides (2,1): rows of A by quad pairs 0 and 2, columns of B by 0 and 1,
// the result over the whole warp, a quad pair a quarter.
TEST(MmaPicture, FourQuadPairs) {
  const TiledMma mma =
      atom::make_tiled_mma(atom::parse_mma("mma", "m8n8k4"), layout::parse_layout("(2,2):(2,1)"));
  const View view = mma_picture(mma).views.front();
  for (const auto& [at, holder] : holders(view, "A")) {
    EXPECT_TRUE(is_of_quad_pair(holder.first, at.first < 8 ? 0 : 2)) << holder.first;
  }
  for (const auto& [at, holder] : holders(view, "B")) {
    EXPECT_TRUE(is_of_quad_pair(holder.first, at.first < 8 ? 0 : 1)) << holder.first;
  }
  std::set<int> threads;
  const auto c = holders(view, "C");
  ASSERT_EQ(c.size(), 256U);
  for (const auto& [at, holder] : c) {
    EXPECT_TRUE(is_of_quad_pair(holder.first, at.first / 8 * 2 + at.second / 8)) << holder.first;
    threads.insert(holder.first);
  }
  EXPECT_EQ(threads.size(), 32U);
  // What a quad pair reads, the one beside it reads too.
  EXPECT_EQ(word(view, 0, "all holders"), "T0V0, T4V0");
}

// The deck's pages 48 to 54: m64n16k32 of fp8 with A in registers. A thread's values of A are
// ((4,2,2)): four along K, eight rows below, sixteen further along K; for C ((2,2,2)): two columns,
// eight rows below, eight columns further. A warp has 16 rows.
TEST(MmaPicture, TheDecksWgmma) {
  Mma one = atom::parse_mma("wgmma_rs", "m64n16k32");
  one.a = one.b = DType::e4m3;
  const View view = mma_picture(atom::make_tiled_mma(one)).views.front();
  const auto a = holders(view, "A");
  ASSERT_EQ(a.size(), 64U * 32);
  const auto c = holders(view, "C");
  ASSERT_EQ(c.size(), 64U * 16);
  for (int t = 0; t < 128; ++t) {
    const int row = t / 32 * 16 + t % 32 / 4;
    for (int v = 0; v < 16; ++v) {
      const std::pair at(row + 8 * (v / 4 % 2), 4 * (t % 4) + v % 4 + 16 * (v / 8));
      ASSERT_EQ(a.at(at), std::pair(t, v));
    }
    for (int v = 0; v < 8; ++v) {
      const std::pair at(row + 8 * (v / 2 % 2), 2 * (t % 4) + v % 2 + 8 * (v / 4));
      ASSERT_EQ(c.at(at), std::pair(t, v));
    }
  }
}

// Page 24's m64n128k16: both operands in shared memory, C in part, and the rest with --at.
TEST(MmaPicture, PartsOfALargeTile) {
  const TiledMma mma = atom::make_tiled_mma(atom::parse_mma("wgmma", "m64n128k16"));
  std::map<std::pair<int, int>, std::pair<int, int>> all;
  for (int n = 0; n < 128; n += 32) {
    const Picture picture = mma_picture(mma, MmaColour::values, {0, n, 0});
    tests::expect_sound(picture);
    const auto part = holders(picture.views.front(), "C");
    EXPECT_EQ(part.size(), 64U * 32);
    EXPECT_EQ(part.begin()->first, std::pair(0, n));
    all.insert(part.begin(), part.end());
  }
  const layout::Layout c = mma.layout_c_tv();
  ASSERT_EQ(all.size(), 64U * 128);
  for (const auto& [at, holder] : all) {
    ASSERT_EQ(c(holder.first, holder.second), at.first + 64 * at.second);
  }
  EXPECT_THROW(mma_picture(mma, MmaColour::threads, {0, 128, 0}), layout::Error);
  EXPECT_THROW(mma_picture(mma, MmaColour::threads, {-1, 0, 0}), layout::Error);
}

// Every instruction in registers, by itself and tiled: each element of A, B and C has a cell, and
// the layouts give the same element for its thread and value.
TEST(MmaPicture, EveryRegisterMma) {
  for (const atom::MmaRow& row : atom::kMmaRows) {
    Mma one;
    one.kind = row.kind;
    one.m = row.m;
    one.n = row.n;
    one.k = row.k;
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto type = static_cast<DType>(i);
      if ((row.operands & atom::detail::types(type)) != 0) one.a = one.b = type;
      if ((row.sums & atom::detail::types(type)) != 0) one.sums = type;
    }
    one.scale_block = row.scale_block;
    one.scale = row.scale;
    ASSERT_EQ(atom::mma_refusal(one), "");
    for (const char* threads : {"(1,1)", "(2,2):(2,1)", "(1,2)"}) {
      SCOPED_TRACE(atom::to_text(one) + " " + threads);
      const TiledMma mma = atom::make_tiled_mma(one, layout::parse_layout(threads));
      const Picture picture = mma_picture(mma);
      tests::expect_sound(picture);
      ASSERT_EQ(picture.views.size(), row.scale_block > 0 ? 2U : 1U);
      const View& view = picture.views.front();
      const auto check = [&](const char* operand, int rows, int columns, auto part) {
        const auto all = holders(view, operand);
        const std::int64_t height = mma.tile_size(rows), width = mma.tile_size(columns);
        ASSERT_EQ(static_cast<std::int64_t>(all.size()),
                  height * std::min<std::int64_t>(width, 64));
        const auto tile = layout::make_layout(layout::tuple(height, width));
        for (const auto& [at, holder] : all) {
          const layout::Slice share = part(mma.get_slice(holder.first), tile);
          ASSERT_EQ(share.offset + share.layout(holder.second), at.first + height * at.second);
        }
      };
      check("A", 0, 2, [](const auto& s, const auto& t) { return s.partition_a(t); });
      check("B", 1, 2, [](const auto& s, const auto& t) { return s.partition_b(t); });
      check("C", 0, 1, [](const auto& s, const auto& t) { return s.partition_c(t); });
    }
  }
}

// Where D's blocks lie, element by element, and the scales of each k_block.
TEST(MmaPicture, Tcgen05) {
  const struct {
    const char *kind, *shape;
  } all[] = {{"tcgen05", "m128n256k16"},
             {"tcgen05", "m64n64k16"},
             {"tcgen05", "m128n24k32"},
             {"tcgen05_pair", "m256n256k16"},
             {"tcgen05_pair", "m128n256k32"},
             {"tcgen05 mxf4nvf4", "m128n128k64"},
             {"tcgen05_pair mxf8f6f4", "m128n128k32"},
             {"tcgen05_pair mxf4nvf4", "m256n256k96"}};
  for (const auto& [kind, shape] : all) {
    SCOPED_TRACE(std::string(kind) + " " + shape);
    const Mma one = atom::parse_mma(kind, shape);
    ASSERT_EQ(atom::mma_refusal(one), "");
    const atom::UmmaAtom atom = atom::umma_of(one);
    const Picture picture = mma_picture(atom::make_tiled_mma(one));
    tests::expect_sound(picture);
    const View& view = picture.views.front();
    int elements = 0;
    for (std::size_t i = 0; i < view.table.rows.size(); ++i) {
      if (word(view, i, "operand") != "D") continue;
      const auto [row, rows] = range_of(word(view, i, "rows"));
      const auto [column, columns] = range_of(word(view, i, "columns"));
      const int share = atom::umma_cta_rows(atom);
      for (int r = row; r < row + rows; ++r) {
        for (int c = column; c < column + columns; ++c) {
          const atom::TmemCell cell = atom::umma_cell(atom, r % share, c);
          const atom::TmemCell first = atom::umma_cell(atom, row % share, column);
          ASSERT_EQ(r / share, number(view, i, "CTA"));
          ASSERT_EQ(cell.lane, first.lane + r - row);
          ASSERT_EQ(cell.column, first.column + c - column);
          const std::string place = "lanes " + std::to_string(first.lane) + "-";
          ASSERT_TRUE(word(view, i, "place").starts_with(place)) << word(view, i, "place");
          ++elements;
        }
      }
    }
    EXPECT_EQ(elements, atom.m * atom.n);
    if (one.scale_block == 0) continue;
    const View& scales = picture.views.back();
    int taken = 0;
    for (std::size_t i = 0; i < scales.table.rows.size(); ++i) {
      const bool of_b = word(scales, i, "scales") == "SFB";
      const atom::ScaleStep step = atom::scale_step(atom, number(scales, i, "k_block"));
      EXPECT_EQ(number(scales, i, "id"), step.id);
      const auto [scale, count] = range_of(word(scales, i, "K"));
      for (int s = scale; s < scale + count; ++s) {
        const int in_step = s - number(scales, i, "k_block") * atom::umma_scales(atom);
        const int row = number(scales, i, "row");
        const atom::ScaleCell at = of_b ? atom::scale_cell_b(atom, step.id, row, in_step)
                                        : atom::scale_cell_a(atom, step.id, row, in_step);
        ASSERT_EQ(at.lane, number(scales, i, "lane"));
        ASSERT_EQ(at.column + (of_b ? step.column_b : step.column_a), number(scales, i, "column"));
        ASSERT_EQ(at.byte, range_of(word(scales, i, "byte")).first + s - scale);
        ++taken;
      }
    }
    int steps = 1;
    while (atom::scale_step(atom, steps).id != 0) ++steps;
    EXPECT_EQ(taken, steps * atom::umma_scales(atom) *
                         (atom::scale_rows_a(atom) + atom::scale_rows_b(atom)));
  }
}

}  // namespace
}  // namespace warpwright::pictures
