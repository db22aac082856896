// The devices that known_facts (device_facts.h) knows, for messages and help.
#pragma once

#include <string_view>
#include <vector>

namespace warpwright {

/// Their names, the oldest device first: "v100" to "b300" and "rtx5090".
std::vector<std::string_view> known_devices();

}  // namespace warpwright
