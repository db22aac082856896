#pragma once

/// Tensors in files: what the command line reads its operands from and writes its results to.

#include <cstdint>
#include <string>

#include "cli/files/host_tensor.h"

namespace warpwright::cli {

/// Where a tensor lies: a .npy file, or one tensor of a .safetensors file or of a checkpoint's
/// index.
struct TensorSpec {
  enum class Kind : std::uint8_t { npy, safetensors };
  Kind kind = Kind::npy;
  std::string path;
  std::string tensor;  ///< the tensor's name; empty for .npy
};

/// Splits "path.npy" or "path.safetensors:name". The name starts behind the last ".safetensors:"
/// or ".safetensors.index.json:", hence a path may hold colons and a name may hold dots and colons.
/// Throws InputError.
TensorSpec parse_spec(const std::string& spec);

/// Reads the tensor that `spec` names. Throws InputError.
HostTensor read_tensor(const std::string& spec);

/// Reads codes or scales: of a .safetensors file a tensor of any type that elements have, of a .npy
/// file uint8. Elements of 4 and 6 bits lie densely, and the shape counts them. Throws InputError.
HostTensor read_codes(const std::string& spec);

/// Reads the integers that `spec` names: int32 or int64 of a .npy file, I32 or I64 of a
/// .safetensors file. Throws InputError.
HostIntegers read_integers(const std::string& spec);

/// Writes a tensor to where `spec` says, atomically: the file is complete and new, or it is as it
/// was. A .safetensors file that exists keeps its other tensors and its metadata, also those that
/// other processes of this machine write with this function at the same time. Throws InputError.
void write_tensor(const std::string& spec, const HostTensor& tensor);

/// Finds out before the work what would keep a result, `name`, from being written after it to where
/// `spec` says, if anywhere. Throws InputError.
void check_output(const std::string& spec, const std::string& name);

}  // namespace warpwright::cli
