// --or-fp8: packed weights that a product takes as fp8 of the same values where that is faster.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "cli/commands/gemm/gemm_job.h"
#include "warpwright/plan/search/alternatives.h"

namespace warpwright::cli {

/// Throws InputError where such packed weights, or none, have no fp8 of the same values in a
/// product that is scaled so.
void require_fp8_form(const std::optional<PackedWeights>& packed, Scaling scaling);

/// Codes of e4m3, and a float32 for each 128 x 128: all matrices of a packed tensor.
struct Fp8Tensors {
  HostTensor codes, scales;
};
/// Throws InputError where e4m3 has not all values.
Fp8Tensors fp8_of(std::span<const std::byte> packed);

/// The faster of both by its prediction; where that is fp8, the job's weights are it from now on,
/// made of the packed ones when they are loaded. Throws InputError where there is no such choice.
Plan choose_weights(GemmJob& job, const DeviceFacts& facts);

/// B and its scales of the job's packed tensor. Throws InputError where e4m3 has not all values.
void load_fp8(GemmJob& job);

}  // namespace warpwright::cli
