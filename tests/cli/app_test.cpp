#include "cli/app.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "cli/devices_command.h"
#include "cli/progress.h"
#include "cli/random.h"
#include "tests/cli/run_cli.h"

namespace warpwright::cli {
namespace {

void expect_refused(const std::vector<std::string>& arguments, const std::string& word) {
  const CliResult r = run_cli(arguments);
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_NE(r.err.find(word), std::string::npos) << r.err;
}

TEST(App, HelpAndVersion) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"-h"},
                                             {"gemm", "--help"},
                                             {"explain", "--help"},
                                             {"explain", "gemm", "--help"},
                                             {"grouped", "--help"},
                                             {"check", "grouped", "--help"},
                                             {"explain", "grouped", "--help"},
                                             {"trace", "grouped", "--help"},
                                             {"devices", "--help"},
                                             {"layout", "--help"},
                                             {"mask", "--help"}}) {
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 0) << call.front();
    EXPECT_NE(r.out.find("Usage: warpwright"), std::string::npos) << r.out;
    EXPECT_EQ(r.err, "");
  }
  EXPECT_NE(run_cli({"gemm", "--help"}).out.find("--random M N K  "), std::string::npos);
  const CliResult version = run_cli({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, std::string("warpwright ") + warpwright::cli::version() + "\n");
}

TEST(App, UsageErrors) {
  expect_refused({}, "subcommand");
  expect_refused({"multiply"}, "\"multiply\"; known are devices, gemm, ");
  expect_refused({"explain"}, "explain --help");
  expect_refused({"explain", "masks"}, "\"explain masks\"; known are gemm, grouped");
  expect_refused({"--frob"}, "--help");
  expect_refused({"gemm", "--frob"}, "gemm --help");
  expect_refused({"gemm", "--a"}, "--a");
  expect_refused({"gemm", "--random", "8", "8", "8", "extra"}, "--random");
  expect_refused({"gemm", "--random", "8", "8", "8", "--seed", "-1"},
                 "--seed: \"-1\" is no integer");
  expect_refused({"gemm", "--random", "8", "8", "8", "--seed", "18446744073709551616"}, "--seed");
  expect_refused({"gemm", "--random", "8", "8", "8", "--seed", "x"}, "--seed");
  expect_refused({"layout"}, "EXPR");
  expect_refused({"layout", "(8,"}, "");
  expect_refused({"mask"}, "--cluster");
  expect_refused({"mask", "--cluster", "17,1"}, "16,1");
}

TEST(App, Layout) {
  const CliResult r = run_cli({"layout", "composition((6,2):(8,2), (4,3):(3,1))"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "((2,2),3):((24,2),8)\n");
  const CliResult table = run_cli({"layout", "(2,3):(3,1)", "--table"});
  EXPECT_EQ(table.status, 0);
  EXPECT_EQ(table.out.find("(2,3):(3,1)\n"), 0U);
  EXPECT_GT(table.out.size(), 20U);
}

TEST(App, Mask) {
  const CliResult r = run_cli({"mask", "--cluster", "4,4", "--rank", "11"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out.find("rank 11 A 0x8888 B 0x0f00 commit "), 0U) << r.out;
  const CliResult pair = run_cli({"mask", "--cluster", "4,4", "--pair"});
  EXPECT_EQ(std::count(pair.out.begin(), pair.out.end(), '\n'), 16);
}

TEST(Devices, ListsTheModel) {
  const CliResult r = run_cli({"devices"});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.out.find("\nmodel "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("227 KiB"), std::string::npos) << r.out;
}

TEST(Devices, OneLineADevice) {
  DeviceFacts h200 = *known_facts("h200");
  h200.name = "cuda:0 NVIDIA H200";
  DeviceFacts other = h200;
  other.name = "cuda:1 NVIDIA H200";
  std::ostringstream out;
  print_devices({h200, other}, out);
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_NE(text.find("\ncuda:0   NVIDIA H200 "), std::string::npos) << text;
  EXPECT_NE(text.find("\ncuda:1   NVIDIA H200 "), std::string::npos) << text;
  for (const char* fact : {"132", "1980 MHz", "131.3 GiB", "60 MiB", "sm_90"}) {
    EXPECT_NE(text.find(fact), std::string::npos) << fact << "\n" << text;
  }
}

TEST(Explain, ForDevicesThatAreNotHere) {
  const CliResult r =
      run_cli({"explain", "gemm", "--random", "4096", "4096", "4096", "--as", "h200"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.err, "");
  for (const char* word : {"h200", "132 SMs", "cluster", "stages", "shared memory", "arrivals",
                           "waves", "tensor cores"}) {
    EXPECT_NE(r.out.find(word), std::string::npos) << word << "\n" << r.out;
  }
  const CliResult model = run_cli({"explain", "gemm", "--m", "300", "--n", "200", "--k", "256",
                                   "--cluster", "2,2", "--beta", "1"});
  EXPECT_EQ(model.status, 0) << model.err;
  EXPECT_NE(model.out.find("2 x 2"), std::string::npos) << model.out;
}

TEST(Explain, EverySchedule) {
  for (const auto& [schedule, word] : {std::pair{"cooperative", "warp-specialised, cooperative"},
                                       {"pingpong", "warp-specialised, ping-pong"},
                                       {"multistage", "persistent, multistage"}}) {
    const CliResult r =
        run_cli({"explain", "gemm", "--random", "512", "512", "512", "--schedule", schedule});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find(word), std::string::npos) << word << "\n" << r.out;
  }
}

TEST(Explain, PlansForADeviceElsewhere) {
  const CliResult r =
      run_cli({"explain", "gemm", "--random", "4096", "4096", "4096", "--as", "b200"});
  EXPECT_EQ(r.status, 0) << r.err;
  for (const char* word : {"b200", "148 SMs", "blackwell_gemm", "bound      tensor cores"}) {
    EXPECT_NE(r.out.find(word), std::string::npos) << word << "\n" << r.out;
  }
  // The problem's own rules hold for every device.
  expect_refused({"explain", "gemm", "--random", "64", "64", "60", "--as", "b200"}, "16 bytes");
}

TEST(Explain, Refuses) {
  const std::vector<std::string> base = {"explain", "gemm", "--random", "64", "64", "64"};
  const auto with = [&base](std::vector<std::string> more) {
    std::vector<std::string> all = base;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_refused(with({"--as", "a100"}), "h200, b200");
  expect_refused({"explain", "gemm", "--random", "64", "64", "60"}, "16 bytes");
  expect_refused({"explain", "gemm", "--m", "64", "--k", "64"}, "together");
  expect_refused({"explain", "gemm"}, "A is missing");
}

TEST(Progress, ShowsOnlyWhereAsked) {
  std::ostringstream hidden;
  {
    Progress progress(hidden, "gemm", "tiles", 10);  // no terminal
    for (int i = 0; i <= 10; ++i) progress.update(i);
  }
  EXPECT_EQ(hidden.str(), "");
  std::ostringstream shown;
  {
    Progress progress(shown, "gemm", "tiles", 4, true, std::chrono::milliseconds(0));
    progress.update(1);
    EXPECT_EQ(shown.str(), "\rgemm: 1 of 4 tiles (25%)");
    progress.update(9);  // tiles that only fill up a cluster count too
    EXPECT_NE(shown.str().find("gemm: 4 of 4 tiles (100%)"), std::string::npos);
  }
  EXPECT_EQ(shown.str().back(), '\r');  // the line was wiped
}

}  // namespace
}  // namespace warpwright::cli
