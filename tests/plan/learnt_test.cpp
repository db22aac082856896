// Floors, and what was learnt of measured times beside them.
#include "warpwright/plan/families/learnt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/own_folder.h"
#include "tests/plan/recorded_choices.h"
#include "warpwright/plan/families/floor.h"

namespace warpwright {
namespace {

constexpr std::array two_names = {"width", "height"};

std::string head(const std::string& version = "1") {
  return "warpwright-correction " + version + "\nfeatures width height\n";
}

TEST(Correction, AddsUpTheLeavesThatItsFeaturesLeadTo) {
  const auto made = Correction::parse(head() +
                                          "held-out 1x2x3 4x5x6\ntimes 7 of a card\n"
                                          "tree 0:2 =0.5 1:-1 =-0.25 =1\ntree =0.125\n",
                                      two_names);
  ASSERT_TRUE(made) << made.reason();
  EXPECT_EQ(made->trees(), 2U);
  EXPECT_EQ(made->held_out(), (std::vector<std::string>{"1x2x3", "4x5x6"}));
  EXPECT_DOUBLE_EQ(made->factor(std::array{2.0, 9.0}), std::exp(0.625));
  EXPECT_DOUBLE_EQ(made->factor(std::array{2.5, -1.0}), std::exp(-0.125));
  EXPECT_DOUBLE_EQ(made->factor(std::array{2.5, 0.0}), std::exp(1.125));
}

TEST(Correction, RefusesWhatIsNoneByLineAndWord) {
  const auto why = [](const std::string& text) {
    const auto made = Correction::parse(text, two_names);
    return made ? std::string() : made.reason();
  };
  EXPECT_EQ(why(""), "line 0 of the correction: it has no tree");
  EXPECT_EQ(why(head()), "line 2 of the correction: it has no tree");
  EXPECT_EQ(why("features width height\n"),
            "line 1 of the correction: it does not begin with warpwright-correction 1");
  EXPECT_EQ(why(head("2")), "line 1 of the correction: its version is \"2\", not 1");
  EXPECT_EQ(why("warpwright-correction 1\nfeatures width height depth\n"),
            "line 2 of the correction: \"depth\" is none of the features");
  EXPECT_EQ(why("warpwright-correction 1\ntree =1\n"),
            "line 2 of the correction: \"tree\" is none of its lines");
  EXPECT_EQ(why(head() + "bush =1\n"), "line 3 of the correction: \"bush\" is none of its lines");
  for (const char* word : {"=", "=x", "=1e9", "=inf", "=nan"}) {
    EXPECT_EQ(why(head() + "tree " + word + "\n"),
              "line 3 of the correction: \"" + std::string(word) + "\" is no leaf of a tree");
  }
  for (const char* word : {"1", "2:1", "-1:1", "0.5:1", "x:1", "0:", "0:x", "0:inf"}) {
    EXPECT_EQ(why(head() + "tree " + word + " =1 =2\n"),
              "line 3 of the correction: \"" + std::string(word) + "\" is no question of a tree");
  }
  EXPECT_EQ(why(head() + "tree 0:1 =1\n"),
            "line 3 of the correction: \"\" is no question of a tree");
  EXPECT_EQ(why(head() + "tree =1 =2\n"), "line 3 of the correction: words follow a tree");
  EXPECT_EQ(
      why(head() + "tree \x1b" + std::string(100, 'x') + " =1 =2\n"),
      "line 3 of the correction: \"?" + std::string(39, 'x') + "...\" is no question of a tree");
}

TEST(Correction, AsksForAnyFeaturesInAnyOrder) {
  const auto factor = [](const std::string& features) {
    const auto made = Correction::parse(
        "warpwright-correction 1\nfeatures " + features + "\ntree 0:2 =0.5 =-0.5\n", two_names);
    return made ? std::log(made->factor(std::array{2.0, 9.0})) : 0;
  };
  EXPECT_DOUBLE_EQ(factor("width height"), 0.5);
  EXPECT_DOUBLE_EQ(factor("height width"), -0.5);
  EXPECT_DOUBLE_EQ(factor("width"), 0.5);
  EXPECT_DOUBLE_EQ(factor("height"), -0.5);
}

TEST(Correction, RefusesTreesThatNoTimesMake) {
  const auto why = [](const std::string& trees) {
    const auto made = Correction::parse(head() + trees, two_names);
    return made ? std::string() : made.reason();
  };
  std::string deep;
  for (int i = 0; i < 1000000; ++i) deep += "0:1 ";
  EXPECT_EQ(why("tree " + deep + "=1\n"),
            "line 3 of the correction: a tree asks more than 64 questions in a row");
  EXPECT_EQ(why("tree =6\ntree =4\n"), "");
  EXPECT_EQ(why("tree =6\ntree 0:1 =-5 =1\n"),
            "line 4 of the correction: with this tree all together say a factor of over e^10");
}

// A file in the test's own folder, and what it had in it.
class CorrectionFile : public ::testing::Test {
 protected:
  std::string put(const std::string& text) const { return own_.put("mine.txt", text); }
  static std::string why(const std::string& path) {
    const auto read = read_correction(path);
    return read ? std::string() : read.reason();
  }

  OwnFolder own_;
};

// Times of all ways are twice their floors.
constexpr const char* kTwice = "warpwright-correction 1\nfeatures tensor\ntree =0.693147181\n";

TEST_F(CorrectionFile, IsReadAsItsTextIs) {
  EXPECT_EQ(why(put(kTwice)), "");
  EXPECT_EQ(why(put("warpwright-correction 1\nfeatures tensor weather\n")),
            "line 2 of the correction: \"weather\" is none of the features");
  EXPECT_EQ(why(put("")), "line 0 of the correction: it has no tree");
  for (const std::string& none : {own_.path().string(), own_.path("none.txt")}) {
    EXPECT_EQ(why(none),
              "no correction can be read there; give a file that `warpwright calibrate --learn` "
              "made");
  }
}

TEST_F(CorrectionFile, IsWhatADevicesPlansCost) {
  DeviceFacts device = *known_facts("h200");
  EXPECT_EQ(&correction_of(device), &built_correction());
  const auto read = read_correction(put(kTwice));
  ASSERT_TRUE(read) << read.reason();
  device.correction = std::make_shared<const Correction>(*read);
  const auto made = candidates(packed_problem(512, 512, 512, DType::bf16, DType::bf16), device);
  ASSERT_TRUE(made) << made.reason();
  for (const Plan& way : *made) {
    EXPECT_NEAR(way.cost / floor_of(way)->seconds, 2, 1e-6);
    EXPECT_DOUBLE_EQ(*learnt_seconds(way), way.cost);
  }
}

// Has a process of its own, as the variable is read once in a process, find the file or the
// built-in correction, and say `said` on stderr.
void expect_named(const std::string& text, bool is_taken, const std::string& said) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = ::testing::TempDir() + "named_correction.txt";
  std::ofstream(path) << text;
  ::setenv("WARPWRIGHT_CORRECTION", path.c_str(), 1);
  EXPECT_EXIT(std::exit((built_correction().trees() == 1) == is_taken ? 0 : 1),
              ::testing::ExitedWithCode(0), said);
  ::unsetenv("WARPWRIGHT_CORRECTION");
  std::filesystem::remove(path);
}

TEST(NamedCorrection, IsTheBuiltInOne) {
  expect_named(kTwice, true, "^$");
}

TEST(NamedCorrection, ThatIsNoneIsToldOf) {
  expect_named("warpwright-correction 2\n", false,
               "^warpwright: WARPWRIGHT_CORRECTION is \".*named_correction.txt\": line 1 of the "
               "correction: its version is \"2\", not 1; plans go by the built-in correction.\n$");
}

TEST(Floors, SayWhichUnitALimitIs) {
  const DeviceFacts device = *known_facts("h200");
  const auto floor = [&](std::int64_t m, std::int64_t n, std::int64_t k,
                         const PlanChoices& choices = {}) {
    const auto made = plan(packed_problem(m, n, k, DType::bf16, DType::bf16), device, choices);
    EXPECT_TRUE(made) << made.reason();
    return *floor_of(*made);
  };
  const Floor large = floor(8192, 8192, 8192);
  EXPECT_GT(large.tensor, 0.9 * large.seconds);
  EXPECT_GT(large.tensor, 1.1e-3);  // 1.1 TFLOP at 990 TFLOP/s
  const Floor few = floor(16, 24576, 1536);
  EXPECT_GT(few.memory, 0.8 * few.seconds);
  EXPECT_NEAR(few.memory, 75.5e6 / 4.1e12, 1.5e-6);
  const Floor small = floor(64, 64, 64);
  EXPECT_GT(small.start, 0.8 * small.seconds);
  EXPECT_LT(small.seconds, 5e-6);
  // Rows across sectors.
  const PlanChoices same{.cluster = atom::ClusterShape{2, 1}, .tile_m = 128, .tile_n = 256};
  EXPECT_GT(floor(8192, 8192, 8200, same).requests, 1.9 * floor(8192, 8192, 8192, same).requests);
}

TEST(Floors, AreOfProductsThatWereMeasured) {
  const auto dense = [](const char* device) {
    return *plan(packed_problem(512, 512, 512, DType::bf16, DType::bf16), *known_facts(device));
  };
  EXPECT_TRUE(learnt_seconds(dense("h200")));
  EXPECT_TRUE(learnt_seconds(dense("h20")));
  EXPECT_FALSE(learnt_seconds(dense("a100")));
  GemmProblem gated = packed_problem(512, 512, 512, DType::bf16, DType::bf16);
  gated.epilogue.gated = true;
  gated.epilogue.activation = Activation::silu;
  gated.d = packed_matrix(DType::bf16, 512, 256);
  const auto with_gates = plan(gated, *known_facts("h200"));
  ASSERT_TRUE(with_gates) << with_gates.reason();
  EXPECT_TRUE(learnt_seconds(*with_gates));
  const auto nothing =
      plan(packed_problem(16, 16, 0, DType::bf16, DType::bf16), *known_facts("h200"));
  ASSERT_TRUE(nothing) << nothing.reason();
  EXPECT_FALSE(learnt_seconds(*nothing));
}

// For products that had no part in it, as their own times show.
TEST(LearntTimes, AreCloseWhereNothingWasLearnt) {
  if (!is_usual_build()) GTEST_SKIP() << "times are of the kernels of a usual build";
  const auto times = parse_times(unpacked(WARPWRIGHT_SOURCE "/bench/times.tsv.gz"));
  ASSERT_TRUE(times) << times.reason();
  std::map<std::string, std::map<std::string, std::vector<const MeasuredTime*>>> by_card;
  for (const MeasuredTime& time : *times) by_card[time.card][time.product].push_back(&time);
  double floors_above = 0;
  double all = 0;
  for (const auto& [card, products] : by_card) {
    SCOPED_TRACE(card);
    const DeviceFacts device = *known_facts(machine_of_card(card)->name);
    double error = 0;
    int near = 0;
    for (const auto& [text, rows] : products) {
      const GemmProblem p = *parse_problem(text);
      const bool is_held = is_held_out(p);
      std::map<std::string, double> took;
      double best = 1e9;
      for (const MeasuredTime* row : rows) {
        took[row->configuration] = row->microseconds;
        best = std::min(best, row->microseconds);
      }
      const auto ways = candidates(p, device);
      ASSERT_TRUE(ways) << ways.reason();
      for (const Plan& way : *ways) {
        const auto found = took.find(configuration_text(way));
        if (found == took.end()) continue;
        ++all;
        const auto floor = floor_of(way);
        ASSERT_TRUE(floor);
        floors_above += 1e6 * floor->seconds > 1.1 * found->second ? 1 : 0;
        if (!is_held || found->second > 1.3 * best) continue;
        error += std::abs(1e6 * *learnt_seconds(way) / found->second - 1);
        ++near;
      }
    }
    ASSERT_GT(near, 300);
    EXPECT_LT(error / near, 0.08);
    std::printf("%s: learnt times of held-out products are %.1f%% off in the mean\n", card.c_str(),
                100 * error / near);
  }
  EXPECT_LT(floors_above / all, 0.1);
  std::printf("%.1f%% of %.0f floors are over 10%% above the time\n", 100 * floors_above / all,
              all);
}

}  // namespace
}  // namespace warpwright
