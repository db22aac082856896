// What a product's sums are multiplied by, of which a part may lie in the device's memory.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// A float of the device's memory; 1 where there is none.
WW_DEVICE
float float_or_one(const float* from, int i = 0) {
  return from == nullptr ? 1.0F : isa::GlobalView<const float>{from}.load(i);
}

/// The scales of the operands' tensors. Their loads are on their way from the beginning on; only
/// who multiplies them waits for them.
class TensorScales {
 public:
  TensorScales() = default;
  /// Those of group `group`.
  WW_DEVICE explicit TensorScales(const ScaleParams& p, int group = 0)
      : a_(float_or_one(p.tensor_a, group * p.tensor_a_stride)),
        b_(float_or_one(p.tensor_b, group * p.tensor_b_stride)) {}

  /// Alpha times the scales.
  [[nodiscard]] WW_DEVICE float times(float alpha) const {
    return alpha * isa::used_here(a_) * isa::used_here(b_);
  }

 private:
  float a_ = 1;
  float b_ = 1;
};

/// Alpha, times the scales of the operands' tensors: those of group `group`.
WW_DEVICE
float alpha_of(const OutputParams& p, const ScaleParams& scales, int group = 0) {
  return TensorScales(scales, group).times(p.alpha);
}

}  // namespace warpwright::kernel
