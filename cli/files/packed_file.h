// Packed weights of 4 bits in .safetensors files: a tensor of U8, with its header in front.
#pragma once

#include <string>
#include <vector>

#include "cli/files/host_tensor.h"
#include "warpwright/weights/header.h"

namespace warpwright::cli {

/// A packed tensor in memory.
struct PackedTensor {
  std::string name;  ///< "path.safetensors:name"
  weights::Header header;
  HostTensor tensor;  ///< u8: the header's bytes, then the tiles
  /// For each expert what its products are multiplied by: for nvf4 the factor of the tensor,
  /// else 1. Empty where neither the header nor a tensor beside it says them.
  std::vector<float> alphas;

  /// These, or InputError where nothing says them.
  [[nodiscard]] const std::vector<float>& known_alphas() const;
};

/// What the names of scales in tiles and of a tensor's factors end with.
inline constexpr const char* kScaleSuffix = "_scale";
inline constexpr const char* kAlphaSuffix = "_alpha";

/// Reads the packed tensor of "path.safetensors:name", or the only one of "path.safetensors", and
/// checks it as a whole. Throws InputError.
PackedTensor read_packed(const std::string& spec);

/// Where tensors are read from or written to whose name may be left out.
struct FileAndName {
  std::string path;
  std::string name;  ///< empty where it was left out
};

/// Splits "path.safetensors" or "path.safetensors:name". Throws InputError.
FileAndName parse_file_and_name(const std::string& spec);

}  // namespace warpwright::cli
