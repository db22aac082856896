// Counts that are kept of kernels, and clocks by them.
#include "warpwright/plan/cost/kernel_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright {
namespace {

// A kernel whose k_tile is bound by its port or its tensor core, and whose tiles take 100 clocks
// more.
KernelWork made_up() {
  KernelWork work;
  const CostKey byte{CostKind::tma_byte};
  const CostKey clock{CostKind::clock};
  const CostKey mma = wgmma_key(256, false, true);
  work.k_tile = {{{byte, 32768}}, {{mma, 4}}};
  work.shallow_tile = {{{clock, 100}, {byte, 8 * 32768}}, {{clock, 100}, {mma, 32}}};
  work.deep_tile = {{{clock, 100}, {byte, 32 * 32768}}, {{clock, 100}, {mma, 128}}};
  work.run = {{{clock, 600}, {byte, 8 * 32768}}, {{clock, 600}, {mma, 32}}};
  for (auto* ways : {&work.k_tile, &work.shallow_tile, &work.deep_tile, &work.run}) {
    for (CostCounts& way : *ways) std::sort(way.begin(), way.end());
  }
  work.all_of_k_tile = {{byte, 32768}, {mma, 4}};
  return work;
}

TEST(KernelWork, AMachineTakesTheLongestWay) {
  MachineNumbers machine = *known_machine("h200");
  const TilePhases port = phases_of(made_up(), Costs(machine), 16);
  EXPECT_NEAR(port.k_tile, 32768 / Costs(machine).tma_rate, 1e-6);
  EXPECT_NEAR(port.between, 100, 1e-6);
  EXPECT_NEAR(port.first, 500, 1e-6);
  for (auto& [n, clocks] : machine.wgmma_shared_more.points) clocks *= 8;
  const TilePhases tensor = phases_of(made_up(), Costs(machine), 16);
  EXPECT_NEAR(tensor.k_tile, 4 * machine.wgmma_shared_more.at(256), 1e-6);
  EXPECT_NEAR(tensor.between, 100, 1e-6);
}

TEST(KernelWork, TextsAreReadAsTheyAreWritten) {
  const KernelWork work = made_up();
  const std::string text = work_text("a_kernel", work);
  EXPECT_EQ(text.substr(0, 9), "a_kernel\n");
  const KernelWork read = parse_work(text);
  EXPECT_EQ(work_text("a_kernel", read), text);
  EXPECT_EQ(read.k_tile, work.k_tile);
  EXPECT_THROW(parse_work(" k_tile\tno_such_cost 3\n"), std::invalid_argument);
  EXPECT_THROW(parse_work(" some part\tclock 3\n"), std::invalid_argument);
}

TEST(KernelWork, CostsHaveNames) {
  for (const char* name :
       {"clock", "tma_byte", "wgmma_256", "wgmma_64_rs_turns", "umma_128", "umma_256_pair_k96",
        "mma_m16n8k16_bf16_f32", "mma_latency_m16n8k64_e2m1_f32_scaled", "wake", "tmem_register"}) {
    EXPECT_EQ(cost_name(cost_key(name)), name);
  }
  for (const char* name : {"", "clocks", "wgmma_", "mma_m16n8k16", "umma_x"}) {
    EXPECT_THROW(cost_key(name), std::invalid_argument) << name;
  }
}

// Something is kept for every kernel that a command line can ask for, with all of its parts.
TEST(KernelWork, IsKeptOfAllKernels) {
  for (const KernelFacts* kernel : all_kernels()) {
    const KernelWork* const work = kept_work(kernel->name);
    ASSERT_NE(work, nullptr) << kernel->name << ": script/counts.py makes it";
    EXPECT_FALSE(work->run.empty() || work->k_tile.empty()) << kernel->name;
    EXPECT_FALSE(work->shallow_tile.empty() || work->deep_tile.empty()) << kernel->name;
    const int architecture = kernel->architectures.empty() ? 90 : kernel->architectures.front();
    const TilePhases phases = phases_of(*work, Costs(machine_of_architecture(architecture)), 16);
    EXPECT_GT(phases.k_tile, 0) << kernel->name;
    EXPECT_GE(phases.first, 0) << kernel->name;
    EXPECT_GT(phases.between + 16 * phases.k_tile, 0) << kernel->name;
  }
  EXPECT_EQ(kept_work("no_such_kernel"), nullptr);
}

TEST(KernelWork, ClocksAreOfAMachinesNumbers) {
  const KernelWork* const work = kept_work("blackwell_f16_bf16_one_clc");
  ASSERT_NE(work, nullptr);
  const MachineNumbers& known = *known_machine("b200");
  MachineNumbers other = known;
  other.l2_bytes_per_second /= 3;
  EXPECT_GT(phases_of(*work, Costs(other), 16).k_tile,
            1.5 * phases_of(*work, Costs(known), 16).k_tile);
}

}  // namespace
}  // namespace warpwright
