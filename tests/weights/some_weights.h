// Weights of 4 bits for tests.
#pragma once

#include <cmath>
#include <random>

#include "warpwright/numeric/float_format.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {

// Weights of all codes from `least` up, with scales of some sizes, in the plain layout.
inline PlainWeights some_weights(const packed::Extents& e, int group, DType scale,
                                 bool zeros = false, int least = -8, unsigned seed = 1) {
  std::mt19937 random(seed);
  PlainWeights w{e, group, scale, "test", {}, {}, {}};
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

// Random e2m1 codes of "mxf4" or "nvf4", under scales whose codes are `least` to `largest`.
inline PlainWeights some_e2m1(const packed::Extents& e, const char* word, int least, int largest,
                              std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const packed::WeightFormat& format = *packed::weight_format(word);
  PlainWeights w{e, format.groups[2], format.scales[0], "test", {}, {}, {}, format.code};
  w.codes.resize(static_cast<std::size_t>(e.experts * e.n * e.k / 2));
  w.scales.resize(static_cast<std::size_t>(e.experts * e.n * e.k / w.group));
  for (std::byte& code : w.codes) code = static_cast<std::byte>(random());
  for (std::byte& scale : w.scales) {
    scale = static_cast<std::byte>(
        least + static_cast<int>(random() % static_cast<unsigned>(largest - least + 1)));
  }
  return w;
}

}  // namespace warpwright::weights
