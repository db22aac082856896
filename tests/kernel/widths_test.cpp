// Kernels whose groups are cut evenly, against those of one width: K is added up in the same order,
// so that the bits are the same, however long the groups are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/problem.h"

namespace warpwright {
namespace {

using tests::Ask;
using tests::Instance;
using tests::Problem;
using tests::scheduled;

struct Pair {
  const char* even;
  const char* plain;
};
constexpr Pair pairs[] = {
    {"grouped_bf16_bf16_128x144_v_pp_sw_w", "grouped_bf16_bf16_128x128_v_pp"},
    {"grouped_e4m3_bf16_128x144_v_pp_sw_w", "grouped_e4m3_bf16_128x128_v_pp"},
    {"grouped_bf16_bf16_128x256_v_sw_w", "grouped_bf16_bf16_128x256_v"},
    {"grouped_e4m3_bf16_128x256_v_sw_w", "grouped_e4m3_bf16_128x256_v"},
};

bool is_built(const char* name) {
  const auto& all = tests::grouped_instances();
  return std::any_of(all.begin(), all.end(),
                     [&](const Instance& i) { return i.name == std::string(name); });
}

// D's bytes, and that they are right.
std::vector<std::byte> bytes_of(const char* kernel, const Ask& ask,
                                const device::ModelOptions& how) {
  Problem problem(tests::named(kernel), ask);
  EXPECT_EQ(problem.run(how), "") << problem.text();
  return problem.d_bytes();
}

void expect_same_bits(const Pair& pair, const std::vector<std::int64_t>& offsets, int n, int k,
                      const device::ModelOptions& how) {
  if (!is_built(pair.even) || !is_built(pair.plain)) return;
  Ask ask = tests::grouped_ask(tests::named(pair.plain), offsets, n, k);
  ask.m += 3;  // rows behind the last group
  EXPECT_TRUE(bytes_of(pair.even, ask, how) == bytes_of(pair.plain, ask, how)) << pair.even;
}

// Lengths that end at the edges of tiles and of their widths, of one to three tiles.
TEST(Widths, TheSameBitsAtEveryEdge) {
  std::size_t ran = 0;
  for (const Pair& pair : pairs) {
    if (!is_built(pair.even)) continue;
    const tile::TileWidths widths = tile_widths(tests::named(pair.even).config);
    std::vector<int> lengths;
    for (int tiles = 1; tiles <= (campaign() ? 3 : 2); ++tiles) {
      for (int i = 0; i < count(widths); ++i) {
        for (const int off : {-1, 0, 1}) lengths.push_back(tiles * widths.of[i] + off);
      }
    }
    std::vector<std::int64_t> offsets = {2};
    for (const int length : lengths) offsets.push_back(offsets.back() + length);
    expect_same_bits(pair, offsets, 24, 32, scheduled(model::Mode::latest, 1));
    ++ran;
  }
  EXPECT_GT(ran, 0U) << "this build has no kernel for it";
}

TEST(Widths, TheSameBitsOfRandomGroups) {
  constexpr unsigned seed = 20261124;
  std::printf("lengths by seed %u\n", seed);
  std::mt19937 random(seed);
  const auto draw = [&](int upto) {
    return static_cast<int>(random() % static_cast<unsigned>(upto + 1));
  };
  for (const Pair& pair : pairs) {
    for (int round = 0; round < (campaign() ? 8 : 1); ++round) {
      std::vector<std::int64_t> offsets = {draw(5)};
      for (int g = 0; g < 4; ++g) {
        offsets.push_back(offsets.back() + (draw(3) == 0 ? 0 : draw(430)));
      }
      // More k_tiles than the ring has stages, K and N with tails.
      expect_same_bits(pair, offsets, 136, 392,
                       scheduled(model::Mode::random, static_cast<std::uint64_t>(round)));
    }
  }
}

}  // namespace
}  // namespace warpwright
