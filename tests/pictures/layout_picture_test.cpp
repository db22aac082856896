// Pictures of layouts against the layouts themselves, as the algebra computes them.
#include "warpwright/pictures/layout_picture.h"

#include <gtest/gtest.h>

#include "tests/draws.h"
#include "tests/must.h"
#include "tests/pictures/drawn.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::pictures {
namespace {

using layout::Layout;
using tests::boxes;
using tests::number;
using tests::word;

// The only colour of a row's box.
std::string colour(const View& view, std::size_t row) {
  const auto all = boxes(view.svg);
  const auto at = all.find(row);
  if (at == all.end() || at->second.size() != 1) {
    ADD_FAILURE() << "row " << row << " has not one box";
    return "";
  }
  return at->second.front();
}

Layout random_layout(::warpwright::tests::Draws& draw) {
  constexpr int extents[] = {1, 2, 3, 4, 5, 8};
  std::string shape, stride;
  for (int m = 0; m < draw(1, 3); ++m) {
    const bool nested = draw.rarely(2);
    const auto tree = [&](bool shape_of) {
      const auto leaf = [&] { return std::to_string(shape_of ? draw.of(extents) : draw(0, 40)); };
      return nested ? "(" + leaf() + "," + leaf() + ")" : leaf();
    };
    shape += (m > 0 ? "," : "") + tree(true);
    stride += (m > 0 ? "," : "") + tree(false);
  }
  return layout::parse_layout("(" + shape + "):(" + stride + ")");
}

TEST(LayoutPicture, EveryElementHasItsOffset) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ::warpwright::tests::Draws draw(seed);
    const Layout l = random_layout(draw);
    if (layout::size(l) > kMostCells) continue;
    LayoutAsk ask;
    ask.layout = layout::to_text(l);
    const Picture picture = layout_picture(ask);
    tests::expect_sound(picture);
    const View& view = picture.views.front();
    ASSERT_EQ(static_cast<std::int64_t>(view.table.rows.size()), layout::size(l));
    EXPECT_EQ(boxes(view.svg).size(), view.table.rows.size());
    for (std::size_t i = 0; i < view.table.rows.size(); ++i) {
      ASSERT_EQ(number(view, i, "offset"), l(static_cast<std::int64_t>(i)));
      ASSERT_EQ(l(layout::parse_tuple(word(view, i, "coordinate"))), number(view, i, "offset"));
    }
  }
}

// In the 128B swizzle of bf16 the eight rows of a column of chunks lie in all 32 banks.
TEST(LayoutPicture, BanksOfASwizzle) {
  LayoutAsk ask;
  ask.layout = "Sw<3,3,3> o 0 o (8,64):(64,1)";
  ask.colour = LayoutColour::banks;
  const View view = layout_picture(ask).views.front();
  std::set<int> banks;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::string c = word(view, i, "coordinate");
    EXPECT_EQ(number(view, i, "bank"), number(view, i, "offset") * 2 / 4 % 32);
    banks.insert(number(view, i, "bank"));
  }
  EXPECT_EQ(banks.size(), 32U);
  ask.layout = "(8,64):(64,1)";
  const View straight = layout_picture(ask).views.front();
  for (std::size_t row = 0; row < 8; ++row) EXPECT_EQ(number(straight, row, "bank"), 0);
}

// CuTe's layout of C of m16n8: T0 has (0,0), (0,1), (8,0), (8,1).
TEST(LayoutPicture, HoldersOfATile) {
  LayoutAsk ask;
  ask.layout = "((4,8),(2,2)):((32,1),(16,8))";
  ask.colour = LayoutColour::threads;
  ask.tile_rows = 16;
  ask.tile_columns = 8;
  const View view = layout_picture(ask).views.front();
  ASSERT_EQ(view.table.rows.size(), 128U);
  const auto has = [&](const char* thread, const char* value, const char* row, const char* col) {
    return std::find(view.table.rows.begin(), view.table.rows.end(),
                     std::vector<std::string>{thread, value, row, col}) != view.table.rows.end();
  };
  EXPECT_TRUE(has("0", "0", "0", "0") && has("0", "1", "0", "1"));
  EXPECT_TRUE(has("0", "2", "8", "0") && has("0", "3", "8", "1"));
  EXPECT_TRUE(has("31", "3", "15", "7"));
  EXPECT_EQ(boxes(view.svg).size(), 128U);
}

// A picked element has the colour of what picks it.
TEST(LayoutPicture, Composition) {
  LayoutAsk ask;
  ask.layout = "(6,2):(8,2)";
  ask.operation = "composition";
  ask.with = "(4,3):(3,1)";
  const View view = layout_picture(ask).views.front();
  const Layout b = layout::parse_layout(ask.with);
  ASSERT_EQ(view.table.rows.size(), 36U);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto picked = static_cast<std::size_t>(b(static_cast<std::int64_t>(i)));
    EXPECT_EQ(colour(view, 12 + i), colour(view, picked)) << i;
    EXPECT_EQ(colour(view, 24 + i), colour(view, picked)) << i;
    EXPECT_EQ(number(view, 24 + i, "offset"), number(view, picked, "offset"));
  }
}

// The same offsets have the same tile on both sides, and every tile has as many.
TEST(LayoutPicture, Divisions) {
  for (const char* operation : {"logical_divide", "zipped_divide", "tiled_divide"}) {
    SCOPED_TRACE(operation);
    const View view =
        layout_picture({.layout = "(6,8):(8,1)", .operation = operation, .with = "<3:1,4:2>"})
            .views.front();
    ASSERT_EQ(view.table.rows.size(), 96U);
    std::map<int, std::string> tile_of, colour_of;
    std::map<std::string, int> count;
    for (std::size_t i = 0; i < 48; ++i) {
      tile_of[number(view, i, "offset")] = word(view, i, "tile");
      colour_of[number(view, i, "offset")] = colour(view, i);
      ++count[word(view, i, "tile")];
    }
    EXPECT_EQ(count.size(), 4U);
    for (const auto& [tile, times] : count) EXPECT_EQ(times, 12) << tile;
    for (std::size_t i = 48; i < 96; ++i) {
      EXPECT_EQ(tile_of[number(view, i, "offset")], word(view, i, "tile"));
      EXPECT_EQ(colour_of[number(view, i, "offset")], colour(view, i));
    }
  }
}

// Tiles that hang over the edge: what is inside is told from it, and keeps its tile.
TEST(LayoutPicture, TilesThatHangOver) {
  const View view =
      layout_picture({.layout = "(8,16):(1,8)", .operation = "logical_divide", .with = "<3:1,5:1>"})
          .views.front();
  ASSERT_EQ(view.table.rows.size(), 128U + 9 * 20);
  for (std::size_t i = 0; i < 128; ++i) {
    const int tile = static_cast<int>(i % 8 / 3 + i / 8 / 5 * 3);
    EXPECT_EQ(number(view, i, "tile"), tile) << i;
  }
  int inside = 0;
  for (std::size_t i = 0; i < 180; ++i) {
    const std::size_t m = i % 9, n = i / 9;
    const std::string tile = word(view, 128 + i, "tile");
    EXPECT_EQ(tile.empty(), m >= 8 || n >= 16);
    if (tile.empty()) continue;
    ++inside;
    EXPECT_EQ(std::atoi(tile.c_str()), static_cast<int>(m / 3 + n / 5 * 3));
  }
  EXPECT_EQ(inside, 128);
}

// A TiledCopy: each element is read once and written once.
TEST(LayoutPicture, TiledCopies) {
  LayoutAsk ask;
  ask.layout = "make_tiled_copy(make_copy_atom(SM75_U32x4_LDSM_N, 16), (4,8), (8,2))";
  const Picture picture = layout_picture(ask);
  tests::expect_sound(picture);
  ASSERT_EQ(picture.views.size(), 2U);
  for (const View& view : picture.views) {
    std::set<std::pair<int, int>> elements;
    for (std::size_t i = 0; i < view.table.rows.size(); ++i) {
      elements.insert({number(view, i, "row"), number(view, i, "column")});
    }
    EXPECT_EQ(elements.size(), 512U) << view.title;
    EXPECT_EQ(boxes(view.svg).size(), 512U);
  }
}

TEST(LayoutPicture, CopiesOfAProduct) {
  for (const char* operation : {"logical_product", "blocked_product", "raked_product"}) {
    SCOPED_TRACE(operation);
    const View view =
        layout_picture({.layout = "(2,2):(1,2)", .operation = operation, .with = "(3,4):(4,1)"})
            .views.front();
    ASSERT_EQ(view.table.rows.size(), 4U + 12 + 48);
    std::map<std::string, std::set<int>> copies;
    for (std::size_t i = 16; i < 64; ++i) {
      copies[word(view, i, "copy")].insert(number(view, i, "offset"));
    }
    ASSERT_EQ(copies.size(), 12U);
    // A is compact, so copy c is the four offsets from 4 c on.
    for (const auto& [copy, offsets] : copies) {
      EXPECT_EQ(offsets.size(), 4U);
      EXPECT_EQ(*offsets.begin(), 4 * std::atoi(copy.c_str()));
      EXPECT_EQ(*offsets.rbegin(), 4 * std::atoi(copy.c_str()) + 3);
    }
  }
}

TEST(LayoutPicture, Refusals) {
  const auto refusal = [](const LayoutAsk& ask) {
    try {
      layout_picture(ask);
    } catch (const layout::Error& e) {
      return std::string(e.what());
    }
    return std::string("drawn");
  };
  LayoutAsk ask;
  ask.layout = "(65,64)";
  EXPECT_EQ(refusal(ask), "a picture of 4160 cells is too large to read; the most is 4096.");
  ask.layout = "<3:1,4:1>";
  expect_contains(refusal(ask), "no layout");
  ask.layout = "(2,2)";
  ask.operation = "logical_product";
  ask.with = "<2:1,2:1>";
  expect_contains(refusal(ask), "cuts mode by mode");
}

}  // namespace
}  // namespace warpwright::pictures
