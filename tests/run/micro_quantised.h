// Quantisations with scales of blocks: random, with what is hard among them, as they may lie.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "warpwright/device/quantise.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {

/// A problem by its seed: tensors in host memory, and their views.
struct MicroQuantised {
  explicit MicroQuantised(std::uint32_t seed) : random(seed) {
    constexpr std::array types = {DType::bf16, DType::f16, DType::f32};
    const MicroFormat& format = micro_formats[random() % std::size(micro_formats)];
    const DType type = types[random() % 3];
    const auto m = static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 300 : 40));
    std::int64_t k = static_cast<std::int64_t>(random() % (random() % 6 == 0 ? 5000 : 400));
    const std::int64_t bits = numeric::bits(format.element);
    const std::int64_t step = bits == 8 ? 1 : bits == 6 ? 4 : 2;
    k = k / step * step;
    const auto some = [&](std::int64_t most) {
      return static_cast<std::int64_t>(random() % 3 == 0 ? random() % most : 0);
    };
    q.scaling = Scaling::block_scaled;
    q.x = matrix(nullptr, type, m, k);
    q.x.row_stride = k + some(9);
    q.codes = matrix(nullptr, format.element, m, k);
    q.codes.row_stride = k + step * some(9);
    x_shift = some(8);
    codes_shift = some(8);
    choose_scales(format, m, k);
    fill_x(type);
    codes.assign(static_cast<std::size_t>(m * q.codes.row_stride * bits / 8 + 32), std::byte{0x55});
    scales.assign(static_cast<std::size_t>(q.scales.rows * q.scales.row_stride + 32),
                  std::byte{0x55});
  }

  /// The call on these addresses.
  [[nodiscard]] Quantisation at(std::byte* x_at, std::byte* codes_at, std::byte* scales_at,
                                float* tensor_at, const void* offsets_at) const {
    Quantisation there = q;
    there.x.data = x_at + x_shift * (numeric::bits(q.x.dtype) / 8);
    there.codes.data = codes_at + codes_shift;
    there.scales.data = scales_at;
    if (has_tensor) there.tensor_scale = matrix(tensor_at, DType::f32, 1, 1);
    if (q.groups.count > 0) there.groups.offsets = offsets_at;
    return there;
  }
  [[nodiscard]] Quantisation here() {
    return at(x.data(), codes.data(), scales.data(), &tensor, offsets.data());
  }
  [[nodiscard]] std::string text() const {
    return std::string(numeric::name(q.x.dtype)) + " " + std::to_string(q.x.rows) + " x " +
           std::to_string(q.x.columns) + " to " +
           micro_format(q.codes.dtype, q.scales.dtype)->word + ", " + micro::name(q.its_recipe()) +
           ", order " + std::to_string(static_cast<int>(q.order)) + ", groups " +
           std::to_string(q.groups.count) + ", tensor " +
           (has_tensor ? std::to_string(tensor) : "none") + (q.given ? " given" : "") +
           ", pitches " + std::to_string(q.x.row_stride) + " and " +
           std::to_string(q.codes.row_stride);
  }

  std::mt19937 random;
  Quantisation q;
  std::int64_t x_shift = 0, codes_shift = 0;
  bool has_tensor = false;
  float tensor = 0;
  std::vector<std::int32_t> offsets;
  std::vector<std::byte> x, codes, scales;

 private:
  void choose_scales(const MicroFormat& format, std::int64_t m, std::int64_t k) {
    const bool power = format.scale == DType::ue8m0;
    if (random() % 4 != 0) {
      const bool first = random() % 2 == 0;
      q.recipe = power ? (first ? Recipe::floor : Recipe::up)
                       : (first ? Recipe::nested : Recipe::nested_4_or_6);
    }
    has_tensor = !power && random() % 3 != 0;
    q.given = has_tensor && random() % 3 == 0;
    constexpr std::array sizes = {0x1p-140F, 0x1p-60F, 1.0F / 4096, 1.0F / 3000, 2.0F, 0x1p125F};
    if (q.given) tensor = sizes[random() % sizes.size()];
    const std::int64_t blocks = (k + micro_block(format.scale) - 1) / micro_block(format.scale);
    if (random() % 3 == 0) {
      q.order = ScaleOrder::rows;
      q.scales = matrix(nullptr, format.scale, m, blocks);
      q.scales.row_stride = blocks + static_cast<std::int64_t>(random() % 3);
      return;
    }
    if (random() % 3 == 0) {
      q.groups.count = 1 + static_cast<std::int64_t>(random() % 70);
      for (std::int64_t g = 0; g <= q.groups.count; ++g) {
        offsets.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(m + 4)) -
                          1);
      }
      std::sort(offsets.begin(), offsets.end());
    }
    q.scales = scale_tiles_of(format.scale, m, blocks, q.groups);
  }

  void fill_x(DType type) {
    const std::int64_t element = numeric::bits(type) / 8;
    x.resize(static_cast<std::size_t>((q.x.rows * q.x.row_stride + 16) * element));
    const int usual = static_cast<int>(random() % 3) - 1;  // sizes of the whole tensor
    for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(element)) {
      const std::uint64_t code =
          numeric::encode(numeric::format_of(type), value() * numeric::pow2(usual * 12));
      std::memcpy(x.data() + at, &code, static_cast<std::size_t>(element));
    }
  }

  double value() {
    if (zeros_left > 0) {
      --zeros_left;
      return random() % 2 == 0 ? 0 : -0.0;
    }
    switch (random() % 2000) {
      case 0:
        return std::numeric_limits<double>::quiet_NaN();
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return 1e-40;
      case 3:
        return 3e38;
      case 4:
        zeros_left = 80;  // so that blocks are nothing but 0
        return 0;
      case 5:
        binade = static_cast<int>(random() % 60) - 30;
        break;
      default:
        break;
    }
    if (random() % 4 == 0) {  // what lies on codes and between them
      return numeric::pow2(binade) * (static_cast<double>(random() % 33) / 4 - 4);
    }
    return numeric::pow2(binade) * (static_cast<double>(random() % 65536) / 32768.0 - 1);
  }

  int zeros_left = 0;
  int binade = 0;
};

}  // namespace warpwright::tests
