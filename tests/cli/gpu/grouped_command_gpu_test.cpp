// `warpwright grouped` on a GPU, as a user calls it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_cli.h"
#include "tests/gpu.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

using Words = std::vector<std::string>;

Words joined(Words all, const Words& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(GroupedCommandOnGpu, EveryScalingIsRight) {
  WW_NEEDS_HOPPER();
  for (const Words& type :
       std::vector<Words>{{"--dtype", "bf16"},
                          {"--dtype", "e4m3"},
                          {"--dtype", "e4m3", "--scaling", "tensor"},
                          {"--dtype", "e4m3", "--scaling", "group", "--offsets", "int64"},
                          {"--dtype", "e4m3", "--scaling", "row-column"},
                          {"--dtype", "e4m3", "--scaling", "blockwise"}}) {
    for (const char* tokens : {"skew:1", "7", "0,0,500,3,0,1,129,64"}) {
      const CliResult r = run_cli(
          joined({"grouped", "--groups", "8", "--tokens", tokens, "--total", "900", "--n", "520",
                  "--k", "784", "--device", "cuda", "--check", "--check-offsets", "--json"},
                 type));
      ASSERT_EQ(r.status, 0) << testing::PrintToString(type) << " " << tokens << r.err;
      const auto json = nlohmann::json::parse(r.out);
      EXPECT_EQ(json["check"]["passed"], true) << r.out;
      EXPECT_GT(json["check"]["elements"], 0) << r.out;
      EXPECT_TRUE(json["offsets_fault"].is_null()) << r.out;
    }
  }
}

TEST(GroupedCommandOnGpu, OffsetsOutOfOrderAreTold) {
  WW_NEEDS_HOPPER();
  for (const char* how : {"decreasing", "beyond"}) {
    const CliResult r = run_cli({"grouped", "--groups", "5", "--tokens", "40", "--total", "300",
                                 "--n", "256", "--k", "128", "--bad-offsets", how, "--check",
                                 "--check-offsets", "--device", "cuda"});
    EXPECT_EQ(r.status, 1) << r.err;
    EXPECT_NE(r.err.find("check: PASS. "), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("the offsets of group 4 are not in order"), std::string::npos) << r.err;
  }
}

TEST(GroupedCommandOnGpu, TellsTheTimeOfALaunch) {
  WW_NEEDS_HOPPER();
  const Words call = {"grouped", "--groups", "8",    "--tokens", "128",  "--n",
                      "4096",    "--k",      "4096", "--dtype",  "e4m3", "--device",
                      "auto",    "--repeat", "50",   "--check"};
  const CliResult r = run_cli(call);
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find(" us a launch (50 back to back"), std::string::npos) << r.out;
  const CliResult programs = run_cli(joined(call, {"--json"}));
  const auto time = nlohmann::json::parse(programs.out)["time"];
  EXPECT_EQ(time["launches"], 50);
  // No launch takes less than half of its roof (operands may lie in L2), or more than a second.
  EXPECT_GT(time["launch_us"], time["roof_us"].get<double>() / 2);
  EXPECT_LT(time["launch_us"], 1e6);
}

}  // namespace
}  // namespace warpwright::cli
