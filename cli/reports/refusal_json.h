// Refusals for programs: what `--json` prints of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace warpwright::cli {

/// {"error": {"code", "tensor", "rule", "nearest", "message"}} of a sentence. The three in the
/// middle are what it says of them (see the .cpp), or null.
nlohmann::ordered_json error_json(const char* code, std::string_view sentence);

/// An object as text, for stdout: indented, with a newline behind it. Bytes that are no UTF-8 are
/// replaced.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace warpwright::cli
