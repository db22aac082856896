#include "warpwright/facts/weight_forms.h"

#include <algorithm>
#include <vector>

namespace warpwright::packed {
namespace {

std::string listed(const std::vector<std::string>& words, const char* between, const char* last) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : &word == &words.back() ? last : between) + word;
  }
  return text;
}

std::string word_of_type(DType t) {
  return std::string(numeric::word(t));
}

// Why the scales are those of no format with such codes.
std::string scales_fault(DType code) {
  std::vector<std::string> types;
  std::string owner;
  for (const WeightFormat& format : weight_formats) {
    if (format.code != code) continue;
    owner = types.empty() ? format.word : word_of_type(code);
    for (const DType each : format.scales) {
      if (each != DType::f64) types.push_back(word_of_type(each));
    }
  }
  if (types.empty()) return "packed weights are " + format_words();
  return "the scales of " + owner + " weights are " + listed(types, ", ", " or ");
}

}  // namespace

std::string format_words(const char* between, const char* last) {
  std::vector<std::string> words;
  for (const WeightFormat& format : weight_formats) words.emplace_back(format.word);
  return listed(words, between, last);
}

std::string tokens_words(const WeightFormat* format, const char* between, const char* last) {
  std::vector<std::string> words;
  for (const WeightForm& form : weight_forms) {
    const std::string word = word_of_type(form.tokens);
    const bool is_there = std::find(words.begin(), words.end(), word) != words.end();
    if (!is_there && (format == nullptr || &format_of(form) == format)) words.push_back(word);
  }
  return listed(words, between, last);
}

std::string weights_word(const PackedFormat& f) {
  const WeightFormat* const format = weight_format(f.code, f.scale);
  return format != nullptr ? format->word : word_of_type(f.code);
}

std::string format_fault(const PackedFormat& f) {
  if (weight_form(f) != nullptr) return "";
  const WeightFormat* const format = weight_format(f.code, f.scale);
  if (format == nullptr) return scales_fault(f.code);
  const std::string weights = std::string(format->word) + " weights ";
  if (!is_among(format->groups, f.group, 0)) {
    std::vector<std::string> groups;
    for (const int each : format->groups) {
      if (each > 0) groups.push_back(std::to_string(each));
    }
    return weights + "share a scale in groups of " + listed(groups, ", ", " or ") + " along K";
  }
  const WeightForm* const usual = usual_form(*format, f.tokens);
  if (usual == nullptr) return weights + "are packed for tokens of " + tokens_words(format);
  if (f.zero_points != ZeroPoints::none && !usual->storage.zero_points)
    return weights + "have no zero points";
  const std::string where = f.zero_points != ZeroPoints::none
                                ? "with zero points"
                                : "for tokens of " + word_of_type(f.tokens);
  if (f.encoding != usual->storage.encoding) {
    return weights + where + " take all codes, so their encoding is ex";
  }
  const bool of_rows = usual->storage.exponents == Exponents::of_rows;
  return weights + where + (of_rows ? " have exponents of rows" : " keep their scales as they are");
}

}  // namespace warpwright::packed
