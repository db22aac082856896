// Where values lie in the epilogue's buffers.
#include "warpwright/kernel/subtile_buffer.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/index.h"
#include "tests/kernel/table.h"

namespace warpwright::tests {
namespace {

// Against the formulas: D's rows below each other, without gaps; the accumulator's are rows of D,
// or its columns where the kernel is swapped. No two values of a warp meet.
TEST(ChunkLayout, EveryValueHasItsPlace) {
  for (const Instance& i : instances()) {
    const kernel::EpilogueShape c = i.config;
    const layout::Layout d = kernel::subtile_layout(c);
    const layout::Layout accumulator = kernel::accumulator_layout(c);
    std::vector<int> taken(index(kernel::subtile_bytes(c)), 0);
    for (int lane = 0; lane < 32; ++lane) {
      for (int value = 0; value < kernel::subtile_columns(c) / 2; ++value) {
        const int row = atom::c_row(lane, value);
        const int column = atom::c_col(lane, value);
        const int place = c.swap_ab ? column * kernel::subtile_row_bytes(c) + row * result_bytes(c)
                                    : row * kernel::subtile_row_bytes(c) + column * result_bytes(c);
        ASSERT_EQ(accumulator(row, column), place) << i.name;
        ASSERT_EQ(c.swap_ab ? d(column, row) : d(row, column), place) << i.name;
        ++taken[index(place)];
      }
    }
    for (int at = 0; at < kernel::subtile_bytes(c); ++at) {
      ASSERT_EQ(taken[index(at)], at % result_bytes(c) == 0 ? 1 : 0) << i.name;
    }
  }
}

}  // namespace
}  // namespace warpwright::tests
