// `warpwright kernels`: which kernels there are, and which of them this build has.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

namespace warpwright::cli {

/// Which are listed, as it was typed; empty texts were not given.
struct KernelsOptions {
  std::string dtype;  ///< that multiply operands of this type, or e4m3,e5m2
  std::string as;     ///< that run on this device
  bool grouped = false;
  bool built = false;     ///< only those of this build
  bool features = false;  ///< and what each does
  bool json = false;
};

/// Adds `kernels` to `app` and returns it.
void add_kernels_command(CLI::App& app, KernelsOptions& options);

/// Prints a line a kernel. Returns 0, or 2 with one sentence on `err`.
int kernels_command(const KernelsOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
