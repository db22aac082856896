// Unit tests of kernels with GoogleTest: a kernel runs on the model under many schedules, and a
// test says what may be found.
//
//   using namespace warpwright::model;
//   testing::Buffer<float> x("x", 1024, testing::Access::input);
//   testing::Buffer<float> y("y", 1024);
//   const testing::Launch launch{.ctas = 2, .threads = 128, .shared_bytes = 4096};
//   EXPECT_CLEAN(testing::run([&] { scale(x.data(), y.data()); }, launch, x, y));
//
// Only tests include this header: it needs GoogleTest, the library does not. Buffers, launches and
// `run` are in schedules.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "warpwright/model/schedules.h"

namespace warpwright::model::testing::detail {

inline ::testing::AssertionResult clean_family(const char* /*expression*/, const Family& family) {
  if (!family.exists()) {
    return ::testing::AssertionFailure()
           << "no function of this program has these words in its name";
  }
  if (family.clean() && family.untried().empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << family.text();
}

inline ::testing::AssertionResult clean(const char* /*expression*/, const Outcome& outcome) {
  if (outcome.runs.empty()) return ::testing::AssertionFailure() << "no schedule was run";
  if (outcome.clean()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the kernel is not clean. " << outcome.text();
}

inline ::testing::AssertionResult finds(const Outcome& outcome, std::initializer_list<Check> checks,
                                        bool nothing_else) {
  const auto said = [](Check check) {
    return std::string(code(check)) + " (" + std::string(name(check)) + ")";
  };
  for (const Check check : checks) {
    if (outcome.has(check)) continue;
    return ::testing::AssertionFailure() << "not found: " << said(check) << ". " << outcome.text();
  }
  if (!nothing_else) return ::testing::AssertionSuccess();
  for (const Seen& s : outcome.findings()) {
    if (std::find(checks.begin(), checks.end(), s.finding.check) != checks.end()) continue;
    return ::testing::AssertionFailure()
           << "found, and not expected: " << said(s.finding.check) << ". " << outcome.text();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace warpwright::model::testing::detail

/// Nothing was found in any schedule.
#define EXPECT_CLEAN(outcome) \
  EXPECT_PRED_FORMAT1(::warpwright::model::testing::detail::clean, outcome)
#define ASSERT_CLEAN(outcome) \
  ASSERT_PRED_FORMAT1(::warpwright::model::testing::detail::clean, outcome)

/// No shape of the family has a finding, and every synchronising statement of the kernel ran.
#define EXPECT_CLEAN_FAMILY(family) \
  EXPECT_PRED_FORMAT1(::warpwright::model::testing::detail::clean_family, family)

/// `check` found something in at least one schedule; other findings are ignored.
#define EXPECT_FINDING(outcome, check) \
  EXPECT_TRUE(::warpwright::model::testing::detail::finds((outcome), {check}, false))

/// Each of these checks found something in at least one schedule, and no other check did.
#define EXPECT_ONLY_FINDINGS(outcome, ...) \
  EXPECT_TRUE(::warpwright::model::testing::detail::finds((outcome), {__VA_ARGS__}, true))
