// Operands of small integers for the register family's loop, whose sums are exact in every order.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/kernel/register_loop.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {

struct RegisterProduct {
  DType type;
  std::vector<std::uint8_t> a, b;
  std::vector<std::uint32_t> d;
  LoopParams params;

  RegisterProduct(DType t, int m, int n, int k) : type(t) {
    const int bytes = numeric::bits(t) / 8;
    params.m = m;
    params.n = n;
    params.k = k;
    // Rows of whole 16 bytes, with NaN (or what stands for it) behind them.
    params.pitch_a = params.pitch_b = k * bytes + 16;
    std::mt19937 random(static_cast<unsigned>(m * 31 + n * 7 + k));
    const auto fill = [&](std::vector<std::uint8_t>& memory, std::vector<int>& values, int rows) {
      memory.assign(static_cast<std::size_t>(rows * params.pitch_a), 0xff);
      values.clear();
      for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < k; ++i) {
          values.push_back(static_cast<int>(random() % 7) - 3);
          const DType as = t == DType::tf32 ? DType::f32 : t;
          const std::uint64_t code = numeric::is_float(t)
                                         ? numeric::from_double(as, values.back())
                                         : static_cast<std::uint64_t>(values.back());
          std::memcpy(memory.data() + row * params.pitch_a + i * bytes, &code,
                      static_cast<std::size_t>(bytes));
        }
      }
    };
    fill(a, a_values_, m);
    fill(b, b_values_, n);
    d.resize(static_cast<std::size_t>(m) * n);
    params.a = a.data();
    params.b = b.data();
    params.d = d.data();
  }

  void clear() { std::fill(d.begin(), d.end(), 0xffffffffU); }

  /// What is wrong with D first; empty when it is right.
  [[nodiscard]] std::string wrong() const {
    for (int i = 0; i < params.m; ++i) {
      for (int j = 0; j < params.n; ++j) {
        const auto row = [this](const std::vector<int>& values, int at) {
          return values.begin() + static_cast<std::ptrdiff_t>(at) * params.k;
        };
        const auto a_row = row(a_values_, i);
        const int sum = std::inner_product(a_row, a_row + params.k, row(b_values_, j), 0);
        const std::uint32_t word = d[static_cast<std::size_t>(i) * params.n + j];
        float value = 0;
        std::memcpy(&value, &word, sizeof value);
        const double got =
            numeric::is_float(type) ? value : static_cast<double>(static_cast<std::int32_t>(word));
        if (got == sum) continue;
        std::ostringstream text;
        text << "D[" << i << ", " << j << "] is " << got << ", not " << sum;
        return text.str();
      }
    }
    return {};
  }

 private:
  std::vector<int> a_values_, b_values_;
};

}  // namespace warpwright::tests
