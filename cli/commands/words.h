// Options that have a word for every value.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// The words of an option, each with its value.
template <class Value>
using Words = std::initializer_list<std::pair<const char*, Value>>;

/// The words of all activations, with `between` between two and `before_last` before the last.
inline std::string activation_words(const char* between, const char* before_last) {
  std::string text;
  for (std::size_t i = 0; i < std::size(all_activations); ++i) {
    if (i > 0) text += i + 1 == std::size(all_activations) ? before_last : between;
    text += name(all_activations[i]);
  }
  return text;
}

/// "a, b or c".
template <class Value>
std::string listed(const Words<Value>& words) {
  std::string text;
  std::size_t left = words.size();
  for (const auto& [word, value] : words) {
    text += word;
    --left;
    if (left > 0) text += left == 1 ? " or " : ", ";
  }
  return text;
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

}  // namespace warpwright::cli
