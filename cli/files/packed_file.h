// Packed int4 weights in .safetensors files: a tensor of U8, with its header in front.
#pragma once

#include <string>

#include "cli/files/host_tensor.h"
#include "warpwright/weights/header.h"

namespace warpwright::cli {

/// A packed tensor in memory.
struct PackedTensor {
  std::string name;  ///< "path.safetensors:name"
  weights::Header header;
  HostTensor tensor;  ///< u8: the header's bytes, then the tiles
};

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
