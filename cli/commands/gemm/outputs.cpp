#include "cli/commands/gemm/outputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/commands/gemm/gemm_arguments.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/files/output_file.h"

namespace warpwright::cli {
namespace {

// The sentence for `path` of `option` where that is the file of another option.
std::string over_other(const std::string& option, const std::string& path,
                       const std::string& other) {
  std::string text = option;
  text.append(" ").append(path).append(" is the file of ").append(other);
  return text + ", which it would be written over: give each a file of its own.";
}

}  // namespace

void check_ending(const std::string& option, const std::string& path,
                  const std::vector<std::string_view>& endings) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return;
  const std::string ending = name.substr(dot);
  if (std::find(endings.begin(), endings.end(), ending) != endings.end()) return;
  const std::string start = path.substr(0, path.size() - ending.size());
  throw InputError(option + " is " + path + ", and what it writes is no " + ending +
                   " file: the nearest is " + as_nearest(start, std::string(endings.front())) +
                   ".");
}

void check_not_read(const GemmOptions& run, const std::string& option, const std::string& spec) {
  if (spec.empty()) return;
  const bool is_tensor = names_file(spec) && (spec.ends_with(".npy") ||
                                              spec.find(".safetensors:") != std::string::npos);
  const TensorSpec to = is_tensor ? parse_spec(spec) : TensorSpec{TensorSpec::Kind::npy, spec, ""};
  std::vector<std::pair<const char*, std::string>> inputs = {{"--tokens", run.tokens},
                                                             {"--offsets", run.offsets}};
  for (const TensorOption& each : tensor_options) {
    const bool is_bias = each.file == &GemmOptions::bias;
    inputs.emplace_back(each.name, is_bias ? parse_bias(run.bias).second : run.*each.file);
  }
  for (const auto& [input, named] : inputs) {
    if (!names_file(named)) continue;
    const TensorSpec from = parse_spec(named);
    const bool is_beside = to.kind == TensorSpec::Kind::safetensors &&
                           from.kind == TensorSpec::Kind::safetensors && to.tensor != from.tensor;
    if (is_beside || !is_same_output(to.path, from.path)) continue;
    throw InputError(over_other(option, spec, input));
  }
}

void check_outputs(const std::vector<Output>& outputs, const GemmOptions* product) {
  for (const Output& one : outputs) {
    if (one.path.empty()) continue;
    if (product != nullptr) check_not_read(*product, one.option, one.path);
    check_ending(one.option, one.path, one.endings);
    check_output_file(one.what, one.path);
    for (const Output* other = outputs.data(); other != &one; ++other) {
      if (other->path.empty() || !is_same_output(one.path, other->path)) continue;
      throw InputError(over_other(one.option, one.path, other->option));
    }
  }
}

}  // namespace warpwright::cli
