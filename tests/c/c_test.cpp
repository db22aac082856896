// The C ABI through the shared library: what it computes, what it refuses, and from many threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/c/parts.h"
#include "warpwright/c_members.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/rules.h"

namespace {

using testing::HasSubstr;
using testing::Not;

using namespace c_tests;

// What programs were compiled with: version 2 of the ABI. Structs may grow at their ends.
static_assert(sizeof(ww_matrix) == 64 && sizeof(ww_gemm) == 696 && sizeof(ww_choices) == 32 &&
              sizeof(ww_launch_options) == 24 && sizeof(ww_packed_form) == 48 &&
              sizeof(ww_scale_groups) == 24 && sizeof(ww_block_quantisation) == 304);

// A small product of whole numbers, exact in bf16 and float.
struct Product {
  static constexpr std::int64_t m = 5, n = 24, k = 32;
  alignas(16) std::uint16_t a[m * k] = {};
  alignas(16) std::uint16_t b[n * k] = {};
  alignas(16) float d[m * n] = {};
  ww_gemm gemm = {};

  Product() {
    for (int i = 0; i < m * k; ++i) a[i] = bf16(static_cast<float>(i % 7 - 3));
    for (int i = 0; i < n * k; ++i) b[i] = bf16(static_cast<float>(i % 5 - 2));
    ww_gemm_init(&gemm);
    gemm.a = ww_packed(a, WW_BF16, m, k);
    gemm.b = ww_packed(b, WW_BF16, n, k);
    gemm.d = ww_packed(d, WW_F32, m, n);
    forget();
  }
  void forget() { std::fill_n(d, m * n, std::numeric_limits<float>::quiet_NaN()); }
  [[nodiscard]] bool right() const {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        int want = 0;
        for (int l = 0; l < k; ++l) want += ((i * k + l) % 7 - 3) * ((j * k + l) % 5 - 2);
        if (d[i * n + j] != static_cast<float>(want)) return false;
      }
    }
    return true;
  }
};

TEST(C, SaysItsVersions) {
  EXPECT_EQ(ww_abi_version(), WW_ABI_VERSION);
  EXPECT_THAT(ww_version(), HasSubstr("."));
}

// The library's list in capitals, "WW_ACTIVATION_GELU = 2", in the header: what C has no list to
// make of.
void expect_in(const std::string& header, const std::string& prefix, std::string word, int number) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string line = prefix + word + " = " + std::to_string(number);
  EXPECT_TRUE(header.find("  " + line + ",") != std::string::npos) << line;
}

std::string source(const char* path) {
  std::ifstream file(std::string(WARPWRIGHT_SOURCE "/") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Programs that were written when all packed weights were int4 compile and run, for one version.
TEST(C, PackedWeightsHaveTheirOldNames) {
  ww_int4 old;
  ww_packed_form form;
  ww_int4_init(&old);
  ww_packed_form_init(&form);
  old.n = form.n = 64;
  old.k = form.k = 128;
  EXPECT_EQ(std::memcmp(&old, &form, sizeof form), 0);
  std::int64_t bytes[2] = {};
  EXPECT_DONE(ww_int4_bytes(&old, &bytes[0]));
  EXPECT_DONE(ww_packed_bytes(&form, &bytes[1]));
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_GT(bytes[0], int64_t{WW_INT4_HEADER});
  EXPECT_EQ(int{WW_INT4_F16}, int{WW_PACKED_EX_F16});
  ww_gemm g;
  ww_gemm_init(&g);
  g.int4 = &old;
  EXPECT_EQ(g.packed, &old);
}

// Languages that cannot read the lists of types and modes have them as they are.
TEST(C, HeaderAndStubsHaveTheLists) {
  using namespace warpwright;
  const std::string header = source("warpwright/c.h");
  std::string activations, scalings;
  for (const Activation each : all_activations) {
    expect_in(header, "WW_ACTIVATION_", name(each), static_cast<int>(each));
    activations += (activations.empty() ? "\"" : ", \"") + std::string(name(each)) + "\"";
  }
  std::array<std::string, std::size(all_scalings)> words;
  for (const Scaling each : all_scalings) {
    const char* const word = words_of(each).identifier;
    expect_in(header, "WW_SCALING_", word, static_cast<int>(each));
    words[static_cast<std::size_t>(each)] = word;
  }
  for (const std::string& word : words)
    scalings += (scalings.empty() ? "\"" : ", \"") + word + "\"";
  // C has no double.
  for (const DType each : all_types) {
    if (each == DType::f64) continue;
    expect_in(header, "WW_", std::string(numeric::name(each)), static_cast<int>(each));
  }
  for (const packed::WeightForm& form : packed::weight_forms) {
    std::string word = form.word;
    if (const std::size_t at = word.find("fp16"); at != std::string::npos) word.erase(at + 1, 1);
    std::ranges::replace(word, '-', '_');
    expect_in(header, "WW_PACKED_", word, form.number);
  }
  // A long list goes on in a line of its own.
  const std::string stubs =
      std::regex_replace(source("python/warpwright/_types.py"), std::regex(",\n +"), ", ");
  EXPECT_THAT(stubs, HasSubstr("\nActivation = Literal[" + activations + "]\n"));
  EXPECT_THAT(stubs, HasSubstr("\nScaling = Literal[" + scalings + "]\n"));
}

// What the library can be given, C can say.
template <class Operands, class Members>
void expect_members(const Members& members, const std::set<std::string>& left_out) {
  const Operands o;
  warpwright::for_each_field(o, [&](const char* name, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const warpwright::MatrixView&>) {
      const bool is_there = std::ranges::any_of(
          members, [&](const auto& member) { return &(o.*member.read) == &field; });
      EXPECT_NE(is_there, left_out.contains(name)) << name;
    }
  });
}

TEST(C, EveryTensorIsAMember) {
  using namespace warpwright;
  expect_members<GemmOperands>(c::gemm_matrices, {"factor_a", "factor_b"});  // a mixture's
  expect_members<MixtureOperands>(c::moe_matrices, {});
}

TEST(C, PlansExplainsAndLaunches) {
  Product p;
  const Device model("model");
  ww_plan* plan = nullptr;
  EXPECT_DONE(ww_plan_make(&p.gemm, model.device, nullptr, &plan));
  EXPECT_THAT(ww_plan_kernel(plan), HasSubstr("hopper_bf16_f32"));
  EXPECT_THAT(ww_plan_name(plan), HasSubstr("bf16"));
  EXPECT_THAT(ww_plan_explain(plan), HasSubstr("barrier"));
  EXPECT_THAT(ww_plan_line(plan), HasSubstr("D[5,24]"));
  EXPECT_DONE(ww_launch(plan, &p.gemm, nullptr, nullptr, nullptr));
  EXPECT_TRUE(p.right());
  ww_plan_free(plan);
}

// Gates and what they are for are 16 each.
TEST(C, GatesHaveNumbers) {
  constexpr std::int64_t n = 16, k = 32;
  std::vector<std::uint16_t> a(k, bf16(1)), b(n * k, bf16(0.5F)), d(n / 2);
  ww_gemm g;
  ww_gemm_init(&g);
  g.a = ww_packed(a.data(), WW_BF16, 1, k);
  g.b = ww_packed(b.data(), WW_BF16, n, k);
  g.d = ww_packed(d.data(), WW_BF16, 1, n / 2);
  g.gated = WW_GATED_HALVES;
  g.activation = WW_ACTIVATION_SILU;
  const Device model("model");
  ww_plan* plan = nullptr;
  EXPECT_DONE(ww_plan_make(&g, model.device, nullptr, &plan));
  const auto expect = [&](const ww_gate& gate, double want) {
    g.gate = gate;
    d.assign(d.size(), 0);
    EXPECT_DONE(ww_launch(plan, &g, nullptr, nullptr, nullptr));  // one plan serves any
    for (const std::uint16_t each : d) EXPECT_NEAR(bf16_value(each), want, 0.005 * want);
    d.assign(d.size(), 0);
    EXPECT_DONE(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_NEAR(bf16_value(d.front()), want, 0.005 * want);
  };
  expect({}, 256);
  expect({0, 0, 10, 0}, 100);
  g.size = offsetof(ww_gemm, gate);  // of a program that knows none
  expect({0, 0, 10, 0}, 256);
  g.size = sizeof g;
  const auto refused = [&](const ww_gate& gate, const char* says, const char* nearest) {
    g.gate = gate;
    const Refusal made(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    ASSERT_TRUE(made) << says;
    EXPECT_STREQ(ww_refusal_code(made.get()), "bad_value");
    EXPECT_THAT(text(made), HasSubstr(says));
    EXPECT_STREQ(ww_refusal_nearest(made.get()), nearest);
  };
  refused({0, 0, -10, 0}, "gate_limit is -10", "10");
  refused({0, 0, 0, 1}, "gate.reserved is 1", "0");
  ww_plan_free(plan);
}

TEST(C, PlansWithoutAddressesForDevicesElsewhere) {
  Product p;
  p.gemm.a.data = p.gemm.b.data = p.gemm.d.data = nullptr;
  const Device h200("h200");
  ww_plan* plan = nullptr;
  EXPECT_DONE(ww_plan_make(&p.gemm, h200.device, nullptr, &plan));
  EXPECT_THAT(ww_plan_explain(plan), HasSubstr("132"));
  Product with;
  const Refusal refused(ww_launch(plan, &with.gemm, nullptr, nullptr, nullptr));
  EXPECT_TRUE(refused) << "there is no h200 of that name here";
  ww_plan_free(plan);
}

TEST(C, RunKeepsPlans) {
  Product p;
  ww_choices choices = {};
  choices.size = sizeof choices;
  choices.batch_invariant = 1;
  ww_plan* made = nullptr;
  EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, &choices, nullptr, nullptr, &made));
  EXPECT_TRUE(p.right());
  ASSERT_NE(made, nullptr);
  EXPECT_THAT(ww_plan_line(made), HasSubstr("batch_invariant"));
  ww_plan_free(made);
  p.forget();
  EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, &choices, nullptr, nullptr, &made));
  EXPECT_TRUE(p.right());
  EXPECT_EQ(made, nullptr);
}

// Slots of a router that gives each token two of them: D[r] is of token rows[r] / 2.
TEST(C, TokensByIndex) {
  Product p;
  const std::int32_t offsets[] = {0, 2, 6};
  const std::int32_t rows[] = {9, 0, 3, 2, 8, 10};  // the last is none's
  p.gemm.b.rows = 12;
  p.gemm.b.batch = 2;
  p.gemm.b.batch_stride = 12 * Product::k;
  std::uint16_t out[6 * 12];
  p.gemm.d = ww_packed(out, WW_BF16, 6, 12);
  p.gemm.rows = rows;
  p.gemm.rows_divisor = 2;
  const Refusal whole(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_THAT(text(whole), HasSubstr("grouped is 0"));
  p.gemm.grouped = 1;
  p.gemm.offsets = offsets;
  EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  for (int r = 0; r < 6; ++r) {
    const int token = rows[r] / 2;
    for (int j = 0; j < 12; ++j) {
      int sum = 0;
      for (int k = 0; k < Product::k && token < Product::m; ++k) {
        const int b = (r < 2 ? 0 : 12) + j;
        sum += ((token * Product::k + k) % 7 - 3) * ((b * Product::k + k) % 5 - 2);
      }
      EXPECT_EQ(out[r * 12 + j], bf16(static_cast<float>(sum))) << r << ", " << j;
    }
  }
}

// More tiles than the grid takes at once; other kernels, offsets and memories:
// run/offsets_test.cpp.
TEST(C, OffsetsAreCheckedInAWorkspaceOfOnesOwn) {
  constexpr std::int64_t rows = 300, columns = 512, depth = 64, groups = 4;
  std::vector<std::uint8_t> a(rows * depth, 0x38), b(groups * columns * depth, 0x38);  // 1 in e4m3
  std::vector<std::uint16_t> d(rows * columns);
  std::int32_t offsets[] = {0, 75, 150, 150, 300};
  ww_gemm gemm;
  ww_gemm_init(&gemm);
  gemm.a = ww_packed(a.data(), WW_E4M3, rows, depth);
  gemm.b = ww_packed(b.data(), WW_E4M3, columns, depth);
  gemm.b.batch = groups;
  gemm.b.batch_stride = columns * depth;
  gemm.d = ww_packed(d.data(), WW_BF16, rows, columns);
  gemm.grouped = 1;
  gemm.offsets = offsets;
  const Device model("model");
  ww_launch_options check = {};
  check.size = sizeof check;
  check.check_offsets = 1;
  ww_choices choices = {};
  choices.size = sizeof choices;
  choices.kernel = "grouped_e4m3_bf16_128x128_v_pp_dyn";
  ww_plan* plan = nullptr;
  EXPECT_DONE(ww_plan_make(&gemm, model.device, &choices, &plan));
  ww_workspace* workspace = nullptr;
  EXPECT_DONE(ww_workspace_make(model.device, ww_plan_workspace_bytes(plan), &workspace));
  const Refusal early(ww_workspace_offsets_fault(workspace, plan, nullptr));
  EXPECT_STREQ(ww_refusal_code(early.get()), "bad_workspace") << text(early);
  for (const std::int32_t last : {800, 300}) {
    offsets[4] = last;
    EXPECT_DONE(ww_launch(plan, &gemm, workspace, nullptr, &check));
    const Refusal told(ww_workspace_offsets_fault(workspace, plan, nullptr));
    const Refusal by_run(ww_run(&gemm, WW_MODEL, &choices, nullptr, &check, nullptr));
    EXPECT_EQ(text(told), text(by_run));
    EXPECT_EQ(static_cast<bool>(told), last == 800);
    if (told) {
      EXPECT_THAT(text(told), HasSubstr("group 3 are not in order"));
    }
  }
  ww_workspace_free(workspace);
  ww_plan_free(plan);
}

TEST(C, NumbersOfTokensAreCheckedWithTheOffsets) {
  constexpr std::int64_t rows = 40, tokens = 10, columns = 64, depth = 64;
  const std::vector<std::uint16_t> a(tokens * depth, 0x3f80);  // 1 in bf16
  const std::vector<std::uint16_t> b(2 * columns * depth, 0x3f80);
  std::vector<std::uint16_t> d(rows * columns);
  const std::int32_t offsets[] = {0, 30, 35};
  std::vector<std::int32_t> index(rows, 29);
  ww_gemm gemm;
  ww_gemm_init(&gemm);
  gemm.a = ww_packed(const_cast<std::uint16_t*>(a.data()), WW_BF16, tokens, depth);
  gemm.b = ww_packed(const_cast<std::uint16_t*>(b.data()), WW_BF16, columns, depth);
  gemm.b.batch = 2;
  gemm.b.batch_stride = columns * depth;
  gemm.d = ww_packed(d.data(), WW_BF16, rows, columns);
  gemm.grouped = 1;
  gemm.offsets = offsets;
  gemm.rows = index.data();
  gemm.rows_divisor = 3;
  ww_launch_options check = {};
  check.size = sizeof check;
  check.check_offsets = 1;
  index[35] = -1;  // in no group
  EXPECT_DONE(ww_run(&gemm, WW_MODEL, nullptr, nullptr, &check, nullptr));
  index[34] = 30;
  EXPECT_DONE(ww_run(&gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  const Refusal told(ww_run(&gemm, WW_MODEL, nullptr, nullptr, &check, nullptr));
  EXPECT_THAT(text(told), HasSubstr("rows[34] is 30 and names no row of A"));
  EXPECT_STREQ(ww_refusal_code(told.get()), "bad_value");
}

TEST(C, WorkspacesServePlansThatSplitK) {
  Product p;
  ww_choices choices = {};
  choices.size = sizeof choices;
  choices.kernel = "hopper_bf16_bf16_128x64_sw_sk";
  std::uint16_t out[Product::m * Product::n];
  p.gemm.d = ww_packed(out, WW_BF16, Product::m, Product::n);
  const Device model("model");
  ww_plan* plan = nullptr;
  EXPECT_DONE(ww_plan_make(&p.gemm, model.device, &choices, &plan));
  ASSERT_GT(ww_plan_workspace_bytes(plan), 0);
  const Refusal without(ww_launch(plan, &p.gemm, nullptr, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_code(without.get()), "bad_workspace");
  ww_workspace* workspace = nullptr;
  EXPECT_DONE(ww_workspace_make(model.device, ww_plan_workspace_bytes(plan), &workspace));
  EXPECT_EQ(ww_workspace_bytes(workspace), ww_plan_workspace_bytes(plan));
  EXPECT_DONE(ww_prepare(plan, workspace, nullptr));
  EXPECT_DONE(ww_launch(plan, &p.gemm, workspace, nullptr, nullptr));
  ww_workspace_free(workspace);
  std::vector<char> memory(static_cast<std::size_t>(ww_plan_workspace_bytes(plan)) + 256);
  auto* const at = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) &
                                           ~std::uintptr_t{255});
  EXPECT_DONE(ww_workspace_over(at, ww_plan_workspace_bytes(plan), &workspace));
  EXPECT_DONE(ww_launch(plan, &p.gemm, workspace, nullptr, nullptr));
  ww_workspace_free(workspace);
  ww_plan_free(plan);
  EXPECT_EQ(out[0], bf16([&] {
              float sum = 0;
              for (int l = 0; l < Product::k; ++l)
                sum += static_cast<float>((l % 7 - 3) * (l % 5 - 2));
              return sum;
            }()));
}

TEST(C, RefusesWhatIsNoProduct) {
  const auto refused = [](const char* code, const char* says, const auto& change) {
    Product p;
    change(p);
    const Refusal made(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_STREQ(ww_refusal_code(made.get()), code) << text(made);
    EXPECT_THAT(text(made), HasSubstr(says));
  };
  refused("bad_pointer", "A is not given", [](Product& p) { ww_gemm_init(&p.gemm); });
  refused("bad_pointer", "D is not given", [](Product& p) { p.gemm.d = {}; });
  refused("bad_type", "A has the type 99, which no type has; the nearest legal is 4 (WW_BF16)",
          [](Product& p) { p.gemm.a.dtype = 99; });
  refused("bad_value", "scaling is 7", [](Product& p) { p.gemm.scaling = 7; });
  refused("bad_value", "activation is -1", [](Product& p) { p.gemm.activation = -1; });
  refused("bad_value", "gated is 3", [](Product& p) { p.gemm.gated = WW_GATED_LAST + 1; });
  refused("bad_value", "ww_gemm.size is 8", [](Product& p) { p.gemm.size = 8; });
  refused("bad_value", "grouped is 0", [](Product& p) { p.gemm.offsets = p.a; });
  refused("bad_value", "reserved is 5; it is for later versions: the nearest legal is 0",
          [](Product& p) { p.gemm.a.reserved = 5; });
}

// Each part of the sentence is one, and what a rule does not know is empty.
TEST(C, RefusalsKnowTensorRuleAndNearest) {
  Product p;
  p.gemm.a.row_stride = 31;
  const Refusal stride(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_tensor(stride.get()), "A");
  EXPECT_STREQ(ww_refusal_nearest(stride.get()), "32");
  Product typed;
  typed.gemm.bias = ww_packed(typed.a, WW_E4M3, typed.n, 1);
  typed.gemm.bias_along = WW_BIAS_COLUMNS;
  const Refusal type(ww_run(&typed.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_tensor(type.get()), "bias");
  EXPECT_STREQ(ww_refusal_rule(type.get()),
               "a bias is f32, or of D's type where that is bf16 or fp16");
  EXPECT_STREQ(ww_refusal_nearest(type.get()), "f32");
  EXPECT_THAT(text(type), HasSubstr(ww_refusal_rule(type.get())));
  typed.gemm.bias = {};
  typed.gemm.bias_along = 3;
  const Refusal word(ww_run(&typed.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_tensor(word.get()), "");
  EXPECT_STREQ(ww_refusal_nearest(word.get()), "2");
}

TEST(C, HalfAClusterIsRefused) {
  for (const bool lacks_n : {true, false}) {
    Product p;
    ww_choices choices = {};
    choices.size = sizeof choices;
    (lacks_n ? choices.cluster_m : choices.cluster_n) = 2;
    const Refusal made(ww_run(&p.gemm, WW_MODEL, &choices, nullptr, nullptr, nullptr));
    EXPECT_STREQ(ww_refusal_code(made.get()), "bad_choice");
    EXPECT_THAT(text(made),
                HasSubstr(lacks_n ? "cluster_m is 2 and cluster_n is 0; a cluster has both"
                                  : "cluster_n is 2 and cluster_m is 0; a cluster has both"));
  }
}

TEST(C, RefusesDevicesThatAreNotThere) {
  ww_device* device = nullptr;
  for (const char* name : {"", "cuda:", "cuda:99", "cuda:-1", "cuda:1x", "rtx", "Model"}) {
    const Refusal refused(ww_device_open(name, &device));
    EXPECT_STREQ(ww_refusal_code(refused.get()), "no_device") << name;
  }
  EXPECT_STREQ(ww_refusal_code(Refusal(ww_device_model(0, 90, &device)).get()), "bad_value");
  for (const auto& [architecture, nearest] :
       {std::pair{91, "90"}, {0, "70"}, {-2147483647, "70"}, {101, "100"}, {9999, "120"}}) {
    const Refusal refused(ww_device_model(4, architecture, &device));
    EXPECT_STREQ(ww_refusal_nearest(refused.get()), nearest) << architecture;
    EXPECT_THAT(text(refused), HasSubstr("the model has 70, 75, 80, 86, 89, 90, 100, 103, 120"));
  }
  Product p;
  EXPECT_TRUE(Refusal(ww_run(&p.gemm, 99, nullptr, nullptr, nullptr, nullptr)));
  const Device h200("h200");
  ww_workspace* workspace = nullptr;
  EXPECT_STREQ(ww_refusal_code(Refusal(ww_workspace_make(h200.device, 8, &workspace)).get()),
               "no_device");
}

// -- What is made before a product

// Packed by both ways, read back, and multiplied; a plan without memory.
TEST(C, Int4Weights) {
  constexpr std::int64_t m = 8, n = 64, k = 256;
  std::vector<float> w(n * k);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 7 % 15) - 7;
  for (std::size_t i = 0; i < w.size(); i += 128) w[i] = -8;  // so that scales are 1
  ww_packed_form form;
  ww_packed_form_init(&form);
  form.n = n;
  form.k = k;
  std::int64_t bytes = 0;
  EXPECT_DONE(ww_packed_bytes(&form, &bytes));
  ASSERT_EQ(bytes, 128 + 2 * 4224);
  std::vector<char> memory(static_cast<std::size_t>(2 * bytes) + 256);
  auto* const packed = reinterpret_cast<char*>(
      (reinterpret_cast<std::uintptr_t>(memory.data()) + 127) & ~std::uintptr_t{127});
  const ww_matrix floats = ww_packed(w.data(), WW_F32, n, k);
  EXPECT_DONE(ww_int4_quantise(&floats, &form, packed));
  EXPECT_EQ(form.encoding, WW_PACKED_EX);
  ww_packed_form read;
  EXPECT_DONE(ww_packed_read(packed, bytes, &read));
  EXPECT_EQ(std::memcmp(&read, &form, sizeof form), 0);

  // The same from a checkpoint's tensors.
  std::vector<std::uint8_t> codes(n * k / 2);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint8_t>((static_cast<int>(w[2 * i]) & 15) |
                                         (static_cast<int>(w[2 * i + 1]) & 15) << 4);
  }
  std::vector<std::uint16_t> scales(n * 2, bf16(1));
  const ww_matrix code_view = ww_packed(codes.data(), WW_S8, n, k / 2);
  const ww_matrix scale_view = ww_packed(scales.data(), WW_BF16, n, 2);
  ww_packed_form plain;
  ww_packed_form_init(&plain);
  EXPECT_DONE(ww_int4_pack("int4", &code_view, &scale_view, nullptr, nullptr, &plain, nullptr));
  EXPECT_EQ(plain.n, n);
  EXPECT_EQ(plain.k, k);
  char* const again = packed + (bytes + 127) / 128 * 128;
  EXPECT_DONE(ww_int4_pack("int4", &code_view, &scale_view, nullptr, nullptr, &plain, again));
  EXPECT_EQ(std::memcmp(packed + 128, again + 128, static_cast<std::size_t>(bytes) - 128), 0);

  std::vector<std::uint8_t> x(m * k, 0x38);  // 1 in e4m3
  std::vector<std::uint16_t> d(m * n);
  ww_gemm g;
  ww_gemm_init(&g);
  g.a = ww_packed(x.data(), WW_E4M3, m, k);
  g.packed = &form;
  g.d = ww_packed(d.data(), WW_BF16, m, n);
  const auto refused = [&](const char* says, ww_refusal* told) {
    EXPECT_THAT(text(Refusal(told)), HasSubstr(says));
  };
  refused("b.data is a null", ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  g.b = ww_packed(packed, WW_S4, n, k);
  refused("leave all but b.data 0", ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  g.packed = nullptr;
  g.sums = WW_SUMS_CHAINED;
  refused("sums is 1 and packed is NULL", ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  ww_packed_form of_e2m1 = form;
  of_e2m1.encoding = WW_PACKED_MXF4;
  refused("these become int4", ww_int4_quantise(&floats, &of_e2m1, packed));
  form.group = 7;
  refused("groups of 32, 64 or 128", ww_packed_bytes(&form, &bytes));
  ww_packed_form vast = plain;
  vast.experts = vast.n = vast.k = std::int64_t{1} << 31;
  refused("fit into a memory", ww_packed_bytes(&vast, &bytes));
  packed[20] ^= 1;
  refused("damaged", ww_packed_read(packed, WW_PACKED_HEADER, &read));
  refused("count is 5", ww_packed_read(packed, 5, &read));
  refused("layout is a null",
          ww_int4_pack(nullptr, &code_view, &scale_view, nullptr, nullptr, &plain, again));
}

// What register kernels multiply, on the model with another device's instructions.
TEST(C, OperandsOfOtherDevices) {
  constexpr std::int64_t m = 5, n = 136, k = 64;
  std::vector<float> a(m * k, 1.0F), b(n * k, 0.5F), d(m * n);
  ww_gemm g;
  ww_gemm_init(&g);
  g.a = ww_packed(a.data(), WW_TF32, m, k);
  g.b = ww_packed(b.data(), WW_TF32, n, k);
  g.d = ww_packed(d.data(), WW_F32, m, n);
  const auto product = [&](const char* device) {
    const Device there(device);
    ww_plan* plan = nullptr;
    EXPECT_DONE(ww_plan_make(&g, there.device, nullptr, &plan));
    EXPECT_DONE(ww_launch(plan, &g, nullptr, nullptr, nullptr));
    ww_plan_free(plan);
  };
  product("model:a100");
  EXPECT_EQ(d[m * n - 1], 32.0F);
  // nvf4: 1 and 0.5, scales of 2 and 1.
  std::vector<std::uint8_t> a4(m * k / 2, 0x22), b4(n * k / 2, 0x11);
  std::vector<std::uint8_t> sa(128 * 4, 0x40), sb(256 * 4, 0x38);
  std::vector<std::uint16_t> out(m * n);
  g.a = ww_packed(a4.data(), WW_E2M1, m, k);
  g.b = ww_packed(b4.data(), WW_E2M1, n, k);
  g.d = ww_packed(out.data(), WW_BF16, m, n);
  g.scaling = WW_SCALING_BLOCK_SCALED;
  g.scale_a = ww_packed(sa.data(), WW_UE4M3, 128, 4);
  g.scale_b = ww_packed(sb.data(), WW_UE4M3, 256, 4);
  EXPECT_THAT(text(Refusal(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr))),
              HasSubstr("of tensors without factors the nearest is no_factors 1"));
  ww_gemm before = g;  // a program that cannot say it
  before.size = offsetof(ww_gemm, no_factors);
  EXPECT_THAT(text(Refusal(ww_run(&before, WW_MODEL, nullptr, nullptr, nullptr, nullptr))),
              Not(HasSubstr("no_factors")));
  g.no_factors = 1;
  for (const char* const device : {"model:rtx5090", "model:b200"}) {
    out.assign(out.size(), 0);
    product(device);
    EXPECT_EQ(out[m * n - 1], bf16(64)) << device;
  }
}

// What quantises is what multiplies: nvf4 of values that it holds exactly, by both orders of
// scales.
TEST(C, QuantisesToFormats) {
  constexpr std::int64_t m = 5, n = 136, k = 64;
  const std::vector<float> a(m * k, 3.0F), b(n * k, 0.5F);
  std::vector<std::uint8_t> a4(m * k / 2), b4(n * k / 2);
  alignas(16) std::uint8_t sa[128 * 4] = {};
  alignas(16) std::uint8_t sb[256 * 4] = {};
  alignas(16) std::uint8_t tiles[256 * 4] = {};
  std::vector<std::uint8_t> rows(n * 4);
  float of_a = 0, of_b = 0;
  const auto quantise = [](const std::vector<float>& x, std::vector<std::uint8_t>& codes,
                           const ww_matrix& scales, float& scale, std::int32_t order) {
    ww_block_quantisation q = {};
    q.size = sizeof q;
    const auto count = static_cast<std::int64_t>(x.size()) / k;
    q.x = ww_packed(const_cast<float*>(x.data()), WW_F32, count, k);
    q.codes = ww_packed(codes.data(), WW_E2M1, count, k);
    q.scales = scales;
    q.tensor_scale = ww_packed(&scale, WW_F32, 1, 1);
    q.order = order;
    EXPECT_DONE(ww_quantise_blocks(&q, WW_MODEL, nullptr));
    q.recipe = WW_RECIPE_UP;
    EXPECT_THAT(text(Refusal(ww_quantise_blocks(&q, WW_MODEL, nullptr))),
                HasSubstr("floor and up"));
    q.recipe = 9;
    EXPECT_THAT(text(Refusal(ww_quantise_blocks(&q, WW_MODEL, nullptr))), HasSubstr("recipe is 9"));
  };
  quantise(a, a4, ww_packed(sa, WW_UE4M3, 128, 4), of_a, WW_SCALES_IN_TILES);
  quantise(b, b4, ww_packed(rows.data(), WW_UE4M3, n, 4), of_b, WW_SCALES_IN_ROWS);
  const ww_matrix linear = ww_packed(rows.data(), WW_UE4M3, n, 4);
  const ww_matrix in_tiles = ww_packed(sb, WW_UE4M3, 256, 4);
  EXPECT_DONE(ww_order_scales(&linear, &in_tiles, WW_SCALES_IN_TILES, nullptr, WW_MODEL, nullptr));
  quantise(b, b4, ww_packed(tiles, WW_UE4M3, 256, 4), of_b, WW_SCALES_IN_TILES);
  EXPECT_EQ(std::memcmp(tiles, sb, sizeof sb), 0);
  std::vector<std::uint16_t> out(m * n);
  ww_gemm g;
  ww_gemm_init(&g);
  g.a = ww_packed(a4.data(), WW_E2M1, m, k);
  g.b = ww_packed(b4.data(), WW_E2M1, n, k);
  g.d = ww_packed(out.data(), WW_BF16, m, n);
  g.scaling = WW_SCALING_BLOCK_SCALED;
  g.scale_a = ww_packed(sa, WW_UE4M3, 128, 4);
  g.scale_b = in_tiles;
  g.alpha = of_a * of_b;
  const Device there("model:rtx5090");
  ww_plan* plan = nullptr;
  EXPECT_DONE(ww_plan_make(&g, there.device, nullptr, &plan));
  EXPECT_DONE(ww_launch(plan, &g, nullptr, nullptr, nullptr));
  ww_plan_free(plan);
  EXPECT_EQ(out[m * n - 1], bf16(96));
  // Blocks of fp8, 1 x 128 and 128 x 128, powers of two.
  const float powers[] = {4, 0.5F};
  const ww_matrix spread = ww_packed(tiles, WW_UE8M0, 256, 4);
  const ww_matrix blocks = ww_packed(const_cast<float*>(powers), WW_F32, 2, 1);
  EXPECT_DONE(ww_spread_scales(&blocks, &spread, 128, 4, nullptr, WW_MODEL, nullptr));
  EXPECT_EQ(tiles[0], 129);
  EXPECT_EQ(tiles[2 * 512 - 1], 126);
  const float third = 1 / 3.0F;
  const ww_matrix odd = ww_packed(const_cast<float*>(&third), WW_F32, 1, 1);
  const ww_matrix one_tile = ww_packed(tiles, WW_UE8M0, 128, 4);
  EXPECT_THAT(text(Refusal(ww_spread_scales(&odd, &one_tile, 1, 4, nullptr, WW_MODEL, nullptr))),
              HasSubstr("0.333333343; as ue8m0 it is a power of two"));
  EXPECT_THAT(text(Refusal(ww_spread_scales(&odd, &one_tile, 1, 2, nullptr, WW_MODEL, nullptr))),
              HasSubstr("blocks_each is 2"));
  ww_scale_groups groups = {};
  groups.count = 2;
  EXPECT_THAT(text(Refusal(ww_order_scales(&linear, &in_tiles, WW_SCALES_IN_TILES, &groups,
                                           WW_MODEL, nullptr))),
              HasSubstr("group"));
}

// A program that was built with a later header has larger structs, one that was built with an
// earlier one smaller ones.
TEST(C, TakesSmallerStructs) {
  Product p;
  p.gemm.size = 576;  // before int4
  p.gemm.sums = 77;   // not its own memory
  EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_TRUE(p.right());
}

// Memory that knows how far it was written.
struct Guarded {
  alignas(16) std::byte bytes[1024];
  Guarded() { std::memset(bytes, 0xa5, sizeof bytes); }
  [[nodiscard]] bool is_whole_from(std::size_t first) const {
    return std::all_of(std::begin(bytes) + first, std::end(bytes),
                       [](std::byte b) { return b == std::byte{0xa5}; });
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes);
  }
};

// Programs of before have less memory for a struct than this library would fill.
TEST(C, InitialisesStructsOfTheirSize) {
  const auto tensors_of = [](Product& p, Guarded& to) {
    auto* const g = to.as<ww_gemm>();
    g->a = p.gemm.a;
    g->b = p.gemm.b;
    g->d = p.gemm.d;
  };
  Guarded gemm, moe, form;
  (ww_gemm_init)(gemm.as<ww_gemm>());  // the function, which knows no size
  (ww_moe_init)(moe.as<ww_moe>());
  (ww_packed_form_init)(form.as<ww_packed_form>());
  EXPECT_TRUE(gemm.is_whole_from(576) && moe.is_whole_from(712) && form.is_whole_from(48));
  EXPECT_EQ(gemm.as<ww_gemm>()->size, 576U);
  EXPECT_EQ(moe.as<ww_moe>()->size, 712U);
  EXPECT_EQ(moe.as<ww_moe>()->gate_up, WW_GATED_HALVES);
  EXPECT_EQ(form.as<ww_packed_form>()->experts, 1);
  // Such a program's product.
  Product p;
  tensors_of(p, gemm);
  EXPECT_DONE(ww_run(gemm.as<ww_gemm>(), WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_TRUE(p.right());
  // Any size: of 0.3.0, of today, of a later header, whose members are 0.
  for (const std::size_t size : {std::size_t{592}, sizeof(ww_gemm), std::size_t{800}}) {
    Guarded sized;
    ww_gemm_init_sized(sized.as<ww_gemm>(), size);
    EXPECT_TRUE(sized.is_whole_from(size)) << size;
    EXPECT_EQ(sized.as<ww_gemm>()->size, size);
    EXPECT_EQ(sized.as<ww_gemm>()->sums, WW_SUMS_OPEN);
    p.forget();
    tensors_of(p, sized);
    EXPECT_DONE(ww_run(sized.as<ww_gemm>(), WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_TRUE(p.right()) << size;
  }
  ww_gemm_init_sized(nullptr, 8);
  ww_moe_init_sized(nullptr, 8);
  ww_packed_form_init_sized(nullptr, 8);
}

// What was reserved, and 0, says how lengths are spread: 0 is what older programs had.
TEST(C, TakesTheSpreadOfLengths) {
  ww_gemm g;
  ww_gemm_init(&g);
  EXPECT_EQ(g.expected_lengths, WW_LENGTHS_ROUTED);
  EXPECT_EQ(g.expected_zipf, 0);
  g.a = ww_packed(nullptr, WW_E4M3, 128 * 64, 2048);
  g.b = ww_packed(nullptr, WW_E4M3, 1536, 2048);
  g.b.batch = 128;
  g.b.batch_stride = 1536 * 2048;
  g.d = ww_packed(nullptr, WW_BF16, 128 * 64, 1536);
  g.grouped = 1;
  ww_device* device = nullptr;
  ASSERT_EQ(ww_device_open("h200", &device), nullptr);
  // What is predicted differs, whichever kernels there are.
  const auto told = [&](std::int32_t lengths, float zipf) {
    g.expected_lengths = lengths;
    g.expected_zipf = zipf;
    ww_plan* plan = nullptr;
    const Refusal refused(ww_plan_make(&g, device, nullptr, &plan));
    std::string said = refused ? ww_refusal_code(refused.get()) : ww_plan_explain(plan);
    if (!refused) ww_plan_free(plan);
    return said;
  };
  EXPECT_NE(told(WW_LENGTHS_ROUTED, 0), told(WW_LENGTHS_EQUAL, 0));
  EXPECT_NE(told(WW_LENGTHS_ROUTED, 0), told(WW_LENGTHS_ROUTED, 2));
  EXPECT_EQ(told(WW_LENGTHS_EQUAL, 2), told(WW_LENGTHS_EQUAL, 0));
  EXPECT_EQ(told(2, 0), "bad_value");
  EXPECT_EQ(told(-1, 0), "bad_value");
  EXPECT_EQ(told(WW_LENGTHS_ROUTED, -1), "bad_value");
  ww_device_free(device);
}

TEST(C, TakesLargerStructsWhoseRestIsZero) {
  Product p;
  struct {
    ww_gemm gemm;
    std::int64_t later;
  } grown = {p.gemm, 0};
  grown.gemm.size = sizeof grown;
  EXPECT_DONE(ww_run(&grown.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_TRUE(p.right());
  grown.later = 1;
  const Refusal refused(ww_run(&grown.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_STREQ(ww_refusal_code(refused.get()), "unsupported");
}

TEST(C, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 6; ++i) {
        Product p;
        p.gemm.beta = 0;
        p.gemm.expected_tokens = 0;
        p.gemm.d.rows = p.gemm.a.rows = 2 + (i + static_cast<int>(t)) % (Product::m - 1);
        const Refusal refused(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
        wrong[t] += refused ? 1 : 0;
        p.gemm.a.row_stride = Product::k - 1 - i;
        wrong[t] += Refusal(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr)) ? 0 : 1;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
