#include "cli/reports/refusal_json.h"

#include "cli/files/printable.h"

namespace warpwright::cli {

using nlohmann::ordered_json;

ordered_json error_json(const char* code, const Sentence& known, std::string_view sentence) {
  while (sentence.ends_with('\n')) sentence.remove_suffix(1);
  const auto or_null = [](const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(printable(text));
  };
  ordered_json error;
  error["code"] = code;
  error["tensor"] = or_null(known.tensor);
  error["rule"] = or_null(known.rule);
  error["nearest"] = or_null(known.nearest);
  error["message"] = sentence;
  return {{"error", error}};
}

std::string json_text(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace warpwright::cli
