// `warpwright bench dense`: our plans beside cuBLASLt on many shapes, in one run on one GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "cli/compute/bench_shapes.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct BenchOptions {
  std::string shapes;  ///< a file
  TypeOptions types;
  std::optional<int> sample;  ///< this many random shapes instead
  std::uint64_t seed = 1;     ///< of these and of the operands
  bool dependent = false;
  std::string configs = "8";
  int rounds = 21;
  std::string json;  ///< a file
  bool markdown = false;
  std::string device = "cuda:0";
  std::string command;  ///< the whole command line
};

/// How many candidates "8" or "all" means: nothing for all. Throws InputError.
std::optional<int> parse_configs(const std::string& text);

/// Runs the command. Returns 0; 1 when a shape could not be measured; 2 for bad input or where the
/// GPU is missing, with one sentence on `err`.
int bench_dense_command(const BenchOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
