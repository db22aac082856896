// Where the threads of the register kernels copy to and load from: every row of the table.
#include "warpwright/kernel/registers/places.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "warpwright/kernel/registers/table.h"

namespace warpwright::kernel {
namespace {

template <class Row>
void expect_fragments(const Row& row) {
  const RegisterConfig& c = row.config;
  SCOPED_TRACE(std::string(row.name));
  const atom::TiledMma mma = word_mmas(c);
  ASSERT_EQ(mma.thread_count(), 32 * tile_warps(c));
  const layout::Layout a = atom::make_tiled_copy_a(atom::ldmatrix_atom(4, 32), mma).layout_d_tv();
  const layout::Layout b = atom::make_tiled_copy_b(atom::ldmatrix_atom(4, 32), mma).layout_d_tv();
  for (int thread = 0; thread < mma.thread_count(); thread += 5) {
    for (int v = 0; v < layout::size(a, 1); ++v)
      ASSERT_EQ(a(thread, v), mma.layout_a_tv()(thread, v)) << thread << ", " << v;
    for (int v = 0; v < layout::size(b, 1); ++v)
      ASSERT_EQ(b(thread, v), mma.layout_b_tv()(thread, v)) << thread << ", " << v;
  }
}

// What ldmatrix leaves in the registers is what the MMAs take.
TEST(RegisterPlaces, LdmatrixFillsFragments) {
  int rows = 0;
  for (const auto& row : RegistersRows::rows) {
    if (is_quad_pair(row.config)) continue;
    expect_fragments(row);
    ++rows;
  }
  EXPECT_GT(rows, 20);
}

// All bytes of a stage are copied, each once.
TEST(RegisterPlaces, CopiesCoverAStage) {
  for (const auto& row : RegistersRows::rows) {
    const RegisterConfig& c = row.config;
    if (has_producer(c)) continue;
    SCOPED_TRACE(std::string(row.name));
    for (const int rows : {c.tile_m, c.tile_n}) {
      const layout::Layout places = copied_places(rows, row_bytes(c), threads(c));
      std::vector<int> seen(static_cast<std::size_t>(rows * row_bytes(c) / 16), 0);
      for (int thread = 0; thread < threads(c); ++thread) {
        for (int turn = 0; turn < layout::size(places, 1); ++turn) {
          const layout::Tuple at = layout::coordinate(places, layout::tuple(thread, turn));
          const auto byte = at.leaf[0].value * row_bytes(c) + at.leaf[1].value;
          ASSERT_EQ(byte % 16, 0);
          ++seen.at(static_cast<std::size_t>(byte / 16));
        }
      }
      for (const int count : seen) ASSERT_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace warpwright::kernel
