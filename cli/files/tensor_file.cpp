#include "cli/files/tensor_file.h"

#include "cli/files/npy.h"
#include "cli/files/output_file.h"
#include "cli/files/safetensors.h"

namespace warpwright::cli {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";

}  // namespace

TensorSpec parse_spec(const std::string& spec) {
  if (spec.find('\0') != std::string::npos) {
    throw InputError(in_quotes(spec) + " holds a NUL byte, which no file's name does.");
  }
  // Behind the path: ".safetensors:", or that of an index.
  std::size_t colon = std::string::npos;
  for (const std::string_view end : {kSafetensors, kIndexSuffix}) {
    const std::size_t at = spec.rfind(std::string(end) + ":");
    if (at == std::string::npos) continue;
    if (colon == std::string::npos || at + end.size() > colon) colon = at + end.size();
  }
  if (colon != std::string::npos) {
    TensorSpec result{TensorSpec::Kind::safetensors, spec.substr(0, colon), spec.substr(colon + 1)};
    if (result.tensor.empty()) {
      throw InputError("\"" + spec + "\" lacks the tensor's name behind the colon: " +
                       as_rule("write ", result.path, ":NAME") + ".");
    }
    return result;
  }
  if (spec.ends_with(kSafetensors) || spec.ends_with(kIndexSuffix)) {
    throw InputError("\"" + spec + "\" names a file of many tensors, one must be chosen: " +
                     as_rule("write ", spec, ":NAME") + ".");
  }
  if (spec.ends_with(".npy")) return {TensorSpec::Kind::npy, spec, ""};
  throw InputError("\"" + spec + "\" is no tensor file that is understood: " +
                   as_rule("write PATH.npy or PATH.safetensors:NAME") + ".");
}

HostTensor read_tensor(const std::string& spec) {
  const TensorSpec where = parse_spec(spec);
  if (where.kind == TensorSpec::Kind::npy) return read_npy(where.path);
  return read_safetensors(where.path, where.tensor);
}

HostTensor read_codes(const std::string& spec) {
  const TensorSpec where = parse_spec(spec);
  if (where.kind == TensorSpec::Kind::npy) return read_npy_bytes(where.path);
  return SafetensorsFile(where.path).read(where.tensor);
}

HostIntegers read_integers(const std::string& spec) {
  const TensorSpec where = parse_spec(spec);
  if (where.kind == TensorSpec::Kind::npy) return read_npy_integers(where.path);
  return read_safetensors_integers(where.path, where.tensor);
}

void write_tensor(const std::string& spec, const HostTensor& tensor) {
  const TensorSpec where = parse_spec(spec);
  bool is_legal = static_cast<int>(tensor.shape.size()) <= kMaxRank;
  for (const std::int64_t extent : tensor.shape) is_legal = is_legal && extent >= 0;
  if (!is_legal ||
      bytes_of_shape(tensor.shape, tensor.dtype, tensor.bytes.size()) != tensor.bytes.size()) {
    throw InputError("The tensor for \"" + spec + "\" holds " +
                     std::to_string(tensor.bytes.size()) + " bytes, which is not what its shape " +
                     shape_text(tensor.shape) + " of " + std::string(numeric::word(tensor.dtype)) +
                     " takes.");
  }
  if (where.kind == TensorSpec::Kind::npy) {
    write_npy(where.path, tensor);
  } else {
    write_safetensors(where.path, where.tensor, tensor);
  }
}

void check_output(const std::string& spec, const std::string& name) {
  if (spec.empty()) return;
  const TensorSpec where = parse_spec(spec);
  check_output_file(name, where.path);
  if (where.kind == TensorSpec::Kind::safetensors) {
    check_safetensors_output(where.path, where.tensor);
  }
}

}  // namespace warpwright::cli
