// What the model found, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/compute/check.h"
#include "warpwright/model/report/report.h"

namespace warpwright::cli {

/// How a result compares, as `--json` prints it.
nlohmann::ordered_json check_json(const CheckResult& result);

/// A finding as `--json` prints it.
nlohmann::ordered_json finding_json(const model::Finding& finding);

}  // namespace warpwright::cli
