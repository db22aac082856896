// Refusals as rows: of a legal product one thing is changed, and what is said then has a code and
// words.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::tests {

using O = GemmOperands;
using Code = RefusalCode;

/// A row. Without a code the change is legal.
struct Refused {
  std::optional<Code> code;
  std::function<void(O&)> change;
  std::vector<std::string> words = {};
};

/// Addresses that nobody reads.
inline std::byte* at(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT
}

/// What is wrong with operands, or a problem, whatever the device.
inline std::optional<Refusal> refused(const GemmProblem& p) {
  return problem_fault(p);
}
inline std::optional<Refusal> refused(const O& o) {
  const auto problem = describe(o);
  return problem ? refused(*problem) : problem.refusal();
}
/// The sentence; empty when nothing is wrong.
template <class Product>
std::string refusal(const Product& product) {
  const auto said = refused(product);
  return said ? said->reason : std::string();
}

inline void expect_says(const std::string& sentence, const std::vector<std::string>& parts) {
  ASSERT_FALSE(sentence.empty()) << "not refused; expected to hear of " << parts.front();
  for (const std::string& part : parts) {
    EXPECT_NE(sentence.find(part), std::string::npos) << "no \"" << part << "\" in: " << sentence;
  }
}

/// Each row's change of `base` is refused so, by `says`: as a product if nothing else is said.
inline void expect_refused(
    const O& base, const std::vector<Refused>& rows,
    const std::function<std::optional<Refusal>(const O&)>& says = [](const O& o) {
      return refused(o);
    }) {
  ASSERT_FALSE(says(base)) << says(base)->reason;
  for (const Refused& row : rows) {
    SCOPED_TRACE("row " + std::to_string(&row - rows.data()));
    O o = base;
    row.change(o);
    const auto said = says(o);
    ASSERT_EQ(said.has_value(), row.code.has_value()) << (said ? said->reason : "not refused");
    if (!said) continue;
    EXPECT_STREQ(name(said->code), name(*row.code)) << said->reason;
    expect_says(said->reason, row.words);
  }
}
/// The same by a launch of a plan for `base`.
inline void expect_mismatches(const Plan& plan, const O& base, const std::vector<Refused>& rows) {
  expect_refused(base, rows, [&](const O& o) { return mismatch(plan, o); });
}

}  // namespace warpwright::tests
