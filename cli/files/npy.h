#pragma once

/// NumPy's .npy files, versions 1.0 to 3.0, of little-endian f32 and f16; integers are read too.

#include <string>

#include "cli/files/host_tensor.h"

namespace warpwright::cli {

/// Reads a .npy file; a column-major array (fortran_order) is transposed to row-major. The header
/// must account for every byte of the file. Throws InputError.
HostTensor read_npy(const std::string& path);

/// Reads a .npy file of int32 or int64, likewise.
HostIntegers read_npy_integers(const std::string& path);

/// Reads a .npy file of uint8, likewise.
HostTensor read_npy_bytes(const std::string& path);

/// Writes a .npy file of version 1.0, atomically. Throws InputError for types other than f32, f16.
void write_npy(const std::string& path, const HostTensor& tensor);

}  // namespace warpwright::cli
