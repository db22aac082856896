#include "cli/reports/refusal_json.h"

#include <algorithm>
#include <optional>
#include <regex>

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// Sentences of refusals are built alike: "THING is VALUE; RULE: the nearest legal value is NEAREST
// (ADVICE)". What of it a sentence lacks is null.
struct Parts {
  std::optional<std::string> tensor, rule, nearest;
};

// The tensor that the sentence begins with, or whose rows, address or extent it begins with. "A" is
// also an article, so a tensor's letter is taken where the words after it speak of one.
std::optional<std::string> tensor_of(const std::string& clause) {
  static const std::regex named(R"(\b(scale_[abd]|the bias|offsets)\b)");
  static const std::regex letter(
      R"((?:^|[ :])([ABCD])(?= is\b| has\b| have\b| are\b| as\b| and\b| overlaps|'s|,|:| \())");
  std::smatch found;
  if (std::regex_search(clause, found, named)) {
    return found[1] == "the bias" ? "bias" : found[1].str();
  }
  if (std::regex_search(clause, found, letter)) return found[1].str();
  static const std::regex of(R"(\bof ([ABCD])\b)");
  if (std::regex_search(clause, found, of)) return found[1].str();
  return std::nullopt;
}

Parts parts_of(std::string text) {
  Parts parts;
  constexpr std::size_t longest = 2000;  // of what a name in it may be any part
  text = text.substr(0, std::min(text.find('\n'), longest));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  static const std::regex see(R"(; see warpwright[a-z0-9 ]* --help$)");
  text = std::regex_replace(text, see, "");
  std::smatch found;
  // The words between hold no stop: another sentence would begin.
  static const std::regex nearest(
      R"(^(.*?)[:;,]? *(?:so )?the nearest [^:;]*?\b(?:is|are) (.+?)(?: \(.*|, or .*|[:;].*)?$)");
  if (std::regex_match(text, found, nearest)) {
    parts.nearest = found[2].str();
    text = found[1].str();
  }
  const std::size_t end = text.find("; ");
  if (end != std::string::npos) {
    parts.rule = text.substr(end + 2);
    text = text.substr(0, end);
  } else if (const std::size_t colon = text.find(": "); colon != std::string::npos) {
    parts.rule = text.substr(colon + 2);
  }
  parts.tensor = tensor_of(text);
  return parts;
}

ordered_json or_null(const std::optional<std::string>& text) {
  return text ? ordered_json(*text) : ordered_json();
}

}  // namespace

ordered_json error_json(const char* code, std::string_view sentence) {
  while (sentence.ends_with('\n')) sentence.remove_suffix(1);
  const Parts parts = parts_of(std::string(sentence));
  ordered_json error;
  error["code"] = code;
  error["tensor"] = or_null(parts.tensor);
  error["rule"] = or_null(parts.rule);
  error["nearest"] = or_null(parts.nearest);
  error["message"] = sentence;
  return {{"error", error}};
}

std::string json_text(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace warpwright::cli
