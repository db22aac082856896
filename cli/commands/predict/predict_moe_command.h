// `warpwright predict moe`: how long a layer of experts will take on a device that need not be
// here.
#pragma once

#include <ostream>

#include "cli/commands/moe/moe_job.h"

namespace warpwright::cli {

/// Plans the layer for the device (--as or --machine, an H200 where nothing is said), draws the ids
/// of its tokens, samples the kernels of its products on the model and composes. Returns 0; 1 when
/// the model found a fault; 2 for bad input.
int predict_moe_command(const MoeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
