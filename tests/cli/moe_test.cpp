// Layers of experts: a wrong result is seen, routers draw different experts, floors, what `bench
// moe` prints. What a user calls is in transcripts/moe.txt.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/commands/moe/moe_command.h"
#include "cli/reports/bench_moe_report.h"
#include "tests/scheduled.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

using testing::HasSubstr;

MoeOptions small_layer() {
  MoeOptions o;
  o.tokens = 5;
  o.experts = 3;
  o.top_k = 2;
  o.hidden = o.inner = 64;
  o.check = true;
  return o;
}

// Runs it on the model, then does `harm` to d.
int run_and_harm(const MoeOptions& o, const std::function<void(std::uint16_t*)>& harm,
                 std::string& said) {
  std::ostringstream out;
  std::ostringstream err;
  const int status =
      moe_command(o, out, err, [&](const MoeJob& job, const MoeOptions& options, std::ostream& to) {
        auto report = run_moe_on_device(job, options, to);
        harm(static_cast<std::uint16_t*>(job.operands.d.data));
        return report;
      });
  said = err.str();
  return status;
}

TEST(Moe, AWrongElementFailsTheCheck) {
  std::string said;
  EXPECT_EQ(run_and_harm(
                small_layer(), [](std::uint16_t*) {}, said),
            0);
  EXPECT_THAT(said, HasSubstr("check: PASS. All 320 elements are right"));
  EXPECT_EQ(run_and_harm(
                small_layer(), [](std::uint16_t* d) { d[64 * 3 + 5] ^= 0x8000U; }, said),
            1);
  EXPECT_THAT(said, HasSubstr("check: FAIL. 1 of 320 elements is wrong: D[3, 5] is "));
  // The kernel that stores nothing leaves NaN.
  EXPECT_EQ(run_and_harm(
                small_layer(), [](std::uint16_t* d) { std::memset(d, 0xff, 640); }, said),
            1);
  EXPECT_THAT(said, HasSubstr("320 of 320 elements are wrong"));
}

TEST(Moe, ACheckOfSchedulesSeesAWrongResult) {
  MoeOptions o = small_layer();
  MoeJob job(o, model_facts());
  job.load(1);
  const auto checked = [&](bool right) {
    const auto subject = device::mixture_subject(job.plan, job.operands,
                                                 [right](const MixtureOperands&) { return right; });
    return device::check(*subject, tests::in_schedules(2));
  };
  EXPECT_TRUE(checked(true)->clean());
  const auto found = checked(false);
  ASSERT_EQ(found->findings.size(), 1U);
  EXPECT_EQ(found->findings.front().finding.sentence,
            "d is not the mixture, although no other check spoke");
}

TEST(Moe, ATokenGoesToDifferentExpertsAndLengthsCountThem) {
  for (const double zipf : {0.0, 1.5}) {
    const Routing routing{40, 5, zipf};
    const auto choices = routed_choices(routing, 9, 3);
    ASSERT_EQ(choices.size(), 200U);
    for (std::size_t t = 0; t < 40; ++t) {
      const std::set<std::int32_t> of_token(
          choices.begin() + static_cast<std::ptrdiff_t>(5 * t),
          choices.begin() + static_cast<std::ptrdiff_t>(5 * t + 5));
      EXPECT_EQ(of_token.size(), 5U);
    }
    EXPECT_EQ(lengths_of(choices, 9), routed_lengths(routing, 9, 3));
    const auto some = lengths_of(choices, 3, 4);
    const auto all = lengths_of(choices, 9);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 4));
  }
}

// The layer of Qwen3-30B for one token, as measured in 24 us.
MoeBenchRun one_row() {
  MoeBenchRun run;
  run.date = "then";
  run.gpu = "NVIDIA H200";
  run.seed = 3;
  const ExpertModel& model = expert_model("qwen3-30b");
  MoeBenchSection section{model, "bf16", {}};
  const MixtureOperands shapes =
      packed_mixture({1, model.hidden, model.inner, model.experts, model.top_k}, {});
  MoeBenchRow row;
  row.tokens = 1;
  row.lengths = routed_lengths({1, 8, 0}, 128, 3);
  row.plan = *run_moe_plan(shapes, *known_facts("h200"), {.one_launch = false});
  row.roof = bench::moe_roof(row.plan->problem, *known_facts("h200"), row.lengths);
  bench::MoeTimes times;
  times.ours = {24, 23.5, 24.5};
  times.steps = {{row.plan->steps().back(), {2.5, 2.5, 2.5}}};
  row.times = times;
  MoeBenchRow refused;
  refused.tokens = 7;
  refused.refusal = "no kernel";
  section.rows = {row, refused};
  run.sections = {section};
  return run;
}

TEST(MoeBench, TheFloorIsThatOfTheExpertsThatAreHit) {
  const MoeBenchRun run = one_row();
  const bench::Roof& roof = run.sections.front().rows.front().roof;
  const double weights = 8.0 * 3 * 2048 * 768 * 2;
  EXPECT_DOUBLE_EQ(roof.bytes, weights + 2 * 2048 * 2);
  EXPECT_DOUBLE_EQ(roof.operations, 2.0 * 8 * 3 * 2048 * 768);
  EXPECT_DOUBLE_EQ(roof.us(), roof.bytes / known_facts("h200")->memory_bytes_per_second * 1e6);
}

TEST(MoeBench, ARowSaysWhatWasMeasuredOrWhyNot) {
  const MoeBenchRun run = one_row();
  const MoeBenchSection& section = run.sections.front();
  EXPECT_THAT(moe_heading(section), HasSubstr("qwen3-30b, bf16: 128 experts, top-8"));
  const std::string text = moe_row(section.rows[0]);
  const double ratio = 24 / section.rows[0].roof.us();
  char words[64];
  std::snprintf(words, sizeof words, "      1     8        1     24.00    2.1%%     %.2f   %.2f",
                section.rows[0].roof.us(), ratio);
  EXPECT_EQ(text.substr(0, std::strlen(words)), words);
  EXPECT_THAT(text, HasSubstr(section.rows[0].plan->first.name() + ", "));
  EXPECT_THAT(text, HasSubstr("\n                   sum      2.50"));
  EXPECT_EQ(moe_row(section.rows[1]), "      7     0        0 no kernel\n");
  const auto json = nlohmann::json::parse(moe_json(run));
  EXPECT_EQ(json["format"], "warpwright-bench-moe-1");
  const auto& rows = json["sections"][0]["rows"];
  EXPECT_EQ(rows[0]["hit"], 8);
  EXPECT_EQ(rows[0]["ours"]["median_us"], 24);
  EXPECT_EQ(rows[0]["launches"], section.rows[0].plan->launches());
  EXPECT_EQ(rows[0]["steps"].back()["step"], "sum");
  EXPECT_EQ(rows[0]["steps"].back()["alone"]["median_us"], 2.5);
  EXPECT_EQ(rows[1]["refusal"], "no kernel");
}

}  // namespace
}  // namespace warpwright::cli
