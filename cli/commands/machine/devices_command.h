// `warpwright devices`: where products can run.
#pragma once

#include <ostream>
#include <vector>

#include "warpwright/plan/product/device_facts.h"

namespace warpwright::cli {

/// The table of the model and these CUDA devices, with a headline.
void print_devices(const std::vector<DeviceFacts>& cuda_devices, std::ostream& out);

/// Prints the table of this machine on `out`, and on `err` why there is no CUDA device, if so. With
/// `json` the table is one object.
int devices_command(bool json, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
