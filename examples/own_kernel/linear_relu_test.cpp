// The kernel on the machine model: right and clean under every schedule, and what is said of two
// classic mistakes.
#include "linear_relu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <warpwright/model/testing.h>
#include <warpwright/numeric/scalar.h>

namespace {

using warpwright::model::Check;
using warpwright::numeric::bf16_t;
namespace testing = warpwright::model::testing;

// A layer with small whole numbers in it: all products and sums are exact, the result is rounded
// once.
struct Layer {
  int m, n, k;
  testing::Buffer<bf16_t> x{"x", std::size_t(m) * k, testing::Access::input};
  testing::Buffer<bf16_t> w{"w", std::size_t(n) * k, testing::Access::input};
  testing::Buffer<float> bias{"bias", std::size_t(n), testing::Access::input};
  testing::Buffer<bf16_t> y{"y", std::size_t(m) * n};

  Layer(int rows, int outputs, int inputs) : m(rows), n(outputs), k(inputs) {
    for (int i = 0; i < m * k; ++i) x[i] = bf16_t(i % 7 - 3);
    for (int i = 0; i < n * k; ++i) w[i] = bf16_t(i % 5 - 2);
    for (int i = 0; i < n; ++i) bias[i] = static_cast<float>(i % 9 - 4);
  }

  // The first element of y that is wrong, as a sentence.
  std::string verify() {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        float want = bias[j];
        for (int l = 0; l < k; ++l) want += float(x[i * k + l]) * float(w[j * k + l]);
        want = float(bf16_t(std::fmax(want, 0.0F)));
        if (float(y[i * n + j]) == want) continue;
        return "y[" + std::to_string(i) + "," + std::to_string(j) + "] is " +
               std::to_string(float(y[i * n + j])) + ", not " + std::to_string(want);
      }
    }
    return "";
  }

  // More launches than one follow each other as programmatic dependent launch lets them.
  template <own::Slip slip = own::Slip::none>
  testing::Outcome run(int launches = 1) {
    using Kernel = own::LinearRelu<slip>;
    const auto map = [](testing::Buffer<bf16_t>& tensor, int rows, int columns) {
      return testing::tensor_map(tensor, {.rows = rows,
                                          .columns = columns,
                                          .box_rows = Kernel::side,
                                          .box_columns = Kernel::side,
                                          .swizzle = warpwright::atom::SmemSwizzle::b128});
    };
    const own::LinearParams p{.x = map(x, m, k),
                              .w = map(w, n, k),
                              .y = map(y, m, n),
                              .bias = bias.data(),
                              .n = n,
                              .k = k};
    const auto tiles = [](int extent) { return (extent + Kernel::side - 1) / Kernel::side; };
    const testing::Launch launch{.ctas = tiles(m) * tiles(n),
                                 .threads = Kernel::threads,
                                 .shared_bytes = Kernel::shared_bytes,
                                 .launches = launches,
                                 .dependent = launches > 1,
                                 .verify = [this] { return verify(); }};
    return testing::run([&] { Kernel::run(p); }, launch, x, w, bias, y);
  }
};

// Shapes until every synchronising statement has run: what never runs no schedule finds wrong.
TEST(LinearRelu, RightAndClean) {
  testing::Family family({"LinearRelu", "none"});  // the instance of Slip::none
  family.add("one k_tile", Layer(64, 64, 64).run());
  family.add("the ring goes round", Layer(64, 64, 256).run());
  family.add("tiles that reach past the tensors", Layer(100, 72, 136).run());
  EXPECT_CLEAN_FAMILY(family);
}

// The store to shared memory is generic, the tensor store is not: without the fence TMA
// may read old bytes. On a GPU this goes well nearly always.
TEST(LinearRelu, ForgottenFence) {
  const testing::Outcome outcome = Layer(64, 64, 64).run<own::Slip::no_fence>();
  EXPECT_ONLY_FINDINGS(outcome, Check::missing_proxy_fence);
  EXPECT_EQ(outcome.count(Check::missing_proxy_fence), static_cast<int>(outcome.runs.size()));
  EXPECT_NE(outcome.text().find("call fence_proxy_async_shared()"), std::string::npos);
}

// The stage is handed back while the tensor core still reads it; the next load overwrites it.
TEST(LinearRelu, StageReleasedBeforeItIsRead) {
  EXPECT_ONLY_FINDINGS(Layer(64, 64, 256).run<own::Slip::early_release>(), Check::in_flight_access);
  // With fewer k_tiles than stages nothing is overwritten, and nothing is wrong.
  EXPECT_CLEAN(Layer(64, 64, 192).run<own::Slip::early_release>());
}

// Dependent launches start while the grid before them runs. On a GPU this goes well where that one
// is done early enough; alone the kernel has nobody to wait for.
TEST(LinearRelu, StartsBeforeItsInputIsThere) {
  EXPECT_CLEAN(Layer(100, 72, 136).run(3));
  const testing::Outcome outcome = Layer(64, 64, 128).run<own::Slip::no_prerequisites>(2);
  EXPECT_FINDING(outcome, Check::before_prerequisites);
  EXPECT_EQ(outcome.count(Check::before_prerequisites), static_cast<int>(outcome.runs.size()));
  EXPECT_CLEAN(Layer(64, 64, 128).run<own::Slip::no_prerequisites>());
}

}  // namespace
