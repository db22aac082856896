// What the two studies share: a product of bf16 matrices on the machine model, checked against sums
// in float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <warpwright/model/testing.h>
#include <warpwright/numeric/scalar.h>

namespace study {

namespace testing = warpwright::model::testing;
using warpwright::numeric::bf16_t;

/// A shape to run a study's kernel on, and the launch: clusters of cluster_m x cluster_n CTAs, so
/// many of them in the grid, on a device of `sms` SMs. Each study's `fault` says which shapes it
/// takes.
struct Case {
  const char* name = "";
  int m = 0;
  int n = 0;
  int k = 0;
  int cluster_m = 1;
  int cluster_n = 1;
  int clusters = 1;
  int sms = 16;
};

/// D = A * B^T: A is m x k and B n x k, rows one behind the other. Whole numbers from -3 to 3, so
/// that every sum is exact in float32 and D is the float64 sum, rounded once.
class Product {
 public:
  Product(int rows, int columns, int depth)
      : m(rows), n(columns), k(depth), want_(std::size_t(rows) * columns) {
    fill(a, 0x9e3779b9U);
    fill(b, 0x85ebca6bU);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) sum += double(float(a[at(i, l)])) * float(b[at(j, l)]);
        want_[std::size_t(i) * n + j] = float(bf16_t(static_cast<float>(sum)));
      }
    }
  }

  int m, n, k;
  testing::Buffer<bf16_t> a{"A", std::size_t(m) * k, testing::Access::input};
  testing::Buffer<bf16_t> b{"B", std::size_t(n) * k, testing::Access::input};
  testing::Buffer<bf16_t> d{"D", std::size_t(m) * n};

  /// The first element of D that is wrong, as a sentence. `by_columns`: D(i, j) lies at j * m + i.
  [[nodiscard]] std::string verify(bool by_columns) {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        const float got = float(d[by_columns ? std::size_t(j) * m + i : std::size_t(i) * n + j]);
        const float want = want_[std::size_t(i) * n + j];
        if (got == want) continue;
        return "D(" + std::to_string(i) + ", " + std::to_string(j) + ") is " + std::to_string(got) +
               ", not " + std::to_string(want);
      }
    }
    return "";
  }

 private:
  [[nodiscard]] std::size_t at(int row, int l) const { return std::size_t(row) * k + l; }
  static void fill(testing::Buffer<bf16_t>& tensor, std::uint32_t seed) {
    std::uint32_t x = seed;
    for (bf16_t& element : tensor) {
      x = x * 1664525U + 1013904223U;
      element = bf16_t(static_cast<int>((x >> 24U) % 7) - 3);
    }
  }

  std::vector<float> want_;
};

/// The map of a row-major matrix in boxes of `box_rows` x 64 elements, 128-byte swizzled, as both
/// studies load their operands.
inline auto operand_map(testing::Buffer<bf16_t>& tensor, int rows, int columns, int box_rows) {
  return testing::tensor_map(tensor, {.rows = rows,
                                      .columns = columns,
                                      .box_rows = box_rows,
                                      .box_columns = 64,
                                      .swizzle = warpwright::atom::SmemSwizzle::b128});
}

}  // namespace study
