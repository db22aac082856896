// The layouts that pages 49 to 54 of the deck print for a W4A8 tile (128 weights x 16 tokens, K
// 128, 19 stages, m64n16k32 with A from registers), through the algebra; and what the packed form
// keeps of them.
#include <gtest/gtest.h>

#include "warpwright/atom/wgmma.h"
#include "warpwright/facts/packed_places.h"
#include "warpwright/layout/text.h"

namespace warpwright::packed {
namespace {

using layout::Layout;
using layout::make_layout;
using layout::parse_layout;
using layout::tuple;

// As the deck prints them, without CuTe's underscores.
const Layout kWeights = parse_layout("((8,16),(128,1),(1,19)):((128,1024),(1,0),(0,16384))");
const Layout kTokens = parse_layout("((8,2),(128,1),(1,19)):((128,1024),(1,0),(0,2048))");
const Layout kWeightsOfThread =
    parse_layout("((4,2,2),1,(2,2),1,19):((1,1024,16),0,(32,64),0,16384)");
const Layout kRegistersOfA = parse_layout("((4,2,2),1,(2,2)):((1,4,8),0,(16,32))");
const Layout kAccumulators = parse_layout("((2,2,2),1,1):((1,2,4),0,0)");

TEST(DeckTest, TilesInSharedMemory) {
  // Pages 49 and 50: rows of 128 bytes in atoms of eight, repeated down the tile and over stages.
  const Layout atom = make_layout(tuple(8, 128), tuple(128, 1));
  EXPECT_EQ(layout::tile_to_shape(atom, tuple(128, 128, 19)), kWeights)
      << layout::to_text(layout::tile_to_shape(atom, tuple(128, 128, 19)));
  EXPECT_EQ(layout::tile_to_shape(atom, tuple(16, 128, 19)), kTokens);
}

TEST(DeckTest, AThreadsPartOfTheWeights) {
  // Page 52: of a thread's values 4 lie along K, 2 are eight rows apart, 2 are 16 of K apart; four
  // steps of 32 along K follow. Where thread 0's lie in the tile is wgmma's map of A after the
  // tile's layout.
  for (int stage = 0; stage < 19; ++stage) {
    for (int step = 0; step < 4; ++step) {
      for (int value = 0; value < 16; ++value) {
        const std::int64_t in_tile =
            kWeights(atom::a_row<8>(0, value), 32 * step + atom::a_k<8>(0, value), stage);
        EXPECT_EQ(kWeightsOfThread(value, 0, step, 0, stage), in_tile);
        EXPECT_EQ(kRegistersOfA(value, 0, step), 16 * step + value);
      }
    }
  }
}

TEST(DeckTest, AccumulatorsOfAThread) {
  // Page 54: 64 x 16 over 128 threads; pairs along N, rows eight apart, then the next 8 columns.
  for (int value = 0; value < 8; ++value) {
    EXPECT_EQ(kAccumulators(value, 0, 0), value);
    EXPECT_EQ(atom::c_col(0, value), value % 2 + value / 4 * 8);
    EXPECT_EQ(atom::c_row(0, value), value / 2 % 2 * 8);
  }
}

// The packed tile is the same picture with four bits where the deck has a byte: a thread's
// registers of a step are its words, and 16 bytes of a thread are two steps.
TEST(DeckTest, PackedTileKeepsTheRegisters) {
  for (int thread = 0; thread < 128; ++thread) {
    for (int step = 0; step < 4; ++step) {
      for (int value = 0; value < 16; ++value) {
        const int place = layout::offset_of<kNibbles>(atom::a_row<8>(thread, value),
                                                      32 * step + atom::a_k<8>(thread, value));
        const int word = lane_begin(step / 2, thread) / 4 + step % 2 * 2 + value / 8;
        EXPECT_EQ(place / 8, word);
        EXPECT_EQ(place % 8, value % 4 * 2 + value / 4 % 2);
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::packed
