// The kernels that quantise and put scales in order, on the model or on a GPU: the very bits of the
// host, and nothing beside them written.
#pragma once

#include <gtest/gtest.h>

#include "tests/must.h"
#include "tests/run/quantised.h"

namespace warpwright::tests {

/// For `count` problems from a seed on. `quantise(problem)` leaves in the problem's own memory what
/// the kernels made of what is there.
template <class Quantise>
void expect_bits_of_the_host(ScaleSize size, std::uint32_t first, int count,
                             std::uint32_t most_rows, const Quantise& quantise) {
  for (std::uint32_t seed = first; seed < first + static_cast<std::uint32_t>(count); ++seed) {
    Quantised host(seed, size, most_rows);
    Quantised there = host;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + host.text());
    must_do(quantise_on_host(host.here()));
    quantise(there);
    ASSERT_EQ(there.codes, host.codes);
    ASSERT_EQ(there.scales, host.scales);
    ASSERT_EQ(std::memcmp(&there.tensor, &host.tensor, sizeof host.tensor), 0);
    if (testing::Test::HasFailure()) return;
  }
}

/// The same of scales put into tiles, and back. `reorder(problem, order)`.
template <class Reorder>
void expect_order_of_the_host(std::uint32_t first, int count, std::uint32_t most_rows,
                              const Reorder& reorder) {
  for (std::uint32_t seed = first; seed < first + static_cast<std::uint32_t>(count); ++seed) {
    Reordered host(seed, most_rows);
    Reordered there = host;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + host.text());
    for (const ScaleOrder to : {ScaleOrder::tiles, ScaleOrder::rows}) {
      if (to == ScaleOrder::rows && !host.goes_back()) break;
      must_do(reorder_scales_on_host(
          host.at(to, host.plain.data(), host.tiles.data(), host.offset_data())));
      reorder(there, to);
      ASSERT_EQ(there.tiles, host.tiles);
      ASSERT_EQ(there.plain, host.plain);
      // On the way back every byte of the rows is to be written.
      std::fill(host.plain.begin(), host.plain.end(), std::byte{0x77});
      there.plain = host.plain;
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace warpwright::tests
