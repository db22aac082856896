// What a check lets pass where values are large, infinite or none: what float32 cannot help, and
// nothing else.
#include "warpwright/reference/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace warpwright::reference {
namespace {

constexpr double kBeyond = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// D of one row of A, which is (gate, up) or one number, by rows of B that pick one each.
Expected due_for(const Epilogue& epilogue, std::vector<float> a, float scale_d = 1) {
  std::vector<float> b(a.size() * a.size());
  for (std::size_t i = 0; i < a.size(); ++i) b[i * a.size() + i] = 1;
  const auto k = static_cast<std::int64_t>(a.size());
  float d = 0;
  GemmOperands o;
  o.a = matrix(a.data(), DType::f32, 1, k);
  o.b = matrix(b.data(), DType::f32, k, k);
  o.d = matrix(&d, DType::f32, 1, 1);
  o.epilogue = epilogue;
  if (scale_d != 1) o.scale_d = matrix(&scale_d, DType::f32, 1, 1);
  Tile tile(o);
  tile.compute(0, 0, 0, 0, 1, 1);
  return tile.at(0, 0);
}

bool passes(double got, const Expected& want) {
  return judge(DType::f32, got, want).passed;
}

TEST(Verdict, OfLargeArguments) {
  for (const Activation activation : all_activations) {
    if (!stands_alone(activation) || activation == Activation::none) continue;
    if (form_of(activation).squares) continue;  // beyond float32
    SCOPED_TRACE(name(activation));
    const Epilogue plain{.activation = activation};
    const Expected large = due_for(plain, {1e25F});
    EXPECT_TRUE(passes(1e25F, large));
    for (const double wrong : {kNoNumber, kBeyond, 0.5e25, 1.01e25, 0.0}) {
      EXPECT_FALSE(passes(wrong, large)) << wrong;
    }
    const Expected negative = due_for(plain, {-1e25F});
    EXPECT_TRUE(passes(-0.0, negative));
    for (const double wrong : {kNoNumber, -kBeyond, -1e25, -1e19}) {
      EXPECT_FALSE(passes(wrong, negative)) << wrong;
    }
    EXPECT_TRUE(passes(-0.0, due_for(plain, {std::numeric_limits<float>::lowest()})));
  }
}

TEST(Verdict, OfLargeGates) {
  for (const Activation activation : {Activation::silu, Activation::swiglu_oai}) {
    SCOPED_TRACE(name(activation));
    const Epilogue gated{.activation = activation, .gated = true};
    // Both sums are far within float32, and so is what becomes of them.
    const Expected none = due_for(gated, {-1e25F, 1e25F});
    EXPECT_TRUE(passes(0, none));
    EXPECT_FALSE(passes(kNoNumber, none));
    EXPECT_FALSE(passes(kBeyond, none));
  }
  const Epilogue silu{.activation = Activation::silu, .gated = true};
  EXPECT_TRUE(passes(2e30, due_for(silu, {1e30F, 2})));
  EXPECT_FALSE(passes(1e30, due_for(silu, {1e30F, 2})));
  EXPECT_TRUE(passes(kBeyond, due_for(silu, {1e30F, 1e30F}))) << "beyond float32";
  // On the way to what scale_d brings back it may be infinite.
  const Expected back = due_for(silu, {1e30F, 1e30F}, 1e-30F);
  EXPECT_TRUE(passes(1e30F, back));
  EXPECT_TRUE(passes(kBeyond, back));
  EXPECT_TRUE(passes(kNoNumber, due_for(silu, {static_cast<float>(kBeyond), 0}))) << "inf * 0";
}

Expected expected(double value) {
  Expected x;
  x.value = value;
  x.magnitude = std::abs(value);
  return x;
}

// What is no number has NaN for a code, or for the scale of its block.
TEST(Verdict, OfCodesOfNoNumbers) {
  for (const double none : {kBeyond, -kBeyond, kNoNumber}) {
    EXPECT_TRUE(judge_code(kNoNumber, 2, expected(none)).passed);
    EXPECT_FALSE(judge_code(448, 2, expected(none)).passed);
    EXPECT_FALSE(judge_code(-448, 2, expected(none)).passed);
    EXPECT_TRUE(judge_micro_code(DType::e4m3, kNoNumber, 2, expected(none)).passed);
    EXPECT_FALSE(judge_micro_code(DType::e4m3, 448, 2, expected(none)).passed);
    const Expected block[] = {expected(1), expected(none), expected(-6)};
    EXPECT_TRUE(is_scale_of(static_cast<double>(6.0F / 448.0F), block));
    EXPECT_TRUE(is_micro_scale_of(QuantiseD::mxf8_1x32, 121, 1, block)) << "2^-6";
    EXPECT_FALSE(is_micro_scale_of(QuantiseD::mxf8_1x32, 0xff, 1, block));
    EXPECT_TRUE(is_micro_scale_of(QuantiseD::mxf4_1x32, 0xff, 1, block));
    EXPECT_FALSE(is_micro_scale_of(QuantiseD::mxf4_1x32, 127, 1, block));
    EXPECT_TRUE(is_micro_scale_of(QuantiseD::nvf4_1x16, 0x7f, 1, block));
    EXPECT_FALSE(is_micro_scale_of(QuantiseD::nvf4_1x16, 0x38, 1, block));
  }
  const Expected block[] = {expected(1), expected(-6)};
  EXPECT_FALSE(is_micro_scale_of(QuantiseD::nvf4_1x16, 0x7f, 1, block));
  EXPECT_TRUE(is_micro_scale_of(QuantiseD::nvf4_1x16, 0x38, 1, block));
  EXPECT_FALSE(judge_code(kNoNumber, 2, expected(3)).passed);
  EXPECT_FALSE(judge_micro_code(DType::e2m1, kNoNumber, 2, expected(3)).passed);
  EXPECT_TRUE(judge_micro_code(DType::e2m1, 0, kNoNumber, expected(3)).passed)
      << "its block is lost";
}

}  // namespace
}  // namespace warpwright::reference
