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
  WW_DEVICE TensorScales(const OutputParams& /*p*/, const ScaleParams& scales, int group = 0)
      : a_(float_or_one(scales.tensor_a, group * scales.tensor_a_stride)),
        b_(float_or_one(scales.tensor_b, group * scales.tensor_b_stride)) {}

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
  return TensorScales(p, scales, group).times(p.alpha);
}

/// The product alone, in one register.
class AlphaAtOnce {
 public:
  AlphaAtOnce() = default;
  WW_DEVICE AlphaAtOnce(const OutputParams& p, const ScaleParams& scales, int group = 0)
      : alpha_(alpha_of(p, scales, group)) {}

  [[nodiscard]] WW_DEVICE float times(float /*alpha*/) const { return alpha_; }

 private:
  float alpha_ = 1;
};

}  // namespace warpwright::kernel
