#include "cli/files/packed_file.h"

#include <cstring>
#include <vector>

#include "cli/files/safetensors.h"
#include "cli/files/tensor_file.h"

namespace warpwright::cli {

FileAndName parse_file_and_name(const std::string& spec) {
  const bool is_whole = spec.ends_with(".safetensors") || spec.ends_with(kIndexSuffix);
  if (is_whole && spec.find('\0') == std::string::npos) return {spec, ""};
  const TensorSpec where = parse_spec(spec);
  if (where.kind == TensorSpec::Kind::npy) {
    throw InputError(
        "\"" + spec + "\" is a .npy file; " +
        as_rule("weights of int4 lie in .safetensors files: write PATH.safetensors:NAME") + ".");
  }
  return {where.path, where.tensor};
}

PackedTensor read_packed(const std::string& spec) {
  auto [path, name] = parse_file_and_name(spec);
  const SafetensorsFile file(path);
  if (name.empty()) {
    std::vector<std::string> bytes;
    for (const TensorFacts& t : file.tensors()) {
      if (t.dtype == DType::u8) bytes.push_back(t.name);
    }
    if (bytes.size() != 1) {
      throw InputError(path + " holds " + std::to_string(bytes.size()) +
                       " tensors of bytes, and packed weights are one: " +
                       as_rule("write ", path, ":NAME") + ".");
    }
    name = bytes.front();
  }
  PackedTensor packed{path + ":" + name, {}, file.read(name), {}};
  if (packed.tensor.dtype != DType::u8) {
    const std::string note = file.note(name);
    const bool is_for_b200 = note.find("scales in tiles") != std::string::npos;
    throw InputError(
        "Tensor " + in_quotes(name) + " of " + path + " has type " + file.find(name)->type + "; " +
        (is_for_b200 ? as_rule("it was packed for B200: pack it again with --for bf16 "
                               "for H100 and H200")
                     : as_rule("packed weights are U8, as `warpwright pack` writes them")) +
        ".");
  }
  packed.header = taken(weights::parse_packed(packed.tensor.bytes, packed.name));
  const auto experts = static_cast<std::size_t>(packed.header.extents.experts);
  const bool has_factor = packed::has_factor(packed.header.format);
  if (!packed.header.lacks_factor())
    packed.alphas.assign(experts, has_factor ? packed.header.factor : 1.0F);
  if (file.find(name + kAlphaSuffix) != nullptr) {
    const HostTensor alpha = file.read(name + kAlphaSuffix);
    const std::size_t count = alpha.bytes.size() / 4;
    if (alpha.dtype != DType::f32 || count != experts) {
      throw InputError("Tensor " + in_quotes(name + kAlphaSuffix) + " of " + path + " is not the " +
                       std::to_string(packed.header.extents.experts) + " factors of " +
                       in_quotes(name) + ": " + as_rule("they are F32, one for each expert") + ".");
    }
    std::vector<float> beside(experts);
    std::memcpy(beside.data(), alpha.bytes.data(), alpha.bytes.size());
    if (!packed.alphas.empty() && packed.alphas != beside) {
      throw InputError("Tensor " + in_quotes(name + kAlphaSuffix) + " of " + path +
                       " are other factors than " + in_quotes(name) + " says of itself: " +
                       as_rule("pack the weights anew, or leave ", name, kAlphaSuffix, " out") +
                       ".");
    }
    packed.alphas = std::move(beside);
  }
  return packed;
}

const std::vector<float>& PackedTensor::known_alphas() const {
  if (!alphas.empty()) return alphas;
  throw InputError("The factors of the nvf4 weights " + name +
                   " are neither in their header nor beside them: " +
                   as_rule("copy the tensor NAME", kAlphaSuffix,
                           " into the file too, as `warpwright pack` wrote it") +
                   ".");
}

}  // namespace warpwright::cli
