// The command line with --as b200: products, plans, checks and timelines of the Blackwell kernels.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/pictures/grid_svg.h"
#include "tests/cli/run_cli.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;

CliResult b200(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) {
  arguments.insert(arguments.end(), {"--as", "b200"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_cli(arguments);
}

void expect_b200_refused(const CliResult& got, const std::string& words) {
  EXPECT_EQ(got.status, 2) << got.out << got.err;
  EXPECT_NE(got.err.find(words), std::string::npos) << got.err;
}

TEST(BlackwellCli, MultipliesEveryType) {
  for (const char* type : {"bf16", "fp16", "e4m3", "e5m2"}) {
    for (const char* mma : {"--pair", "--one-sm"}) {
      const CliResult got =
          b200({"gemm", "--random", "200", "304", "160", "--check"}, {"--dtype", type, mma});
      EXPECT_EQ(got.status, 0) << got.err;
      EXPECT_NE(got.err.find("check: PASS"), std::string::npos) << got.err;
    }
  }
}

// What comes with the epilogue that both families share, and batches.
TEST(BlackwellCli, ServesScalesBiasActivationsAndBatches) {
  const std::vector<std::vector<std::string>> asked = {
      {"--dtype", "e4m3", "--scaling", "tensor"},
      {"--dtype", "e4m3,e5m2", "--scaling", "row-column", "--d-dtype", "f32"},
      {"--bias", "columns", "--activation", "gelu"},
      {"--bias", "rows", "--activation", "relu", "--pair"},
      {"--batch", "3", "--activation", "silu", "--scheduler", "static"}};
  for (const std::vector<std::string>& more : asked) {
    const CliResult got = b200({"gemm", "--random", "200", "304", "160", "--check"}, more);
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_NE(got.err.find("check: PASS"), std::string::npos) << got.err;
  }
}

TEST(BlackwellCli, ExplainsRolesBarriersTensorMemoryAndMasks) {
  const CliResult got =
      b200({"explain", "gemm", "--random", "4096", "4096", "4096"}, {"--pair", "--cluster", "4,4"});
  EXPECT_EQ(got.status, 0) << got.err;
  for (const char* words : {"sm_100, 148 SMs", "MMA m256n256k16 of kind f16", "scheduler    2",
                            "acc_empty", "tile_empty", "tensor memory  512 of 512 columns",
                            "0x1111  0x0005  0x333f         5", "bound      tensor cores"}) {
    EXPECT_NE(got.out.find(words), std::string::npos) << words << "\n" << got.out;
  }
  // One SM a cluster of one: no pairs, no scheduler with static shares.
  const CliResult one = b200({"explain", "gemm", "--random", "256", "256", "256"},
                             {"--one-sm", "--cluster", "1,1", "--scheduler", "static"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out.find("tmem_done"), std::string::npos) << one.out;
  EXPECT_EQ(one.out.find("tile_full"), std::string::npos) << one.out;
}

TEST(BlackwellCli, ChecksAKernel) {
  const CliResult got = b200({"check", "gemm", "--random", "256", "512", "448"},
                             {"--pair", "--cluster", "2,2", "--schedules", "4", "--strict"});
  EXPECT_EQ(got.status, 0) << got.out << got.err;
  EXPECT_NE(got.out.find("check: PASS"), std::string::npos) << got.out;
}

TEST(BlackwellCli, Refusals) {
  const std::vector<std::string> gemm = {"gemm", "--random", "64", "64", "64"};
  expect_b200_refused(b200(gemm, {"--pair", "--cluster", "1,1"}), "M must be even");
  expect_b200_refused(b200(gemm, {"--accumulators", "5"}), "which has 512");
  expect_b200_refused(b200(gemm, {"--scheduler", "random"}), "it must be one");
  expect_b200_refused(b200(gemm, {"--dtype", "e2m1"}), "must be bf16, fp16, e4m3, e5m2, tf32");
  expect_b200_refused(b200(gemm, {"--dtype", "e4m3", "--d-dtype", "e4m3"}),
                      "store bf16, fp16 and f32");
  expect_b200_refused(b200(gemm, {"--dtype", "e4m3", "--scaling", "block"}), "no block scales");
  expect_b200_refused(b200(gemm, {"--gated"}), "without a gate");
  expect_b200_refused(b200(gemm, {"--layout", "NN"}), "B is MN-major");
  expect_b200_refused(b200(gemm, {"--schedule", "pingpong"}), "are of sm_90");
  expect_b200_refused(b200(gemm, {"--scheduler", "dynamic"}), "tiles from a counter");
  // The Hopper kernels have none of these.
  expect_b200_refused(run_cli({"gemm", "--random", "64", "64", "64", "--pair"}), "sm_100");
  expect_b200_refused(run_cli({"gemm", "--random", "64", "64", "64", "--scheduler", "clc"}),
                      "sm_100");
  expect_b200_refused(
      b200({"trace", "gemm", "--random", "64", "64", "64", "--svg", "x.svg"}, {"--occupy-sm", "8"}),
      "the nearest legal value is 7");
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The deck's pages on launch control: another grid holds an SM, static shares leave a long tail
// behind it, launch control hands its tiles to the others.
TEST(BlackwellCli, LaunchControlTakesTheTilesOfAnOccupiedSm) {
  const fs::path folder = fs::temp_directory_path() / "warpwright_blackwell_test";
  fs::create_directories(folder);
  double kilocycles[2] = {};
  for (int i = 0; i < 2; ++i) {
    const char* scheduler = i == 0 ? "static" : "clc";
    const fs::path path = folder / (std::string(scheduler) + ".svg");
    const CliResult got =
        b200({"trace", "gemm", "--random", "768", "768", "128", "--grid-svg", path.string()},
             {"--one-sm", "--cluster", "1,1", "--scheduler", scheduler, "--occupy-sm", "2"});
    EXPECT_EQ(got.status, 0) << got.err;
    const std::string svg = content(path);
    EXPECT_NE(svg.find("held by another grid"), std::string::npos);
    const std::size_t at = svg.find("36 tiles in ");
    ASSERT_NE(at, std::string::npos) << "every tile once";
    kilocycles[i] = std::stod(svg.substr(at + 12));
  }
  EXPECT_LT(kilocycles[1], 0.75 * kilocycles[0]);
  fs::remove_all(folder);
}

// A lane an SM, and only slices of tiles.
TEST(BlackwellCli, GridPicture) {
  model::TraceBuilder builder;
  for (int sm = 0; sm < 2; ++sm) {
    const int track = builder.add_track(model::TraceTrack::Kind::role, sm, "epilogue");
    builder.track(track).sm = sm;
    builder.begin(track, 100 * sm, "tile m 0 n " + std::to_string(sm));
    builder.begin(track, 100 * sm + 10, "epilogue chunk 0");
    builder.end(track, 100 * sm + 60);
    builder.end(track, 100 * sm + 90);
  }
  const std::string svg = grid_svg(builder.finish(), {"a title", 3, 2});
  EXPECT_NE(svg.find("a title"), std::string::npos);
  EXPECT_NE(svg.find("2 tiles in 0.2 nominal kilocycles"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">0,0<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">0,1<"), std::string::npos) << svg;
  EXPECT_NE(svg.find("held by another grid"), std::string::npos);
  EXPECT_NE(svg.find("SM 2"), std::string::npos);
}

}  // namespace
}  // namespace warpwright::cli
