// The words of a product's arguments as values. All throw InputError with one sentence.
#pragma once

#include <string>
#include <utility>

#include "cli/gemm_job.h"

namespace warpwright::cli {

/// A and B's types: "bf16", "fp16", "e4m3", "e5m2", or two 8-bit ones, "e4m3,e5m2".
std::pair<DType, DType> parse_operand_types(const std::string& text);

/// D's type.
DType parse_result_type(const std::string& text);

/// alpha or beta; `otherwise` where the text is empty.
float parse_scalar(const char* name, const std::string& text, float otherwise);

/// The options that have a word for every value; empty texts are the defaults.
Scaling parse_scaling(const std::string& text);
Accumulation parse_accumulation(const std::string& text);
Activation parse_activation(const std::string& text);

/// "rows" or "columns", then perhaps "=FILE".
std::pair<Bias, std::string> parse_bias(const std::string& text);

/// "NT" and so on: is A stored K x M, and B K x N?
std::pair<bool, bool> parse_layout(const std::string& text);

/// What the arguments fix of the plan.
PlanChoices parse_choices(const GemmOptions& options);

}  // namespace warpwright::cli
