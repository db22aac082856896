// The kernels of Hopper that are compiled, in one table: a file of rows/ a section. Everything that
// lists kernels (plans, both devices, the build) reads it.
#pragma once

#include "warpwright/kernel/hopper/faults.h"
#include "warpwright/kernel/hopper/rows/dense.h"
#include "warpwright/kernel/hopper/rows/dense_packed.h"
#include "warpwright/kernel/hopper/rows/grouped.h"
#include "warpwright/kernel/hopper/rows/grouped_packed.h"

namespace warpwright::kernel {
namespace hopper {

inline constexpr auto rows =
    joined(joined(dense_rows, dense_packed_rows), joined(grouped_rows, grouped_packed_rows));

}  // namespace hopper

struct HopperRows {
  static constexpr const auto& rows = hopper::rows;
};

}  // namespace warpwright::kernel
