// What the model found, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "warpwright/model/report.h"

namespace warpwright::cli {

/// A finding as `--json` prints it.
nlohmann::ordered_json finding_json(const model::Finding& finding);

}  // namespace warpwright::cli
