// Files of measured times (warpwright/plan/tuning/times.h).
#pragma once

#include <string>
#include <vector>

#include "warpwright/plan/tuning/times.h"

namespace warpwright::cli {

/// What the file has. Throws InputError, which names the `option` that the path came by, where it
/// is no such file: by line and field.
std::vector<MeasuredTime> read_times(const std::string& option, const std::string& path);

}  // namespace warpwright::cli
