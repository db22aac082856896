#include "warpwright/numeric/types.h"

#include <gtest/gtest.h>

namespace warpwright::numeric {
namespace {

TEST(Types, EveryNameParsesToItsType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_NE(name(t), "?");
    EXPECT_EQ(parse_dtype(name(t)), t) << name(t);
    EXPECT_GT(bits(t), 0) << name(t);
  }
  EXPECT_EQ(name(static_cast<DType>(kDTypeCount)), "?") << "kDTypeCount misses a type";
}

TEST(Types, OtherNamesParse) {
  EXPECT_EQ(parse_dtype("fp16"), DType::f16);
  EXPECT_EQ(parse_dtype("float32"), DType::f32);
  EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
  EXPECT_EQ(parse_dtype("float8_e4m3fn"), DType::e4m3);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(parse_dtype("F32"), std::nullopt);
  EXPECT_EQ(parse_dtype("f32 "), std::nullopt);
}

TEST(Types, Widths) {
  static_assert(bits(DType::f64) == 64 && bits(DType::tf32) == 32 && bits(DType::bf16) == 16);
  static_assert(bits(DType::e5m2) == 8 && bits(DType::ue8m0) == 8);
  static_assert(bits(DType::e3m2) == 6 && bits(DType::e2m1) == 4 && bits(DType::s4) == 4);
  static_assert(packed_bytes(DType::bf16, 3) == 6);
  static_assert(packed_bytes(DType::e2m1, 3) == 2);
  static_assert(packed_bytes(DType::e2m3, 5) == 4);
  static_assert(packed_bytes(DType::e2m3, 0) == 0);
}

}  // namespace
}  // namespace warpwright::numeric
