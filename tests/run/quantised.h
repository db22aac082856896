// What is quantised, by a seed: random, with what is hard among it, and tensors as they may lie.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "warpwright/device/quantise.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::tests {

/// Which scales: of float32, or of a byte for each few neighbours.
enum class ScaleSize { floats, micro };

/// A problem: tensors in host memory, as vectors of bytes, and their views.
struct Quantised {
  Quantised(std::uint32_t seed, ScaleSize size, std::uint32_t most_rows = 40) : random(seed) {
    constexpr std::array types = {DType::bf16, DType::f16, DType::f32};
    const MicroFormat& format = micro_formats[random() % std::size(micro_formats)];
    const bool micro = size == ScaleSize::micro;
    const DType type = types[random() % 3];
    const DType element = micro ? format.element : DType::e4m3;
    const bool many = micro && random() % 4 == 0;  // more than a tile of scales has
    const auto m = static_cast<std::int64_t>(random() % (many ? 8 * most_rows : most_rows));
    const std::int64_t step = numeric::bits(element) == 8 ? 1 : numeric::bits(element) == 6 ? 4 : 2;
    std::int64_t k = static_cast<std::int64_t>(
        random() % 6 == 0 ? random() % (micro ? 5000U : 11000U) : random() % 700);
    k = k / step * step;
    const auto some = [&](std::int64_t most) {
      return static_cast<std::int64_t>(random() % 3 == 0 ? random() % most : 0);
    };
    q.x = matrix(nullptr, type, m, k);
    q.x.row_stride = k + some(9);
    q.codes = matrix(nullptr, element, m, k);
    q.codes.row_stride = k + step * some(9);
    x_shift = some(8);
    codes_shift = some(8);
    micro ? choose_micro_scales(format, m, k) : choose_scales(m, k);
    fill_x(type);
    codes.assign(static_cast<std::size_t>(m * q.codes.row_stride * numeric::bits(element) / 8 + 32),
                 std::byte{0x55});
    const std::int64_t all = (q.scales.rows + 4) * (q.scales.columns + 4) + 32;
    scales.assign(static_cast<std::size_t>(all * element_bytes(q.scales.dtype)), std::byte{0x55});
    if (q.given && !micro) {
      const float given = static_cast<float>(1 + random() % 1000) / 4096.0F;
      std::memcpy(scales.data(), &given, sizeof given);
    }
  }

  /// The call on these addresses.
  [[nodiscard]] Quantisation at(void* x_at, void* codes_at, void* scales_at, void* tensor_at,
                                const void* offsets_at) const {
    Quantisation there = q;
    there.x.data = static_cast<std::byte*>(x_at) + x_shift * element_bytes(q.x.dtype);
    there.codes.data = static_cast<std::byte*>(codes_at) + codes_shift;
    there.scales.data = scales_at;
    if (has_tensor) there.tensor_scale = matrix(tensor_at, DType::f32, 1, 1);
    if (q.groups.count > 0) there.groups.offsets = offsets_at;
    return there;
  }
  [[nodiscard]] Quantisation here() {
    return at(x.data(), codes.data(), scales.data(), &tensor, offsets.data());
  }
  [[nodiscard]] float float_scale(std::int64_t at) const {
    float value = 0;
    std::memcpy(&value, scales.data() + 4 * at, sizeof value);
    return value;
  }
  [[nodiscard]] std::string text() const {
    const bool micro = q.scaling == Scaling::block_scaled;
    return std::string(numeric::name(q.x.dtype)) + " " + std::to_string(q.x.rows) + " x " +
           std::to_string(q.x.columns) + " to " + std::string(numeric::name(q.codes.dtype)) +
           " by " + std::string(numeric::name(q.scales.dtype)) + ", scaling " + name(q.scaling) +
           (micro ? std::string(", ") + micro::name(q.its_recipe()) : "") + ", order " +
           std::to_string(static_cast<int>(q.order)) + ", groups " +
           std::to_string(q.groups.count) + ", tensor " +
           (has_tensor ? std::to_string(tensor) : "none") + (q.given ? " given" : "") +
           ", pitches " + std::to_string(q.x.row_stride) + " and " +
           std::to_string(q.codes.row_stride) + ", shifts " + std::to_string(x_shift) + " and " +
           std::to_string(codes_shift);
  }

  std::mt19937 random;
  Quantisation q;
  std::int64_t x_shift = 0, codes_shift = 0;
  bool has_tensor = false;
  float tensor = 0;
  std::vector<std::int32_t> offsets;
  std::vector<std::byte> x, codes, scales;

 private:
  void choose_scales(std::int64_t m, std::int64_t k) {
    constexpr std::array scalings = {Scaling::tensor, Scaling::row_column, Scaling::blockwise};
    q.scaling = scalings[random() % 3];
    q.given = q.scaling == Scaling::tensor && random() % 2 == 0;
    const std::int64_t block = 128 >> random() % 3;
    const std::int64_t blocks = q.scaling == Scaling::blockwise ? (k + block - 1) / block : 1;
    const std::int64_t rows = q.scaling == Scaling::tensor ? 1 : m;
    q.scales = matrix(nullptr, DType::f32, rows, blocks);
    if (q.scaling == Scaling::blockwise && random() % 2 == 0) {  // tokens side by side
      q.scales.row_stride = 1;
      q.scales.column_stride = (rows + 3) / 4 * 4;
    }
  }

  void choose_micro_scales(const MicroFormat& format, std::int64_t m, std::int64_t k) {
    q.scaling = Scaling::block_scaled;
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
    const std::int64_t element = element_bytes(type);
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
        zeros_left = 300;  // so that blocks are nothing but 0
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

/// Scales to put in order, by a seed: into tiles and back, or spread over blocks of 128.
struct Reordered {
  explicit Reordered(std::uint32_t seed, std::uint32_t most_rows = 400) : random(seed) {
    const auto m = static_cast<std::int64_t>(random() % most_rows);
    const auto blocks = static_cast<std::int64_t>(random() % 300);
    const bool spread = random() % 3 == 0;
    const std::int64_t batch = random() % 3 == 0 ? 3 : 1;
    if (spread) {
      r.blocks_each = 4;
      r.rows_each = random() % 2 == 0 ? 128 : 1;
    }
    if (batch == 1 && r.rows_each == 1 && random() % 2 == 0) {
      r.groups.count = 1 + static_cast<std::int64_t>(random() % 70);
      r.groups.type = random() % 2 == 0 ? OffsetType::int64 : OffsetType::int32;
      for (std::int64_t g = 0; g <= r.groups.count; ++g) {
        offsets.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(m + 1)));
      }
      std::sort(offsets.begin(), offsets.end());
      for (const std::int64_t o : offsets) short_offsets.push_back(static_cast<std::int32_t>(o));
    }
    const DType type = spread && random() % 2 == 0   ? DType::f32
                       : spread || random() % 2 == 0 ? DType::ue8m0
                                                     : DType::ue4m3;
    r.rows = matrix(nullptr, type, (m + r.rows_each - 1) / r.rows_each,
                    (blocks + r.blocks_each - 1) / r.blocks_each);
    r.rows.row_stride += static_cast<std::int64_t>(random() % 3);
    r.rows.batch = batch;
    r.rows.batch_stride = r.rows.rows * r.rows.row_stride;
    r.tiles = scale_tiles_of(type == DType::ue4m3 ? type : DType::ue8m0, r.rows.rows * r.rows_each,
                             r.rows.columns * r.blocks_each, r.groups, batch);
    const std::int64_t count = batch * r.rows.batch_stride + 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<std::uint8_t>(random() % 255);
      const float power = std::ldexp(1.0F, byte - 127);
      const auto* const bytes = reinterpret_cast<const std::byte*>(&power);
      if (type == DType::f32) {
        plain.insert(plain.end(), bytes, bytes + 4);
      } else {
        plain.push_back(static_cast<std::byte>(byte));
      }
    }
    tiles.resize(static_cast<std::size_t>(batch * r.tiles.rows * r.tiles.columns + 32));
  }

  [[nodiscard]] ScaleReordering at(ScaleOrder to, void* rows_at, void* tiles_at,
                                   const void* offsets_at) const {
    ScaleReordering there = r;
    there.to = to;
    there.rows.data = rows_at;
    there.tiles.data = tiles_at;
    if (r.groups.count > 0) there.groups.offsets = offsets_at;
    return there;
  }
  /// Where offsets lie, and how many bytes they are.
  [[nodiscard]] const void* offset_data() const {
    return r.groups.type == OffsetType::int64 ? static_cast<const void*>(offsets.data())
                                              : short_offsets.data();
  }
  [[nodiscard]] std::int64_t offset_bytes() const {
    return static_cast<std::int64_t>(offsets.size()) * (r.groups.type == OffsetType::int64 ? 8 : 4);
  }
  /// Do they go back into rows?
  [[nodiscard]] bool goes_back() const { return r.rows_each == 1 && r.blocks_each == 1; }
  [[nodiscard]] std::string text() const {
    return std::to_string(r.rows.batch) + " x " + std::to_string(r.rows.rows) + " x " +
           std::to_string(r.rows.columns) + " of " + std::string(numeric::name(r.rows.dtype)) +
           ", each of " + std::to_string(r.rows_each) + " x " + std::to_string(r.blocks_each) +
           ", groups " + std::to_string(r.groups.count);
  }

  std::mt19937 random;
  ScaleReordering r;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> short_offsets;
  std::vector<std::byte> plain, tiles;
};

/// Element (i, k) of what is quantised.
inline double x_at(const Quantisation& q, std::int64_t i, std::int64_t k) {
  const std::int64_t bytes = numeric::bits(q.x.dtype) / 8;
  std::uint64_t code = 0;
  std::memcpy(&code, static_cast<const std::byte*>(q.x.data) + (i * q.x.row_stride + k) * bytes,
              static_cast<std::size_t>(bytes));
  return numeric::decode(numeric::format_of(q.x.dtype), code);
}

}  // namespace warpwright::tests
