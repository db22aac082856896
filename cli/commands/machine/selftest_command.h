// `warpwright selftest`: for the owner of a GPU that nobody here has. Walks the kernels of the
// build that run there, and writes a report to send back.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "cli/commands/gemm_command.h"
#include "cli/commands/moe/moe_command.h"

namespace CLI {
class App;
}

namespace warpwright::cli {

struct SelftestOptions {
  std::string device = "cuda";
  std::string as;      ///< of the model: whose kernels; empty: all of the build
  std::string report;  ///< a file, which the report takes the place of; empty: none
  int seconds = 120;   ///< no product is begun after these, but for the first of each kernel
  std::uint64_t seed = 1;
  bool json = false;
};

/// How it runs what it tries, which is another way in tests.
struct SelftestRuns {
  GemmRunner product = run_on_device;
  MoeRunner mixture = run_moe_on_device;
  /// A step that takes longer hangs: then the report says so and the program ends. The first launch
  /// of PTX takes as long as the driver compiles.
  double patience_seconds = 300;
};

/// Runs the command. Returns 0; 1 where a result was wrong or a run failed; 2 for bad input and
/// where this build has nothing that runs on the device.
int selftest_command(const SelftestOptions& options, std::ostream& out, std::ostream& err,
                     const SelftestRuns& runs = {});

void add_selftest_command(CLI::App& app, SelftestOptions& options);

}  // namespace warpwright::cli
