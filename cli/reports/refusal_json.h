// Refusals for programs: what `--json` prints of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "warpwright/plan/product/refusal.h"

namespace warpwright::cli {

/// {"error": {"code", "tensor", "rule", "nearest", "message"}} of a sentence, as it is shown.
/// The three in the middle are what the rule that refused `known` of them, or null.
nlohmann::ordered_json error_json(const char* code, const Sentence& known,
                                  std::string_view sentence);

/// An object as text, for stdout: indented, with a newline behind it. Bytes that are no UTF-8 are
/// replaced.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace warpwright::cli
