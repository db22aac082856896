#include "cli/commands/machine/selftest_command.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/commands/machine/selftest_products.h"
#include "run_cli.h"
#include "tests/must.h"

namespace warpwright::cli {
namespace {

using nlohmann::json;

class SelftestCommand : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // On the model, of a T4: a few kernels.
  int run(const SelftestRuns& runs = {}, bool is_json = false) {
    return selftest_command({.device = "model", .as = "t4", .report = file_, .json = is_json}, out_,
                            err_, runs);
  }
  json report() const { return json::parse(std::ifstream(file_)); }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("selftest_test_" + std::to_string(getpid()));
  std::string file_ = (folder_ / "report.json").string();
  std::ostringstream out_, err_;
};

// The model, but the first element of D of ragged products has a bit turned.
RunOutput with_a_wrong_bit(const Product& product, const GemmOptions& options, std::ostream& err) {
  RunOutput ran = run_on_device(product, options, err);
  const bool is_ragged = !options.kernel.empty() && product.job.product.m() % 16 == 11;
  if (is_ragged) static_cast<std::byte*>(product.operands.d.data)[1] ^= std::byte{0x10};
  return ran;
}

TEST_F(SelftestCommand, EveryKernelRunsAndTheReportSaysSo) {
  EXPECT_EQ(run({}, true), 0) << err_.str();
  const json all = report();
  EXPECT_EQ(all, json::parse(out_.str()));
  EXPECT_EQ(all["passed"], true);
  EXPECT_EQ(all["stopped"], nullptr);
  ASSERT_EQ(all["kernels"].size(), selftest_kernels(75).size());
  for (const json& kernel : all["kernels"]) {
    EXPECT_GE(kernel["right"], 2) << kernel;
    EXPECT_FALSE(kernel.contains("bad")) << kernel;
  }
  // Only fp16 on a T4; all else is refused with a reason, and the mixtures are.
  for (const json& type : all["types"]) {
    EXPECT_EQ(type["outcome"], type["what"] == "fp16" ? "right" : "refused") << type;
    if (type["outcome"] == "refused") {
      EXPECT_NE(type["said"], "");
    }
  }
  for (const json& mixture : all["mixtures"]) EXPECT_EQ(mixture["outcome"], "refused") << mixture;
  EXPECT_EQ(all["times"].size(), 0U);  // the model has none
  EXPECT_EQ(all.dump().find(folder_.string()), std::string::npos);
}

TEST_F(SelftestCommand, AWrongBitIsFoundAndNamed) {
  EXPECT_EQ(run({.product = with_a_wrong_bit}), 1);
  expect_contains(out_.str(), "FAIL registers_m16n8k8_f16_f16_64x64_any, ragged M, N and K: ");
  expect_contains(out_.str(), "again: warpwright gemm --random");
  expect_contains(out_.str(), "selftest: FAIL on ");
  const json all = report();
  EXPECT_EQ(all["passed"], false);
  std::size_t bad = 0;
  for (const json& kernel : all["kernels"]) {
    if (!kernel.contains("bad")) continue;
    for (const json& one : kernel["bad"]) {
      EXPECT_EQ(one["outcome"], "wrong");
      EXPECT_TRUE(contains(one["said"], "D[0, 0]")) << one;
      ++bad;
    }
  }
  EXPECT_GT(bad, 0U);
}

TEST_F(SelftestCommand, ARunThatFailsIsNotLeftOut) {
  SelftestRuns runs;
  runs.product = [](const Product&, const GemmOptions&, std::ostream&) -> RunOutput {
    throw RunError(Sentence{"the kernel failed"});
  };
  EXPECT_EQ(run(runs), 1);
  expect_contains(out_.str(), "the kernel failed");
  expect_contains(out_.str(), "kernels that ran: ");
}

TEST_F(SelftestCommand, AWrongMixtureIsFound) {
  SelftestRuns runs;
  runs.mixture = [](const MoeJob& job, const MoeOptions& options, std::ostream& err) {
    model::Report report = run_moe_on_device(job, options, err);
    static_cast<std::byte*>(job.operands.d.data)[1] ^= std::byte{0x10};
    return report;
  };
  runs.product = [](const Product& product, const GemmOptions&, std::ostream&) -> RunOutput {
    throw InputError("not here: " + product.plan.kernel);
  };
  SelftestOptions o;
  o.device = "model";
  o.as = "b200";
  o.seconds = 1;
  EXPECT_EQ(selftest_command(o, out_, err_, runs), 1);
  expect_contains(out_.str(), "FAIL bf16: ");
}

TEST_F(SelftestCommand, WhatHangsIsNamedInTheReport) {
  SelftestRuns runs;
  runs.patience_seconds = 0.1;
  runs.product = [](const Product&, const GemmOptions&, std::ostream&) -> RunOutput {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    return {};
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        err_.basic_ios<char>::rdbuf(std::cerr.rdbuf());
        run(runs);
      },
      ::testing::ExitedWithCode(1), "It hung in the smallest: registers_");
}

TEST_F(SelftestCommand, RefusesWhatItCannotUse) {
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--device", "gpu"}, "--device is \"gpu\""},
           {{"--device", "model", "--as", "b300x"}, "--as is \"b300x\""},
           {{"--device", "model", "--seconds", "0"}, "the nearest legal value is 1"},
           {{"--device", "model", "--report", (folder_ / "none" / "r.json").string()},
            "The report"}}) {
    std::vector<std::string> all = {"selftest"};
    all.insert(all.end(), words.begin(), words.end());
    expect_refused(all, part);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace warpwright::cli
