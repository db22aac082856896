// `warpwright bench grouped`: our plans beside a loop of cuBLASLt calls, in one run on one GPU.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct GroupedBenchOptions {
  std::string shapes;         ///< a file
  std::string dtype = "all";  ///< see `parse_kinds`
  std::uint64_t seed = 1;     ///< of the operands
  bool dependent = false;
  std::string configs = "all";
  int rounds = 21;
  std::string json;  ///< a file
  bool markdown = false;
  std::string device = "cuda:0";
  std::string command;  ///< the whole command line
};

/// Runs the command. Returns 0; 1 when a shape could not be measured; 2 for bad input or where the
/// GPU is missing, with one sentence on `err`.
int bench_grouped_command(const GroupedBenchOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
