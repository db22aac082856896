// Pictures of runs: what they show is what the deck describes, and what the runs did.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/commands/gemm/companions.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/recorded_product.h"
#include "lessons/lesson.h"
#include "tests/cli/run_cli.h"
#include "warpwright/pictures/barrier_states.h"
#include "warpwright/pictures/compare_svg.h"
#include "warpwright/pictures/grid_svg.h"
#include "warpwright/pictures/phases.h"
#include "warpwright/pictures/role_graph.h"
#include "warpwright/pictures/timeline_svg.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::cli {
namespace {

using pictures::BarrierMoment;
using pictures::BarrierState;
using Kind = model::BarrierEvent::Kind;

// Every cell that can be pointed at is a row of the table, and every row is as long as the header.
void expect_rows(const pictures::View& view) {
  static const std::regex row("data-row=\"([0-9]+)\"");
  for (std::sregex_iterator at(view.svg.begin(), view.svg.end(), row), end; at != end; ++at) {
    ASSERT_LT(std::stoul((*at)[1]), view.table.rows.size()) << view.id;
  }
  for (const auto& cells : view.table.rows) {
    ASSERT_EQ(cells.size(), view.table.header.size()) << view.id;
  }
}

model::testing::Recording recorded_lesson(int number, lessons::Ask ask = {}) {
  model::testing::Recording recording;
  ask.recording = &recording;
  ask.schedules = {.eager = false, .latest = false, .timed = true, .random = 0, .starve = 0};
  EXPECT_TRUE(lessons::all()[static_cast<std::size_t>(number - 1)].run(ask).clean() || ask.broken);
  return recording;
}

RecordedProduct recorded(const GemmOptions& options, bool barriers = false) {
  std::ostringstream err;
  RecordHow how;
  how.barriers = barriers;
  RecordedProduct run = record_product(options, how, "test", err);
  EXPECT_TRUE(run.report.clean()) << run.report.text();
  return run;
}

GemmOptions product(std::vector<std::int64_t> extents, const std::string& as) {
  GemmOptions options;
  options.random = std::move(extents);
  options.as = as;
  return options;
}

// Deck, pages 10 to 15.
TEST(DrawBarrier, OneCopyIsTheDecksPages10To15) {
  const auto recording = recorded_lesson(2);
  const std::vector<BarrierMoment> moments = pictures::barrier_moments(recording.barriers, 0);
  ASSERT_FALSE(moments.empty());
  std::vector<BarrierState> states;
  for (const BarrierMoment& m : moments) {
    ASSERT_EQ(m.states.size(), 1U);
    states.push_back(m.states.front());
  }
  // 10: made for one arrival, in phase 0.
  const BarrierState made{"bar[0]", true, 0, 1, 0, 0, 0, 0, ""};
  EXPECT_EQ(states.front(), made);
  // 11: 16 KB expected, the thread has arrived; then 1 KB, 4 KB and all have landed, while the
  // 128 threads wait.
  const auto stood = [&](std::int64_t landed, int waiting) {
    return std::any_of(states.begin(), states.end(), [&](const BarrierState& s) {
      return s.phase == 0 && s.arrived == 1 && s.bytes == 16384 && s.landed == landed &&
             s.waiting == waiting;
    });
  };
  EXPECT_TRUE(stood(0, 128));
  EXPECT_TRUE(stood(1024, 128));
  EXPECT_TRUE(stood(4096, 128));
  EXPECT_TRUE(stood(16384, 128));
  // 15: the phase flips, all counts are as before, nobody waits.
  const BarrierState flipped{"bar[0]", true, 1, 1, 0, 0, 0, 0, ""};
  EXPECT_EQ(states.back(), flipped);
  EXPECT_EQ(moments.back().step.event.kind, Kind::pass);
  const auto waits = std::find_if(states.begin(), states.end(),
                                  [](const BarrierState& s) { return s.waiting == 128; });
  EXPECT_EQ(waits->waiters, "128 threads of TC warps");
}

// Deck, pages 16 to 19, but that a barrier begins in phase 0.
TEST(DrawBarrier, FullAndEmptyAreTheDecksPages16To19) {
  const auto recording = recorded_lesson(3);
  EXPECT_EQ(
      pictures::barriers_of(recording.barriers, 0),
      (std::vector<std::string>{"bar_full[0]", "bar_empty[0]", "readable[0]", "writable[0]"}));
  const std::vector<std::string> deck = {"bar_full", "bar_empty"};
  const std::vector<BarrierMoment> moments = pictures::barrier_moments(recording.barriers, 0, deck);
  std::vector<std::string> flips;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const BarrierMoment& m = moments[i];
    if (m.states[1].made) {
      EXPECT_EQ(m.states[0].arrivals, 1);
      EXPECT_EQ(m.states[1].arrivals, 128);
    }
    if (m.step.event.kind != Kind::flip) continue;
    flips.push_back(m.step.event.barrier);
    // All that the phase before expected has come.
    const std::size_t at = m.step.event.barrier == "bar_full[0]" ? 0 : 1;
    const BarrierState& before = moments[i - 1].states[at];
    EXPECT_EQ(before.arrived, before.arrivals);
    EXPECT_EQ(before.landed, before.bytes);
    EXPECT_EQ(m.states[at].phase, before.phase + 1);
  }
  ASSERT_GE(flips.size(), 4U);  // two iterations
  for (std::size_t i = 0; i < flips.size(); ++i) {
    EXPECT_EQ(flips[i], i % 2 == 0 ? "bar_full[0]" : "bar_empty[0]");
  }
  const pictures::View view = pictures::barrier_view(recording.barriers, 0, deck);
  expect_rows(view);
  EXPECT_EQ(view.table.rows.size(), moments.size());
  const std::string last = "data-step=\"" + std::to_string(moments.size() - 1) + "\"";
  EXPECT_TRUE(contains(view.svg, last));
  // One step is seen without a script.
  std::size_t hidden = 0;
  for (auto at = view.svg.find("display:none"); at != std::string::npos;
       at = view.svg.find("display:none", at + 1)) {
    ++hidden;
  }
  EXPECT_EQ(hidden, moments.size() - 1);
  // Note 004's order with both phases at 0 hangs: nobody ever arrives at `writable`.
  const auto broken = recorded_lesson(3, {.broken = true});
  for (const BarrierMoment& m : pictures::barrier_moments(broken.barriers, 0, {"writable"})) {
    EXPECT_EQ(m.states.front().phase, 0);
  }
}

std::string kind_of_barrier(const std::string& barrier) {
  return barrier.substr(0, barrier.find('['));
}

// Who arrives and who waits in a run, by the barriers' names: arrows that must be there.
std::set<std::tuple<std::string, std::string, bool>> seen_edges(
    const std::vector<model::BarrierEvent>& events) {
  std::set<std::tuple<std::string, std::string, bool>> seen;
  for (const model::BarrierEvent& e : events) {
    const bool waits = e.kind == Kind::wait || e.kind == Kind::pass;
    if (!waits && e.kind != Kind::arrive) continue;
    seen.emplace(kind_of_barrier(e.barrier), e.who.substr(0, e.who.find(" (")), waits);
  }
  return seen;
}

TEST(DrawRoles, ArrowsAreThoseOfRuns) {
  GemmOptions dynamic = product({256, 512, 128}, "h200");
  dynamic.scheduler = "dynamic";
  dynamic.sms = 2;
  GemmOptions ping_pong = product({256, 256, 128}, "h200");
  ping_pong.schedule = "pingpong";
  ping_pong.sms = 1;  // a tile for each consumer
  GemmOptions pair = product({256, 512, 128}, "b200");
  pair.pair = true;
  GemmOptions one = product({256, 256, 128}, "b200");
  one.pair = false;
  GemmOptions with_c = product({128, 128, 128}, "h200");
  with_c.beta = "1";
  GemmOptions ring = product({128, 128, 128}, "rtx5090");
  ring.schedule = "cooperative";
  ring.scheduler = "clc";
  for (const GemmOptions& options : {dynamic, ping_pong, pair, one, with_c, ring}) {
    const RecordedProduct run = recorded(options, true);
    const Plan& plan = run.product->plan;
    const pictures::RoleGraph graph{plan.facts().roles, plan.barriers(), ""};
    std::set<std::tuple<std::string, std::string, bool>> drawn;
    for (const pictures::RoleEdge& e : pictures::role_edges(graph)) {
      drawn.emplace(graph.barriers[static_cast<std::size_t>(e.barrier)].name,
                    graph.roles[static_cast<std::size_t>(e.role)].name, e.waits);
    }
    const auto seen = seen_edges(run.barriers);
    EXPECT_GE(seen.size(), 4U) << plan.name();
    for (const auto& [barrier, role, waits] : seen) {
      if (role == "" || role.starts_with("TMA") || role.starts_with("tensor core")) continue;
      EXPECT_TRUE(drawn.contains({barrier, role, waits}))
          << plan.name() << ": " << role << (waits ? " waits for " : " arrives at ") << barrier;
    }
    for (const auto& [barrier, role, waits] : drawn) {
      if (barrier != "full" && barrier != "empty") continue;
      EXPECT_TRUE(seen.contains({barrier, role, waits}))
          << plan.name() << ": nobody saw " << role << (waits ? " wait for " : " arrive at ")
          << barrier;
    }
    expect_rows(pictures::role_view(graph));
  }
}

// Words that mean no role would leave a barrier without arrows.
TEST(DrawRoles, EveryBarrierOfEveryKernelHasBothSides) {
  std::ostringstream err;
  int built = 0;
  int drawn = 0;
  for (const KernelFacts* kernel : all_kernels()) {
    if (!kernel->built) continue;
    ++built;
    std::vector<pipeline::BarrierRow> rows;
    try {
      const GemmOptions options = product_for(*kernel);
      rows = Product(options, facts_of(options), err).plan.barriers();
    } catch (const InputError&) {  // only of a mixture of experts, or for a device of its own
      continue;
    }
    const pictures::RoleGraph graph{kernel->roles, rows, ""};
    std::map<std::pair<int, bool>, int> arrows;
    for (const pictures::RoleEdge& e : pictures::role_edges(graph)) {
      ++arrows[{e.barrier, e.waits}];
    }
    for (std::size_t i = 0; i < graph.barriers.size(); ++i) {
      for (const bool waits : {false, true}) {
        EXPECT_GE((arrows[{static_cast<int>(i), waits}]), 1)
            << kernel->name << ": " << graph.barriers[i].name
            << (waits ? ": nobody waits" : ": nobody arrives");
      }
    }
    ++drawn;
  }
  EXPECT_GT(drawn, 20);
  EXPECT_GT(10 * drawn, 8 * built) << drawn << " of " << built;
}

// Deck, page 38: load, MMA, scheduler and epilogue with their full and empty barriers.
TEST(DrawRoles, BlackwellIsTheDecksPage38) {
  const CliResult r = run_cli(
      {"draw", "roles", "gemm", "--random", "2048", "2048", "512", "--as", "b200", "--json"});
  ASSERT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  std::map<std::string, std::pair<std::string, std::string>> sides;
  for (const auto& row : json["views"][0]["rows"]) {
    sides[row[0]] = {row[5], row[6]};
  }
  using Sides = std::pair<std::string, std::string>;
  EXPECT_EQ(sides.at("full"), (Sides{"load", "mma"}));
  EXPECT_EQ(sides.at("empty"), (Sides{"mma", "load"}));
  EXPECT_EQ(sides.at("acc_full"), (Sides{"mma", "epilogue"}));
  EXPECT_EQ(sides.at("acc_empty"), (Sides{"epilogue", "mma"}));
  EXPECT_EQ(sides.at("tile_full").first, "scheduler");
  EXPECT_EQ(sides.at("tile_empty").second, "scheduler");
}

// Deck, pages 7, 37 and 39: on Ampere all prologues and epilogues lie bare, on Hopper and Blackwell
// those between the first and the last tile lie under main loops.
TEST(DrawCompare, ProloguesAndEpiloguesAreBareOnAmpereAlone) {
  struct Costs {
    pictures::Bare bare;
    std::int64_t epilogues = 0;
    int tiles = 0;
  };
  const auto costs = [](GemmOptions options) {
    options.sms = 1;
    const RecordedProduct run = recorded(options);
    Costs found;
    const auto slices = pictures::phases(run.trace);
    found.bare = pictures::bare(slices);
    for (const pictures::PhaseSlice& s : slices) {
      EXPECT_LT(s.begin, s.end);
      if (s.phase == pictures::Phase::epilogue) found.epilogues += s.end - s.begin;
      if (s.phase == pictures::Phase::main_loop) ++found.tiles;
    }
    expect_rows(pictures::compare_view({{"run", &run.trace}}));
    return found;
  };
  GemmOptions ping_pong = product({256, 512, 256}, "h200");
  ping_pong.schedule = "pingpong";
  GemmOptions blackwell = product({256, 512, 256}, "b200");
  blackwell.pair = false;
  blackwell.cluster = "1,1";
  const Costs hopper = costs(ping_pong);
  EXPECT_EQ(hopper.tiles, 8);
  EXPECT_LT(3 * hopper.bare.epilogue, hopper.epilogues);
  const Costs tmem = costs(blackwell);
  EXPECT_EQ(tmem.tiles, 8);
  EXPECT_LT(3 * tmem.bare.epilogue, tmem.epilogues);
  GemmOptions one_cta = product({256, 512, 256}, "a100");
  one_cta.ctas = 1;
  const Costs ampere = costs(one_cta);
  EXPECT_EQ(ampere.tiles, 8);
  EXPECT_GT(10 * ampere.bare.epilogue, 9 * ampere.epilogues);  // the next load is early
}

// Deck, pages 26 and 27: a second stage brings loads under the MMAs.
TEST(DrawCompare, StagesShortenTheLesson) {
  const auto one = recorded_lesson(7, {.stages = 1, .in_flight = 0});
  const auto two = recorded_lesson(7, {.stages = 2, .in_flight = 0});
  const auto four = recorded_lesson(7, {.stages = 4, .in_flight = 1});
  EXPECT_GT(one.trace.end(), two.trace.end());
  EXPECT_GT(two.trace.end(), four.trace.end());
  const auto view = pictures::compare_view(
      {{"1", &one.trace}, {"2", &two.trace}, {"4", &four.trace}, {"measured", nullptr, 1, 500}});
  expect_rows(view);
  ASSERT_EQ(view.table.rows.size(), 4U);
  EXPECT_EQ(view.table.rows[0][1], std::to_string(one.trace.end()));
  EXPECT_EQ(view.table.rows[3][1], "500");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(view.table.rows[static_cast<std::size_t>(i)][3], "1");
}

TEST(DrawPipeline, TheTableHasTheSlices) {
  const RecordedProduct run = recorded(product({128, 128, 256}, "h200"));
  const auto view = pictures::timeline_view(run.trace, {});
  expect_rows(view);
  EXPECT_GT(view.table.rows.size(), 10U);
}

nlohmann::json rows_of(const std::vector<std::string>& arguments, const std::string& view) {
  const CliResult r = run_cli(arguments);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  for (const auto& each : json["views"]) {
    if (each["id"] == view) return each["rows"];
  }
  ADD_FAILURE() << "no view " << view;
  return nlohmann::json::array();
}

// Deck, page 35: SM 2 is taken, its tiles come last.
TEST(DrawTiles, AHeldSmComputesNothing) {
  const std::vector<std::string> arguments = {
      "draw",  "tiles", "gemm",        "--random",  "768",   "768",         "128",
      "--as",  "b200",  "--one-sm",    "--cluster", "1,1",   "--scheduler", "static",
      "--sms", "3",     "--occupy-sm", "2",         "--json"};
  const auto planned = rows_of(arguments, "d");
  ASSERT_EQ(planned.size(), 36U);
  std::set<std::pair<std::string, std::string>> places;
  std::set<std::string> waves;
  for (const auto& row : planned) {
    places.emplace(row[1], row[2]);
    waves.insert(row[4]);
  }
  EXPECT_EQ(places.size(), 36U);
  EXPECT_EQ(waves.size(), 12U);
  const auto ran = rows_of(arguments, "sms");
  ASSERT_EQ(ran.size(), 36U);
  std::map<std::string, std::int64_t> first_of_cta;
  std::int64_t end_of_others = 0;
  for (const auto& row : ran) {
    EXPECT_NE(row[3], "2");
    const std::int64_t begin = std::stoll(row[5].get<std::string>());
    const auto [at, is_new] = first_of_cta.try_emplace(row[4], begin);
    if (!is_new) at->second = std::min(at->second, begin);
    if (row[4] != "2") {
      end_of_others = std::max<std::int64_t>(end_of_others, std::stoll(row[6].get<std::string>()));
    }
  }
  EXPECT_EQ(first_of_cta.size(), 3U);
  EXPECT_GE(first_of_cta.at("2"), end_of_others - 1000);  // when a place is free
}

// Waves of a plan for a device that is not here: as many as explain says.
TEST(DrawTiles, WavesAreThoseOfThePlan) {
  for (const char* as : {"h200", "b200", "a100"}) {
    std::ostringstream err;
    const GemmOptions options = product({4096, 4096, 512}, as);
    const Product one(options, facts_elsewhere(options), err);
    const auto rows = rows_of(
        {"draw", "tiles", "gemm", "--random", "4096", "4096", "512", "--as", as, "--json"}, "d");
    EXPECT_EQ(static_cast<std::int64_t>(rows.size()), one.plan.tiles());
    int last = 0;
    for (const auto& row : rows) last = std::max(last, std::stoi(row[4].get<std::string>()));
    EXPECT_EQ(last + 1, static_cast<int>(std::ceil(one.plan.waves() - 1e-9))) << as;
  }
}

// Deck, page 44: the tiles of two groups.
TEST(DrawTiles, GroupsHaveTheirTiles) {
  const auto rows =
      rows_of({"draw", "tiles", "grouped", "--weights", "int4", "--groups", "2", "--tokens",
               "40,24", "--n", "256", "--k", "256", "--tile-tokens", "32", "--json"},
              "sms");
  std::map<std::string, std::set<std::string>> tokens;
  for (const auto& row : rows) tokens[row[0]].insert(row[1]);
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens.begin()->first, "group 0: 40 rows");
  EXPECT_EQ(tokens.begin()->second.size(), 2U);   // 32 tokens, and 8
  EXPECT_EQ(tokens.rbegin()->second.size(), 1U);  // 24
  EXPECT_EQ(rows.size(), 6U);                     // by 256 / 128 of the weights
}

// Each mutant of a site: the finding that the picture names is what check gives for it.
TEST(DrawBreak, FindingsAreThoseOfCheck) {
  const std::vector<std::string> product = {"gemm", "--random", "64", "64", "128", "--as", "h200"};
  std::vector<std::string> draw = {"draw", "break"};
  draw.insert(draw.end(), product.begin(), product.end());
  draw.insert(draw.end(), {"--site", "mbarrier.arrive empty", "--schedules", "8", "--json"});
  const CliResult drawn = run_cli(draw);
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  const auto json = nlohmann::json::parse(drawn.out);
  const auto& rows = json["views"][0]["rows"];
  ASSERT_GE(rows.size(), 3U);
  std::size_t killed = 0;
  for (const auto& row : rows) {
    EXPECT_TRUE(contains(row[2], "mbarrier.arrive empty"));
    if (row[3] != "killed") continue;
    ++killed;
    EXPECT_EQ(json["views"][killed]["id"], "m" + row[0].get<std::string>());
    std::vector<std::string> check = {"check"};
    check.insert(check.end(), product.begin(), product.end());
    check.insert(check.end(), {"--mutant", row[0], "--replay", row[5], "--json"});
    const CliResult again = run_cli(check);
    EXPECT_EQ(again.status, 1);
    const auto found = nlohmann::json::parse(again.out)["findings"];
    EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                            [&](const auto& f) { return f["check"] == row[4]; }))
        << row.dump() << again.out;
  }
  EXPECT_GE(killed, 3U);
  EXPECT_EQ(json["views"].size(), killed + 1);
}

TEST(DrawBreak, OneMutantByItsNumber) {
  const CliResult drawn = run_cli({"draw", "break", "gemm", "--random", "64", "64", "64", "--as",
                                   "h200", "--mutant", "1", "--schedules", "4", "--json"});
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  const auto json = nlohmann::json::parse(drawn.out);
  EXPECT_EQ(json["views"][0]["rows"].size(), 1U);
  EXPECT_EQ(json["views"][0]["rows"][0][0], "1");
}

}  // namespace
}  // namespace warpwright::cli
