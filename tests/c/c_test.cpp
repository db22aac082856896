// The C ABI through the shared library: what it computes, what it refuses, and from many threads.
#include "warpwright/c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using testing::HasSubstr;

struct FreeRefusal {
  void operator()(ww_refusal* r) const { ww_refusal_free(r); }
};
using Refusal = std::unique_ptr<ww_refusal, FreeRefusal>;

#define EXPECT_DONE(call)             \
  do {                                \
    const Refusal told(call);         \
    EXPECT_FALSE(told) << text(told); \
  } while (false)

std::string text(const Refusal& refused) {
  return ww_refusal_text(refused.get());
}

std::uint16_t bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

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

struct Device {
  ww_device* device = nullptr;
  explicit Device(const char* name) { EXPECT_DONE(ww_device_open(name, &device)); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { ww_device_free(device); }
};

TEST(C, SaysItsVersions) {
  EXPECT_EQ(ww_abi_version(), WW_ABI_VERSION);
  EXPECT_THAT(ww_version(), HasSubstr("."));
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

// Beta is 1 where nobody says otherwise; without C nothing is added.
TEST(C, BetaAndC) {
  Product p;
  float c[Product::m * Product::n];
  std::fill(std::begin(c), std::end(c), 3.0F);
  p.gemm.c = ww_packed(c, WW_F32, Product::m, Product::n);
  const auto first = [&] {
    p.forget();
    EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    return p.d[0];
  };
  const float with = first();
  p.gemm.beta = 0;
  EXPECT_EQ(with, first() + 3);
  EXPECT_TRUE(p.right());
  p.gemm.c = {};
  p.gemm.beta = 1;
  first();
  EXPECT_TRUE(p.right());
  p.gemm.beta = 2;
  const Refusal refused(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
  EXPECT_THAT(text(refused), HasSubstr("there is no C"));
}

TEST(C, GroupsAndTheirOffsets) {
  Product p;
  std::int32_t offsets[] = {0, 2, 5};
  p.gemm.b.rows = 12;
  p.gemm.b.batch = 2;
  p.gemm.b.batch_stride = 12 * Product::k;
  std::uint16_t out[Product::m * 12];
  p.gemm.d = ww_packed(out, WW_BF16, Product::m, 12);
  p.gemm.grouped = 1;
  p.gemm.offsets = offsets;
  ww_launch_options check = {sizeof check, 0, 1, 0, 0};
  EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, &check, nullptr));
  offsets[1] = 9;
  const Refusal refused(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, &check, nullptr));
  EXPECT_THAT(text(refused), HasSubstr("not in order"));
}

// By kernels that walk over static shares, draw their tiles and make a map a group; more tiles than
// the grid takes at once.
TEST(C, OffsetsAreCheckedInAWorkspaceOfOnesOwn) {
  constexpr std::int64_t rows = 300, columns = 512, depth = 64, groups = 4;
  const std::vector<std::uint8_t> a(rows * depth, 0x38);  // 1 in e4m3
  const std::vector<std::uint8_t> b(groups * columns * depth, 0x38);
  std::vector<std::uint16_t> d(rows * columns);
  std::int32_t offsets[] = {0, 75, 150, 150, 300};
  ww_gemm gemm;
  ww_gemm_init(&gemm);
  gemm.a = ww_packed(const_cast<std::uint8_t*>(a.data()), WW_E4M3, rows, depth);
  gemm.b = ww_packed(const_cast<std::uint8_t*>(b.data()), WW_E4M3, columns, depth);
  gemm.b.batch = groups;
  gemm.b.batch_stride = columns * depth;
  gemm.d = ww_packed(d.data(), WW_BF16, rows, columns);
  gemm.grouped = 1;
  gemm.offsets = offsets;
  const Device model("model");
  ww_launch_options check = {};
  check.size = sizeof check;
  check.check_offsets = 1;
  for (const char* kernel : {"grouped_e4m3_bf16_128x128_v_pp", "grouped_e4m3_bf16_128x128_v_pp_dyn",
                             "grouped_e4m3_bf16_128x128_v_pp_gm"}) {
    SCOPED_TRACE(kernel);
    ww_choices choices = {};
    choices.size = sizeof choices;
    choices.kernel = kernel;
    ww_plan* plan = nullptr;
    EXPECT_DONE(ww_plan_make(&gemm, model.device, &choices, &plan));
    ww_workspace* workspace = nullptr;
    EXPECT_DONE(ww_workspace_make(model.device, ww_plan_workspace_bytes(plan), &workspace));
    const Refusal early(ww_workspace_offsets_fault(workspace, plan, nullptr));
    EXPECT_STREQ(ww_refusal_code(early.get()), "bad_workspace") << text(early);
    for (const std::int32_t last : {300, 800, 200, 300}) {
      offsets[3] = last == 200 ? 250 : 150;
      offsets[4] = last;
      EXPECT_DONE(ww_launch(plan, &gemm, workspace, nullptr, &check));
      const Refusal told(ww_workspace_offsets_fault(workspace, plan, nullptr));
      const Refusal by_run(ww_run(&gemm, WW_MODEL, &choices, nullptr, &check, nullptr));
      if (last == 300) {
        EXPECT_FALSE(told) << text(told);
        EXPECT_FALSE(by_run) << text(by_run);
      } else {
        EXPECT_THAT(text(told), HasSubstr("group 3 are not in order"));
        EXPECT_EQ(text(told), text(by_run));
      }
    }
    ww_workspace_free(workspace);
    ww_plan_free(plan);
  }
}

TEST(C, ClearsRowsInNoGroup) {
  Product p;
  std::int32_t offsets[] = {1, 2, 4};
  p.gemm.b.rows = 12;
  p.gemm.b.batch = 2;
  p.gemm.b.batch_stride = 12 * Product::k;
  std::uint16_t out[Product::m * 12];
  std::fill(std::begin(out), std::end(out), bf16(7));
  p.gemm.d = ww_packed(out, WW_BF16, Product::m, 12);
  p.gemm.grouped = 1;
  p.gemm.offsets = offsets;
  ww_launch_options clear = {};
  clear.size = sizeof clear;
  clear.zero_rest = 1;
  EXPECT_DONE(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, &clear, nullptr));
  for (int j = 0; j < 12; ++j) EXPECT_EQ(out[j] | out[4 * 12 + j], 0) << j;
  EXPECT_NE(out[12], bf16(7));
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
  refused("bad_stride", "nearest legal", [](Product& p) { p.gemm.a.row_stride = 33; });
  refused("bad_shape", "nearest legal B", [](Product& p) { p.gemm.b.columns = 16; });
  refused("bad_pointer", "A is a null pointer", [](Product& p) { p.gemm.a.data = nullptr; });
  refused("bad_pointer", "A is not given", [](Product& p) { ww_gemm_init(&p.gemm); });
  refused("bad_pointer", "D is not given", [](Product& p) { p.gemm.d = {}; });
  refused("bad_type", "WW_BF16", [](Product& p) { p.gemm.a.dtype = 99; });
  refused("bad_value", "scaling is 7", [](Product& p) { p.gemm.scaling = 7; });
  refused("bad_value", "activation is -1", [](Product& p) { p.gemm.activation = -1; });
  refused("bad_value", "alpha is NaN", [](Product& p) { p.gemm.alpha = NAN; });
  refused("bad_value", "ww_gemm.size is 8", [](Product& p) { p.gemm.size = 8; });
  refused("bad_value", "grouped is 0", [](Product& p) { p.gemm.offsets = p.a; });
  refused("overlap", "D overlaps A", [](Product& p) { p.gemm.d.data = p.a; });
}

TEST(C, RefusesNullArguments) {
  Product p;
  ww_device* device = nullptr;
  ww_plan* plan = nullptr;
  for (ww_refusal* refused :
       {ww_run(nullptr, WW_MODEL, nullptr, nullptr, nullptr, nullptr),
        ww_device_open(nullptr, &device), ww_device_open("model", nullptr),
        ww_device_model(8, 90, nullptr), ww_plan_make(&p.gemm, nullptr, nullptr, &plan),
        ww_launch(nullptr, &p.gemm, nullptr, nullptr, nullptr),
        ww_prepare(nullptr, nullptr, nullptr), ww_workspace_make(nullptr, 8, nullptr),
        ww_workspace_over(nullptr, 8, nullptr),
        ww_workspace_offsets_fault(nullptr, nullptr, nullptr)}) {
    EXPECT_THAT(text(Refusal(refused)), HasSubstr("is a null pointer"));
  }
  EXPECT_STREQ(ww_plan_explain(nullptr), "");
  EXPECT_EQ(ww_plan_workspace_bytes(nullptr), 0);
  ww_refusal_free(nullptr);
  ww_plan_free(nullptr);
  ww_device_free(nullptr);
  ww_workspace_free(nullptr);
}

TEST(C, RefusesDevicesThatAreNotThere) {
  ww_device* device = nullptr;
  for (const char* name : {"", "cuda:", "cuda:99", "cuda:-1", "cuda:1x", "rtx", "Model"}) {
    const Refusal refused(ww_device_open(name, &device));
    EXPECT_STREQ(ww_refusal_code(refused.get()), "no_device") << name;
  }
  EXPECT_STREQ(ww_refusal_code(Refusal(ww_device_model(0, 90, &device)).get()), "bad_value");
  Product p;
  EXPECT_TRUE(Refusal(ww_run(&p.gemm, 99, nullptr, nullptr, nullptr, nullptr)));
  const Device h200("h200");
  ww_workspace* workspace = nullptr;
  EXPECT_STREQ(ww_refusal_code(Refusal(ww_workspace_make(h200.device, 8, &workspace)).get()),
               "no_device");
}

// A program that was built with a later header has larger structs.
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
        p.gemm.d.rows = p.gemm.a.rows = 1 + (i + static_cast<int>(t)) % Product::m;
        const Refusal refused(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
        wrong[t] += refused ? 1 : 0;
        p.gemm.a.row_stride = 33 + i;
        wrong[t] += Refusal(ww_run(&p.gemm, WW_MODEL, nullptr, nullptr, nullptr, nullptr)) ? 0 : 1;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
