// A mixture of experts with random operands, for the tests of the model and of GPUs.
#pragma once

#include <algorithm>
#include <cstring>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/packed.h"
#include "tests/reference.h"
#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::tests {

/// What is asked of a mixture.
struct MixtureAsk {
  int tokens = 9;
  int experts = 8;
  int top_k = 2;
  int hidden = 128;
  int inner = 128;
  Scaling scaling = Scaling::none;
  int block = 128;  ///< of blockwise
  int first_expert = 0;
  int experts_total = 0;
  bool wide_ids = false;
  bool biases = false;
  DType bias = DType::f32;
  double largest_x = 1;
  DType x = DType::bf16;
  DType result = DType::bf16;
  DType weight = DType::f32;
  unsigned seed = 1;
  /// Int4 weights, of both products or of none.
  std::optional<PackedWeights> packed13 = {};
  std::optional<PackedWeights> packed2 = {};
  bool weight_scales = true;  ///< of packed weights they may be left out
  bool gated = true;
  bool codes = false;      ///< x comes as e4m3 with scales
  bool one_scale = false;  ///< of it, with row_column
  bool on_input = false;   ///< router weights
  Combine combine = Combine::sum;
  std::optional<DType> shared = {};  ///< the type of a shared output
  bool routed = true;                ///< else of one expert, without a router
};

/// The same without a router: an MLP.
inline MixtureAsk unrouted(MixtureAsk ask) {
  ask.routed = false;
  ask.experts = ask.top_k = 1;
  ask.first_expert = ask.experts_total = 0;
  ask.shared.reset();
  return ask;
}

/// Int4 weights in any forms that both products have.
inline MixtureAsk int4_ask(unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  MixtureAsk ask;
  ask.seed = seed;
  ask.scaling = draw(0, 3) == 0 ? Scaling::blockwise : Scaling::row_column;
  ask.tokens = draw(1, 40);
  ask.experts = draw(1, 6);
  ask.experts_total = draw(0, 1) * (ask.experts + draw(0, 3));
  if (ask.experts_total > 0) ask.first_expert = draw(0, ask.experts_total - ask.experts);
  ask.top_k = draw(1, 3);
  ask.hidden = 16 * draw(1, 18);
  ask.inner = 64 * draw(1, 4);
  ask.biases = draw(0, 1) == 1;
  ask.result = draw(0, 2) == 0 ? DType::f32 : DType::bf16;
  ask.weight_scales = draw(0, 1) == 1;
  ask.packed13 = PackedWeights{format_of(random() % 18)};
  ask.packed2 = PackedWeights{format_of(random() % 18)};
  const int second = ask.scaling == Scaling::blockwise ? 2 : draw(0, 3);
  if (second == 0) ask.packed2->sums = GroupSums::chained;
  if (second == 1) {
    ask.packed2->format.encoding = Int4Encoding::ex;
    ask.packed2->format.zero_points = ZeroPoints::groups;
  }
  return ask;
}

/// The same for tokens of bf16: sums are exact or folded.
inline MixtureAsk wide_int4_ask(unsigned seed) {
  MixtureAsk ask = int4_ask(seed);
  for (PackedWeights* const w : {&*ask.packed13, &*ask.packed2}) {
    w->format.tokens = DType::bf16;
    w->format.encoding = Int4Encoding::ex;
    if (w->sums == GroupSums::chained) w->sums = GroupSums::folded;
  }
  ask.scaling = ask.weight_scales ? Scaling::row_column : Scaling::none;
  return ask;
}

/// E2m1 weights of both products, for tokens of e4m3 or of 16 bits, in any forms that they have.
inline MixtureAsk e2m1_ask(unsigned seed) {
  std::mt19937 random(seed);
  MixtureAsk ask = int4_ask(seed);
  const bool wide = random() % 2 == 0;
  if (wide && seed % 3 == 0) ask.x = DType::f16;
  if (ask.result == DType::bf16) ask.result = ask.x;
  const auto form = [&] {
    PackedWeights w{.format = {.group = 32,
                               .scale = DType::ue8m0,
                               .code = DType::e2m1,
                               .tokens = wide ? ask.x : DType::e4m3,
                               .exponents = Exponents::of_rows}};
    const bool other = random() % 2 == 0;
    if (other) w.format.exponents = Exponents::own;
    if (other && wide) {
      w.format.group = 16;
      w.format.scale = DType::ue4m3;
    }
    return w;
  };
  ask.hidden = 32 * (1 + ask.hidden / 32);
  ask.packed13 = form();
  ask.packed2 = form();
  if (wide) {
    ask.scaling = ask.weight_scales ? Scaling::row_column : Scaling::none;
    return ask;
  }
  const bool may_fold = ask.packed2->format.exponents == Exponents::of_rows;
  if (may_fold && ask.scaling == Scaling::row_column && random() % 2 == 0) {
    ask.packed2->sums = GroupSums::folded;
  }
  return ask;
}

/// One with its operands in host memory. A tenth of the slots are -1.
class SomeMixture {
 public:
  explicit SomeMixture(const MixtureAsk& ask) : random_(ask.seed), ask_(ask) {
    const DType operand = ask.scaling == Scaling::none ? DType::bf16 : DType::e4m3;
    o.x = filled(ask.codes ? DType::e4m3 : ask.x, 1, ask.tokens, ask.hidden,
                 ask.codes ? 300 : ask.largest_x);
    o.is_gated = ask.gated;
    o.combine = ask.combine;
    o.apply_router_weight_on_input = ask.on_input;
    const int rows13 = o.parts13() * ask.inner;
    o.packed13 = ask.packed13;
    o.packed2 = ask.packed2;
    o.w13 = weights(ask.packed13, operand, rows13, ask.hidden);
    o.w2 = weights(ask.packed2, operand, ask.hidden, ask.inner);
    if (ask.routed) o.topk_weights = filled(ask.weight, 1, ask.tokens, ask.top_k, 1);
    const int results = ask.combine == Combine::sum ? ask.tokens : ask.tokens * ask.top_k;
    o.d = filled(ask.result, 1, results, ask.hidden, 100);
    o.scaling = ask.scaling;
    if (ask.scaling == Scaling::row_column && ask.weight_scales) {
      o.scale_w13 = filled(DType::f32, ask.experts, rows13, 1, 1);
      o.scale_w2 = filled(DType::f32, ask.experts, ask.hidden, 1, 1);
    } else if (ask.scaling == Scaling::blockwise && !ask.packed13) {
      o.scale_w13 = filled(DType::f32, ask.experts, blocks(rows13), blocks(ask.hidden), 1);
      o.scale_w2 = filled(DType::f32, ask.experts, blocks(ask.hidden), blocks(ask.inner), 1);
    }
    if (ask.codes) {
      const int columns = ask.scaling == Scaling::blockwise ? blocks(ask.hidden) : 1;
      o.scale_x = filled(DType::f32, 1, ask.one_scale ? 1 : ask.tokens, columns, 0.01);
    }
    if (ask.shared) o.shared_output = filled(*ask.shared, 1, ask.tokens, ask.hidden, 3);
    if (ask.biases) {
      o.bias13 = filled(ask.bias, ask.experts, rows13, 1, 1);
      o.bias2 = filled(ask.bias, ask.experts, ask.hidden, 1, 1);
    }
    o.first_expert = ask.first_expert;
    o.experts_total = ask.experts_total;
    if (ask.routed) make_ids();
  }
  SomeMixture(const SomeMixture&) = delete;
  SomeMixture& operator=(const SomeMixture&) = delete;

  MixtureOperands o;
  std::vector<std::int64_t> ids;  ///< call put_ids() after a change

  void put_ids() {
    narrow_.assign(ids.begin(), ids.end());
    o.id_type = ask_.wide_ids ? OffsetType::int64 : OffsetType::int32;
    void* const data = ask_.wide_ids ? static_cast<void*>(ids.data()) : narrow_.data();
    o.topk_ids = matrix(data, DType::s32, ask_.tokens, ask_.top_k);
  }
  [[nodiscard]] std::vector<std::uint16_t> bits_of_row(std::int64_t token) const {
    const auto* const d = static_cast<const std::uint16_t*>(o.d.data) + token * o.d.row_stride;
    return {d, d + o.d.columns};
  }

 private:
  [[nodiscard]] int blocks(int n) const { return (n + ask_.block - 1) / ask_.block; }
  MatrixView weights(const std::optional<PackedWeights>& form, DType type, int rows, int columns) {
    if (!form) return filled(type, ask_.experts, rows, columns, 0.2);
    const packed::Extents extents{ask_.experts, rows, columns};
    return packed_.emplace_back(form->format, extents, random_).view();
  }
  MatrixView filled(DType type, int batch, int rows, int columns, double largest) {
    auto& bytes = memory_.emplace_back(
        static_cast<std::size_t>(batch) * rows * columns * element_bytes(type) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    auto* const data = bytes.data() + (16 - address % 16) % 16;
    std::uniform_real_distribution<double> values(type == DType::f32 ? 0.1 * largest : -largest,
                                                  largest);
    for (std::int64_t i = 0; i < std::int64_t{batch} * rows * columns; ++i) {
      const std::uint64_t code = numeric::from_double(type, values(random_));
      std::memcpy(data + i * element_bytes(type), &code,
                  static_cast<std::size_t>(element_bytes(type)));
    }
    return {data, type, rows, columns, columns, 1, batch, std::int64_t{rows} * columns};
  }
  void make_ids() {
    const int total = static_cast<int>(o.total());
    std::vector<std::int64_t> all(static_cast<std::size_t>(total));
    for (int e = 0; e < total; ++e) all[static_cast<std::size_t>(e)] = e;
    for (int t = 0; t < ask_.tokens; ++t) {
      std::shuffle(all.begin(), all.end(), random_);
      for (int j = 0; j < ask_.top_k; ++j) {
        ids.push_back(random_() % 10 == 0 ? -1 : all[static_cast<std::size_t>(j % total)]);
      }
    }
    put_ids();
  }

  std::mt19937 random_;
  MixtureAsk ask_;
  std::vector<std::vector<std::byte>> memory_;
  std::list<Packed> packed_;
  std::vector<std::int32_t> narrow_;
};

}  // namespace warpwright::tests
