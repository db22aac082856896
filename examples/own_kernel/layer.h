// The kernel's memory, its launch on the machine model, and what must come out: for its tests and
// for its picture.
#pragma once

#include <cmath>
#include <string>

#include <warpwright/model/schedules.h>
#include <warpwright/numeric/scalar.h>

#include "linear_relu.h"

namespace own {

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
  template <Slip slip = Slip::none>
  testing::Outcome run(int launches = 1, testing::Recording* recording = nullptr) {
    using Kernel = LinearRelu<slip>;
    const auto map = [](testing::Buffer<bf16_t>& tensor, int rows, int columns) {
      return testing::tensor_map(tensor, {.rows = rows,
                                          .columns = columns,
                                          .box_rows = Kernel::side,
                                          .box_columns = Kernel::side,
                                          .swizzle = warpwright::atom::SmemSwizzle::b128});
    };
    const LinearParams p{.x = map(x, m, k),
                         .w = map(w, n, k),
                         .y = map(y, m, n),
                         .bias = bias.data(),
                         .n = n,
                         .k = k};
    const auto tiles = [](int extent) { return (extent + Kernel::side - 1) / Kernel::side; };
    const testing::Launch launch{.ctas = tiles(m) * tiles(n),
                                 .threads = Kernel::threads,
                                 .shared_bytes = Kernel::shared_bytes,
                                 .recording = recording,
                                 .launches = launches,
                                 .dependent = launches > 1,
                                 .verify = [this] { return verify(); }};
    return testing::run([&] { Kernel::run(p); }, launch, x, w, bias, y);
  }
};

}  // namespace own
