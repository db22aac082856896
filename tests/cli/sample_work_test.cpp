// Counts of kernels, as the model makes them, and what they say of other machines.
#include "cli/commands/predict/sample_work.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "cli/commands/predict/sample.h"
#include "tests/campaign.h"
#include "tests/draws.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::cli {
namespace {

const KernelFacts& kernel_named(const std::string& name) {
  if (const KernelFacts* const kernel = find_kernel(name)) return *kernel;
  throw std::invalid_argument(name);
}

std::shared_ptr<const MachineNumbers> shared(const MachineNumbers& machine) {
  return {std::shared_ptr<const void>(), &machine};
}

// What is on the way to a run's end takes as long as the run, and until its last store is complete:
// nothing is left out or counted twice.
TEST(SampleWork, TheWayToTheEndTakesAllOfTheTime) {
  for (const char* name : {"hopper_bf16_bf16_128x128_pp", "hopper_e4m3_bf16_128x192_pr",
                           "registers_bf16_bf16_128x128", "blackwell_f16_bf16_pair_clc"}) {
    const KernelFacts& kernel = kernel_named(name);
    const auto [options, plan] = sampled_product(kernel);
    const MachineNumbers& machine = machine_of_architecture(kernel.architecture);
    Work work;
    const double clocks =
        sample_run(options, plan, least_rounds(kernel), 6, shared(machine), &work);
    const double way = Costs(machine).clocks(work.path);
    EXPECT_GE(way, 0.995 * clocks) << name;
    EXPECT_LE(way, 1.005 * clocks + machine.tma_store_done_clocks + 50) << name;
    EXPECT_GT(Costs(machine).clocks(work.all), clocks) << name;
  }
}

// Counts times a machine are what the model takes on that machine, for another depth and number of
// tiles than were counted.
TEST(SampleWork, CountsTimesAMachineAreTheModelsClocks) {
  const unsigned seed = tests::run_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  struct Case {
    const char* kernel;
    std::vector<const char*> machines;
  };
  for (const Case& each :
       {Case{"hopper_bf16_bf16_128x256", {"h200", "h100", "h20"}},
        Case{"hopper_e4m3_bf16_64x128", {"h200", "h20"}},
        Case{"registers_bf16_bf16_128x128", {"a100", "l40s", "rtx3090", "rtx5090"}},
        Case{"blackwell_f16_bf16_one_clc", {"b200", "b300"}}}) {
    const KernelFacts& kernel = kernel_named(each.kernel);
    const KernelWork* const work = kept_work(each.kernel);
    ASSERT_NE(work, nullptr) << each.kernel;
    const auto [options, plan] = sampled_product(kernel);
    const auto tiles = least_rounds(kernel) * (1 + static_cast<std::int64_t>(random() % 2));
    const auto k_tiles = 8 + static_cast<std::int64_t>(random() % 24);
    for (const char* name : each.machines) {
      const MachineNumbers& machine = *known_machine(name);
      const double model = sample_run(options, plan, tiles, k_tiles, shared(machine), nullptr);
      const auto k = static_cast<double>(k_tiles);
      const TilePhases phases = phases_of(*work, Costs(machine), k);
      const double counted =
          phases.first + static_cast<double>(tiles) * (phases.between + k * phases.k_tile);
      EXPECT_NEAR(counted, model, 0.06 * model + machine.tma_store_done_clocks + 50)
          << each.kernel << " on " << name << ", " << tiles << " tiles of " << k_tiles;
    }
  }
}

// What kernel_work.tar.xz keeps is what the kernels do today: one of them, another every time.
TEST(SampleWork, IsKeptAsItIsToday) {
  const unsigned seed = tests::run_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<const KernelFacts*> kernels;
  for (const KernelFacts* kernel : all_kernels()) {
    if (kernel->built && kept_work(kernel->name) != nullptr) kernels.push_back(kernel);
  }
  ASSERT_FALSE(kernels.empty());
  for (int i = 0; i < (campaign() ? 12 : 1); ++i) {
    const KernelFacts& kernel = *kernels[random() % kernels.size()];
    SCOPED_TRACE(kernel.name + " (script/counts.py makes it anew)");
    const KernelWork& kept = *kept_work(kernel.name);
    const KernelWork made = parse_work(work_text(kernel.name, sample_work(kernel)));
    EXPECT_EQ(made.all_of_k_tile, kept.all_of_k_tile);
    EXPECT_EQ(made.all_of_tile, kept.all_of_tile);
    for (const MachineNumbers& machine : known_machines()) {
      if (machine.architecture / 10 != kernel.architecture / 10) continue;
      const TilePhases now = phases_of(made, Costs(machine), 16);
      const TilePhases then = phases_of(kept, Costs(machine), 16);
      EXPECT_NEAR(now.k_tile, then.k_tile, 0.03 * then.k_tile) << machine.name;
      EXPECT_NEAR(now.between + 16 * now.k_tile, then.between + 16 * then.k_tile,
                  0.03 * (then.between + 16 * then.k_tile))
          << machine.name;
    }
  }
}

}  // namespace
}  // namespace warpwright::cli
