// What becomes of a product's sums before they are stored: alpha, scales, bias, beta * C,
// activation, gate.
//
// A plain product multiplies by alpha and is done. Everything else goes a second way, which has the
// vectors of a subtile in shared memory. A load of one and that of an index before it are some
// 1,500 clocks: where registers are left, a subtile's are loaded ahead (VectorLoads).
#pragma once

#include <limits>

#include "warpwright/isa/numeric.h"
#include "warpwright/kernel/params.h"

namespace warpwright::kernel {

/// The first values of an array, and those behind the first in their place: registers have no index
/// at run time.
template <class T, int count, int all>
WW_DEVICE void copy_front(T (&front)[count], const T (&of)[all]) {
  WW_UNROLL for (int i = 0; i < count; ++i) front[i] = of[i];
}
template <int count, class T, int all>
WW_DEVICE void drop_front(T (&of)[all]) {
  WW_UNROLL for (int i = 0; i + count < all; ++i) of[i] = of[i + count];
}

/// The activation, in place. NaN stays; infinities have its limits: no infinity meets a 0, for
/// `cubic` is none, and -infinity is the least number where its sigmoid is 0. (That of NaN is NaN.)
/// That of the error function is there where it `may_be_erf`: a branch of its own.
template <bool may_be_erf = false, int N>
WW_DEVICE void activate(const ActivationParams& a, float (&value)[N]) {
  if (a.relu) {
    WW_UNROLL for (int i = 0; i < N; ++i) value[i] = value[i] < 0 ? 0.0F : value[i];
    if (!a.squares) return;
    WW_UNROLL for (int i = 0; i < N; ++i) value[i] *= value[i];
  } else if (a.smooth) {
    WW_UNROLL for (int i = 0; i < N; ++i) {
      const float x = value[i];
      value[i] = isa::at_least(-std::numeric_limits<float>::max(), x) *
                 isa::sigmoid(x * (a.slope + a.cubic * (x * x)));
    }
  } else if constexpr (may_be_erf) {
    if (!a.by_erf) return;
    WW_UNROLL for (int i = 0; i < N; ++i) {
      const float x = value[i];
      value[i] = isa::at_least(-std::numeric_limits<float>::max(), x) * isa::share_below(x);
    }
  }
}

/// gate = activation(gate) * up, with the limits and the offset of an activation that has some.
template <bool may_be_erf = false, int N>
WW_DEVICE void multiply_gate(const ActivationParams& a, float (&gate)[N], float (&up)[N]) {
  if (a.limit > 0) {
    // Comparisons, which are false for NaN, so that it stays.
    WW_UNROLL for (int i = 0; i < N; ++i) {
      gate[i] = gate[i] > a.limit ? a.limit : gate[i];
      up[i] = up[i] > a.limit ? a.limit : up[i] < -a.limit ? -a.limit : up[i];
      up[i] += a.offset;
    }
  }
  activate<may_be_erf>(a, gate);
  WW_UNROLL for (int i = 0; i < N; ++i) gate[i] *= up[i];
}

}  // namespace warpwright::kernel
