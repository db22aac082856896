// The command line, called from a test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace warpwright::cli {

/// What a call of the command line gave.
struct CliResult {
  int status = 0;
  std::string out;
  std::string err;
};

inline CliResult run_cli(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  CliResult result;
  result.status = run_app(arguments, out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Status 2, nothing on stdout, and one sentence on stderr with `part` in it.
inline void expect_refused(const std::vector<std::string>& arguments, const std::string& part) {
  const CliResult r = run_cli(arguments);
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_NE(r.err.find(part), std::string::npos) << part << " in " << r.err;
}

}  // namespace warpwright::cli
