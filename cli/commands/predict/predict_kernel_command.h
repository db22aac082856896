// `warpwright predict kernel`: what one SM does with a kernel's tiles, in counts and in clocks.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "cli/commands/gemm/run.h"

namespace warpwright::cli {

struct PredictKernelOptions {
  std::string kernel;
  RunOptions device;    ///< --as and --machine
  bool counts = false;  ///< the lines that the library keeps
  bool json = false;
};

void add_predict_kernel(CLI::App& predict, PredictKernelOptions& options);

/// Runs a small product by the kernel on the model, on machines of which one part each is slow,
/// and prints the ways through it that no machine can leave out, with the clocks that the device of
/// --as or --machine takes for them. Returns 0; 2 for bad input.
int predict_kernel_command(const PredictKernelOptions& options, std::ostream& out,
                           std::ostream& err);

}  // namespace warpwright::cli
