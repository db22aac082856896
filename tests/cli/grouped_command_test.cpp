// `warpwright grouped`, and `check`, `explain` and `trace grouped`, as a user calls them.
#include "cli/commands/gemm_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/groups.h"
#include "run_cli.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words joined(Words all, const Words& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// A product of 59 tokens in 4 groups, and what else the command line says.
Words small(const Words& command, const Words& more = {}) {
  return joined(
      joined(command, {"--groups", "4", "--tokens", "16,0,3,40", "--n", "72", "--k", "96"}), more);
}

TEST(GroupedCommand, ChecksEveryElement) {
  const CliResult r = run_cli(small({"grouped"}, {"--check", "--total", "70"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(contains(r.err, "grouped: D[70,72] with K = 96, bf16 to bf16, on model by grouped_"))
      << r.err;
  EXPECT_TRUE(contains(r.err,
                       "4 groups (1 empty) of up to 40 tokens, 59 in all and 11 rows in no "
                       "group: "))
      << r.err;
  EXPECT_TRUE(contains(r.err, "check: PASS. All 4248 elements are right; the worst, D["))
      << r.err;  // 59 x 72
  EXPECT_TRUE(contains(r.err, " Of 11 rows in no group none was written.\n")) << r.err;
}

TEST(GroupedCommand, EveryScalingTypeAndWayToTheTiles) {
  const Words e4m3 = {"--dtype", "e4m3"};
  for (const Words& more : std::vector<Words>{
           {},
           {"--offsets", "int64", "--mode", "random", "--seed", "5"},
           {"--alpha", "-0.5", "--mode", "eager"},
           {"--alpha", "0"},
           {"--search", "vertical", "--expected-tokens", "200"},
           {"--tile-tokens", "32", "--swapped", "yes", "--cluster", "1,2"},
           {"--kernel", "grouped_bf16_bf16_128x128_v_pp"},
           e4m3,
           joined(e4m3, {"--scaling", "tensor"}),
           joined(e4m3, {"--scaling", "group", "--search", "horizontal"}),
           joined(e4m3, {"--scaling", "row-column", "--total", "61", "--swapped", "no"}),
           joined(e4m3, {"--scaling", "block", "--total", "61"}),
           joined(e4m3, {"--scaling", "block", "--accumulation", "promoted", "--swapped", "no"}),
           {"--beta", "0.5", "--total", "61"},
           {"--bias", "columns", "--activation", "gelu"},
           {"--bias", "rows", "--activation", "relu", "--total", "61"},
       }) {
    const CliResult r = run_cli(small({"grouped"}, joined(more, {"--check", "--check-offsets"})));
    EXPECT_EQ(r.status, 0) << testing::PrintToString(more) << r.err;
    EXPECT_TRUE(contains(r.err, "offsets: in order.\ncheck: PASS. All 4248 elements")) << r.err;
  }
}

// K of several blocks and N of two: the scales of every block and group have a place of their own.
TEST(GroupedCommand, BlockScalesOfManyBlocks) {
  const CliResult r =
      run_cli({"grouped", "--groups", "3", "--tokens", "skew:3", "--total", "50", "--n", "144",
               "--k", "400", "--dtype", "e4m3", "--scaling", "block", "--check"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "check: PASS. All 7200 elements")) << r.err;
}

TEST(GroupedCommand, GatedProducts) {
  for (const Words& more : std::vector<Words>{{}, {"--dtype", "e4m3", "--scaling", "block"}}) {
    const CliResult r = run_cli(joined({"grouped", "--groups", "3", "--tokens", "20,0,9", "--n",
                                        "256", "--k", "160", "--total", "31", "--gated", "--check"},
                                       more));
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_TRUE(contains(r.err, "grouped: D[31,128] with K = 160")) << r.err;
    EXPECT_TRUE(contains(r.err, "check: PASS. All 3712 elements")) << r.err;  // 29 x 128
  }
}

TEST(GroupedCommand, NothingToDo) {
  for (const Words& more :
       std::vector<Words>{{"--tokens", "0", "--n", "64", "--k", "64"},
                          {"--tokens", "0", "--n", "64", "--k", "64", "--total", "5"},
                          {"--tokens", "3", "--n", "0", "--k", "64"}}) {
    const CliResult r =
        run_cli(joined({"grouped", "--groups", "2", "--check", "--check-offsets"}, more));
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_TRUE(contains(r.err, "check: PASS. D has no elements")) << r.err;
  }
  const CliResult r =
      run_cli({"grouped", "--groups", "2", "--tokens", "3", "--n", "64", "--k", "0", "--check"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "check: PASS. All 384 elements")) << r.err;
}

TEST(GroupedCommand, Json) {
  const CliResult r =
      run_cli(small({"grouped"}, {"--json", "--check", "--check-offsets", "--total", "64",
                                  "--tile-tokens", "16", "--swapped", "yes", "--cluster", "1,1"}));
  ASSERT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["plan"], "grouped_bf16_bf16_128x16_b_sw_c1x1");
  EXPECT_EQ(json["device"], "model");
  EXPECT_EQ(json["groups"], 4);
  EXPECT_EQ(json["tokens"], (std::vector<int>{16, 0, 3, 40}));
  EXPECT_EQ(json["total"], 64);
  EXPECT_EQ(json["m"], 64);
  EXPECT_EQ(json["n"], 72);
  EXPECT_EQ(json["k"], 96);
  EXPECT_EQ(json["dtype"], (Words{"bf16", "bf16"}));
  EXPECT_EQ(json["d_dtype"], "bf16");
  EXPECT_EQ(json["cluster"], (std::vector<int>{1, 1}));
  EXPECT_EQ(json["scaling"], "none");
  EXPECT_EQ(json["accumulation"], "fast");
  EXPECT_EQ(json["offsets"], "int32");
  EXPECT_EQ(json["tile_tokens"], 16);
  EXPECT_EQ(json["tile_weights"], 128);
  EXPECT_EQ(json["swapped"], true);
  EXPECT_EQ(json["tiles"], 5);
  EXPECT_TRUE(json["findings"].empty());
  EXPECT_TRUE(json["offsets_fault"].is_null());
  EXPECT_EQ(json["check"]["passed"], true);
  EXPECT_EQ(json["check"]["elements"], 59 * 72);
  EXPECT_EQ(json["check"]["failures"], 0);
  EXPECT_EQ(json["check"]["rows_in_no_group"], 5);
  EXPECT_EQ(json["check"]["rows_touched"], 0);
  EXPECT_FALSE(json.contains("time"));
}

// The last group ends before it begins, or behind A: the rest is right, and the kernel tells.
TEST(GroupedCommand, OffsetsOutOfOrder) {
  for (const auto& [how, tokens] :
       {std::pair{"decreasing", Words{"16", "0", "3", "0"}}, {"beyond", {"16", "0", "3", "51"}}}) {
    for (const char* type : {"int32", "int64"}) {
      const Words more = {"--bad-offsets", how, "--offsets", type, "--total", "70", "--check"};
      const CliResult quiet = run_cli(small({"grouped"}, more));
      EXPECT_EQ(quiet.status, 0) << quiet.err;
      EXPECT_TRUE(contains(quiet.err, "check: PASS. ")) << quiet.err;
      const CliResult r = run_cli(small({"grouped"}, joined(more, {"--check-offsets", "--json"})));
      EXPECT_EQ(r.status, 1) << r.err;
      EXPECT_TRUE(contains(r.err, "offsets: the offsets of group 3 are not in order")) << r.err;
      const auto json = nlohmann::json::parse(r.out);
      EXPECT_TRUE(contains(json["offsets_fault"], "group 3")) << json["offsets_fault"];
      EXPECT_EQ(json["check"]["passed"], true);
      std::string lengths;
      for (const auto& length : json["tokens"]) lengths += length.dump() + ",";
      std::string due;
      for (const std::string& t : tokens) due += t + ",";
      EXPECT_EQ(lengths, due);
    }
  }
}

TEST(GroupedCommand, RefusesBadArguments) {
  const auto shaped = [](const Words& more) {
    return joined({"grouped", "--n", "64", "--k", "64"}, more);
  };
  const auto refused = [&](const Words& more, const std::string& part) {
    expect_refused(shaped(joined({"--groups", "2", "--tokens", "3"}, more)), part);
  };
  expect_refused(shaped({"--tokens", "3"}),
                 "--groups is missing: give --groups, --n and --k for random A and B");
  expect_refused(shaped({"--groups", "3"}), "--tokens is missing");
  expect_refused({"grouped", "--groups", "2", "--tokens", "3", "--k", "64"}, "--n is missing");
  expect_refused(shaped({"--groups", "0", "--tokens", "3"}), "--groups is 0; the nearest legal");
  expect_refused(shaped({"--groups", "2", "--tokens", "3,4,5"}), "lists 3 lengths and there are 2");
  expect_refused(shaped({"--groups", "2", "--tokens", "3,-4"}), "a length of -4");
  expect_refused(shaped({"--groups", "2", "--tokens", "skew:x"}), "--tokens is \"skew:x\"");
  expect_refused(shaped({"--groups", "2", "--tokens", "2000000000"}), "coordinates have 32 bits");
  expect_refused(shaped({"--groups", "99999999999", "--tokens", "0"}), "The offsets take");
  refused({"--total", "5"}, "6 tokens in all, and --total is 5: the nearest legal total is 6.");
  refused({"--total", "0"}, "--total is 0; the nearest legal value is 1");
  refused({"--dtype", "uint8"}, "--dtype is \"uint8\"");
  refused({"--d-dtype", "x"}, "--d-dtype is \"x\"");
  refused({"--d-dtype", "f32"}, "no grouped kernel in this build");
  refused({"--scaling", "row"}, "--scaling is \"row\"; it must be none, tensor, group, row-column");
  refused({"--layout", "NN"}, "K-major");
  refused({"--c", "c.npy"}, "Files and numbers do not go together");
  refused({"--scale-d", "2"}, "scale_d");
  refused({"--scaling", "block"}, "only operands of 8 bits have scales");
  refused({"--accumulation", "slow"}, "fast or promoted");
  refused({"--accumulation", "promoted"}, "sums are float32 anyway");
  refused({"--offsets", "int16"}, "int32 or int64");
  refused({"--bad-offsets", "all"}, "decreasing or beyond");
  refused({"--search", "any"}, "horizontal, vertical or ballot");
  refused({"--swapped", "perhaps"}, "yes or no");
  refused({"--kernel", "other"}, "there is no kernel \"other\"");
  refused({"--tile-tokens", "7"}, "no grouped kernel has");
  refused({"--cluster", "9"}, "--cluster is \"9\"");
  refused({"--alpha", "x"}, "alpha is \"x\"");
  refused({"--expected-tokens", "-1"}, "a number above 0");
  refused({"--expected-tokens", "nan"}, "a number above 0");
  refused({"--repeat", "-1"}, "--repeat is -1");
  refused({"--repeat", "3"}, "the model does not predict time");
  refused({"--device", "gpu"}, "--device is \"gpu\"; it must be model, auto, cuda");
  refused({"--device", "cuda", "--mode", "eager"}, "a GPU has no such choice");
  refused({"--mode", "late"}, "--mode is \"late\"");
  refused({"--as", "b200"}, "kernels for groups exist for sm_90");
  refused({"--seed", "-1"}, "--seed");
  const auto extents = [](const char* n, const char* k, const Words& more = {}) {
    return joined({"grouped", "--groups", "2", "--tokens", "3", "--n", n, "--k", k}, more);
  };
  expect_refused(extents("-1", "64"), "N is -1");
  expect_refused(extents("64", "-64"), "K is -64");
  expect_refused(extents("5000000000", "64"), "N is 5000000000");
  expect_refused({"grouped", "--groups", "2000", "--tokens", "3", "--n", "65536", "--k", "65536"},
                 "A, B and D take ");
  expect_refused(small({"check", "grouped"}, {"--device", "cuda"}), "leave --device out");
  expect_refused(small({"trace", "grouped"}), "Where to?");
}

// --- with a runner that does something else -----------------------------------------------------

GemmOptions small_grouped_options() {
  GemmOptions o;
  o.is_grouped = true;
  o.groups = 4;
  o.tokens = "16,0,3,40";
  o.n = 72;
  o.k = 96;
  o.total = 64;
  o.check = true;
  return o;
}

struct Called {
  int status = 0;
  std::string out;
  std::string err;
};

Called call(const GemmOptions& options, const GemmRunner& runner) {
  std::ostringstream out;
  std::ostringstream err;
  const int status = gemm_command(options, out, err, runner);
  return {status, out.str(), err.str()};
}

// Runs, then changes bf16 elements of D.
GemmRunner with_changes(const std::vector<std::pair<int, int>>& places) {
  return [places](const Product& product, const GemmOptions& options, std::ostream& err) {
    RunOutput run = run_on_device(product, options, err);
    for (const auto& [row, column] : places) {
      auto* code = static_cast<std::uint16_t*>(product.operands.d.data) + row * 72 + column;
      *code = static_cast<std::uint16_t>(*code ^ 0x0040U);
    }
    return run;
  };
}

TEST(GroupedCommand, AWrongElementIsFoundInItsRow) {
  const Called r =
      call(small_grouped_options(), with_changes({{17, 5}}));  // the second row of group 2
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.err, "check: FAIL. 1 of 4248 elements is wrong: D[17, 5]")) << r.err;
}

TEST(GroupedCommand, ARowInNoGroupMustStay) {
  const Called r = call(small_grouped_options(), with_changes({{59, 0}, {63, 71}}));
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.err, "check: FAIL. All 4248 elements are right")) << r.err;
  EXPECT_TRUE(contains(r.err, " Of 5 rows in no group 2 were written.")) << r.err;
}

// So that it shows when rows in no group get into a product.
TEST(GroupedCommand, RowsInNoGroupAreNaN) {
  GemmOptions options = small_grouped_options();
  options.dtype = "e4m3";
  options.scaling = "row-column";
  const GemmRunner look = [](const Product& product, const GemmOptions& how, std::ostream& err) {
    const auto* a = static_cast<const unsigned char*>(product.operands.a.data);
    const auto* scales = static_cast<const float*>(product.operands.scale_a.data);
    EXPECT_EQ(std::count(a, a + 59 * 96, 0xff), 0);
    EXPECT_EQ(std::count(a + 59 * 96, a + 64 * 96, 0xff), 5 * 96);
    EXPECT_EQ(std::count_if(scales, scales + 64, [](float s) { return std::isnan(s); }), 5);
    return run_on_device(product, how, err);
  };
  const Called r = call(options, look);
  EXPECT_EQ(r.status, 0) << r.err;
}

TEST(GroupedCommand, AnElementThatNobodyStoresIsWrong) {
  const GemmRunner idle = [](const Product&, const GemmOptions&, std::ostream&) {
    return RunOutput{};
  };
  const Called r = call(small_grouped_options(), idle);
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.err, "check: FAIL. 4248 of 4248")) << r.err;
}

TEST(GroupedCommand, FindingsAreStatusOne) {
  GemmOptions options = small_grouped_options();
  options.json = true;
  const GemmRunner faulty = [](const Product&, const GemmOptions&, std::ostream&) {
    RunOutput run;
    run.report.findings.push_back({model::Check{}, "too many bytes", {}});
    return run;
  };
  const Called r = call(options, faulty);
  EXPECT_EQ(r.status, 1);
  EXPECT_TRUE(contains(r.err, "so D is not to be trusted:\n")) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  ASSERT_EQ(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["sentence"], "too many bytes");
  EXPECT_FALSE(json.contains("check"));
}

// A time is told with the roof of the groups that have tokens.
TEST(GroupedCommand, TimesAreToldWithTheRoof) {
  GemmOptions options = small_grouped_options();
  options.dtype = "e4m3";
  const std::optional<DeviceFacts> facts = known_facts("h200");
  ASSERT_TRUE(facts.has_value());
  std::ostringstream err;
  const Product few(options, *facts, err);
  // 3 groups with 59 tokens: A, three B, and D in bf16.
  const double bytes = 59 * 96 + 3 * 72 * 96 + 59 * 72 * 2;
  EXPECT_DOUBLE_EQ(roof_us(few.job, few.plan), bytes / facts->memory_bytes_per_second * 1e6);
  options.n = options.k = 16384;
  options.tokens = "8000,0,1000,7000";
  options.total = 20000;
  const Product many(options, *facts, err);
  const double operations = 2.0 * 16000 * 16384 * 16384;
  EXPECT_DOUBLE_EQ(roof_us(many.job, many.plan),
                   operations / tensor_rate(*facts, DType::e4m3) * 1e6);
  const Product model(options, model_facts(), err);
  EXPECT_EQ(roof_us(model.job, model.plan), 0);
}

// The tiles that are told are those that the kernel works on.
TEST(GroupedCommand, TilesAreThoseOfTheRun) {
  for (const char* cluster : {"1,1", "2,1", "1,2"}) {
    for (const char* tokens : {"16,0,3,40", "skew:4", "33"}) {
      GemmOptions options = small_grouped_options();
      options.cluster = cluster;
      options.tokens = tokens;
      options.total.reset();
      if (options.tokens == "skew:4") options.total = 64;
      std::int64_t told = -1;
      std::int64_t run_tiles = -2;
      const GemmRunner runner = [&](const Product& product, const GemmOptions& how,
                                    std::ostream& err) {
        RunOutput run = run_on_device(product, how, err);
        told = tiles_of(product.job, product.plan);
        run_tiles = run.report.statistics.tiles;
        return run;
      };
      EXPECT_EQ(call(options, runner).status, 0);
      EXPECT_EQ(told, run_tiles) << cluster << " " << tokens;
    }
  }
}

// --- check, explain and trace -------------------------------------------------------------------

TEST(GroupedCheckCommand, CleanKernelUnderSchedules) {
  const CliResult r =
      run_cli(small({"check", "grouped"}, {"--schedules", "4", "--jobs", "1", "--sms", "2"}));
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_TRUE(contains(r.out, "check: PASS. grouped_bf16_bf16_128x16_b_sw_c")) << r.out;
  EXPECT_TRUE(contains(r.out, " under 4 schedules: no findings.")) << r.out;
  const CliResult again = run_cli(small({"check", "grouped"}, {"--replay", "12", "--json"}));
  EXPECT_EQ(again.status, 0) << again.out << again.err;
  const auto json = nlohmann::json::parse(again.out);
  EXPECT_EQ(json["schedules"], 1);
  EXPECT_TRUE(json["findings"].empty());
}

TEST(GroupedCheckCommand, MutantsAreKilledAndEachCanBeSeen) {
  const auto check = [](const Words& more) {
    return run_cli(joined({"check", "grouped", "--groups", "2", "--tokens", "20,9", "--n", "136",
                           "--k", "192", "--cluster", "1,1", "--sms", "1"},
                          more));
  };
  const CliResult r = check({"--mutate", "--schedules", "3", "--json"});
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  const auto table = nlohmann::json::parse(r.out);
  EXPECT_TRUE(contains(table["score"], "mutation score: 100%")) << table["score"];
  std::size_t row = 0;
  for (std::size_t i = 0; i < table["mutants"].size() && row == 0; ++i) {
    if (table["mutants"][i]["fate"] == "killed") row = i + 1;
  }
  ASSERT_GT(row, 0U) << r.out;
  const CliResult one = check({"--mutant", std::to_string(row), "--schedules", "3", "--json"});
  EXPECT_EQ(one.status, 1) << one.out << one.err;
  const auto findings = nlohmann::json::parse(one.out)["findings"];
  ASSERT_FALSE(findings.empty()) << one.out;
  EXPECT_FALSE(findings[0]["sentence"].get<std::string>().empty());
  expect_refused({"check", "grouped", "--groups", "2", "--tokens", "20,9", "--n", "136", "--k",
                  "192", "--mutant", "100000"},
                 "--mutant is 100000");
}

TEST(GroupedExplain, TellsThePlanAndHowTilesFall) {
  const CliResult r = run_cli({"explain", "grouped", "--groups", "8", "--tokens", "16", "--n",
                               "4096", "--k", "4096", "--dtype", "e4m3", "--as", "h200"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "device     h200, sm_90, 132 SMs")) << r.out;
  EXPECT_TRUE(contains(r.out, "16 tokens on average in a group")) << r.out;
  EXPECT_TRUE(contains(r.out, "bound      HBM")) << r.out;
  EXPECT_TRUE(contains(r.out, "lengths    8 groups of up to 16 tokens, 128 in all: 256 tiles"))
      << r.out;
  const CliResult hint = run_cli(small({"explain", "grouped"}, {"--expected-tokens", "40"}));
  EXPECT_TRUE(contains(hint.out, "40 tokens expected in a group")) << hint.out;
  // A plan needs no memory for its tensors.
  EXPECT_EQ(run_cli({"explain", "grouped", "--groups", "600", "--tokens", "9", "--n", "100000",
                     "--k", "100000"})
                .status,
            0);
}

TEST(GroupedTrace, WritesATimelineAndPictures) {
  const fs::path folder = fs::path(testing::TempDir()) / "warpwright_grouped_trace";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const CliResult r = run_cli(
      small({"trace", "grouped"}, {"--out", file("t.pftrace"), "--svg", file("t.svg"), "--grid-svg",
                                   file("g.svg"), "--cluster", "1,1", "--tile-tokens", "32"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "t.pftrace: 5 CTAs, ")) << r.out;
  EXPECT_TRUE(contains(r.out, "Times are nominal cycles")) << r.out;
  EXPECT_GT(fs::file_size(file("t.pftrace")), 1000U);
  const auto text = [&](const char* name) {
    std::ifstream in(file(name));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_TRUE(contains(text("t.svg"), "D[59,72] of 4 groups, K = 96, grouped_bf16_bf16_"));
  // Tiles of different groups have different names.
  for (const char* tile : {"group 0 tile m 0 n 0, k block 0", "consumer 0: group 0 tile m 0 n 0"}) {
    EXPECT_TRUE(contains(text("t.svg"), tile)) << tile;
    EXPECT_TRUE(contains(text("t.pftrace"), tile)) << tile;
  }
  EXPECT_TRUE(contains(text("t.pftrace"), "group 2 tile m 0 n 0"));
  EXPECT_TRUE(contains(text("t.pftrace"), "group 3 tile m 0 n 1"));
  EXPECT_TRUE(contains(text("g.svg"), ">3: 0,1</text>"));
  EXPECT_TRUE(contains(text("g.svg"), "a box is a tile (group: m,n)"));
  EXPECT_TRUE(contains(text("g.svg"), "grouped_bf16_bf16_"));
  expect_refused(small({"trace", "grouped"}, {"--svg", file("t.svg"), "--occupy-sm", "8"}),
                 "--occupy-sm is 8");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace warpwright::cli
