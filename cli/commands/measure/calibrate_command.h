// `warpwright calibrate`: measures what a CUDA device's units take, and writes its machine file.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "warpwright/device/calibrate.h"

namespace warpwright::cli {

struct CalibrateOptions {
  std::string out;   ///< the file of the machine, which a new one takes the place of
  std::string from;  ///< a machine's file whose other numbers are kept; empty: `out` itself
  std::string device = "cuda";
  int rounds = 5;
  bool json = false;
};

/// What measures; another one is for tests.
using MachineProbes = std::function<Result<std::vector<device::MeasuredNumber>>(int, int)>;

/// Runs the command. Returns 0; 1 where a measurement cannot be trusted, and the file stays as it
/// was; 2 for bad input, and where no device can be measured.
int calibrate_command(const CalibrateOptions& options, std::ostream& out, std::ostream& err,
                      const MachineProbes& probes = device::measure_machine);

}  // namespace warpwright::cli
