// `warpwright check ptx`: a kernel of a PTX text under many schedules of the model.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/gemm/check_command.h"

namespace warpwright::cli {

struct CheckPtxOptions {
  std::string file, entry;
  std::vector<int> grid = {1};
  std::vector<int> block;
  int cluster = 1;
  int smem = 0;
  int registers = 0;
  int sms = 8;
  std::vector<std::string> buffers, arguments, expected;
  RunOptions run;  ///< only its seed and mode
  CheckCommandOptions check;
};

/// Adds what `check ptx` has beside the options of all checks.
void add_ptx_options(CLI::App& app, CheckPtxOptions& options);

/// Runs the command; the exit status is that of check_command.
int check_ptx_command(const CheckPtxOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
