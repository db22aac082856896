// The sort of slots by expert on the model, against a stable sort of the host.
#include "warpwright/kernel/moe/sort_slots.h"

#include <gtest/gtest.h>

#include "tests/campaign.h"
#include "tests/kernel/slots.h"
#include "tests/model/mutants.h"
#include "tests/must.h"

namespace warpwright::tests {
namespace {

// Sorts on the model and compares; the shape may be another than the usual.
struct Sorted {
  std::vector<std::int32_t> offsets, slots, rows;
  std::uint32_t status = 0;
};
model::Report sort_on_model(const Routing& r, const model::Options& how, Sorted& to,
                            const SortShape& shape = {}) {
  kernel::SortSlotsParams p =
      device::sort_slots_params(r.sort_into(to.offsets, to.slots, to.rows, to.status));
  reshape(p, shape);
  return run_sort(r, p, 4, {}, how);
}

void expect_sorted(const Routing& r, const Sorted& got) {
  EXPECT_EQ(got.offsets, r.offsets);
  EXPECT_EQ(got.slots, r.slots);  // and nothing behind
  EXPECT_EQ(got.rows, r.rows);
  EXPECT_EQ(got.status, r.status);
}

void expect_sorts(const Draw& draw, std::uint64_t seed, const model::Options& how = {},
                  const SortShape& shape = {}) {
  SCOPED_TRACE("tokens " + std::to_string(draw.tokens) + ", top-k " + std::to_string(draw.top_k) +
               ", experts " + std::to_string(draw.experts) + ", seed " + std::to_string(seed));
  const Routing r = route(draw, seed);
  Sorted got;
  must_be_clean(sort_on_model(r, how, got, shape));
  expect_sorted(r, got);
}

TEST(SortSlots, TheHostSortsStably) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Routing r = route({.tokens = 37,
                             .top_k = 3,
                             .experts = 5,
                             .first_expert = 2,
                             .experts_total = 9,
                             .wide = seed % 2 == 0,
                             .extra_pitch = static_cast<int>(seed % 3),
                             .left_out_percent = 5,
                             .strange_percent = static_cast<int>(seed % 4)},
                            seed);
    SCOPED_TRACE(seed);
    const std::vector<std::int32_t> want = sorted_slots(r);
    ASSERT_EQ(r.offsets.back(), static_cast<std::int32_t>(want.size()));
    EXPECT_TRUE(std::equal(want.begin(), want.end(), r.slots.begin()));
    for (std::size_t row = 0; row < want.size(); ++row) {
      EXPECT_EQ(r.rows[index(want[row])], static_cast<std::int32_t>(row));
    }
  }
}

TEST(SortSlots, AnyRouting) {
  const std::uint64_t seed = 20261;
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int i = 0; i < 12; ++i) {
    expect_sorts(any_draw(random, 0), seed + static_cast<std::uint64_t>(i));
  }
}

TEST(SortSlots, Edges) {
  expect_sorts({.tokens = 0, .top_k = 8, .experts = 3}, 1);
  expect_sorts({.tokens = 1, .top_k = 1, .experts = 1}, 2);
  expect_sorts({.tokens = 9, .top_k = 2, .experts = 1024}, 3);
  expect_sorts({.tokens = 33, .top_k = 1, .experts = 4, .left_out_percent = 100}, 4);
  expect_sorts({.tokens = 40, .top_k = 1, .experts = 4, .strange_percent = 100}, 5);
  expect_sorts({.tokens = 300, .top_k = 4, .experts = 16}, 6);
}

TEST(SortSlots, WarpsOfSeveralSteps) {
  expect_sorts({.tokens = 380, .top_k = 1, .experts = 12, .left_out_percent = 3}, 7, {},
               {.warps = 3, .cluster = 1});
  expect_sorts({.tokens = 250, .top_k = 1, .experts = 5, .hot_percent = 50}, 8, {},
               {.warps = 2, .cluster = 1});
}

TEST(SortSlots, InAClusterOfAFewWarps) {
  for (const int cluster : {2, 8}) {
    expect_sorts({.tokens = 70, .top_k = 3, .experts = 9, .strange_percent = 1}, 9, {},
                 {.warps = 2, .cluster = cluster});
    expect_sorts({.tokens = 500, .top_k = 1, .experts = 40}, 10, {},
                 {.warps = 2, .cluster = cluster});
  }
  // Most CTAs have no slot.
  expect_sorts({.tokens = 3, .top_k = 1, .experts = 2}, 11, {}, {.warps = 1, .cluster = 8});
}

// Three launches; parts of one piece and of several, the last of which are short.
TEST(SortSlots, InParts) {
  expect_sorts({.tokens = 300, .top_k = 1, .experts = 9, .strange_percent = 2}, 17, {},
               {.warps = 2, .cluster = 2, .parts = 3, .steps = 2});
  expect_sorts({.tokens = 211, .top_k = 5, .experts = 30, .extra_pitch = 2, .left_out_percent = 9},
               18, {}, {.warps = 2, .cluster = 8, .parts = 19, .steps = 1});
  expect_sorts({.tokens = 600, .top_k = 2, .experts = 5, .hot_percent = 60}, 19, {},
               {.warps = 1, .cluster = 2, .parts = 4, .steps = 3});
  expect_sorts({.tokens = 800, .top_k = 1, .experts = 11, .wide = true, .left_out_percent = 100},
               20, {}, {.warps = 2, .cluster = 2, .parts = 2, .steps = 4});
}

TEST(SortSlots, ManySlotsAreSortedInParts) {
  kernel::SortSlotsParams p;
  p.top_k = 8;
  for (const int tokens : {1, 64, 512, 513, 4096, 4097, 8193, 65537, 100000, 131072, 1 << 27}) {
    SCOPED_TRACE(tokens);
    p.tokens = tokens;
    kernel::SortSlotsKernel::shape(p);
    EXPECT_EQ(kernel::SortSlotsKernel::launches(p), tokens > 4096 ? 3 : 1);
    const std::int64_t slots = std::int64_t{8} * tokens;
    const std::int64_t at_once = std::int64_t{32} * p.warps * p.steps * p.cluster;
    EXPECT_TRUE(p.parts > 1 || at_once >= slots);
    // Parts differ by 32 slots, and one is cut short by up to 31: they hold any counts.
    if (p.parts > 1) {
      EXPECT_GE(slots / 32 / p.parts * 32 - 32, kernel::sort_slots_stride(1024));
    }
  }
}

TEST(SortSlots, InItsOwnCluster) {
  expect_sorts({.tokens = 1025, .top_k = 4, .experts = 130, .left_out_percent = 1}, 12);
}

TEST(SortSlots, IsCleanInManySchedules) {
  const Draw draw{.tokens = 50, .top_k = 2, .experts = 5, .strange_percent = 2};
  for (const model::Options& how : model::schedules()) {
    SCOPED_TRACE(model::text(how));
    expect_sorts(draw, 13, how, {.warps = 2, .cluster = 1});
    expect_sorts(draw, 14, how, {.warps = 2, .cluster = 2});
    expect_sorts(draw, 14, how, {.warps = 1, .cluster = 2, .parts = 2, .steps = 1});
  }
}

// For a CTA, for a cluster, for parts: all in a campaign, some here.
TEST(SortSlots, AThousandSchedules) {
  std::vector<std::uint64_t> seeds(1000);
  std::iota(seeds.begin(), seeds.end(), 1000);
  const Draw draw{.tokens = 120, .top_k = 2, .experts = 5, .left_out_percent = 5};
  for (const std::uint64_t seed : sampled(seeds, 25)) {
    for (const SortShape& shape :
         {SortShape{.warps = 2, .cluster = 1}, SortShape{.warps = 2, .cluster = 2},
          SortShape{.warps = 2, .cluster = 2, .parts = 3, .steps = 1}}) {
      expect_sorts(draw, seed, model::random_schedule(seed), shape);
      model::Options starving = model::random_schedule(seed);
      starving.mode = model::Mode::starve;
      expect_sorts(draw, seed, starving, shape);
    }
  }
}

// A statement broken is told by the model, or by what comes out; or it orders the same.
void expect_mutants_found(const Draw& draw, std::uint64_t seed, const SortShape& shape, int least) {
  const Routing r = route(draw, seed);
  Sorted to;
  model::Options counting;
  counting.count_sites = true;
  const auto sites = sort_on_model(r, counting, to, shape).sites;
  int found = 0;
  for (const model::Mutation& m : model::mutations(sites)) {
    SCOPED_TRACE(model::text(m) + ", " + std::string(m.how()));
    std::vector<model::Options> all = model::schedules();
    for (std::uint64_t i = 100; i < 120; ++i) all.push_back(model::random_schedule(i));
    const bool killed = std::any_of(all.begin(), all.end(), [&](model::Options how) {
      how.mutation = m;
      Sorted got;
      return !sort_on_model(r, how, got, shape).clean() || got.offsets != r.offsets ||
             got.slots != r.slots || got.rows != r.rows || got.status != r.status;
    });
    found += killed ? 1 : 0;
    const bool same =
        !killed && std::all_of(all.begin(), all.begin() + 10, [&](model::Options how) {
          how.hash_order = true;
          Sorted got;
          const std::uint64_t unbroken = sort_on_model(r, how, got, shape).order_hash;
          how.mutation = m;
          return sort_on_model(r, how, got, shape).order_hash == unbroken;
        });
    EXPECT_TRUE(killed || same);
  }
  EXPECT_GE(found, least);
}

TEST(SortSlots, MutantsOfOneCtaAreKilled) {
  expect_mutants_found({.tokens = 120, .top_k = 2, .experts = 5}, 15, {.warps = 2, .cluster = 1},
                       20);
}

TEST(SortSlots, MutantsOfAClusterAreKilled) {
  expect_mutants_found({.tokens = 120, .top_k = 2, .experts = 5}, 16, {.warps = 2, .cluster = 2},
                       30);
}

TEST(SortSlots, MutantsOfPartsAreKilled) {
  expect_mutants_found({.tokens = 120, .top_k = 2, .experts = 5}, 21,
                       {.warps = 2, .cluster = 2, .parts = 2, .steps = 1}, 34);
}

}  // namespace
}  // namespace warpwright::tests
