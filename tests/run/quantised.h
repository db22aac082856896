// Activations to quantise: random, with what is hard among them, and views of them as they may lie.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "warpwright/device/quantise.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {

/// A problem by its seed: tensors in host memory, as vectors of bytes, and their views.
struct Quantised {
  explicit Quantised(std::uint32_t seed) : random(seed) {
    constexpr std::array types = {DType::bf16, DType::f16, DType::f32};
    constexpr std::array scalings = {Scaling::tensor, Scaling::row_column, Scaling::blockwise};
    const DType type = types[random() % 3];
    const Scaling scaling = scalings[random() % 3];
    const std::int64_t m = static_cast<std::int64_t>(random() % 40);
    const std::int64_t k =
        static_cast<std::int64_t>(random() % 4 == 0 ? 8000 + random() % 3000 : random() % 700);
    const std::int64_t element = numeric::bits(type) / 8;
    q.scaling = scaling;
    q.given = scaling == Scaling::tensor && random() % 2 == 0;
    x_pitch = k + static_cast<std::int64_t>(random() % 3 == 0 ? random() % 9 : 0);
    codes_pitch = k + static_cast<std::int64_t>(random() % 3 == 0 ? random() % 9 : 0);
    x_shift = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 8 : 0);
    codes_shift = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 8 : 0);
    x.resize(static_cast<std::size_t>((m * x_pitch + 16) * element));
    codes.assign(static_cast<std::size_t>(m * codes_pitch + 16), std::byte{0x55});
    for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(element)) {
      const std::uint64_t code = numeric::encode(numeric::format_of(type), value());
      std::memcpy(x.data() + at, &code, static_cast<std::size_t>(element));
    }
    q.x = matrix(nullptr, type, m, k);
    q.x.row_stride = x_pitch;
    q.codes = matrix(nullptr, DType::e4m3, m, k);
    q.codes.row_stride = codes_pitch;
    const std::int64_t blocks = scaling == Scaling::blockwise ? (k + 127) / 128 : 1;
    const std::int64_t rows = scaling == Scaling::tensor ? 1 : m;
    q.scales = matrix(nullptr, DType::f32, rows, blocks);
    if (scaling == Scaling::blockwise && random() % 2 == 0) {  // tokens side by side
      q.scales.row_stride = 1;
      q.scales.column_stride = (rows + 3) / 4 * 4;
    }
    scales.assign(static_cast<std::size_t>((rows + 4) * (blocks + 1)), 0.0F);
    if (q.given) scales[0] = static_cast<float>(1 + random() % 1000) / 4096.0F;
  }

  /// The call on these addresses.
  [[nodiscard]] Quantisation at(std::byte* x_at, std::byte* codes_at, float* scales_at) const {
    Quantisation there = q;
    there.x.data = x_at + x_shift * (numeric::bits(q.x.dtype) / 8);
    there.codes.data = codes_at + codes_shift;
    there.scales.data = scales_at;
    return there;
  }
  [[nodiscard]] std::string text() const {
    return std::string(numeric::name(q.x.dtype)) + " " + std::to_string(q.x.rows) + " x " +
           std::to_string(q.x.columns) + ", scaling " +
           std::to_string(static_cast<int>(q.scaling)) + (q.given ? " given" : "") + ", pitches " +
           std::to_string(x_pitch) + " and " + std::to_string(codes_pitch) + ", shifts " +
           std::to_string(x_shift) + " and " + std::to_string(codes_shift);
  }

  std::mt19937 random;
  Quantisation q;
  std::int64_t x_pitch = 0, codes_pitch = 0, x_shift = 0, codes_shift = 0;
  std::vector<std::byte> x, codes;
  std::vector<float> scales;

 private:
  double value() {
    switch (random() % 64) {
      case 0:
        return std::numeric_limits<double>::quiet_NaN();
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return 1e-40;
      case 3:
        return -0.0;
      case 4:
      case 5:
        return 0;
      default:
        break;
    }
    if (zeros_left > 0) {
      --zeros_left;
      return 0;
    }
    if (random() % 500 == 0) zeros_left = 300;  // so that blocks are nothing but 0
    const double size = static_cast<double>(random() % 65536) / 32768.0 - 1;
    return random() % 100 == 0 ? 300 * size : size;
  }

  int zeros_left = 0;
};

}  // namespace warpwright::tests
