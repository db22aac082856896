// `warpwright calibrate`: measures what a CUDA device's units take, and writes its machine file; or
// what products take, and writes its correction.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "cli/commands/measure/learn_correction.h"
#include "warpwright/device/calibrate.h"

namespace warpwright::cli {

/// As they were typed; empty texts were not given.
struct CalibrateOptions {
  std::string out;    ///< the file of the machine, which a new one takes the place of
  std::string from;   ///< a machine's file whose other numbers are kept; empty: `out` itself
  std::string learn;  ///< instead of `out`: the file of the correction
  std::string device = "cuda";
  int rounds = 5;
  std::optional<int> seconds;  ///< that `learn` measures
  bool json = false;
};

/// What measures; another one is for tests.
using MachineProbes = std::function<Result<std::vector<device::MeasuredNumber>>(int, int)>;

/// Runs the command. Returns 0; 1 where a measurement cannot be trusted or a script fails, and the
/// file stays as it was; 2 for bad input, and where no device can be measured.
int calibrate_command(const CalibrateOptions& options, std::ostream& out, std::ostream& err,
                      const MachineProbes& probes = device::measure_machine,
                      const LearnTools& tools = {});

}  // namespace warpwright::cli
