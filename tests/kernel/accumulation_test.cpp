// Where the sums of 8-bit products are kept shows in the result: Hopper's tensor core drops what is
// more than 13 bits below a running sum, and promoted sums do not.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/kernel/table.h"
#include "warpwright/device/model.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright {
namespace {

constexpr int ones = 16384;
constexpr int k = 128 + ones;  // one K block before them
constexpr double large = 448.0 * 448.0;

// D[0, 0] by the first kernel with the property, of a row that begins with a large product and goes
// on with ones.
double sum_by(const char* what, kernel::Sums sums) {
  const auto instance = tests::one_with(what, [sums](const kernel::GemmConfig& c) {
    return stored_a(c) == DType::e4m3 && operand_b(c).type == DType::e4m3 && sums_of(c) == sums &&
           !c.gated && !is_swapped(c) && numeric::bits(c.result) > 8;
  });
  if (!instance) return -1;
  const auto code = [](double x) {
    return static_cast<std::uint8_t>(numeric::from_double(DType::e4m3, x));
  };
  alignas(16) static std::uint8_t a[k];
  alignas(16) static std::uint8_t b[k];
  for (int i = 0; i < k; ++i) a[i] = b[i] = i < 128 ? 0 : code(1);
  a[0] = b[0] = code(448);
  alignas(16) std::uint32_t d[4] = {};
  std::vector<float> scale_a(k / 128, 1);
  std::vector<float> scale_b(k / 128, 1);
  GemmOperands o;
  o.a = matrix(a, DType::e4m3, 1, k);
  o.b = matrix(b, DType::e4m3, 1, k);
  o.d = matrix(d, instance->config.result, 1, 1);
  if (sums == kernel::Sums::promoted) o.accumulation = Accumulation::promoted;
  if (sums == kernel::Sums::block_scaled) {
    o.scaling = Scaling::block;
    o.scale_a = matrix(scale_a.data(), DType::f32, 1, k / 128);
    o.scale_b = matrix(scale_b.data(), DType::f32, 1, k / 128);
  }
  const auto made = plan(o, model_facts(1), tests::only(*instance));
  EXPECT_TRUE(made) << made.reason();
  if (!made) return 0;
  const auto report = device::launch_on_model(*made, o);
  EXPECT_TRUE(report && report->clean());
  const int bits = numeric::bits(instance->config.result);
  return numeric::to_double(instance->config.result, bits == 32 ? d[0] : d[0] & ((1U << bits) - 1));
}

TEST(Accumulation, FastSumsLoseOnesBesideALargeNumber) {
  const double sum = sum_by("fast 8-bit sums", kernel::Sums::tensor_core);
  if (sum < 0) return;
  EXPECT_EQ(sum, large);
}

TEST(Accumulation, PromotedSumsKeepThem) {
  const double half_ulp = 512;  // of bf16
  for (const auto& [what, sums] : {std::pair{"promoted sums", kernel::Sums::promoted},
                                   std::pair{"block-scaled sums", kernel::Sums::block_scaled}}) {
    const double sum = sum_by(what, sums);
    if (sum < 0) continue;
    EXPECT_NEAR(sum, large + ones, half_ulp) << what;
  }
}

}  // namespace
}  // namespace warpwright
