// Pictures of masks against seed 000, of tiles against the addresses that the tensor core reads, of
// tensor memory against what fits in it.
#include <gtest/gtest.h>

#include "tests/must.h"
#include "tests/pictures/drawn.h"
#include "warpwright/atom/umma.h"
#include "warpwright/layout/error.h"
#include "warpwright/pictures/mask_picture.h"
#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/tile_picture.h"
#include "warpwright/pictures/tmem_picture.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::pictures {
namespace {

using tests::boxes;
using tests::number;
using tests::word;

// Ranks that a view's column names.
std::set<int> ranks(const View& view, const std::string& name) {
  std::set<int> all;
  for (std::size_t i = 0; i < view.table.rows.size(); ++i) {
    if (word(view, i, name) == "yes") all.insert(number(view, i, "rank"));
  }
  return all;
}

// Boxes that are not grey, in the order of the grids.
int coloured(const View& view) {
  int count = 0;
  for (const auto& [row, fills] : boxes(view.svg)) {
    for (const std::string& fill : fills) count += fill != ink::none ? 1 : 0;
  }
  return count;
}

// Seed 000, figures 2 to 5: a cluster of 4 x 4.
TEST(MaskPicture, TheSeedsCluster) {
  const Picture picture = mask_picture({4, 4}, false);
  tests::expect_sound(picture);
  ASSERT_EQ(picture.views.size(), 17U);
  const View& all = picture.views.front();
  EXPECT_EQ(all.table.rows[0],
            (std::vector<std::string>{"0", "0", "0", "0x1111", "0x000f", "0x111f", "7"}));
  EXPECT_EQ(all.table.rows[11][3], "0x8888");
  EXPECT_EQ(all.table.rows[11][4], "0x0f00");
  // Four masks of A, four of B, sixteen of commits: as many colours.
  std::set<std::string> fills;
  for (const auto& [row, of] : boxes(all.svg)) fills.insert(of[1]);
  EXPECT_EQ(fills.size(), 4U);
  const View& zero = picture.views[1];
  EXPECT_EQ(ranks(zero, "gets A"), (std::set<int>{0, 4, 8, 12}));
  EXPECT_EQ(ranks(zero, "gets B"), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(ranks(zero, "hears the commit"), (std::set<int>{0, 1, 2, 3, 4, 8, 12}));
  EXPECT_EQ(ranks(zero, "arrives"), (std::set<int>{0, 1, 2, 3, 4, 8, 12}));
  EXPECT_EQ(coloured(zero), 4 + 4 + 7 + 7);
}

// Figure 6: pairs.
TEST(MaskPicture, TheSeedsPairs) {
  const Picture picture = mask_picture({4, 4}, true, 0);
  ASSERT_EQ(picture.views.size(), 2U);
  EXPECT_EQ(picture.views[0].table.rows[0],
            (std::vector<std::string>{"0", "0", "0", "0x1111", "0x0005", "0x333f", "5"}));
  const View& zero = picture.views[1];
  EXPECT_EQ(ranks(zero, "gets B"), (std::set<int>{0, 2}));
  EXPECT_EQ(ranks(zero, "hears the commit"), (std::set<int>{0, 1, 2, 3, 4, 5, 8, 9, 12, 13}));
  EXPECT_EQ(ranks(zero, "arrives"), (std::set<int>{0, 2, 4, 8, 12}));
  EXPECT_EQ(coloured(zero), 4 + 2 + 10 + 5);
}

// Whoever arrives is counted, in every cluster.
TEST(MaskPicture, ArrivalsOfEveryCluster) {
  for (int m = 1; m <= 16; ++m) {
    for (int n = 1; m * n <= 16; ++n) {
      for (const bool pair : {false, true}) {
        if (atom::cluster_fault({m, n}, pair) != atom::ClusterFault::none) continue;
        const Picture picture = mask_picture({m, n}, pair);
        tests::expect_sound(picture);
        for (int r = 0; r < m * n; ++r) {
          EXPECT_EQ(static_cast<int>(
                        ranks(picture.views[static_cast<std::size_t>(r) + 1], "arrives").size()),
                    atom::masks({m, n}, r, pair).arrivals)
              << m << "," << n << " rank " << r << (pair ? " pair" : "");
        }
      }
    }
  }
}

std::uint32_t address_of(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

// Every chunk lies where the tensor core reads its elements through the descriptor of their
// k_block; the frames are those of one k_block; fields hold what the descriptor says.
TEST(TilePicture, LiesWhereTheTensorCoreReads) {
  using atom::Major;
  using atom::SmemSwizzle;
  const atom::OperandTile tiles[] = {{64, 64, 16, Major::k, SmemSwizzle::b128},
                                     {64, 128, 16, Major::k, SmemSwizzle::b128},
                                     {128, 64, 16, Major::mn, SmemSwizzle::b128},
                                     {64, 32, 16, Major::mn, SmemSwizzle::b64},
                                     {32, 64, 16, Major::k, SmemSwizzle::b32},
                                     {32, 32, 16, Major::k, SmemSwizzle::none},
                                     {64, 32, 16, Major::mn, SmemSwizzle::none},
                                     {64, 128, 8, Major::k, SmemSwizzle::b128},
                                     {16, 32, 32, Major::k, SmemSwizzle::b128},
                                     {64, 256, 4, Major::k, SmemSwizzle::b128},
                                     {32, 128, 4, Major::k, SmemSwizzle::b128, true},
                                     {32, 128, 6, Major::k, SmemSwizzle::b128, true}};
  for (const atom::OperandTile& tile : tiles) {
    for (int step = 0; step < atom::k_block_count(tile); ++step) {
      SCOPED_TRACE(std::to_string(tile.rows) + " x " + std::to_string(tile.depth) + " of " +
                   std::to_string(tile.element_bits) + " bits, " + atom::name(tile.swizzle) +
                   ", k_block " + std::to_string(step));
      const std::uint32_t start = 4096;
      const Picture picture = tile_picture({tile, "elements", start, step});
      tests::expect_sound(picture);
      ASSERT_EQ(picture.views.size(), 4U);
      const View& memory = picture.views[0];
      ASSERT_EQ(static_cast<int>(memory.table.rows.size()), atom::tile_bytes(tile) / 16);
      const int each = atom::k_block_elements(tile);
      for (std::size_t i = 0; i < memory.table.rows.size(); ++i) {
        const int row = number(memory, i, "row"), k = number(memory, i, "K");
        const int block = number(memory, i, "k_block");
        ASSERT_EQ(block, k / each);
        const atom::Descriptor d =
            atom::descriptor(tile, start + atom::k_block_offset(tile, block));
        const std::uint32_t at =
            atom::element_address(d, row, k % each, atom::stored_bits(tile), tile.major);
        ASSERT_EQ(address_of(word(memory, i, "address")), at / 16 * 16) << row << "," << k;
      }
      // The frames, of both grids.
      int frames = 0;
      for (std::size_t p = memory.svg.find("stroke-width"); p != std::string::npos;
           p = memory.svg.find("stroke-width", p + 1)) {
        ++frames;
      }
      EXPECT_EQ(frames, 2 * tile.rows * 32 / 16);
      const View& descriptor = picture.views[1];
      const atom::Descriptor d = atom::descriptor(tile, start + atom::k_block_offset(tile, step));
      for (std::size_t i = 0; i < descriptor.table.rows.size(); ++i) {
        const std::string field = word(descriptor, i, "field");
        const std::uint32_t value = address_of(word(descriptor, i, "value"));
        const std::map<std::string, std::uint32_t> bytes = {{"start address", d.start},
                                                            {"leading byte offset", d.leading},
                                                            {"stride byte offset", d.stride},
                                                            {"version", 16}};
        if (const auto known = bytes.find(field); known != bytes.end()) {
          EXPECT_EQ(value * 16, known->second) << field;
        } else if (field == "swizzle") {
          EXPECT_EQ(word(descriptor, i, "meaning"), atom::name(d.swizzle));
        } else {
          EXPECT_EQ(value, 0U) << field;
        }
      }
      // wgmma reads elements of 8 bits and more.
      EXPECT_EQ(descriptor.table.rows.size(), tile.element_bits >= 8 ? 12U : 7U);
      EXPECT_EQ(static_cast<int>(picture.views[2].table.rows.size()), atom::k_block_count(tile));
      expect_contains(picture.views[3].svg, "as it lies: no conflict");
    }
  }
}

// K 96 of sm_103: eight k_blocks on three spans, of which the third and the sixth lie in two.
TEST(TilePicture, LongK) {
  TileAsk ask{{64, 768, 4, atom::Major::k, atom::SmemSwizzle::b128}, "e2m1"};
  ask.long_k = true;
  for (ask.k_block = 0; ask.k_block < 8; ++ask.k_block) {
    const Picture picture = tile_picture(ask);
    tests::expect_sound(picture);
    const View& memory = picture.views[0];
    const auto all = boxes(memory.svg);
    EXPECT_EQ(all.size(), memory.table.rows.size());
    // What is framed is 48 bytes of every row, and of the K that the k_block has.
    int frames = 0;
    for (std::size_t p = memory.svg.find("<rect "); p != std::string::npos;
         p = memory.svg.find("<rect ", p + 1)) {
      const std::string box = memory.svg.substr(p, memory.svg.find('>', p) - p);
      if (box.find("stroke-width") == std::string::npos) continue;
      const auto row =
          static_cast<std::size_t>(std::atoi(box.c_str() + box.find("data-row=") + 10));
      EXPECT_EQ(number(memory, row, "k_block"), ask.k_block);
      ++frames;
    }
    EXPECT_EQ(frames, 2 * 64 * 48 / 16);
    const View& descriptor = picture.views[1];
    EXPECT_EQ(word(descriptor, 5, "value"), "0x1") << word(descriptor, 5, "field");
    EXPECT_EQ(picture.views[2].table.rows.size(), 8U);
  }
  ask.k_block = 0;
  ask.tile.depth = 512;
  EXPECT_THROW(tile_picture(ask), layout::Error);
}

// 128 bytes from line to line: all eight lines would lie in the same four banks.
TEST(TilePicture, ConflictsWithoutTheXor) {
  const atom::OperandTile tile{64, 64, 16, atom::Major::k, atom::SmemSwizzle::b128};
  const View banks = tile_picture({tile, "bf16"}).views[3];
  expect_contains(banks.svg, "without the XOR: 8 times the time");
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(word(banks, i, "banks"), std::to_string(4 * i) + "-" + std::to_string(4 * i + 3));
    EXPECT_EQ(word(banks, 8 + i, "banks"), "0-3");
  }
}

TEST(TilePicture, Refusals) {
  const atom::OperandTile tile{64, 64, 16, atom::Major::k, atom::SmemSwizzle::b128};
  EXPECT_THROW(tile_picture({tile, "bf16", 100}), layout::Error);
  EXPECT_THROW(tile_picture({tile, "bf16", 262'144 - 4096}), layout::Error);
  EXPECT_THROW(tile_picture({tile, "bf16", 0, 4}), layout::Error);
  EXPECT_THROW(tile_picture({{60, 64, 16}, "bf16"}), layout::Error);
  EXPECT_THROW(tile_picture({{256, 128, 16}, "bf16"}), layout::Error);
}

// For every kernel of sm_100: parts lie within what is allocated and apart from each other, but for
// the columns of two accumulators; every column of scales is taken by a k_block.
TEST(TmemPicture, EveryKernel) {
  int drawn = 0, overlapping = 0;
  for (const KernelFacts* kernel : all_kernels()) {
    const auto map = tensor_memory_of(kernel->name);
    EXPECT_EQ(map.has_value(), kernel->accumulators > 0) << kernel->name;
    if (!map) continue;
    SCOPED_TRACE(kernel->name);
    ++drawn;
    const Picture picture = tmem_picture(kernel->name, *map);
    tests::expect_sound(picture);
    std::vector<int> uses(512, 0);
    for (const TmemPart& part : map->parts) {
      ASSERT_LE(part.first + part.columns, map->allocated);
      for (int c = part.first; c < part.first + part.columns; ++c) {
        ++uses[static_cast<std::size_t>(c)];
      }
    }
    EXPECT_EQ(std::count(uses.begin(), uses.end(), 2), map->shared_columns);
    EXPECT_EQ(*std::max_element(uses.begin(), uses.end()), map->shared_columns > 0 ? 2 : 1);
    overlapping += map->shared_columns > 0 ? 1 : 0;
    const View& memory = picture.views.front();
    EXPECT_EQ(memory.table.rows.size(), map->parts.size() + (map->shared_columns > 0 ? 1 : 0));
    ASSERT_EQ(picture.views.size(), map->steps.empty() ? 1U : 2U);
    if (map->steps.empty()) continue;
    std::map<std::string, std::set<int>> columns;
    for (std::size_t i = 0; i < picture.views[1].table.rows.size(); ++i) {
      columns[word(picture.views[1], i, "part")].insert(number(picture.views[1], i, "column"));
    }
    for (const TmemPart& part : map->parts) {
      if (part.kind != TmemPart::Kind::scales_b || part.index > 0 || map->has_ones_b) continue;
      const std::set<int>& of_b = columns[columns.count("SFB") > 0 ? "SFB" : "SFB 0"];
      ASSERT_FALSE(of_b.empty());
      EXPECT_GE(*of_b.begin(), part.first);
      EXPECT_LT(*of_b.rbegin(), part.first + part.columns);
    }
  }
  EXPECT_GT(drawn, 20);
  EXPECT_GT(overlapping, 0);
}

}  // namespace
}  // namespace warpwright::pictures
