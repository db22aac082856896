// What --weights and --dtype say of packed weights, by the table of their forms.
#pragma once

#include <string>
#include <vector>

#include "warpwright/facts/weight_forms.h"

namespace warpwright::cli {

/// The format of a word of --weights. Throws InputError, with `rest` behind the nearest word.
const packed::WeightFormat& chosen_weights(const std::string& word, const char* rest = "");

/// Weights of a format as they are packed for tokens of --dtype, or for the usual ones where that
/// is empty. Throws InputError for tokens that they are not packed for.
PackedFormat packed_for_tokens(const packed::WeightFormat& format, const std::string& dtype);

/// Is it the word of a format whose codes are whole numbers; and all of them, `behind` each.
bool is_of_numbers(const std::string& word);
std::string of_numbers_words(const char* behind);

/// Kinds of `bench` that are forms of packed weights: "mxf4", or with other tokens "mxf4-bf16".
std::vector<std::string> packed_kind_words();

}  // namespace warpwright::cli
