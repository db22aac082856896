// Random weights in their packed form.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/files/tensor_file.h"
#include "warpwright/facts/packed_weights.h"

namespace warpwright::cli {

/// Weights of f32, [experts x] N x K, quantised to int4 and packed: the header, then the tiles.
/// Throws InputError.
std::vector<std::byte> pack_weights(const HostTensor& weights, const PackedFormat& format);

}  // namespace warpwright::cli
