// A mixture of experts through the C ABI: what it computes, what it refuses, plans and workspaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/c/parts.h"

namespace {

using namespace c_tests;
using testing::HasSubstr;

// Experts of small numbers, and what they make of a token in double.
struct Moe {
  static constexpr std::int64_t tokens = 7, hidden = 64, inner = 32, experts = 4, top_k = 2;
  std::vector<std::uint16_t> x, w13, w2, d;
  std::vector<float> weights, bias13, bias2;
  std::vector<std::int32_t> ids;
  ww_moe moe = {};

  Moe()
      : x(numbers(tokens * hidden, 11)),
        w13(numbers(experts * 2 * inner * hidden, 7)),
        w2(numbers(experts * hidden * inner, 5)),
        d(tokens * hidden),
        bias13(experts * 2 * inner, 0.25F),
        bias2(experts * hidden, -0.5F) {
    for (int i = 0; i < tokens * top_k; ++i) {
      ids.push_back((i * 3 + i / top_k) % experts);
      weights.push_back(0.25F + static_cast<float>(i % 3));
    }
    ids[3] = -1;
    ww_moe_init(&moe);
    moe.x = ww_packed(x.data(), WW_BF16, tokens, hidden);
    moe.topk_ids = ww_packed(ids.data(), WW_S32, tokens, top_k);
    moe.topk_weights = ww_packed(weights.data(), WW_F32, tokens, top_k);
    moe.w13 = batch(w13.data(), WW_BF16, 2 * inner, hidden);
    moe.w2 = batch(w2.data(), WW_BF16, hidden, inner);
    moe.d = ww_packed(d.data(), WW_BF16, tokens, hidden);
  }
  Moe(const Moe&) = delete;
  Moe& operator=(const Moe&) = delete;

  void add_biases() {
    moe.bias13 = batch(bias13.data(), WW_F32, 2 * inner, 1);
    moe.bias2 = batch(bias2.data(), WW_F32, hidden, 1);
  }
  /// Nothing of d is that of a run before.
  void forget() { d.assign(d.size(), bf16(std::numeric_limits<float>::quiet_NaN())); }
  [[nodiscard]] bool right() const {
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<double> want(hidden);
      for (std::int64_t j = 0; j < top_k; ++j) {
        const std::int64_t e = ids[at(t * top_k + j)];
        if (e >= 0 && e < experts) add_expert(want, t, e, weights[at(t * top_k + j)]);
      }
      for (std::int64_t i = 0; i < hidden; ++i) {
        const double got = bf16_value(d[at(t * hidden + i)]);
        if (!(std::fabs(got - want[at(i)]) <= 0.02 * std::fabs(want[at(i)]) + 0.05)) return false;
      }
    }
    return true;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::vector<std::uint16_t> numbers(std::int64_t count, int period) {
    std::vector<std::uint16_t> all;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back(bf16(static_cast<float>((i * 13 + i / 64) % period - period / 2) / 8));
    }
    return all;
  }
  static ww_matrix batch(void* data, int type, std::int64_t rows, std::int64_t columns) {
    ww_matrix m = ww_packed(data, type, rows, columns);
    m.batch = experts;
    m.batch_stride = rows * columns;
    return m;
  }
  [[nodiscard]] double sum(const std::vector<std::uint16_t>& w, std::int64_t row,
                           const std::vector<double>& by) const {
    double all = 0;
    for (std::size_t k = 0; k < by.size(); ++k)
      all += bf16_value(w[at(row) * by.size() + k]) * by[k];
    return all;
  }
  void add_expert(std::vector<double>& want, std::int64_t t, std::int64_t e, double weight) const {
    const bool biased = moe.bias13.data != nullptr;
    std::vector<double> token, between;
    for (std::int64_t k = 0; k < hidden; ++k) token.push_back(bf16_value(x[at(t * hidden + k)]));
    for (std::int64_t i = 0; i < inner; ++i) {
      const double gate = sum(w13, e * 2 * inner + i, token) + (biased ? 0.25 : 0);
      const double up = sum(w13, e * 2 * inner + inner + i, token) + (biased ? 0.25 : 0);
      between.push_back(gate / (1 + std::exp(-gate)) * up);
    }
    for (std::int64_t i = 0; i < hidden; ++i) {
      want[at(i)] += weight * (sum(w2, e * hidden + i, between) - (biased ? 0.5 : 0));
    }
  }
};

TEST(CMoe, RunsAndKeepsPlans) {
  Moe m;
  ww_moe_plan* made = nullptr;
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, &made));
  EXPECT_TRUE(m.right());
  ASSERT_NE(made, nullptr);
  EXPECT_THAT(ww_moe_plan_line(made), HasSubstr("7 tokens x 64, top-2 of 4 experts"));
  EXPECT_THAT(ww_moe_plan_name(made), HasSubstr("grouped_"));
  EXPECT_THAT(ww_moe_plan_explain(made), HasSubstr("sort_slots"));
  EXPECT_GE(ww_moe_plan_launches(made), 3);
  ww_moe_plan_free(made);
  m.forget();
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, &made));
  EXPECT_EQ(made, nullptr);
  EXPECT_TRUE(m.right());
}

// Slots by themselves add up to the result, and so do twice the sum and a shared output of minus
// it.
TEST(CMoe, CombinesAndAddsAsItIsAsked) {
  Moe m;
  const ww_matrix d = m.moe.d;
  std::vector<float> rows(Moe::tokens * Moe::top_k * Moe::hidden);
  std::vector<float> minus(m.d.size());
  m.moe.combine = WW_COMBINE_WEIGHTED;
  m.moe.d = ww_packed(rows.data(), WW_F32, Moe::tokens * Moe::top_k, Moe::hidden);
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  for (std::size_t i = 0; i < m.d.size(); ++i) {
    const std::size_t slot = i / Moe::hidden * Moe::top_k;
    minus[i] = -rows[slot * Moe::hidden + i % Moe::hidden] -
               rows[(slot + 1) * Moe::hidden + i % Moe::hidden];
    m.d[i] = bf16(-minus[i]);
  }
  EXPECT_TRUE(m.right());
  m.forget();
  m.moe.d = d;
  m.moe.combine = WW_COMBINE_SUM;
  m.moe.routed_scaling_factor = 2;
  m.moe.shared_output = ww_packed(minus.data(), WW_F32, Moe::tokens, Moe::hidden);
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_TRUE(m.right());
}

void expect_refused(const ww_moe& moe, const char* says) {
  const Refusal told(ww_moe_run(&moe, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  ASSERT_TRUE(told) << says;
  EXPECT_THAT(text(told), HasSubstr(says));
}

// The MLP of a dense model is the only expert of all tokens.
TEST(CMoe, NeedsNoRouter) {
  Moe m;
  m.ids.assign(m.ids.size(), -1);
  for (std::size_t t = 0; t < Moe::tokens; ++t) {
    m.ids[t * Moe::top_k] = 0;
    m.weights[t * Moe::top_k] = 1;
  }
  m.add_biases();
  for (ww_matrix* each : {&m.moe.w13, &m.moe.w2, &m.moe.bias13, &m.moe.bias2}) each->batch = 1;
  m.moe.topk_ids = {};
  expect_refused(m.moe, "topk_weights is given, and topk_ids is left out");
  m.moe.topk_weights = {};
  m.forget();
  ww_moe_plan* made = nullptr;
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, &made));
  EXPECT_EQ(ww_moe_plan_launches(made), 2);
  ww_moe_plan_free(made);
  EXPECT_TRUE(m.right());
  m.moe.w13.batch = 4;
  expect_refused(m.moe, "a layer without a router has one");
}

TEST(CMoe, ServesBiasesAndWideIds) {
  Moe m;
  m.add_biases();
  std::vector<std::int64_t> wide(m.ids.begin(), m.ids.end());
  m.moe.topk_ids.data = wide.data();
  m.moe.id_type = WW_INT64;
  m.forget();
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_TRUE(m.right());
}

// Weights of 1, packed: silu(128 * 2) is its argument.
TEST(CMoe, ServesPackedWeights) {
  constexpr std::int64_t hidden = 128, inner = 128, experts = 2;
  // An allocation of these begins at a multiple of 128.
  struct alignas(128) Piece {
    std::byte bytes[128];
  };
  const auto packed = [](std::int64_t rows, std::int64_t columns, int encoding,
                         ww_packed_form& form) {
    const bool is_int4 = encoding == WW_PACKED_EX;
    const auto count = static_cast<std::size_t>(experts * rows * columns);
    std::vector<std::uint8_t> codes(count / 2, is_int4 ? 0x11 : 0x22);
    std::vector<std::uint8_t> scales(count / 32, 127);
    std::vector<std::uint16_t> wide(count / 128, bf16(1));
    const std::int64_t group = is_int4 ? 128 : 32;
    ww_matrix code_view = ww_packed(codes.data(), WW_U8, rows, columns / 2);
    ww_matrix scale_view = ww_packed(is_int4 ? static_cast<void*>(wide.data()) : scales.data(),
                                     is_int4 ? WW_BF16 : WW_U8, rows, columns / group);
    code_view.batch = scale_view.batch = experts;
    code_view.batch_stride = rows * columns / 2;
    scale_view.batch_stride = rows * columns / group;
    ww_packed_form_init(&form);
    form.encoding = encoding;
    const auto pack = [&](void* to) {
      return is_int4 ? ww_int4_pack("int4", &code_view, &scale_view, nullptr, nullptr, &form, to)
                     : ww_fp4_pack("gpt-oss", &code_view, &scale_view, nullptr, &form, nullptr, to);
    };
    EXPECT_DONE(pack(nullptr));
    std::int64_t bytes = 0;
    EXPECT_DONE(ww_packed_bytes(&form, &bytes));
    std::vector<Piece> memory(static_cast<std::size_t>(bytes + 127) / 128);
    EXPECT_DONE(pack(memory.data()));
    return memory;
  };
  std::vector<std::uint16_t> x(hidden, bf16(2)), d(hidden);
  std::int32_t ids[] = {1, 0};
  float weights[] = {0.5F, 0.25F};
  ww_moe m;
  ww_moe_init(&m);
  m.x = ww_packed(x.data(), WW_BF16, 1, hidden);
  m.topk_ids = ww_packed(ids, WW_S32, 1, 2);
  m.topk_weights = ww_packed(weights, WW_F32, 1, 2);
  m.d = ww_packed(d.data(), WW_BF16, 1, hidden);
  const double want = 0.75 * 128 * 256 * 256;
  ww_packed_form form13, form2;
  std::vector<Piece> w13, w2;
  for (const auto& [encoding, scaling] : {std::pair{WW_PACKED_MXF4_BF16, WW_SCALING_NONE},
                                          {WW_PACKED_MXF4, WW_SCALING_ROW_COLUMN},
                                          {WW_PACKED_EX, WW_SCALING_ROW_COLUMN},
                                          {WW_PACKED_EX, WW_SCALING_BLOCKWISE}}) {
    w13 = packed(2 * inner, hidden, encoding, form13);
    w2 = packed(hidden, inner, encoding, form2);
    m.w13.data = w13.data();
    m.w2.data = w2.data();
    m.packed_w13 = &form13;
    m.packed_w2 = &form2;
    m.scaling = scaling;
    d.assign(hidden, 0);
    EXPECT_DONE(ww_moe_run(&m, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_NEAR(bf16_value(d[hidden - 1]), want, 0.01 * want) << encoding << ", " << scaling;
  }
  const auto refused = [&](const char* says) {
    const Refusal told(ww_moe_run(&m, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_THAT(text(told), HasSubstr(says));
  };
  m.sums_w2 = 9;
  refused("sums_w2 is 9; it is 0 to 4");
  m.sums_w2 = 0;
  m.w2.rows = 3;
  refused("leave all but w2.data 0");
  m.w2 = {};
  refused("w2 is a null pointer");
  m.packed_w2 = nullptr;
  refused("both weights are packed, or none is");
}

// A layer of mxf8 and one of nvf4 of equal weights, on the model of a B200.
TEST(CMoe, ServesFormatsWithScalesInTiles) {
  constexpr std::int64_t hidden = 256, inner = 128, experts = 2;
  std::vector<std::uint16_t> x(hidden, bf16(1)), d(hidden);
  std::int32_t ids[] = {1, 0};
  float weights[] = {0.5F, 0.25F}, factors[] = {1, 2}, one = 1;
  const struct {
    std::int32_t element, scale;
    std::uint8_t codes, unit;
    std::int64_t block;
    double gate;  // 256 times a weight
  } formats[] = {{WW_E4M3, WW_UE8M0, 0x20, 127, 32, 32}, {WW_E2M1, WW_UE4M3, 0x11, 0x18, 16, 8}};
  for (const auto& f : formats) {
    std::vector<std::uint8_t> w13(experts * 2 * inner * hidden + 32, f.codes);
    std::vector<std::uint8_t> w2(experts * hidden * inner + 32, f.codes);
    std::vector<std::uint8_t> scales(experts * 2 * inner * hidden / f.block + 32, f.unit);
    const auto batch = [](std::vector<std::uint8_t>& data, std::int32_t type, std::int64_t rows,
                          std::int64_t columns) {
      const auto at = reinterpret_cast<std::uintptr_t>(data.data());
      ww_matrix m = ww_packed(data.data() + (32 - at % 32) % 32, type, rows, columns);
      m.batch = experts;
      m.batch_stride = rows * columns;
      return m;
    };
    ww_moe m;
    ww_moe_init(&m);
    m.x = ww_packed(x.data(), WW_BF16, 1, hidden);
    m.topk_ids = ww_packed(ids, WW_S32, 1, 2);
    m.topk_weights = ww_packed(weights, WW_F32, 1, 2);
    m.w13 = batch(w13, f.element, 2 * inner, hidden);
    m.w2 = batch(w2, f.element, hidden, inner);
    m.d = ww_packed(d.data(), WW_BF16, 1, hidden);
    m.scaling = WW_SCALING_BLOCK_SCALED;
    m.scale_w13 = batch(scales, f.scale, 2 * inner, hidden / f.block);
    m.scale_w2 = batch(scales, f.scale, hidden, inner / f.block);
    m.factor_w13 = ww_packed(&one, WW_F32, 1, 1);
    m.factor_w2 = ww_packed(factors, WW_F32, experts, 1);
    ww_device* b200 = nullptr;
    EXPECT_DONE(ww_device_model(4, 100, &b200));
    ww_moe_plan* plan = nullptr;
    EXPECT_DONE(ww_moe_plan_make(&m, b200, nullptr, &plan));
    EXPECT_THAT(ww_moe_plan_explain(plan), HasSubstr(f.element == WW_E4M3 ? "mxf8" : "nvf4"));
    ww_workspace* workspace = nullptr;
    EXPECT_DONE(ww_workspace_make(b200, ww_moe_plan_workspace_bytes(plan), &workspace));
    if (f.element == WW_E2M1) {
      ww_moe without = m;
      without.factor_w13 = {};
      EXPECT_THAT(text(Refusal(ww_moe_launch(plan, &without, workspace, nullptr, nullptr))),
                  HasSubstr("w13 are nvf4 weights, and factor_w13 is not given"));
    }
    EXPECT_DONE(ww_moe_launch(plan, &m, workspace, nullptr, nullptr));
    // Weights of experts times their factors are 0.5 * 2 + 0.25.
    const double want = 1.25 * 128 * f.gate * f.gate / (1 + std::exp(-f.gate)) * f.gate / 256;
    EXPECT_NEAR(bf16_value(d[hidden - 1]), want, 0.05 * want);
    ww_workspace_free(workspace);
    ww_moe_plan_free(plan);
    const auto refused = [&](const char* says) {
      ww_moe_plan* none = nullptr;
      const Refusal told(ww_moe_plan_make(&m, b200, nullptr, &none));
      EXPECT_THAT(text(told), HasSubstr(says));
      ww_moe_plan_free(none);
    };
    m.tokens_as = 3;
    refused("tokens_as is 3; it is 0 to 2");
    m.tokens_as = WW_TOKENS_AS_WEIGHTS;
    m.factor_w2 = ww_packed(&one, WW_BF16, 1, 1);
    refused("factor_w2 is 1 x 1 of bf16");
    m.factor_w2 = ww_packed(&one, WW_F32, 1, 1);
    m.factor_x = ww_packed(&one, WW_F32, 2, 1);
    refused(f.element == WW_E4M3 ? "factor_x is given; tokens of nvf4" : "factor_x is 2 x 1");
    ww_device_free(b200);
  }
}

// Twice in one workspace: the flags of the first launch serve the second.
TEST(CMoe, DoesALayerInOneLaunch) {
  Moe m;
  const Device model("model");
  ww_moe_choices choices = {};
  choices.size = sizeof choices;
  choices.one_launch = WW_YES;
  ww_moe_plan* plan = nullptr;
  EXPECT_DONE(ww_moe_plan_make(&m.moe, model.device, &choices, &plan));
  EXPECT_THAT(ww_moe_plan_explain(plan), HasSubstr("1 launch; workspace"));
  ww_workspace* workspace = nullptr;
  EXPECT_DONE(ww_workspace_make(model.device, ww_moe_plan_workspace_bytes(plan), &workspace));
  for (int times = 0; times < 2; ++times) {
    m.forget();
    EXPECT_DONE(ww_moe_launch(plan, &m.moe, workspace, nullptr, nullptr));
    EXPECT_TRUE(m.right());
  }
  ww_workspace_free(workspace);
  ww_moe_plan_free(plan);
  m.forget();
  EXPECT_DONE(ww_moe_run(&m.moe, WW_MODEL, &choices, nullptr, nullptr, nullptr));
  EXPECT_TRUE(m.right());
}

// What steps write where flags were is cleared before these are counted in again.
TEST(CMoe, OneLaunchAndStepsShareAWorkspace) {
  Moe m;
  const Device model("model");
  ww_moe_plan* plans[2] = {};
  int64_t bytes = 0;
  for (int i = 0; i < 2; ++i) {
    ww_moe_choices choices = {};
    choices.size = sizeof choices;
    choices.one_launch = i == 0 ? WW_YES : WW_NO;
    EXPECT_DONE(ww_moe_plan_make(&m.moe, model.device, &choices, &plans[i]));
    bytes = std::max(bytes, ww_moe_plan_workspace_bytes(plans[i]));
  }
  ww_workspace* workspace = nullptr;
  EXPECT_DONE(ww_workspace_make(model.device, bytes, &workspace));
  for (const int i : {1, 0, 1, 0, 0}) {
    m.forget();
    EXPECT_DONE(ww_moe_launch(plans[i], &m.moe, workspace, nullptr, nullptr));
    EXPECT_TRUE(m.right());
  }
  ww_workspace_free(workspace);
  for (ww_moe_plan* plan : plans) ww_moe_plan_free(plan);
}

TEST(CMoe, PlansPreparesAndLaunches) {
  Moe m;
  const Device model("model");
  ww_moe_choices choices = {};
  choices.size = sizeof choices;
  choices.by_index = WW_NO;
  choices.batch_invariant = 1;
  choices.sort_with_gather = WW_NO;
  ww_moe_plan* plan = nullptr;
  EXPECT_DONE(ww_moe_plan_make(&m.moe, model.device, &choices, &plan));
  EXPECT_THAT(ww_moe_plan_explain(plan), HasSubstr("gather_rows"));
  ww_moe_plan_free(plan);
  choices.sort_with_gather = WW_YES;
  EXPECT_DONE(ww_moe_plan_make(&m.moe, model.device, &choices, &plan));
  EXPECT_THAT(ww_moe_plan_explain(plan), HasSubstr("sort_gather"));
  ASSERT_GT(ww_moe_plan_workspace_bytes(plan), 0);
  ww_workspace* workspace = nullptr;
  EXPECT_DONE(ww_workspace_make(model.device, ww_moe_plan_workspace_bytes(plan), &workspace));
  EXPECT_DONE(ww_moe_prepare(plan));
  EXPECT_DONE(ww_moe_launch(plan, &m.moe, workspace, nullptr, nullptr));
  EXPECT_TRUE(m.right());
  EXPECT_DONE(ww_moe_ids_fault(plan, workspace, nullptr));
  m.ids[0] = 9;
  EXPECT_DONE(ww_moe_launch(plan, &m.moe, workspace, nullptr, nullptr));
  const Refusal fault(ww_moe_ids_fault(plan, workspace, nullptr));
  EXPECT_STREQ(ww_refusal_code(fault.get()), "bad_value");
  EXPECT_TRUE(m.right());  // the slot is left out
  ww_moe_options check = {sizeof check, 0, 1};
  const Refusal waits(ww_moe_launch(plan, &m.moe, workspace, nullptr, &check));
  EXPECT_THAT(text(waits), HasSubstr("ww_moe_ids_fault"));
  const Refusal checked(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, &check, nullptr));
  EXPECT_EQ(text(checked), text(fault));
  ww_workspace_free(workspace);
  EXPECT_DONE(ww_workspace_make(model.device, 256, &workspace));
  const Refusal small(ww_moe_launch(plan, &m.moe, workspace, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_code(small.get()), "bad_workspace");
  ww_workspace_free(workspace);
  ww_moe_plan_free(plan);
}

TEST(CMoe, PlansWithoutMemoryForDevicesElsewhere) {
  Moe m;
  for (ww_matrix* each :
       {&m.moe.x, &m.moe.topk_ids, &m.moe.topk_weights, &m.moe.w13, &m.moe.w2, &m.moe.d}) {
    each->data = nullptr;
  }
  const Device h200("h200");
  ww_moe_plan* plan = nullptr;
  EXPECT_DONE(ww_moe_plan_make(&m.moe, h200.device, nullptr, &plan));
  EXPECT_THAT(ww_moe_plan_explain(plan), HasSubstr("floor us"));
  ww_moe_plan_free(plan);
  const Refusal refused(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_code(refused.get()), "bad_pointer");
}

TEST(CMoe, RefusesWhatIsNoMixture) {
  const auto refused = [](const char* code, const char* tensor, const char* says,
                          const auto& change) {
    Moe m;
    change(m.moe);
    const Refusal made(ww_moe_run(&m.moe, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_STREQ(ww_refusal_code(made.get()), code) << text(made);
    EXPECT_STREQ(ww_refusal_tensor(made.get()), tensor) << text(made);
    EXPECT_THAT(text(made), HasSubstr(says));
  };
  refused("bad_pointer", "w2", "w2 is not given", [](ww_moe& m) { m.w2 = {}; });
  refused("bad_shape", "bias13", "has an address and is 0 x 0", [](ww_moe& m) {
    m.bias13 = {};
    m.bias13.data = m.x.data;
  });
  refused("bad_type", "topk_ids", "4 bytes wide or 8",
          [](ww_moe& m) { m.topk_ids.dtype = WW_F32; });
  refused("bad_type", "w13", "x's type", [](ww_moe& m) { m.w13.dtype = WW_F16; });
  refused("bad_type", "d", "99", [](ww_moe& m) { m.d.dtype = 99; });
  refused("bad_shape", "w2", "takes what w13 gives", [](ww_moe& m) { m.gate_up = WW_GATED_NONE; });
  refused("bad_value", "", "combine is 3", [](ww_moe& m) { m.combine = 3; });
  refused("bad_shape", "d", "a row for each slot", [](ww_moe& m) { m.combine = WW_COMBINE_NONE; });
  refused("unsupported", "topk_ids", "one expert",
          [](ww_moe& m) { m.apply_router_weight_on_input = 1; });
  refused("bad_value", "", "routed_scaling_factor is inf",
          [](ww_moe& m) { m.routed_scaling_factor = std::numeric_limits<float>::infinity(); });
  refused("bad_value", "scale_x", "only tokens that are e4m3",
          [](ww_moe& m) { m.scale_x = m.topk_weights; });
  refused("bad_shape", "shared_output", "the shape of x",
          [](ww_moe& m) { m.shared_output = m.topk_weights; });
  refused("bad_value", "", "id_type is 2", [](ww_moe& m) { m.id_type = 2; });
  refused("bad_value", "", "activation is relu", [](ww_moe& m) { m.activation = 1; });
  refused("bad_value", "", "gate_limit is -2", [](ww_moe& m) { m.gate.limit = -2; });
  refused("bad_value", "", "gate.reserved", [](ww_moe& m) { m.gate.reserved = 1; });
  refused("bad_value", "", "ww_moe.size is 8", [](ww_moe& m) { m.size = 8; });
  Moe m;
  ww_moe_choices choices = {};
  choices.size = sizeof choices;
  choices.by_index = 3;
  const Refusal word(ww_moe_run(&m.moe, WW_MODEL, &choices, nullptr, nullptr, nullptr));
  EXPECT_THAT(text(word), HasSubstr("by_index is 3; it is 0 to 2"));
  choices.by_index = 0;
  choices.sums_in_product = WW_YES;
  const Refusal gone(ww_moe_run(&m.moe, WW_MODEL, &choices, nullptr, nullptr, nullptr));
  EXPECT_THAT(text(gone), HasSubstr("sums_in_product is 1 (WW_YES)"));
  EXPECT_THAT(text(gone), HasSubstr("the nearest is 2 (WW_NO)"));
  choices.sums_in_product = WW_NO;
  choices.first_kernel = "none";
  const Refusal kernel(ww_moe_run(&m.moe, WW_MODEL, &choices, nullptr, nullptr, nullptr));
  EXPECT_THAT(text(kernel), HasSubstr("the product with w13"));
}

}  // namespace
