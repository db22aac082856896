// Weights in floats as codes, and in their packed form.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cli/files/tensor_file.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/facts/packed_weights.h"
#include "warpwright/weights/source.h"

namespace warpwright::cli {

/// Weights of f32, [experts x] N x K, quantised to the format's codes (of nvf4 with a tensor's
/// scale of 1) and packed: the header, then the tiles. Throws InputError.
std::vector<std::byte> pack_weights(const HostTensor& weights, const PackedFormat& format);

/// Codes and scales in rows, as checkpoints have them.
struct QuantisedMicro {
  std::vector<std::byte> bytes;  ///< of all experts, which `source` points to
  weights::Source source;
};

/// Quantises weights in floats, each view an expert or a batch of them; with `factors`, scales of
/// ue4m3 have the factor of a tensor each. Throws InputError.
QuantisedMicro quantise_micro(std::span<const MatrixView> weights, const MicroFormat& format,
                              std::optional<Recipe> recipe, bool factors);

}  // namespace warpwright::cli
