// Weights of e2m1 through the C ABI: packed, read back and multiplied.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/c/parts.h"
#include "warpwright/numeric/float_format.h"

namespace {

using namespace c_tests;
using testing::HasSubstr;

constexpr float e2m1[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};

// Memory that begins at a multiple of 128.
struct alignas(128) Piece {
  std::byte bytes[128];
};
std::vector<Piece> pieces(const ww_packed_form& form) {
  std::int64_t bytes = 0;
  EXPECT_DONE(ww_packed_bytes(&form, &bytes));
  return std::vector<Piece>(static_cast<std::size_t>(bytes + 127) / 128);
}

// Codes 1 to 6 by place, two a byte, and what they are.
struct Codes {
  std::vector<std::uint8_t> bytes;
  std::vector<float> values;

  explicit Codes(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 2) {
      const int low = static_cast<int>(i / 2 % 6) + 1;
      const int high = static_cast<int>(i / 7 % 6) + 1;
      bytes.push_back(static_cast<std::uint8_t>(low | (high | 8) << 4));
      values.push_back(e2m1[low]);
      values.push_back(-e2m1[high]);
    }
  }
};

float sum_of_row(const Codes& codes, std::int64_t row, std::int64_t k) {
  float sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += codes.values[static_cast<std::size_t>(row * k + i)];
  return sum;
}

TEST(CFp4, Mxf4WeightsAreMultiplied) {
  constexpr std::int64_t m = 8, n = 64, k = 256;
  const Codes codes(n * k);
  std::vector<std::uint8_t> scales(n * k / 32, 128);                  // 2
  auto* const bytes = const_cast<std::uint8_t*>(codes.bytes.data());  // NOLINT: only read
  const ww_matrix code_view = ww_packed(bytes, WW_U8, n, k / 2);
  const ww_matrix scale_view = ww_packed(scales.data(), WW_U8, n, k / 32);
  for (const int encoding :
       {WW_PACKED_ANY, WW_PACKED_MXF4_EXACT, WW_PACKED_MXF4_BF16, WW_PACKED_MXF4_F16}) {
    ww_packed_form form;
    ww_packed_form_init(&form);
    form.encoding = encoding;
    EXPECT_DONE(ww_fp4_pack("gpt-oss", &code_view, &scale_view, nullptr, &form, nullptr, nullptr));
    EXPECT_EQ(form.encoding, encoding == WW_PACKED_ANY ? int{WW_PACKED_MXF4} : encoding);
    EXPECT_EQ(form.group, 32);
    std::vector<Piece> packed = pieces(form);
    EXPECT_DONE(
        ww_fp4_pack("gpt-oss", &code_view, &scale_view, nullptr, &form, nullptr, packed.data()));
    std::vector<Piece> there = pieces(form);
    EXPECT_DONE(ww_pack_on("gpt-oss", &code_view, &scale_view, nullptr, nullptr, nullptr, &form,
                           nullptr, there.data(), WW_MODEL, nullptr));
    EXPECT_EQ(std::memcmp(there.data(), packed.data(), packed.size() * sizeof(Piece)), 0);
    ww_packed_form read;
    EXPECT_DONE(ww_packed_read(packed.data(), WW_PACKED_HEADER, &read));
    EXPECT_EQ(std::memcmp(&read, &form, sizeof form), 0);
    std::vector<std::uint8_t> x8(m * k, 0x38);  // 1 in e4m3
    const bool half = encoding == WW_PACKED_MXF4_F16;
    std::vector<std::uint16_t> x16(m * k, half ? std::uint16_t{0x3c00} : bf16(1)), d(m * n);
    ww_gemm g;
    ww_gemm_init(&g);
    const bool wide = encoding >= WW_PACKED_MXF4_BF16;
    const std::int32_t type = half ? WW_F16 : WW_BF16;
    g.a = wide ? ww_packed(x16.data(), type, m, k) : ww_packed(x8.data(), WW_E4M3, m, k);
    g.b.data = packed.data();
    g.packed = &form;
    g.d = ww_packed(d.data(), type, m, n);
    std::vector<float> of_rows(n);
    const auto factor_of = [&](std::size_t i) { return static_cast<float>(i % 8 + 1); };
    if (wide) {  // a scale for each row of the weights, none of tokens
      for (std::size_t i = 0; i < of_rows.size(); ++i) of_rows[i] = factor_of(i);
      g.scaling = WW_SCALING_ROW_COLUMN;
      g.scale_b = ww_packed(of_rows.data(), WW_F32, n, 1);
    }
    EXPECT_DONE(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    for (std::int64_t j = 0; j < n; ++j) {
      const float factor = wide ? factor_of(static_cast<std::size_t>(j)) : 1;
      const float want = 2 * factor * sum_of_row(codes, j, k);
      const std::uint16_t got = d[static_cast<std::size_t>(j)];
      const double value =
          half ? warpwright::numeric::to_double(warpwright::DType::f16, got) : bf16_value(got);
      EXPECT_NEAR(value, want, std::fabs(want) / 128);
    }
    if (!wide) continue;
    g.scale_a = ww_packed(of_rows.data(), WW_F32, m, 1);
    const Refusal told(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    EXPECT_THAT(text(told), HasSubstr("tokens of 16 bits have no scales"));
  }
}

TEST(CFp4, Nvf4WeightsHaveFactors) {
  constexpr std::int64_t n = 8, k = 32;
  const Codes codes(n * k);
  std::vector<std::uint8_t> scales(n * k / 16, 0x38);                 // 1
  auto* const bytes = const_cast<std::uint8_t*>(codes.bytes.data());  // NOLINT: only read
  const ww_matrix code_view = ww_packed(bytes, WW_U8, n, k / 2);
  const ww_matrix scale_view = ww_packed(scales.data(), WW_E4M3, n, k / 16);
  float factor = 0.25F;
  const ww_matrix factor_view = ww_packed(&factor, WW_F32, 1, 1);
  ww_packed_form form;
  ww_packed_form_init(&form);
  const auto refused = [&](const char* says, const ww_matrix* tensor_scale, float* alphas) {
    const Refusal told(ww_fp4_pack("modelopt-nvfp4", &code_view, &scale_view, tensor_scale, &form,
                                   alphas, nullptr));
    EXPECT_THAT(text(told), HasSubstr(says));
  };
  float alpha = 0;
  refused("alphas is NULL", &factor_view, nullptr);
  refused("weight_scale_2", nullptr, &alpha);
  form.encoding = WW_PACKED_MXF4;
  refused("encoding is of mxf4 weights, and modelopt-nvfp4 has nvf4", &factor_view, &alpha);
  form.encoding = WW_PACKED_SM;
  refused("encoding is of int4 weights, and modelopt-nvfp4 has nvf4", &factor_view, &alpha);
  form.encoding = WW_PACKED_ANY;
  EXPECT_DONE(
      ww_fp4_pack("modelopt-nvfp4", &code_view, &scale_view, &factor_view, &form, &alpha, nullptr));
  EXPECT_EQ(form.encoding, WW_PACKED_NVF4_BF16);
  std::vector<Piece> packed = pieces(form);
  EXPECT_DONE(ww_fp4_pack("modelopt-nvfp4", &code_view, &scale_view, &factor_view, &form, &alpha,
                          packed.data()));
  EXPECT_EQ(alpha, 0.25F);
  float factor_of_header = 0;
  EXPECT_DONE(ww_packed_factor(packed.data(), &factor_of_header));
  EXPECT_EQ(factor_of_header, 0.25F);
  EXPECT_THAT(text(Refusal(ww_packed_factor(nullptr, &factor_of_header))), HasSubstr("bytes"));
  EXPECT_THAT(text(Refusal(ww_packed_factor(packed.data(), nullptr))), HasSubstr("factor"));
  // A product by them needs it.
  std::vector<std::uint16_t> x(k, bf16(1)), d(n);
  ww_gemm g;
  ww_gemm_init(&g);
  g.a = ww_packed(x.data(), WW_BF16, 1, k);
  g.b.data = packed.data();
  g.packed = &form;
  g.d = ww_packed(d.data(), WW_BF16, 1, n);
  EXPECT_THAT(text(Refusal(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr))),
              HasSubstr("alpha is the factor of their tensor"));
  const auto expect_right = [&] {
    EXPECT_DONE(ww_run(&g, WW_MODEL, nullptr, nullptr, nullptr, nullptr));
    for (std::int64_t j = 0; j < n; ++j) {
      const float want = 0.25F * sum_of_row(codes, j, k);
      EXPECT_NEAR(bf16_value(d[static_cast<std::size_t>(j)]), want, std::fabs(want) / 128 + 1e-6);
    }
  };
  g.alpha = factor_of_header;
  expect_right();
  g.alpha = 1;
  g.scaling = WW_SCALING_TENSOR;
  g.scale_b = factor_view;
  expect_right();
  factor = 4;  // a divisor there
  EXPECT_DONE(
      ww_fp4_pack("modelopt-nvfp4", &code_view, &scale_view, &factor_view, &form, &alpha, nullptr));
  factor = 4000;
  refused("looks like a divisor", &factor_view, &alpha);
}

// A refusal leaves form and memory as they are.
TEST(CFp4, WhatIsRefusedIsNotWritten) {
  constexpr std::int64_t n = 8, k = 64;
  const Codes codes(n * k);
  auto* const bytes = const_cast<std::uint8_t*>(codes.bytes.data());  // NOLINT: only read
  std::vector<std::uint8_t> scales(n * k / 32, 127);
  ww_matrix code_view = ww_packed(bytes, WW_U8, n, k / 2);
  ww_matrix scale_view = ww_packed(scales.data(), WW_U8, n, k / 32);
  ww_packed_form form;
  ww_packed_form_init(&form);
  form.encoding = WW_PACKED_ANY;
  EXPECT_DONE(ww_fp4_pack("gpt-oss", &code_view, &scale_view, nullptr, &form, nullptr, nullptr));
  std::vector<Piece> packed = pieces(form);
  std::memset(packed.data(), 0x5a, packed.size() * sizeof(Piece));
  const std::vector<Piece> before = packed;
  const ww_packed_form kept = form;
  const auto refused = [&](const char* says) {
    const Refusal told(
        ww_fp4_pack("gpt-oss", &code_view, &scale_view, nullptr, &form, nullptr, packed.data()));
    EXPECT_THAT(text(told), HasSubstr(says));
    EXPECT_EQ(std::memcmp(&form, &kept, sizeof form), 0) << says;
    EXPECT_EQ(std::memcmp(packed.data(), before.data(), packed.size() * sizeof(Piece)), 0) << says;
  };
  scales[5] = 0xff;
  refused("The scale of row 2 and k = 32 of expert 0 is 0xff, NaN");
  scales[5] = 127;
  code_view.columns = code_view.row_stride = 31;  // K = 62
  refused("codes for 8 x 62 have a scale for each 32 of K: 8 x 2, and K a multiple of that");
  code_view.columns = code_view.row_stride = 32;
  scale_view.rows = 7;
  refused("is 7 x 2; codes for 8 x 64");
  scale_view.rows = 8;
  scale_view.row_stride = 3;
  refused("has gaps or another order");
  scale_view.row_stride = 2;
  code_view.dtype = WW_BF16;
  refused("it is u8, s8 or e2m1");
  code_view.dtype = WW_U8;
  code_view.data = nullptr;
  refused("codes is a null pointer");
}

}  // namespace
