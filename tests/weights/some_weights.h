// Int4 weights for tests.
#pragma once

#include <cmath>
#include <random>

#include "warpwright/numeric/float_format.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {

// Weights of all codes from `least` up, with scales of some sizes, in the plain layout.
inline Int4Weights some_weights(const packed::Extents& e, int group, DType scale,
                                bool zeros = false, int least = -8, unsigned seed = 1) {
  std::mt19937 random(seed);
  Int4Weights w{e, group, scale, "test", {}, {}, {}};
  const auto rows = static_cast<std::size_t>(e.experts * e.n);
  const auto k = static_cast<std::size_t>(e.k);
  for (std::size_t i = 0; i < rows * k / 2; ++i) {
    const auto code = [&] {
      return static_cast<int>(random() % static_cast<unsigned>(8 - least)) + least;
    };
    w.codes.push_back(static_cast<std::byte>((code() & 15) | (code() & 15) << 4));
  }
  for (std::size_t i = 0; i < rows * k / static_cast<std::size_t>(group); ++i) {
    const double s = std::ldexp(1 + static_cast<double>(random() % 128) / 128,
                                -6 - static_cast<int>(random() % 5));
    const std::uint64_t code = numeric::from_double(scale, s);
    for (int b = 0; b < numeric::bits(scale); b += 8)
      w.scales.push_back(static_cast<std::byte>(code >> b));
    if (zeros) w.zeros.push_back(static_cast<std::byte>(random() % 16));
  }
  return w;
}

}  // namespace warpwright::weights
