// Random matrices that are the same on every machine.
#pragma once

#include <cstdint>

#include "cli/files/tensor_file.h"

namespace warpwright::cli {

/// `count` normal values (mean 0, variance 1) of stream `stream` of `seed`, rounded to `dtype`
/// (f32, f16, bf16, e4m3 or e5m2; for s8 32 times as much, and tf32 are whole words of f32, of
/// which tensor cores read the upper 19 bits), as a tensor of `shape`. The bytes depend only on the
/// arguments: not on the machine, its libraries or how many threads (0: as many as there are) share
/// the work.
HostTensor random_normal(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                         std::uint64_t stream, int threads = 0);

/// Random scales, f32: positive, most between 1/4 and 2.
HostTensor random_scales(const std::vector<std::int64_t>& shape, std::uint64_t seed,
                         std::uint64_t stream);

}  // namespace warpwright::cli
