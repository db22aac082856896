#include "cli/app.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "cli/commands/devices_command.h"
#include "cli/commands/model_time.h"
#include "cli/commands/run.h"
#include "cli/compute/random.h"
#include "cli/reports/progress.h"
#include "tests/cli/run_cli.h"

namespace warpwright::cli {
namespace {

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
  expect_refused({"multiply"}, "\"multiply\"; known are devices, kernels, gemm, ");
  expect_refused({"explain"}, "explain --help");
  expect_refused({"explain", "masks"}, "\"explain masks\"; known are gemm, grouped");
  expect_refused({"--frob"}, "no option --frob; see warpwright --help");
  expect_refused({"gemm", "--frob"}, "no option --frob; see warpwright gemm --help");
  expect_refused({"gemm", "--random", "3", "3", "3", "--frob=x", "3"}, "no option --frob;");
  expect_refused({"grouped", "--frob"}, "no option --frob; see warpwright grouped --help");
  expect_refused({"gemm", "--x", "x.npy"}, "no option --x;");
  expect_refused({"grouped", "--random", "8", "8", "8"}, "no option --random;");
  expect_refused({"tune", "1", "2", "3", "4"}, "three numbers, and 4 are given");
  expect_refused({"check", "--frob"}, "no option --frob; see warpwright check --help");
  expect_refused({"explain", "gemm", "--frob"}, "no option --frob;");
  expect_refused({"gemm", "stray"}, "\"stray\" is one too many");
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

TEST(Devices, GroupsOfSmsAreBelowTheTable) {
  DeviceFacts h200 = *known_facts("h200");
  DeviceFacts looked_at = h200;
  looked_at.sm_groups = std::make_shared<const SmGroups>(
      SmGroups{{0, 0, 1, 1, 0, 0, -1, 1}, 2, {{1, {0, 1, 1}}, {2, {1, 0}}}});
  std::ostringstream out;
  print_devices({h200, looked_at}, out);
  const std::string text = out.str();
  EXPECT_EQ(text.find("cuda:0  "), text.rfind("cuda:0  "));
  for (const char* line :
       {"\ncuda:1  no group known, 1 SMs: 6\n", "\ncuda:1  group 0, 4 SMs: 0-1 4-5\n",
        "\ncuda:1  group 1, 3 SMs: 2-3 7\n", "\ncuda:1  clusters of 1 go to groups 0 1 1\n",
        "\ncuda:1  clusters of 2 go to groups 1 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Devices, GroupsOfSmsAreAGpusAlone) {
  const std::vector<std::string> product = {"gemm", "--random", "64", "64", "64", "--gpcs"};
  expect_refused(product, "the model's SMs stand in no groups");
  expect_refused({"explain", "gemm", "--random", "64", "64", "64", "--as", "h200", "--gpcs"},
                 "leave one of them out");
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
  expect_refused({"explain", "gemm", "--random", "64", "64", "64", "--layout", "TN", "--dtype",
                  "e4m3", "--as", "b200"},
                 "K-major alone");
}

// Before cp.async: f16 alone, which the kernel of every usual build for any rows multiplies.
TEST(Gemm, MultipliesForVoltaAndTuring) {
  for (const auto& [device, mma] : {std::pair{"t4", "m16n8k8"}, {"v100", "m8n8k4"}}) {
    const std::vector<std::string> product = {"gemm", "--random", "19",      "70", "45",
                                              "--as", device,     "--dtype", "f16"};
    std::vector<std::string> checked = product;
    checked.emplace_back("--check");
    const CliResult r = run_cli(checked);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.err.find("check: PASS"), std::string::npos) << r.err;
    std::vector<std::string> explained = {"explain"};
    explained.insert(explained.end(), product.begin(), product.end());
    const CliResult words = run_cli(explained);
    EXPECT_NE(words.out.find(std::string("mma.sync ") + mma), std::string::npos) << words.out;
    expect_refused({"gemm", "--random", "19", "70", "45", "--as", device}, "multiply fp16 alone");
  }
}

TEST(Explain, Refuses) {
  const std::vector<std::string> base = {"explain", "gemm", "--random", "64", "64", "64"};
  const auto with = [&base](std::vector<std::string> more) {
    std::vector<std::string> all = base;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_refused(with({"--as", "a10"}), "it must be model, v100, t4, a100, ");
  expect_refused(with({"--as", "h200", "--sms", "4"}), "--sms is of the model");
  expect_refused(with({"--layout", "TN", "--dtype", "e4m3"}), "K-major alone");
  expect_refused({"explain", "gemm", "--m", "64", "--k", "64"}, "together");
  expect_refused({"explain", "gemm"}, "A is missing");
  // What would be written by nobody.
  for (const char* command : {"explain", "check"}) {
    expect_refused({command, "gemm", "--random", "64", "64", "64", "--out", "d.npy"},
                   "no option --out");
  }
}

TEST(Help, ListsOptionsAsTheyAreTyped) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"gemm", "--help"},
                                             {"grouped", "--help"},
                                             {"check", "gemm", "--help"},
                                             {"check", "grouped", "--help"},
                                             {"trace", "gemm", "--help"},
                                             {"explain", "grouped", "--help"},
                                             {"bench", "dense", "--help"},
                                             {"bench", "grouped", "--help"},
                                             {"tune", "--help"},
                                             {"mask", "--help"},
                                             {"layout", "--help"}}) {
    const std::string text = run_cli(call).out;
    for (const char* artefact : {"{", "(0x)", "NONNEGATIVE", "REQUIRED"}) {
      EXPECT_EQ(text.find(artefact), std::string::npos) << artefact << "\n" << text;
    }
    // No option with its default behind the type.
    EXPECT_FALSE(std::regex_search(text, std::regex("\n  --[^ ]+ [A-Z]+="))) << text;
  }
  const std::string gemm = run_cli({"gemm", "--help"}).out;
  EXPECT_NE(gemm.find("--pair,--one-sm "), std::string::npos) << gemm;
  EXPECT_NE(gemm.find("(default model)"), std::string::npos) << gemm;
  EXPECT_NE(gemm.find("b200, b300 or rtx5090:"), std::string::npos) << gemm;
  EXPECT_NE(run_cli({"tune", "--help"}).out.find("tune [OPTIONS] [M N K]\n"), std::string::npos);
}

TEST(Help, LayoutListsEveryFunctionThatThereIs) {
  const std::string help = run_cli({"layout", "--help"}).out;
  // A call of none names them all.
  const std::string known = run_cli({"layout", "frobnicate(2)"}).err;
  const std::string before = "there are ";
  std::istringstream words(known.substr(known.find(before) + before.size()));
  int functions = 0;
  for (std::string word; words >> word; ++functions) {
    while (!word.empty() && (word.back() == ',' || word.back() == '.')) word.pop_back();
    EXPECT_NE(help.find("\n  " + word + "("), std::string::npos) << word << "\n" << help;
  }
  EXPECT_GE(functions, 20) << known;
}

TEST(Sms, AreEnoughForTheClusterThatIsAskedFor) {
  RunOptions o;
  EXPECT_EQ(facts_of(o).sms, 8);
  o.cluster = "4,4";
  EXPECT_EQ(facts_of(o).sms, 16);
  o.cluster = "2,1";
  EXPECT_EQ(facts_of(o).sms, 8);
  o.cluster_k = 12;
  EXPECT_EQ(facts_of(o).sms, 12);
  o.ctas = 20;
  EXPECT_EQ(facts_of(o).sms, 20);
  o.sms = 3;
  o.as = "b200";
  EXPECT_EQ(facts_of(o).sms, 3);
  EXPECT_EQ(facts_of(o).architecture, 100);
}

TEST(Sms, EveryCommandOnTheModelTakesThem) {
  const std::vector<std::string> dense = {"gemm", "--random",  "256", "128",
                                          "64",   "--cluster", "4,4"};
  const std::vector<std::string> grouped = {"grouped", "--groups", "2",  "--tokens",  "70,9", "--n",
                                            "256",     "--k",      "64", "--cluster", "4,4"};
  const std::string svg = testing::TempDir() + "warpwright_sms.svg";
  for (const auto& product : {dense, grouped}) {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{}, {"check"}, {"trace"}, {"explain"}}) {
      std::vector<std::string> call = command;
      call.insert(call.end(), product.begin(), product.end());
      if (!command.empty() && command[0] == "trace") call.insert(call.end(), {"--svg", svg});
      if (!command.empty() && command[0] == "check") call.insert(call.end(), {"--schedules", "1"});
      const CliResult r = run_cli(call);
      EXPECT_EQ(r.status, 0) << r.err;
      const auto with_sms = [&call](const char* sms) {
        std::vector<std::string> all = call;
        all.insert(all.end(), {"--sms", sms});
        return all;
      };
      expect_refused(with_sms("8"), "a cluster of 16 CTAs needs as many SMs; device model has 8");
      expect_refused(with_sms("0"), "--sms is 0; the nearest legal value is 1.");
      expect_refused(with_sms("257"), "--sms is 257; the nearest legal value is 256.");
      expect_refused(with_sms("-1"), "--sms is -1; the nearest legal value is 1.");
    }
  }
  std::remove(svg.c_str());
}

TEST(ModelTime, GrowsWithTheWork) {
  EXPECT_LT(model_seconds(1, 128, 16, 64), 1);
  EXPECT_GT(model_seconds(1, 128, 16, 1'000'000'000), 3600);
  EXPECT_GT(model_seconds(64, 128, 256, 4096), 8 * model_seconds(8, 128, 256, 2048));
  std::ostringstream said;
  note_duration(said, "gemm", 59, "smaller is faster");
  EXPECT_EQ(said.str(), "");
  note_duration(said, "gemm", 7200, "smaller is faster");
  EXPECT_EQ(said.str(),
            "gemm: this will take roughly 2.0 hours of a machine that has nothing else to do; "
            "smaller is faster.\n");
}

TEST(Progress, TellsTimeShortly) {
  for (const auto& [seconds, text] : {std::pair{0.2, "1 s"},
                                      {42.4, "42 s"},
                                      {200.0, "3 min"},
                                      {3.0 * 3600, "3.0 hours"},
                                      {30.0 * 3600, "30 hours"},
                                      {100.0 * 3600, "4.2 days"},
                                      {1e9, "32 years"}}) {
    EXPECT_EQ(duration_text(seconds), text);
  }
}

// A terminal with a clock of its own.
class ProgressLine : public testing::Test {
 protected:
  Watch watch(bool shown = true) {
    return {.shown = shown, .ticking = false, .now = [this] { return now_; }};
  }
  void wait(double seconds) {
    now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
  }
  // What is on the screen's line after all that was printed.
  [[nodiscard]] std::string line() const {
    const std::string all = err_.str();
    const std::size_t start = all.rfind('\r');
    std::string text = start == std::string::npos ? all : all.substr(start + 1);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
  }

  Watch::Time now_;
  std::ostringstream err_;
};

TEST_F(ProgressLine, SaysHowMuchIsDoneAndHowLongTheRestTakes) {
  {
    Progress progress(err_, "gemm", "tiles", 64, watch());
    wait(1.9);
    progress.update(8);
    EXPECT_EQ(err_.str(), "");  // short work shows nothing
    wait(8.1);
    progress.update(16);
    EXPECT_EQ(line(), "gemm: 16 of 64 tiles (25%), about 30 s left");
    progress.update(17);
    EXPECT_EQ(line(), "gemm: 16 of 64 tiles (25%), about 30 s left");  // not that often
    wait(10);
    progress.update(32);
    EXPECT_EQ(line(), "gemm: 32 of 64 tiles (50%), about 20 s left");
    wait(5);
    progress.update(32);  // none has ended, but time went by
    EXPECT_EQ(line(), "gemm: 32 of 64 tiles (50%), about 15 s left");
    wait(5);
    progress.update(70);  // tiles that only fill up a cluster count too
    EXPECT_EQ(line(), "gemm: 64 of 64 tiles (100%)");
  }
  EXPECT_EQ(line(), "");
  const std::string all = err_.str();
  EXPECT_EQ(all.find('\n'), std::string::npos);
  EXPECT_EQ(all.back(), '\r');  // the line was wiped
}

TEST_F(ProgressLine, Shares) {
  Progress progress(err_, "check", "", 1000, watch());
  wait(6);
  progress.share(0);
  EXPECT_EQ(line(), "check: 0%, 6 s so far");
  wait(54);
  progress.share(0.1);
  EXPECT_EQ(line(), "check: 10%, about 9 min left");
  std::ostringstream out;
  progress.print(out, "a row\n");
  EXPECT_EQ(line(), "");  // for the row may be on the same terminal
  EXPECT_EQ(out.str(), "a row\n");
  wait(1);
  progress.share(0.5);
  EXPECT_EQ(line(), "check: 50%, about 61 s left");
}

TEST_F(ProgressLine, NeverOffATerminal) {
  {
    Progress hidden(err_, "gemm", "tiles", 10, watch(false));
    wait(100);
    for (int i = 0; i <= 10; ++i) hidden.update(i);
    Progress stream(err_, "gemm", "tiles", 10);  // a stream that is not std::cerr is none
    stream.update(10);
    hidden.share(0.5);
  }
  EXPECT_EQ(err_.str(), "");
  EXPECT_FALSE(watch_of(err_).shown);
}

TEST_F(ProgressLine, TicksWhileNothingEnds) {
  std::atomic<int> looks = 0;
  {
    Watch ticking = watch();
    ticking.ticking = true;
    ticking.now = [&looks] {  // the first look is the start, all others are 5 seconds later
      return Watch::Time(std::chrono::seconds(looks++ == 0 ? 0 : 5));
    };
    Progress progress(err_, "gemm", "tiles", 1, ticking);
    while (looks < 2) std::this_thread::yield();
  }
  EXPECT_NE(err_.str().find("gemm: 0 of 1 tiles (0%), 5 s so far"), std::string::npos);
  EXPECT_EQ(line(), "");
}

}  // namespace
}  // namespace warpwright::cli
