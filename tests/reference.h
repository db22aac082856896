// What results must be, in double precision, for the tests.
#pragma once

#include <cmath>

#include "warpwright/plan/problem.h"

namespace warpwright::tests {

inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::none:
      break;
  }
  return x;
}

}  // namespace warpwright::tests
