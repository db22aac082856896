// What a product's sums are multiplied by, of which a part may lie in the device's memory.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// A float of the device's memory; 1 where there is none.
WW_DEVICE
float float_or_one(const float* from, int i = 0) {
  return from == nullptr ? 1.0F : isa::GlobalView<const float>{from}.load(i);
}

/// Alpha, times the scales of the operands' tensors: those of group `group`.
WW_DEVICE
float alpha_of(const OutputParams& p, const ScaleParams& scales, int group = 0) {
  return p.alpha * float_or_one(scales.tensor_a, group * scales.tensor_a_stride) *
         float_or_one(scales.tensor_b, group * scales.tensor_b_stride);
}

}  // namespace warpwright::kernel
