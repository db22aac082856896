// `warpwright check gemm` as a user calls it.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/product.h"
#include "run_cli.h"
#include "warpwright/device/check.h"

namespace warpwright::cli {
namespace {

CliResult check_gemm(const std::vector<std::string>& more) {
  // With C, whose loads follow stores into the same buffers: a fence between proxies is needed.
  std::vector<std::string> all = {"check",     "gemm",  "--random", "256",        "256",
                                  "448",       "--sms", "2",        "--schedule", "pingpong",
                                  "--cluster", "1,1",   "--beta",   "1"};
  all.insert(all.end(), more.begin(), more.end());
  return run_cli(all);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

TEST(CheckCommand, CleanKernel) {
  const CliResult r = check_gemm({"--schedules", "3", "--jobs", "1"});
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("check: PASS."), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("3 schedules: no findings."), std::string::npos) << r.out;
}

TEST(CheckCommand, OneScheduleAgain) {
  for (const char* schedule : {"eager", "latest", "12"}) {
    const CliResult r = check_gemm({"--replay", schedule});
    EXPECT_EQ(r.status, 0) << r.out << r.err;
    EXPECT_NE(r.out.find("under 1 schedule:"), std::string::npos) << r.out;
  }
}

TEST(CheckCommand, MutantsAreKilledAndEachCanBeSeen) {
  const CliResult r = check_gemm({"--mutate", "--schedules", "2", "--json"});
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  const auto table = nlohmann::json::parse(r.out);
  std::size_t row = 0;
  int killed = 0;
  int equivalent = 0;
  for (std::size_t i = 0; i < table["mutants"].size(); ++i) {
    const auto& m = table["mutants"][i];
    killed += m["fate"] == "killed" ? 1 : 0;
    equivalent += m["fate"] == "equivalent" ? 1 : 0;
    if (m["fate"] == "killed" && m["check"] == "P1") row = i + 1;
  }
  EXPECT_EQ(table["score"], "mutation score: 100% (killed " + std::to_string(killed) + " of " +
                                std::to_string(killed) + ", equivalent " +
                                std::to_string(equivalent) + ")");
  ASSERT_GT(row, 0U) << "no mutant lacks a proxy fence";
  const CliResult one = check_gemm({"--mutant", std::to_string(row), "--schedules", "2", "--json"});
  EXPECT_EQ(one.status, 1) << one.out << one.err;
  const auto findings = nlohmann::json::parse(one.out)["findings"];
  ASSERT_FALSE(findings.empty()) << one.out;
  EXPECT_EQ(findings[0]["check"], "P1");
  EXPECT_EQ(findings[0]["accesses"].size(), 2U);
  // Sources have their names in the project, wherever it was built.
  EXPECT_TRUE(findings[0]["file"].get<std::string>().starts_with("warpwright/")) << one.out;
  for (const auto& access : findings[0]["accesses"]) {
    EXPECT_TRUE(access["file"].get<std::string>().starts_with("warpwright/")) << access;
  }
  const std::string own = __FILE__;
  const std::string root = own.substr(0, own.find("tests/cli/"));
  EXPECT_EQ((one.out + r.out).find(root), std::string::npos) << one.out;
  EXPECT_NE(findings[0]["mend"].get<std::string>().find("fence_proxy_async_shared"),
            std::string::npos);
  const CliResult reduced =
      check_gemm({"--mutant", std::to_string(row), "--replay", "5", "--reduce"});
  EXPECT_EQ(reduced.status, 1) << reduced.out << reduced.err;
  EXPECT_NE(reduced.out.find("first come first served shows it too"), std::string::npos)
      << reduced.out;
  EXPECT_EQ(reduced.out.find("P1 proxy fence missing at warpwright/"), 0U) << reduced.out;
  EXPECT_EQ(reduced.out.find(root), std::string::npos) << reduced.out;
}

TEST(CheckCommand, TheScoreIsTheLastLine) {
  const CliResult r = check_gemm({"--mutate", "--mode", "eager", "--schedules", "1"});
  const std::string last = last_line(r.out);
  EXPECT_EQ(last.find("mutation score: "), 0U) << last;
  EXPECT_EQ(r.status, last.find("100%") != std::string::npos ? 0 : 1) << last;
}

TEST(CheckCommand, SurvivorsOfTooSmallAProductAreSaidToBeThat) {
  const CliResult r =
      run_cli({"check", "gemm", "--random", "128", "256", "128", "--sms", "2", "--schedule",
               "pingpong", "--mutate", "--mode", "eager", "--schedules", "1"});
  EXPECT_EQ(r.status, 1) << r.out;
  EXPECT_NE(r.out.find("SURVIVED 1"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("note: a tile of 2 K blocks does not go round the ring of "),
            std::string::npos)
      << r.err;
  EXPECT_NE(r.err.find("note: no CTA has a second tile"), std::string::npos) << r.err;
}

TEST(CheckCommand, JobsAreBoundedByTheMachine) {
  const CliResult r = check_gemm({"--jobs", "100000", "--schedules", "70", "--mode", "eager"});
  EXPECT_EQ(r.status, 0) << r.out << r.err;
  const CliResult many = run_cli(
      {"check", "gemm", "--random", "16", "8", "16", "--jobs", "100000", "--schedules", "200"});
  EXPECT_EQ(many.status, 0) << many.out << many.err;
  EXPECT_NE(many.out.find("200 schedules: no findings."), std::string::npos) << many.out;
}

// Memory that runs out in one of the threads ends the check, not the program.
TEST(CheckCommand, WhatAThreadThrowsIsThrownByTheCheck) {
  GemmOptions options;
  options.random = {16, 8, 16};
  std::ostringstream err;
  Product product(options, facts_of(options), err);
  product.load(1, err);
  device::CheckOptions how;
  how.schedules = 16;
  how.jobs = 2;
  how.progress = [](double share) {
    if (share > 0.5) throw std::bad_alloc();
  };
  EXPECT_THROW(static_cast<void>(device::check(product.plan, product.operands, how)),
               std::bad_alloc);
  EXPECT_THROW(static_cast<void>(device::mutate(product.plan, product.operands, how)),
               std::bad_alloc);
}

TEST(CheckCommand, BadInputIsOneSentence) {
  const std::vector<std::vector<std::string>> bad = {
      {"--mode", "soon"},
      {"--schedules", "0"},
      {"--schedules", "-2"},
      {"--schedules", "2000000000"},
      {"--jobs", "0"},
      {"--jobs", "-1"},
      {"--mutant", "0"},
      {"--mutant", "-1"},
      {"--seed", "-1"},
      {"--replay", "someday"},
      {"--mutant", "9999"},
      {"--device", "cuda"},
      {"--reduce"},
      {"--sms", "0"},
      {"--replay", "1", "--mode", "eager"},
  };
  for (const auto& arguments : bad) {
    const CliResult r = check_gemm(arguments);
    EXPECT_EQ(r.status, 2) << arguments[0];
    EXPECT_TRUE(r.out.empty()) << r.out;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

}  // namespace
}  // namespace warpwright::cli
