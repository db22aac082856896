// Options that have a word for every value.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {

/// The parts of a text between marks; an empty text is an empty part.
inline std::vector<std::string> split(std::string_view text, char mark = ',') {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size(); at += parts.back().size() + 1) {
    parts.emplace_back(text.substr(at, text.find(mark, at) - at));
  }
  return parts;
}

/// The words of an option, each with its value.
template <class Value>
using Words = std::initializer_list<std::pair<const char*, Value>>;

/// The mode of plan/product/modes.h that has this word; throws InputError where none of `all` that
/// `keep` has it, and tells of those that `offer`.
template <class Mode, std::size_t N, class Keep, class Offer>
Mode chosen_mode(const char* option, const std::string& text, const Mode (&all)[N],
                 const Keep& keep, const Offer& offer) {
  for (const Mode mode : all) {
    if (keep(mode) && text == name(mode)) return mode;
  }
  throw InputError(std::string(option) + " is \"" + text + "\"; " +
                   as_rule("it must be ", warpwright::listed(all, offer)) + ".");
}
template <class Mode, std::size_t N, class Keep>
Mode chosen_mode(const char* option, const std::string& text, const Mode (&all)[N],
                 const Keep& keep) {
  return chosen_mode(option, text, all, keep, keep);
}

/// Is it a mode of operands and scales that are given apart (mxf8 and nvf4 are types)?
inline bool is_option(Scaling scaling) {
  return !scales_elements(scaling);
}
/// And of products without groups too?
inline bool is_of_all(Scaling scaling) {
  return is_option(scaling) && scaling != Scaling::group;
}

/// The words of the types of operands, those of all kernels first, with `between` behind each.
inline std::string operand_words(const char* between) {
  const auto some = [between](bool (*keep)(DType)) {
    return listed(operand_types, keep, between, between) + between;
  };
  return some(is_of_all_kernels) + some(is_of_registers);
}

/// The formats with scales in the tensor core, with `between` between two and `before_last` before
/// the last.
inline std::string format_words(const char* between, const char* before_last) {
  return joined(micro_formats, between, before_last, &MicroFormat::word);
}

/// "a, b or c".
template <class Value>
std::string listed(const Words<Value>& words) {
  return joined(words, ", ", " or ", &std::pair<const char*, Value>::first);
}

/// The value of a word; throws InputError for others.
template <class Value>
Value chosen(const char* option, const std::string& text, const Words<Value>& words) {
  for (const auto& [word, value] : words) {
    if (text == word) return value;
  }
  throw InputError(std::string(option) + " is \"" + text + "\"; " +
                   as_rule("it must be ", listed(words)) + ".");
}

/// Sets `value` to that of a word; an option that was not given leaves it.
template <class Value, class Target>
void choose(Target& value, const char* option, const std::string& text, const Words<Value>& words) {
  if (!text.empty()) value = chosen<Value>(option, text, words);
}

/// The word of a value that has one.
template <class Value>
const char* word_of(const Value& value, const Words<Value>& words) {
  for (const auto& [word, of] : words) {
    if (of == value) return word;
  }
  return "";
}

/// What --block says of the scales of blocks, of a scaling and weights that may be packed.
inline std::int64_t chosen_block(const std::string& text, Scaling scaling, bool is_packed) {
  std::int64_t block = scale_block;
  choose<std::int64_t>(block, "--block", text, {{"128", 128}, {"64", 64}, {"32", 32}});
  if (text.empty() || (scaling == Scaling::blockwise && !is_packed)) return block;
  throw InputError(std::string("--block is given, and ") +
                   (is_packed ? "weights are packed" : std::string("scaling is ") + name(scaling)) +
                   "; " + as_rule("blockwise scales of e4m3 weights have a block") +
                   ": leave it out.");
}

}  // namespace warpwright::cli
