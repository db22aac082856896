// The words of a product's arguments as values. All throw InputError with one sentence.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// What the arguments say without a look at the files, but for types.
void read_words(const GemmOptions& options, GemmJob& job);

/// Both operands' types: "bf16", "fp16", "e4m3", "e5m2", or two 8-bit ones, "e4m3,e5m2".
std::pair<DType, DType> parse_operand_types(const std::string& text);

/// The same of the words of formats whose operands have scales of their own, "mxf8" or
/// "mxf8,mxf4".
std::pair<DType, DType> micro_types(const GemmOptions& options);

/// The result's type, the word of --d-dtype.
DType parse_result_type(const std::string& text);

/// alpha or beta; `otherwise` where the text is empty.
float parse_scalar(const char* name, const std::string& text, float otherwise);

/// The numbers of a gate, where any is given; the others are those of its activation.
std::optional<GateNumbers> parse_gate(const GateOptions& options, Activation activation);

/// "rows" or "columns", then perhaps "=FILE".
std::pair<Bias, std::string> parse_bias(const std::string& text);

/// The words of values, the same ones.
const char* accumulation_name(Accumulation accumulation);
const char* gate_up_name(bool interleaved);
const char* bias_name(Bias bias);
const char* layout_name(bool a_transposed, bool b_transposed);

}  // namespace warpwright::cli
