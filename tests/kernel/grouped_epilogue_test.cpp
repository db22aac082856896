// Grouped kernels that are gated, read C in place and add biases: configurations of this file, run
// on the model with parameters made here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/index.h"
#include "tests/kernel/grouped_case.h"
#include "warpwright/device/model_parts.h"
#include "warpwright/kernel/hopper/gemm.h"
#include "warpwright/plan/bind.h"

namespace warpwright::grouped {
namespace {

using kernel::GemmConfig;
using kernel::Grouping;
using kernel::Store;
using kernel::Sums;

struct GatedSwapped {
  static constexpr GemmConfig config{.a = DType::e4m3,
                                     .b = DType::e4m3,
                                     .tile_m = 128,
                                     .tile_n = 24,
                                     .stages = 4,
                                     .consumer_warpgroups = 1,
                                     .sums = Sums::block_scaled,
                                     .swapped = true,
                                     .gated = true,
                                     .store = Store::lanes,
                                     .grouped = Grouping::ballot};
};
struct GatedStraight {
  static constexpr GemmConfig config{.a = DType::e4m3,
                                     .b = DType::e4m3,
                                     .tile_n = 128,
                                     .stages = 4,
                                     .sums = Sums::block_scaled,
                                     .gated = true,
                                     .store = Store::lanes,
                                     .grouped = Grouping::vertical};
};
struct GatedPingPong {
  static constexpr GemmConfig config{.result = DType::f32,
                                     .tile_n = 64,
                                     .stages = 4,
                                     .schedule = kernel::Schedule::pingpong,
                                     .gated = true,
                                     .store = Store::lanes,
                                     .grouped = Grouping::horizontal};
};
struct PlainSwapped {
  static constexpr GemmConfig config{.tile_n = 16,
                                     .stages = 4,
                                     .swapped = true,
                                     .store = Store::lanes,
                                     .grouped = Grouping::ballot};
};
// Weights along M of memory.
struct MnMajorWeights {
  static constexpr GemmConfig config{.b = {DType::bf16, atom::Major::mn},
                                     .tile_n = 128,
                                     .stages = 4,
                                     .gated = true,
                                     .store = Store::lanes,
                                     .grouped = Grouping::vertical};
};

// What is added: a bias, and C, which is D's memory.
struct Ask {
  bool bias_of_tokens = false;
  bool in_place = false;
  int width = 0;  ///< columns of D
  int pad = 0;    ///< elements behind each row of D
};

template <class Tag>
class Product {
 public:
  static constexpr GemmConfig c = Tag::config;
  static constexpr int halves = c.gated ? 2 : 1;
  static constexpr bool scaled = c.sums == Sums::block_scaled;
  static constexpr kernel::Operand of_w = c.swapped ? c.a : c.b;
  static constexpr bool w_mn = of_w.major == atom::Major::mn;

  Product(const Ask& ask, unsigned seed)
      : ask_(ask),
        n_(ask.width * halves),
        x_(of_w.stored, total, k, pitch, 1),
        w_(of_w.stored, n_, k, w_mn ? 1 : pitch, w_mn ? (n_ + 7) / 8 * 8 : 1, groups,
           w_mn ? (n_ + 7) / 8 * 8 * k : n_ * pitch),
        y_(c.result, total, ask.width, ask.width + ask.pad, 1),
        old_(DType::f32, total, ask.width, ask.width, 1),
        scale_x_(DType::f32, total, blocks, 1, total),
        scale_w_(DType::f32, (n_ + 127) / 128, blocks, blocks, 1, groups, n_ * blocks),
        bias_(DType::bf16, groups, ask.bias_of_tokens ? total : n_, 3000, 1) {
    std::mt19937 random(seed);
    const auto element = [&] { return static_cast<int>(random() % 33) / 16.0 - 1.0; };
    x_.fill(element);
    w_.fill(element);
    bias_.fill(element);
    scale_x_.fill([&] { return 0.25 + static_cast<int>(random() % 97) / 256.0; });
    scale_w_.fill([&] { return 0.25 + static_cast<int>(random() % 97) / 256.0; });
    if (!ask.in_place) return;
    for_each([&](int /*g*/, int i, int j) {
      old_.set(0, i, j, element());
      y_.set(0, i, j, old_.get(0, i, j));
    });
  }

  // The model's findings, or what is wrong with Y; empty when nothing is.
  std::string run(const device::ModelOptions& how) {
    const kernel::GemmParams p = params();
    device::Allocations memory;
    memory.add(y_.view(), "Y", true);
    for (const Tensor* t : {&x_, &w_, &scale_x_, &scale_w_, &bias_}) memory.add(t->view(), "input");
    memory.add(offsets, sizeof offsets, "offsets", false);
    Grid grid;
    grid.ctas = 3;
    grid.threads = kernel::threads(c);
    grid.shared_bytes = kernel::smem_map(c).bytes;
    grid.registers = kernel::launch_registers(c);
    const model::Report report = device::run_on_model(grid, model_facts(), how, memory,
                                                      [&] { kernel::HopperGemm<Tag>::run(p); });
    if (!report.clean()) return report.text();
    std::string wrong;
    std::vector<std::pair<std::int64_t, std::int64_t>> rows;
    for (int g = 0; g < groups; ++g) rows.emplace_back(offsets[g], offsets[g + 1]);
    for_each([&](int g, int i, int j) {
      const double want = wanted(g, i, j);
      const double got = y_.get(0, i, j);
      if (std::fabs(got - want) <= 0.02 + std::fabs(want) * 0.01 || !wrong.empty()) return;
      wrong = "Y[" + std::to_string(i) + ", " + std::to_string(j) + "] is " + std::to_string(got) +
              ", not " + std::to_string(want);
    });
    if (wrong.empty() && y_.disturbed(rows) != 0) wrong = "bytes outside Y's groups were written";
    return wrong;
  }

 private:
  static constexpr int offsets[] = {2, 2, 31, 32, 97};
  static constexpr int groups = 4;
  static constexpr int total = 104;
  static constexpr int k = 136;
  static constexpr int pitch = 144;
  static constexpr int blocks = 2;  // of scales
  static constexpr float alpha = 0.125F;
  static constexpr float beta = 0.5F;

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int g = 0; g < groups; ++g) {
      for (int i = offsets[g]; i < offsets[g + 1]; ++i) {
        for (int j = 0; j < ask_.width; ++j) visit(g, i, j);
      }
    }
  }

  // alpha * product + bias, of one half.
  double half(int g, int i, int j) {
    double sum = 0;
    for (int kk = 0; kk < k; ++kk) {
      const double scale =
          scaled ? scale_x_.get(0, i, kk / 128) * scale_w_.get(g, j / 128, kk / 128) : 1;
      sum += x_.get(0, i, kk) * w_.get(g, j, kk) * scale;
    }
    const double bias = ask_.bias_of_tokens ? bias_.get(0, 0, i) : bias_.get(0, g, j);
    return static_cast<double>(alpha) * sum + bias;
  }
  double wanted(int g, int i, int j) {
    double value = half(g, i, j);
    if (ask_.in_place) value += static_cast<double>(beta) * old_.get(0, i, j);
    value /= 1 + std::exp(-value);  // silu
    return c.gated ? value * half(g, i, j + ask_.width) : value;
  }

  kernel::GemmParams params() const {
    kernel::GemmParams p;
    const int a_rows = c.tile_m / (kernel::gated_rows(c) ? 2 : 1);
    const int b_rows = c.tile_n / (kernel::gated_columns(c) ? 2 : 1);
    const auto map = [&](const MatrixView& v, bool mn, int rows) {
      constexpr int depth = kernel::tile_k(c);
      return device::encode_for_model(
          mn ? map_request("W", v, true, 64, depth, atom::SmemSwizzle::b128)
             : map_request("X or W", v, false, depth, rows, atom::SmemSwizzle::b128));
    };
    p.operands.a = c.swapped ? map(w_.view(), w_mn, a_rows) : map(x_.view(), false, a_rows);
    p.operands.b = c.swapped ? map(x_.view(), false, b_rows) : map(w_.view(), w_mn, b_rows);
    p.operands.a_batch = c.swapped ? 1 : 0;
    p.operands.b_batch = c.swapped ? 0 : 1;
    p.operands.a_slice_rows = a_rows;
    p.operands.b_slice_rows = b_rows;
    p.operands.k = k;
    p.operands.half = ask_.width;
    p.walk.cluster = {1, 1};
    p.walk.k_blocks = (k + kernel::tile_k(c) - 1) / kernel::tile_k(c);
    const int tokens = c.swapped ? kernel::result_columns(c) : kernel::result_rows(c);
    const int weights = c.swapped ? kernel::result_rows(c) : kernel::result_columns(c);
    p.walk.groups = tile::GroupedTiles(tile::GroupOffsets(offsets, false, groups, total), tokens,
                                       (ask_.width + weights - 1) / weights, 2, c.swapped);
    p.output.d_data = y_.view().data;
    p.output.d_pitch = y_.view().row_stride;
    p.output.d_rows = total;
    p.output.d_columns = ask_.width;
    p.output.d_aligned = p.output.d_pitch * kernel::result_bytes(c) % 16 == 0;
    p.output.alpha = alpha;
    if (ask_.in_place) {
      p.output.reads_c = true;
      p.output.beta = beta;
      p.output.c_data = p.output.d_data;
      p.output.c_pitch = p.output.d_pitch;
    }
    p.output.is_plain = false;
    p.output.activation = {.smooth = true, .slope = 1};
    const MatrixView& bias = bias_.view();
    (c.swapped == ask_.bias_of_tokens ? p.output.column_bias : p.output.row_bias) = {
        bias.data, ask_.bias_of_tokens ? 0 : bias.row_stride, bias.dtype, 1};
    if (scaled) {
      p.scales.tokens = scale_matrix(scale_x_.view());
      p.scales.weights = scale_matrix(scale_w_.view());
    }
    return p;
  }

  Ask ask_;
  int n_;
  Tensor x_;
  Tensor w_;
  Tensor y_;
  Tensor old_;  // Y before the launch
  Tensor scale_x_;
  Tensor scale_w_;
  Tensor bias_;
};

template <class Tag>
class GroupedEpilogue : public testing::Test {};
using Kernels =
    testing::Types<GatedSwapped, GatedStraight, GatedPingPong, PlainSwapped, MnMajorWeights>;
TYPED_TEST_SUITE(GroupedEpilogue, Kernels);

TYPED_TEST(GroupedEpilogue, GatesWithBiasAndCInPlace) {
  static_assert(kernel::config_fault(TypeParam::config) == nullptr);
  // Halves of whole blocks of scales, or of any width.
  const int width = TypeParam::config.sums == Sums::block_scaled ? 128 : 72;
  const Ask asked[] = {{false, false, width, 0}, {true, true, width, 0}, {false, true, width, 3}};
  for (const Ask& ask : asked) {
    SCOPED_TRACE(std::to_string(ask.bias_of_tokens) + std::to_string(ask.in_place));
    device::ModelOptions how;
    how.mode = ask.in_place ? model::Mode::random : model::Mode::latest;
    EXPECT_EQ(Product<TypeParam>(ask, 7).run(how), "");
  }
}

}  // namespace
}  // namespace warpwright::grouped
