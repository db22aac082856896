// What a test cannot go on without, and what must be so where it goes on.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace warpwright {

[[noreturn]] inline void end_test(const char* file, int line, const std::string& why) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + why);
}

/// A plan, or what else may be refused or be nothing: there the test ends with the reason.
template <class Made>
Made must(Made made, const std::string& about = "nothing", const char* file = __builtin_FILE(),
          int line = __builtin_LINE()) {
  if (made) return made;
  if constexpr (requires { made.reason(); }) end_test(file, line, made.reason());
  end_test(file, line, about);
}

/// The same of what returns nothing but a refusal.
template <class Refused>
void must_do(const Refused& refused, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
  if (refused) end_test(file, line, refused->reason);
}

/// The reason of what must be refused.
template <class Made>
std::string why_not(const Made& made, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (made) end_test(file, line, "this is not refused");
  return made.reason();
}

/// Words that a text must have.
inline void expect_contains(const std::string& text, const std::string& part,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (text.find(part) == std::string::npos) {
    ADD_FAILURE_AT(file, line) << "no \"" << part << "\" in:\n" << text;
  }
}

/// A report in which there is no finding.
template <class Report>
Report must_be_clean(Report report, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
  if (!report.clean()) ADD_FAILURE_AT(file, line) << report.text();
  return report;
}

}  // namespace warpwright
