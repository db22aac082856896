// The words of a product's arguments as values. All throw InputError with one sentence.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cli/commands/gemm_job.h"

namespace warpwright::cli {

/// Both operands' types: "bf16", "fp16", "e4m3", "e5m2", or two 8-bit ones, "e4m3,e5m2".
std::pair<DType, DType> parse_operand_types(const std::string& text);

/// The result's type, the word of --d-dtype.
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

/// The words of values, the same ones.
const char* accumulation_name(Accumulation accumulation);
const char* activation_name(Activation activation);
const char* bias_name(Bias bias);
const char* layout_name(bool a_transposed, bool b_transposed);

/// CTAs of a cluster (with `pair`, for MMAs of pairs of SMs), and "yes" or "no"; nothing where the
/// text is empty.
std::optional<atom::ClusterShape> parse_cluster(const std::string& text, bool pair);
std::optional<bool> parse_swapped(const std::string& text);

/// What the arguments fix of the plan.
PlanChoices parse_choices(const GemmOptions& options);

}  // namespace warpwright::cli
