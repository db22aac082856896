// Plans follow a machine's description.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/must.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/families/learnt.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/tuning/times.h"

namespace warpwright {
namespace {

Plan planned(const GemmProblem& problem, const DeviceFacts& device) {
  const auto made = must(plan(problem, device));
  return *made;
}

GemmProblem dense(std::int64_t m, std::int64_t n, std::int64_t k, DType type = DType::bf16) {
  return packed_problem(m, n, k, type, type == DType::e4m3 ? DType::bf16 : type);
}

TEST(MachinePlans, AFileOfAKnownDeviceIsThatDevice) {
  for (const char* name : {"h200", "h20", "b200", "a100"}) {
    SCOPED_TRACE(name);
    const DeviceFacts known = *known_facts(name);
    const DeviceFacts read = machine_facts(parse_machine(machine_text(*known_machine(name))));
    EXPECT_EQ(read.sms, known.sms);
    EXPECT_EQ(read.l2_bytes, known.l2_bytes);
    EXPECT_EQ(read.resident_clusters, known.resident_clusters);
    EXPECT_EQ(read.shared_bytes_per_cta, known.shared_bytes_per_cta);
    for (const GemmProblem& p : {dense(4096, 4096, 4096), dense(64, 4096, 7168)}) {
      EXPECT_EQ(planned(p, read).name(), planned(p, known).name());
      EXPECT_DOUBLE_EQ(planned(p, read).cost, planned(p, known).cost);
    }
  }
}

// An H20's tensor cores take more than four times as long: products that an H200 waits for memory
// with are bounded by them there.
TEST(MachinePlans, SlowTensorCoresMakeProductsLonger) {
  const DeviceFacts h20 = *known_facts("h20");
  const DeviceFacts h200 = *known_facts("h200");
  const Plan slow = planned(dense(4096, 4096, 4096), h20);
  const Plan fast = planned(dense(4096, 4096, 4096), h200);
  EXPECT_GT(slow.cost, 4 * fast.cost);
  EXPECT_LT(slow.cost, 9 * fast.cost);
  EXPECT_NEAR(slow.cost, slow.compute_seconds(), 0.25 * slow.cost);
  EXPECT_NE(slow.name(), fast.name());
}

// Whoever is taken, its cost is its learnt time, and hardly any other's is less: floors that are
// not among the least are not looked at. What differs by 1% is told apart by what it depends on.
TEST(MachinePlans, HopperTakesTheLeastLearntTime) {
  constexpr unsigned seed = 20261130;
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> extent(1, 300);
  double over = 0;
  int chose_otherwise = 0;
  constexpr int products = 90;
  for (int i = 0; i < products; ++i) {
    const std::string name = i % 2 == 0 ? "h200" : "h100";
    const DeviceFacts device = *known_facts(name);
    const DType type = i % 4 < 2 ? DType::bf16 : DType::e4m3;
    const std::int64_t m = extent(random);
    const std::int64_t n = 16 * extent(random);
    const std::int64_t k = 16 * extent(random);
    const GemmProblem p =
        i % 3 == 0 ? packed_grouped_problem(m, n, k, 8, type, DType::bf16) : dense(m, n, k, type);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + name + ", " + shape_text(p));
    const auto all = must(candidates(p, device));
    const Plan made = planned(p, device);
    EXPECT_EQ(configuration_text(made), configuration_text(all->front()));
    for (const Plan& each : *all) EXPECT_NEAR(each.cost, *learnt_seconds(each), 1e-9 * each.cost);
    const auto by_floor = std::min_element(
        all->begin(), all->end(),
        [](const Plan& x, const Plan& y) { return floor_of(x)->seconds < floor_of(y)->seconds; });
    chose_otherwise += by_floor == all->begin() ? 0 : 1;
    const auto least = std::min_element(
        all->begin(), all->end(), [](const Plan& x, const Plan& y) { return x.cost < y.cost; });
    over += made.cost / least->cost - 1;
  }
  EXPECT_LT(over / products, 0.01);
  EXPECT_GT(chose_otherwise, products / 4);
}

// 8192^3 as an H200 took it by kernels of mma.sync (docs/log/registers.md).
TEST(MachinePlans, RegisterKernelsAsMeasured) {
  struct Row {
    const char* kernel;
    double measured_us;
  };
  for (const Row& row : {Row{"registers_bf16_bf16_128x128", 2569},
                         Row{"registers_bf16_bf16_128x128_tma_pp", 2502}}) {
    const auto made = must(
        plan(dense(8192, 8192, 8192), *known_facts("h200"), {.kernel = std::string(row.kernel)}));
    EXPECT_NEAR(made->cost * 1e6, row.measured_us, 0.06 * row.measured_us) << row.kernel;
  }
}

double least_floor(const GemmProblem& p, const DeviceFacts& device) {
  double least = std::numeric_limits<double>::infinity();
  const auto all = must(candidates(p, device));
  for (const Plan& each : *all) least = std::min(least, floor_of(each)->seconds);
  return least;
}

// Whatever a device has more of, no plan is said to take longer: on Hopper no floor, and no learnt
// time, but for what its steps make of it.
TEST(MachinePlans, FasterUnitsTakeNoLonger) {
  struct Change {
    const char* device;
    double MachineNumbers::*number;
  };
  using N = MachineNumbers;
  for (const Change& change :
       {Change{"h100", &N::hbm_bytes_per_second}, Change{"h100", &N::l2_bytes_per_second},
        Change{"h100", &N::l2_requests_per_second}, Change{"h100", &N::loaded_clock_hz},
        Change{"b200", &N::clock_hz}, Change{"b200", &N::tma_bytes_per_clock},
        Change{"a100", &N::loaded_clock_hz}, Change{"a100", &N::shared_bytes_per_clock},
        Change{"rtx5090", &N::hbm_bytes_per_second}}) {
    const MachineNumbers& known = *known_machine(change.device);
    MachineNumbers better = known;
    better.*change.number *= 1.3;
    if (change.number == &N::loaded_clock_hz) better.clock_hz *= 1.3;
    if (better.clock_hz > known.clock_hz) better.working_clock_hz *= 1.3;
    for (const GemmProblem& p :
         {dense(4096, 4096, 4096), dense(48, 4096, 7168), dense(512, 512, 512)}) {
      if (known.architecture == 90) {
        EXPECT_LE(least_floor(p, machine_facts(better)),
                  1.0001 * least_floor(p, machine_facts(known)))
            << change.device;
      }
      EXPECT_LE(planned(p, machine_facts(better)).cost,
                (known.architecture == 90 ? 1.01 : 1.0001) * planned(p, machine_facts(known)).cost)
          << change.device;
    }
  }
}

TEST(MachinePlans, ADeviceThatIsHereKeepsItsOwnSize) {
  DeviceFacts here = *known_facts("h100");
  here.name = "cuda:0 some card";
  here.sms = 114;
  const DeviceFacts with = with_numbers(here, *known_machine("h20"));
  EXPECT_EQ(with.sms, 114);
  EXPECT_EQ(with.name, here.name);
  EXPECT_DOUBLE_EQ(with.memory_bytes_per_second, 3.7e12);
  EXPECT_EQ(numbers_of(with).name, "h20");
  EXPECT_EQ(numbers_of(model_facts(8, 80)).name, "a100");
}

}  // namespace
}  // namespace warpwright
