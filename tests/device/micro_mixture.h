// A mixture of experts whose weights, and tokens on their way, are of formats with scales that the
// tensor core multiplies, with random operands.
#pragma once

#include <cmath>
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "warpwright/device/quantise.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::tests {

/// What is asked of one.
struct MicroAsk {
  const char* formats = "nvf4";  ///< of tokens and weights, as --dtype has them
  int tokens = 9;
  int experts = 5;
  int top_k = 2;
  int hidden = 256;
  int inner = 128;
  int first_expert = 0;
  int experts_total = 0;
  bool interleaved = false;
  bool biases = false;
  bool factors = false;  ///< of tensors, where the format has some
  DType x = DType::bf16;
  DType result = DType::bf16;
  Activation activation = Activation::silu;
  unsigned seed = 1;

  [[nodiscard]] std::string text() const {
    return std::string(formats) + ", " + std::to_string(tokens) + " tokens x " +
           std::to_string(hidden) + ", inner " + std::to_string(inner) + ", top-" +
           std::to_string(top_k) + " of " + std::to_string(experts) + " from " +
           std::to_string(first_expert) + " of " + std::to_string(experts_total) +
           (interleaved ? ", interleaved" : "") + (biases ? ", biases" : "") +
           (factors ? ", factors" : "") + ", seed " + std::to_string(seed);
  }
};

/// Any of those that there are kernels for.
inline MicroAsk micro_ask(unsigned seed) {
  std::mt19937 random(seed * 7919);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  constexpr const char* all[] = {"mxf8", "nvf4", "mxf4", "mxf8,mxf4", "mxf8,mxf6", "mxf4,mxf8"};
  MicroAsk ask;
  ask.formats = all[seed % std::size(all)];
  const bool padded = std::string(ask.formats).find(',') != std::string::npos;
  const int unit = padded ? 128 : 32;  // copies with padding are of 128 elements
  ask.tokens = draw(1, draw(0, 3) == 0 ? 170 : 20);
  ask.experts = draw(1, 6);
  ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 3));
  if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
  ask.top_k = draw(1, 3);
  ask.hidden = unit * draw(1, 512 / unit);
  ask.inner = unit * draw(1, 384 / unit);
  ask.interleaved = draw(0, 1) == 1;
  ask.biases = draw(0, 1) == 1;
  ask.factors = draw(0, 1) == 1;
  ask.x = draw(0, 3) == 0 ? DType::f16 : DType::bf16;
  ask.result = draw(0, 2) == 0 ? DType::f32 : ask.x;
  ask.activation = draw(0, 1) == 1 ? Activation::swiglu_oai : Activation::silu;
  ask.seed = seed;
  return ask;
}

/// One with its operands in host memory. A tenth of the slots are -1; d is poisoned.
class MicroMixture {
 public:
  explicit MicroMixture(const MicroAsk& ask) : ask_(ask), random_(ask.seed) {
    const auto formats = micro_formats_of(ask.formats);
    const MicroFormat weights = formats->second;
    // Left open where it is the same anyway.
    if (!(formats->first == weights)) o.tokens_as = formats->first.element;
    o.scaling = Scaling::block_scaled;
    o.activation = ask.activation;
    o.interleaved = ask.interleaved;
    o.first_expert = ask.first_expert;
    o.experts_total = ask.experts_total;
    o.x = floats(ask.x, ask.tokens, ask.hidden, 1);
    make_weights(weights, 2 * ask.inner, ask.hidden, true, o.w13, o.scale_w13);
    make_weights(weights, ask.hidden, ask.inner, false, o.w2, o.scale_w2);
    if (ask.factors) {
      o.factor_w13 = floats(DType::f32, ask.experts, 1, 1);
      o.factor_w2 = floats(DType::f32, ask.seed % 2 == 0 ? 1 : ask.experts, 1, 1);
      if (weights.scale == DType::ue4m3) {
        o.factor_x = floats(DType::f32, 1, 1, 0.01);
        o.factor_inner = floats(DType::f32, 1, 1, 0.02);
      }
    }
    if (ask.biases) {
      o.bias13 = floats(DType::f32, 2 * ask.inner, 1, 1, ask.experts);
      o.bias2 = floats(DType::f32, ask.hidden, 1, 1, ask.experts);
    }
    o.topk_weights = floats(DType::f32, ask.tokens, ask.top_k, 1);
    o.d = bytes(ask.result, ask.tokens, ask.hidden);
    poison();
    make_ids();
  }
  MicroMixture(const MicroMixture&) = delete;
  MicroMixture& operator=(const MicroMixture&) = delete;

  MixtureOperands o;
  std::vector<std::int32_t> ids;

  /// NaN wherever nobody stores.
  void poison() { std::memset(o.d.data, 0xff, static_cast<std::size_t>(extent_bytes(o.d))); }
  void put_x(std::int64_t token, std::int64_t k, double value) {
    const std::uint64_t code = numeric::from_double(o.x.dtype, value);
    std::memcpy(static_cast<std::byte*>(o.x.data) + 2 * (token * o.x.row_stride + k), &code, 2);
  }

 private:
  MatrixView bytes(DType type, std::int64_t rows, std::int64_t columns, std::int64_t batch = 1) {
    const std::int64_t each = rows * columns;
    auto& all = memory_.emplace_back(
        static_cast<std::size_t>(numeric::packed_bytes(type, batch * each)) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(all.data());
    return {all.data() + (32 - address % 32) % 32,
            type,
            rows,
            columns,
            columns,
            1,
            batch,
            batch > 1 ? each : 0};
  }
  // Positive where they are factors.
  MatrixView floats(DType type, std::int64_t rows, std::int64_t columns, double largest,
                    std::int64_t batch = 1) {
    const MatrixView v = bytes(type, rows, columns, batch);
    std::uniform_real_distribution<double> draw(columns == 1 ? 0.3 * largest : -largest, largest);
    const int size = element_bytes(type);
    for (std::int64_t i = 0; i < batch * rows * columns; ++i) {
      const std::uint64_t code = numeric::from_double(type, draw(random_));
      std::memcpy(static_cast<std::byte*>(v.data) + i * size, &code,
                  static_cast<std::size_t>(size));
    }
    return v;
  }
  // Blocks of many sizes, some of zeros; for a gated product each expert's gates and ups by
  // themselves.
  void make_weights(const MicroFormat& f, int rows, int k, bool gated, MatrixView& w,
                    MatrixView& scales) {
    const int parts = gated ? 2 : 1;
    w = bytes(f.element, rows, k, ask_.experts);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(ask_.experts) * rows * k);
    const float size = 1 / std::sqrt(static_cast<float>(k));
    for (std::size_t i = 0; i < values.size(); i += 16) {
      const int kind = static_cast<int>(random_() % 9);
      const float block = kind == 8 ? 0 : std::ldexp(size, kind / 2 - 2);
      for (std::size_t j = i; j < i + 16; ++j) values[j] = block * normal(random_);
    }
    const int each = rows / parts;
    const auto down = block_scales::padded_rows(each);
    const auto across = block_scales::padded_columns(k, micro_block(f.scale));
    scales = bytes(f.scale, parts * down, across, ask_.experts);
    std::memset(scales.data, 0xff, static_cast<std::size_t>(extent_bytes(scales)));
    for (std::int64_t e = 0; e < ask_.experts; ++e) {
      for (std::int64_t part = 0; part < parts; ++part) {
        const bool turns = gated && ask_.interleaved;
        const std::int64_t first = (e * rows + part * (turns ? 1 : each)) * k;
        Quantisation q;
        q.scaling = Scaling::block_scaled;
        q.x = matrix(values.data() + first, DType::f32, each, k);
        q.codes = matrix(static_cast<std::byte*>(w.data) + first * numeric::bits(f.element) / 8,
                         f.element, each, k);
        q.x.row_stride = q.codes.row_stride = turns ? 2 * k : k;
        q.scales = matrix(static_cast<std::byte*>(scales.data) + (e * parts + part) * down * across,
                          f.scale, down, across);
        const auto refused = quantise_on_host(q);
        if (refused) throw std::runtime_error(refused->reason);
      }
    }
  }
  void make_ids() {
    const int total = static_cast<int>(o.total());
    std::vector<std::int32_t> all(static_cast<std::size_t>(total));
    for (int e = 0; e < total; ++e) all[static_cast<std::size_t>(e)] = e;
    for (int t = 0; t < ask_.tokens; ++t) {
      std::shuffle(all.begin(), all.end(), random_);
      for (int j = 0; j < ask_.top_k; ++j) {
        ids.push_back(random_() % 10 == 0 ? -1 : all[static_cast<std::size_t>(j % total)]);
      }
    }
    o.topk_ids = matrix(ids.data(), DType::s32, ask_.tokens, ask_.top_k);
  }

  MicroAsk ask_;
  std::mt19937 random_;
  std::list<std::vector<std::byte>> memory_;
};

}  // namespace warpwright::tests
