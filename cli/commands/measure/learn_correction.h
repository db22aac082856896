// `warpwright calibrate --learn`: a correction of floors by times that this card took itself.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "cli/commands/measure/child_process.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {

/// What is learnt, and where.
struct LearnOptions {
  std::string file;   ///< the correction; the times stay beside it
  int device = 0;     ///< of the GPUs here
  int seconds = 600;  ///< that are measured
  bool json = false;
};

/// What learns; others are for tests.
struct LearnTools {
  /// Beside it the scripts lie: in ../share/warpwright, or in the source tree that it was built in.
  std::string program = this_program();
  std::function<Result<DeviceFacts>(int)> card = device::cuda_device;
};

/// Measures products on the card by script/record, learns from their times by script/learn.py, and
/// says so. Throws InputError where the card, a script, Python or LightGBM is missing, RunError
/// where a script fails.
void learn_correction(const LearnOptions& options, const LearnTools& tools, std::ostream& out);

}  // namespace warpwright::cli
