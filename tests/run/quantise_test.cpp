// Quantising activations in host memory, against the definition element by element; and what is
// refused.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/must.h"
#include "tests/run/quantised.h"
#include "warpwright/numeric/scalar.h"
#include "warpwright/run.h"

namespace warpwright {
namespace {

using tests::Quantised;
using tests::ScaleSize;
using tests::x_at;

TEST(Quantise, IsAsItIsDefined) {
  constexpr std::uint32_t first = 20261123;
  for (std::uint32_t seed = first; seed < first + 60; ++seed) {
    Quantised problem(seed, ScaleSize::floats);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
    const Quantisation q = problem.here();
    must_do(quantise(q, run_on_model, nullptr));
    const auto scale_at = [&](std::int64_t i, std::int64_t k) -> float {
      const std::int64_t row = q.scaling == Scaling::tensor ? 0 : i;
      const std::int64_t block = q.scaling == Scaling::blockwise ? k / q.block() : 0;
      return problem.float_scale(row * q.scales.row_stride + block * q.scales.column_stride);
    };
    float largest_of_all = 0;
    for (std::int64_t i = 0; i < q.x.rows; ++i) {
      float largest = 0;
      for (std::int64_t k = 0; k < q.x.columns; ++k) {
        if (q.scaling == Scaling::blockwise && k % q.block() == 0) largest = 0;
        const auto x = static_cast<float>(x_at(q, i, k));
        if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
        largest_of_all = std::max(largest_of_all, largest);
        const bool last =
            k + 1 == q.x.columns || (q.scaling == Scaling::blockwise && (k + 1) % q.block() == 0);
        if (last && q.scaling != Scaling::tensor) {
          const float want = largest == 0 ? 1 : std::max(largest / 448.0F, 0x1p-126F);
          ASSERT_EQ(scale_at(i, k), want) << i << ", " << k;
        }
        const std::uint8_t got = static_cast<std::uint8_t>(
            problem
                .codes[static_cast<std::size_t>(problem.codes_shift + i * q.codes.row_stride + k)]);
        const float quotient = x / scale_at(i, k);
        const std::uint8_t want =
            !std::isfinite(x) ? std::uint8_t{0x7f}
                              : numeric::e4m3_t::saturated(static_cast<double>(quotient)).code;
        ASSERT_EQ(got, want) << i << ", " << k << ": " << x;
      }
    }
    if (q.scaling == Scaling::tensor && !q.given) {
      EXPECT_EQ(problem.float_scale(0),
                largest_of_all == 0 ? 1 : std::max(largest_of_all / 448.0F, 0x1p-126F));
    }
    // Nothing beside the codes is written.
    std::int64_t untouched = 0;
    for (const std::byte b : problem.codes) untouched += b == std::byte{0x55} ? 1 : 0;
    EXPECT_GE(untouched, 16);
  }
}

// What the scales are for: a product of the codes is about that of what was quantised.
TEST(Quantise, ProductsOfTheCodesAreThoseOfTheValues) {
  constexpr std::int64_t m = 24, n = 128, k = 384;
  std::mt19937 random(7);
  std::vector<float> x(m * k), w(n * k);
  for (float& v : x) v = static_cast<float>(random() % 2001) / 1000.0F - 1;
  for (float& v : w) v = static_cast<float>(random() % 2001) / 1000.0F - 1;
  std::vector<std::uint8_t> x8(m * k), w8(n * k);
  std::vector<float> sx(m), sw(n), d(m * n);
  const auto by_rows = [&](std::vector<float>& from, std::int64_t rows,
                           std::vector<std::uint8_t>& to, std::vector<float>& scales) {
    const Quantisation q{.x = matrix(from.data(), DType::f32, rows, k),
                         .codes = matrix(to.data(), DType::e4m3, rows, k),
                         .scales = matrix(scales.data(), DType::f32, rows, 1)};
    EXPECT_FALSE(quantise(q, run_on_model, nullptr));
  };
  by_rows(x, m, x8, sx);
  by_rows(w, n, w8, sw);
  GemmOperands o{.a = matrix(x8.data(), DType::e4m3, m, k),
                 .b = matrix(w8.data(), DType::e4m3, n, k),
                 .d = matrix(d.data(), DType::f32, m, n),
                 .scaling = Scaling::row_column,
                 .scale_a = matrix(sx.data(), DType::f32, m, 1),
                 .scale_b = matrix(sw.data(), DType::f32, n, 1)};
  must_do(run(o, {}));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double want = 0;
      for (std::int64_t l = 0; l < k; ++l) want += static_cast<double>(x[i * k + l]) * w[j * k + l];
      EXPECT_NEAR(d[i * n + j], want, 0.9) << i << ", " << j;
    }
  }
}

TEST(Quantise, RefusesWhatItCannotDo) {
  std::vector<float> x(64), scales(64);
  std::vector<std::uint8_t> codes(64);
  const auto refused = [&](RefusalCode code, const char* says, const auto& change) {
    Quantisation q{.x = matrix(x.data(), DType::f32, 4, 16),
                   .codes = matrix(codes.data(), DType::e4m3, 4, 16),
                   .scales = matrix(scales.data(), DType::f32, 4, 1)};
    ASSERT_FALSE(fault(q)) << fault(q)->reason;
    change(q);
    const auto told = must(quantise(q, run_on_model, nullptr), says);
    EXPECT_EQ(told->code, code) << told->reason;
    EXPECT_THAT(told->reason, testing::HasSubstr(says));
  };
  using Q = Quantisation;
  refused(RefusalCode::bad_value, "scaling is group", [](Q& q) { q.scaling = Scaling::group; });
  refused(RefusalCode::bad_value, "a scale is given", [](Q& q) { q.given = true; });
  refused(RefusalCode::bad_type, "x is e4m3", [](Q& q) { q.x.dtype = DType::e4m3; });
  refused(RefusalCode::bad_type, "the codes are e5m2", [](Q& q) { q.codes.dtype = DType::e5m2; });
  refused(RefusalCode::bad_type, "scales are fp16", [](Q& q) { q.scales.dtype = DType::f16; });
  refused(RefusalCode::bad_shape, "the codes are 4 x 8", [](Q& q) { q.codes.columns = 8; });
  refused(RefusalCode::bad_shape, "scales are 4 x 1", [](Q& q) { q.scaling = Scaling::tensor; });
  refused(RefusalCode::bad_shape, "a batch of 2", [](Q& q) { q.x.batch = 2; });
  refused(RefusalCode::bad_shape, "negative", [](Q& q) { q.x.rows = -1; });
  refused(RefusalCode::bad_stride, "column stride of 2", [](Q& q) { q.x.column_stride = 2; });
  refused(RefusalCode::bad_stride, "row stride of 8", [](Q& q) { q.codes.row_stride = 8; });
  refused(RefusalCode::bad_stride, "scales have a row stride of 0",
          [](Q& q) { q.scales.row_stride = 0; });
  refused(RefusalCode::bad_pointer, "x is a null", [](Q& q) { q.x.data = nullptr; });
  refused(RefusalCode::bad_pointer, "scales are a null", [](Q& q) { q.scales.data = nullptr; });
  refused(RefusalCode::bad_pointer, "x's address is not",
          [](Q& q) { q.x.data = static_cast<char*>(q.x.data) + 2; });
  refused(RefusalCode::overlap, "the codes overlap x", [](Q& q) { q.codes.data = q.x.data; });
  refused(RefusalCode::overlap, "the scales overlap", [](Q& q) { q.scales.data = q.x.data; });
}

}  // namespace
}  // namespace warpwright
