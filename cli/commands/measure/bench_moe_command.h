// `warpwright bench moe`: layers of experts on a GPU, whole and step by step.
#pragma once

#include <ostream>
#include <string>

#include "cli/commands/measure/bench_command.h"
#include "cli/commands/moe/moe_job.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct BenchMoeOptions : MeasureOptions {
  std::string model;
  std::string tokens = "1,8,64,512,4096";
  std::string dtype = "all";  ///< kinds of weights
  std::string routing;
  MoeChoiceOptions choices;
  bool steps = false;
  bool dependent = false;
  bool wants_json = false;
  std::string json;     ///< a file; empty with wants_json: printed instead of the table
  std::string command;  ///< the whole command line
};

/// All kinds of --dtype.
std::string moe_kind_words(const char* between);

/// Runs the command. Returns 0; 1 when a row could not be measured; 2 for bad input or where the
/// GPU is missing.
int bench_moe_command(const BenchMoeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
