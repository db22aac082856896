#include "cli/compute/weight_words.h"

#include <algorithm>

#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"

namespace warpwright::cli {
namespace {

// The format whose word has the most letters of `text`.
const packed::WeightFormat& nearest_weights(const std::string& text) {
  return *std::ranges::max_element(packed::weight_formats, {}, [&](const auto& format) {
    return std::ranges::count_if(std::string_view(format.word),
                                 [&](char c) { return text.find(c) != std::string::npos; });
  });
}

}  // namespace

const packed::WeightFormat& chosen_weights(const std::string& word, const char* rest) {
  const packed::WeightFormat* const format = packed::weight_format(word);
  if (format != nullptr) return *format;
  throw InputError("--weights is " + in_quotes(word) + "; " +
                   as_rule("it is ", packed::format_words()) + ": the nearest legal value is " +
                   as_nearest(nearest_weights(word).word) + rest + ".");
}

PackedFormat packed_for_tokens(const packed::WeightFormat& format, const std::string& dtype) {
  if (dtype.empty()) return packed_format(packed::usual_form(format));
  const auto type = numeric::parse_dtype(dtype);
  const packed::WeightForm* const form = type ? packed::usual_form(format, *type) : nullptr;
  if (form != nullptr) return packed_format(*form);
  const bool has_bf16 = packed::usual_form(format, DType::bf16) != nullptr;
  const DType nearest = has_bf16 ? DType::bf16 : packed::usual_form(format).tokens;
  throw InputError("--dtype is " + in_quotes(dtype) + ", and --weights is " + format.word + ": " +
                   as_rule("these are multiplied by tokens of ", packed::tokens_words(&format)) +
                   ": the nearest is " + as_nearest(numeric::word(nearest)) + ".");
}

bool is_of_numbers(const std::string& word) {
  const packed::WeightFormat* const format = packed::weight_format(word);
  return format != nullptr && !packed::has_float_codes(packed_format(packed::usual_form(*format)));
}

std::string of_numbers_words(const char* behind) {
  std::string words;
  for (const packed::WeightFormat& format : packed::weight_formats) {
    if (is_of_numbers(format.word)) words += std::string(format.word) + behind;
  }
  return words;
}

std::vector<std::string> packed_kind_words() {
  std::vector<std::string> words;
  for (const packed::WeightForm& form : packed::weight_forms) {
    if (form.bench == nullptr) continue;
    const packed::WeightFormat& format = packed::format_of(form);
    const bool is_usual = form.tokens == packed::usual_form(format).tokens;
    words.emplace_back(is_usual ? format.word : form.bench);
  }
  return words;
}

}  // namespace warpwright::cli
