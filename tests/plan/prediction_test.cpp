#include "warpwright/plan/families/prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "tests/must.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/cost/calibration.h"

namespace warpwright {
namespace {

// What the model says of a 128 x 256 tile, about.
constexpr TilePhases kWideTile{1000, 1024, 1324};

Plan planned_on_h200(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto made = plan(packed_problem(m, n, k, DType::bf16, DType::bf16), *known_facts("h200"));
  EXPECT_TRUE(made);
  return *made;
}

Prediction predicted(const Plan& plan, const PredictionMachine& machine) {
  return predict(plan, kWideTile, machine, {plan.problem.m()});
}

PredictionMachine h200_numbers() {
  return prediction_machine(*known_facts("h200"));
}

TEST(Prediction, PartsAddUpAndNothingBeatsTheRoofs) {
  std::mt19937 random(20261127);
  std::uniform_int_distribution<std::int64_t> extent(1, 512);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t m = 16 * extent(random);
    const std::int64_t n = 16 * extent(random);
    const std::int64_t k = 16 * extent(random);
    SCOPED_TRACE("seed 20261127, " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                 std::to_string(k));
    const Plan p = planned_on_h200(m, n, k);
    const Prediction t = predicted(p, h200_numbers());
    EXPECT_NEAR(t.seconds, t.start + t.multiply + t.loads + t.epilogue + t.exchange,
                1e-9 * t.seconds);
    EXPECT_GE(t.seconds, p.compute_seconds() * 0.99);
    EXPECT_GE(t.seconds, p.memory_seconds());
    EXPECT_GE(t.loads, 0);
    EXPECT_LE(t.tail, t.multiply);
    EXPECT_LE(t.clock_hz, h200_numbers().clock_hz);
    // A faster unit never makes it slower.
    PredictionMachine better = h200_numbers();
    better.memory_bytes_per_second *= 2;
    better.l2_lines_per_second *= 2;
    better.port_bytes_per_clock *= 2;
    better.limit_watts *= 2;
    EXPECT_LE(predicted(p, better).seconds, 1.001 * t.seconds);
  }
}

// What the model does not time of decoding is counted: folding int4 takes more instructions than
// tables do.
TEST(Prediction, PackedWeightsTakeTheInstructionsThatDecodeThem) {
  constexpr TilePhases no_time{0, 1, 0};  // of the model's
  const auto multiply = [&](const std::string& kernel, GroupSums sums) {
    GemmProblem p = packed_grouped_problem(64, 16384, 4096, 1, DType::e4m3, DType::bf16);
    p.b.dtype = DType::s4;
    p.packed = PackedWeights{.format = {.encoding = Int4Encoding::sm}, .sums = sums};
    const auto made = must(plan(p, *known_facts("h200"), {.kernel = kernel}));
    return predict(*made, no_time, h200_numbers(), {64}).multiply;
  };
  const std::string tile = "grouped_s4xe4m3_bf16_128x64_b_sw2";
  const double folded = multiply(tile + "_fold", GroupSums::folded);
  const double table = multiply(tile + "_lut", GroupSums::table);
  const double chained = multiply(tile, GroupSums::chained);
  EXPECT_GT(folded, 1.2 * table);
  EXPECT_GT(table, 1.1 * chained);
  EXPECT_GT(chained, 32 * 400 / 2e9);  // 32 k_tiles of at least 400 clocks
}

TEST(Prediction, SaysWhatBoundsIt) {
  EXPECT_EQ(predicted(planned_on_h200(8192, 8192, 8192), h200_numbers()).limit,
            Limit::tensor_cores);
  const Plan narrow = planned_on_h200(16, 24576, 1536);
  EXPECT_EQ(predict(narrow, {1000, 100, 100}, h200_numbers(), {16}).limit, Limit::memory);
  EXPECT_EQ(predicted(planned_on_h200(16, 64, 64), h200_numbers()).limit, Limit::start);
}

TEST(Prediction, MemorySendsWhatIsNotKept) {
  // One wave reads each operand once, whatever L2 keeps.
  PredictionMachine m = h200_numbers();
  const Plan one = planned_on_h200(1024, 1024, 1024);
  const double once = moved_bytes(one.problem);
  EXPECT_NEAR(predicted(one, m).memory_bytes, once, 1e-6 * once);
  // Without L2 every wave reads anew.
  const Plan many = planned_on_h200(8192, 8192, 1024);
  m.l2_kept = 0;
  EXPECT_GT(predicted(many, m).memory_bytes, 2 * predicted(many, h200_numbers()).memory_bytes);
}

TEST(Prediction, PowerLowersTheClock) {
  const Plan p = planned_on_h200(8192, 8192, 8192);
  PredictionMachine m = h200_numbers();
  const Prediction limited = predicted(p, m);
  EXPECT_LT(limited.clock_hz, 1.65e9);
  m.limit_watts = 2000;
  EXPECT_GT(predicted(p, m).clock_hz, 1.7e9);
}

TEST(Calibration, MeasurementsAreJudged) {
  EXPECT_FALSE(measurement_fault("hbm_bytes_per_second", spread_of({4.4e12, 4.41e12, 4.39e12})));
  // One round that somebody disturbed is left out, two are not.
  EXPECT_FALSE(measurement_fault("wake_clocks", spread_of({20, 20, 20, 20, 40})));
  const auto busy = must(measurement_fault("wake_clocks", spread_of({20, 20, 20, 40, 40})));
  EXPECT_NE(busy->find("wake_clocks differ"), std::string::npos);
  EXPECT_NE(busy->find("busy"), std::string::npos);
  const auto absurd = must(measurement_fault("launch_seconds", spread_of({1, 1, 1})));
  EXPECT_NE(absurd->find("launch_seconds came out as 1"), std::string::npos);
  EXPECT_TRUE(measurement_fault("launch_seconds", spread_of({})));
  EXPECT_TRUE(measurement_fault("wgmma_shared_one", spread_of({NAN, NAN, NAN})));
  EXPECT_EQ(*measurement_fault("speed", spread_of({1})), "no machine has a number speed");
}

}  // namespace
}  // namespace warpwright
