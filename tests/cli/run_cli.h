// The command line, called from a test.
#pragma once

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

}  // namespace warpwright::cli
