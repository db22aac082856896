// Weights of 4 bits as e4m3 with a float32 scale for each block of 128 x 128, where that rounds
// none: for those who have the memory and many tokens.
#pragma once

#include <cstddef>
#include <vector>

#include "warpwright/weights/pack.h"

namespace warpwright::weights {

/// E4m3 weights as B of a product with Scaling::blockwise.
struct Fp8Weights {
  packed::Extents extents = {};
  std::vector<std::byte> codes;  ///< [experts, N, K] of e4m3
  /// [experts, ceil(N / 128), ceil(K / 128)]: powers of two, times the factor of the tensor.
  std::vector<float> scales;
};

/// The same weights, exactly. Refuses those of which e4m3 has not all: e2m1 under scales of ue8m0
/// fit where those of a block (of codes other than 0) span at most 15 powers of two; scales of
/// ue4m3 have digits that e4m3 has no place for, unless they are powers of two. Also refuses a
/// factor that a float32 scale has no room for.
Result<Fp8Weights> as_fp8(const Source& source, const Work& work = {});

}  // namespace warpwright::weights
