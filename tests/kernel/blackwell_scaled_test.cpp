// Blackwell kernels whose tensor core multiplies scales: right on the model for every format, in
// clusters, with tails, C, bias and batches, and their codes where D is quantised; a sample of
// random ones by seed here, ten thousand in script/campaign. Under many schedules and broken:
// blackwell_check_test.cpp.
#include <gtest/gtest.h>

#include "tests/campaign.h"
#include "tests/draws.h"
#include "tests/kernel/scaled.h"
#include "tests/must.h"
#include "tests/processor_time.h"
#include "warpwright/facts/micro_scale.h"

namespace warpwright::tests {
namespace {

void expect_scaled_right(const Instance& instance, const Ask& ask,
                         model::Mode mode = model::Mode::random) {
  Problem problem(instance, ask);
  EXPECT_EQ(problem.run(scheduled(mode, ask.seed)), "")
      << problem.text() << ", " << types(instance);
}

TEST(BlackwellScaled, EveryKernelIsRightOnTailsAndClusters) {
  std::vector<std::pair<Instance, Ask>> all;
  unsigned seed = 1;
  for (const Instance& i : scaled_instances()) {
    for (const atom::ClusterShape cluster : {smallest_cluster(i), {2, 1}, {2, 2}}) {
      if (!takes(i, cluster)) continue;
      const Ask ask = scaled_ask(i, {.m = 128 * cluster.m + 8,
                                     .n = 3 * tile_columns(i) + 24,
                                     .k = 2 * step_k(i) + 96,
                                     .cluster = cluster,
                                     .clusters = 2,
                                     .seed = ++seed});
      all.emplace_back(i, ask);
    }
  }
  for (const auto& [i, ask] : sampled(all, 5)) expect_scaled_right(i, ask);
}

TEST(BlackwellScaled, EveryPairOfTypesOfOneKind) {
  unsigned seed = 100;
  const Instance* kernel = nullptr;
  const std::vector<Instance> all = scaled_instances();
  for (const Instance& i : all) {
    if (i.facts->a.size() == 5 && quantisation(i) == QuantiseD::none) kernel = &i;
  }
  ASSERT_NE(kernel, nullptr) << "this build has no kernel of kind mxf8f6f4";
  for (const DType a : kernel->facts->a) {
    for (const DType b : kernel->facts->b) {
      Instance i = *kernel;
      i.a = a;
      i.b = b;
      if (numeric::bits(a) == 4 && numeric::bits(b) == 4) continue;  // those are mxf4's
      expect_scaled_right(
          i,
          scaled_ask(
              i, {.m = 136, .n = 104, .k = 160, .cluster = smallest_cluster(i), .seed = ++seed}));
    }
  }
}

TEST(BlackwellScaled, RandomProblemsBySeed) {
  const std::vector<Instance> all = scaled_instances();
  ASSERT_FALSE(all.empty());
  for (const unsigned i : sampled_seeds(10000, 800)) {
    const std::uint64_t seed = 7000 + i;
    Draws draw(seed);
    const Instance instance = with_drawn_types(all[i % all.size()], seed);
    const Ask ask = random_ask(instance, draw, 4e6);
    constexpr model::Mode modes[] = {model::Mode::eager, model::Mode::latest, model::Mode::random,
                                     model::Mode::starve};
    expect_scaled_right(instance, ask, draw.of(modes));
  }
}

// The bytes of D and of its scales are those that the host's recipe makes of the values.
TEST(BlackwellScaled, CodesHaveTheBitsOfTheRecipe) {
  int looked = 0;
  for (const Instance& i : scaled_instances()) {
    const QuantiseD way = quantisation(i);
    if (way == QuantiseD::none) continue;
    Instance wide = i;
    for (const Instance& other : scaled_instances()) {
      const bool same = micro_scale_of(other) == micro_scale_of(i) &&
                        other.facts->a == i.facts->a && other.facts->result == DType::f32;
      if (same) wide = other;
    }
    if (wide.name == i.name) continue;  // no kernel of this build stores the values
    Ask ask = scaled_ask(i, {.m = 140, .n = 160, .k = 512, .batch = 2, .seed = 31});
    ask.bias = Bias::columns;
    ask.activation = Activation::relu;
    ask.cluster = smallest_cluster(i);
    Problem codes(i, ask);
    ASSERT_EQ(codes.run(), "") << codes.text();
    ask.cluster = smallest_cluster(wide);
    Problem values(wide, ask);
    ASSERT_EQ(values.run(), "") << values.text();
    expect_recipe(way, codes, values);
    ++looked;
  }
  if (looked == 0) GTEST_SKIP() << "a build of all kernels has one that stores f32 beside it";
}

TEST(BlackwellScaled, ProductOf512IsQuickOnTheModel) {
  WW_CAMPAIGN_ONLY();
  for (const Instance& i : scaled_instances()) {
    Problem problem(
        i, scaled_ask(
               i, {.m = 512, .n = 512, .k = 512, .cluster = smallest_cluster(i), .clusters = 8}));
    const auto by = must(problem.planned());
    const double seconds = least_seconds(2, [&] {
      const auto report = must(device::launch_on_model(*by, problem.operands(), {}));
      EXPECT_TRUE(report->clean()) << report->text();
    });
    EXPECT_LT(seconds, 2.0) << i.name << ": a second on two cores";
  }
}

}  // namespace
}  // namespace warpwright::tests
