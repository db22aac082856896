// Plans for one product, timed on a CUDA device in memory of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "warpwright/plan/product/plan.h"

namespace warpwright::device {

/// Microseconds of each of `plans`, all for the product of `like`, on the current CUDA device.
/// Tensors lie in memory that is taken for it and given back, with the extents, strides and
/// alignments of `like`'s, whose own memory is neither read nor written; every launch finds them
/// outside L2 where enough memory is free. `lengths` are those of the product's groups, as many as
/// it has, of a sum of at most M. Waits, some 10 ms a plan; not for a thread whose stream is being
/// captured. Refuses where a launch is refused or no memory is to be had.
Result<std::vector<double>> measure_plans(const std::vector<Plan>& plans, const GemmOperands& like,
                                          const std::vector<std::int64_t>& lengths);

}  // namespace warpwright::device
