// The rules of operands whose scales the tensor core multiplies: formats, what is multiplied by
// what, and what the width of elements asks of K, strides and addresses.
#include <gtest/gtest.h>

#include <string>

#include "tests/plan/refused.h"
#include "warpwright/facts/block_scales.h"

namespace warpwright {
namespace {

using tests::at;
using tests::Code;
using tests::expect_refused;
using tests::expect_says;
using tests::O;
using tests::refusal;

constexpr int kMicroM = 200;
constexpr int kMicroN = 136;
constexpr int kMicroK = 256;

void set_micro_scales(O& o) {
  for (const bool of_a : {true, false}) {
    const MatrixShape s = scale_shape(problem_of(o), of_a);
    MatrixView& scale = of_a ? o.scale_a : o.scale_b;
    scale = MatrixView(at(of_a ? 0x30000000 : 0x40000000), s);
  }
}

// A legal product of such formats.
O micro_product(const MicroFormat& a, const MicroFormat& b) {
  O o;
  o.a = matrix(at(0x10000000), a.element, kMicroM, kMicroK);
  o.b = matrix(at(0x20000000), b.element, kMicroN, kMicroK);
  o.d = matrix(at(0x50000000), DType::bf16, kMicroM, kMicroN);
  o.scaling = Scaling::block_scaled;
  o.scale_a.dtype = a.scale;
  o.scale_b.dtype = b.scale;
  set_micro_scales(o);
  return o;
}
O micro_product(const char* a, const char* b) {
  return micro_product(*micro_format(a), *micro_format(b));
}

TEST(MicroRules, AnyTwoWithPowersOfTwoAndNvf4ByItself) {
  int legal = 0;
  for (const MicroFormat& a : micro_formats) {
    for (const MicroFormat& b : micro_formats) {
      SCOPED_TRACE(std::string(a.word) + " by " + b.word);
      const std::string said = refusal(micro_product(a, b));
      if (a.scale == b.scale) {
        EXPECT_EQ(said, "");
        ++legal;
      } else {
        const bool a_is = a.scale == DType::ue4m3;
        expect_says(said,
                    {"A is " + std::string(a.word), "B is " + std::string(b.word), "only by nvf4",
                     std::string("the nearest ") + (a_is ? "A" : "B") + " is mxf4"});
      }
    }
  }
  EXPECT_EQ(legal, 26);
}

TEST(MicroRules, ScalesSayTheFormat) {
  EXPECT_EQ(scale_shape(problem_of(micro_product("mxf8", "mxf4")), false).columns, kMicroK / 32);
  EXPECT_EQ(scale_shape(problem_of(micro_product("nvf4", "nvf4")), false).columns, kMicroK / 16);
  EXPECT_EQ(scale_shape(problem_of(micro_product("mxf4", "mxf4")), true).columns, kMicroK / 32);
  // Where nothing is said: nvf4 of two e2m1, and as the other one of them.
  GemmProblem p = packed_problem(kMicroM, kMicroN, kMicroK, DType::e2m1, DType::bf16);
  p.scaling = Scaling::block_scaled;
  EXPECT_EQ(micro_scale(p, true), DType::ue4m3);
  p.scale_b.dtype = DType::ue8m0;
  EXPECT_EQ(micro_scale(p, true), DType::ue8m0);
  p.a.dtype = DType::e4m3;
  p.scale_b.dtype = DType::bf16;
  EXPECT_EQ(micro_scale(p, false), DType::ue8m0) << "beside e4m3";
}

// Tokens of e4m3 with a float32 for each row, beside weights with a ue8m0.
TEST(MicroRules, PlainTokens) {
  for (const MicroFormat& b : micro_formats) {
    const O o = micro_product(plain_tokens, b);
    if (b.scale == DType::ue8m0) {
      EXPECT_EQ(refusal(o), "") << b.word;
      EXPECT_EQ(o.scale_a.dtype, DType::f32);
      EXPECT_EQ(o.scale_a.rows, kMicroM);
      EXPECT_EQ(o.scale_a.columns, 1);
      EXPECT_EQ(micro_scale(o, false), DType::ue8m0);
      EXPECT_TRUE(has_plain_tokens(*describe(o)));
      EXPECT_NE(*describe(o), *describe(micro_product(*micro_format("mxf8"), b)));
    } else {
      expect_says(refusal(o), {"A is e4m3 and B is nvf4", "only by nvf4", "the nearest B is mxf4"});
    }
  }
  EXPECT_EQ(micro_formats_of("e4m3,mxf4"), std::pair(plain_tokens, *micro_format("mxf4")));
  EXPECT_FALSE(micro_formats_of("e4m3") || micro_formats_of("mxf8,e4m3") ||
               micro_formats_of("e4m3,e4m3"));
  O groups = micro_product(plain_tokens, *micro_format("mxf8"));
  groups.groups = Groups{at(0x60000000), OffsetType::int32};
  EXPECT_EQ(refusal(groups), "") << "a float32 for each row, wherever groups begin";
  O other = micro_product("mxf8-e5m2", "mxf8");
  other.scale_a = matrix(other.scale_a.data, DType::f32, kMicroM, 1);
  expect_says(refusal(other), {"scale_a is f32", "takes ue8m0 scales"});
}

TEST(MicroRules, AProductKeepsItsFormats) {
  const auto mxf4 = describe(micro_product("mxf4", "mxf4"));
  const auto nvf4 = describe(micro_product("nvf4", "nvf4"));
  ASSERT_TRUE(mxf4 && nvf4);
  EXPECT_NE(*mxf4, *nvf4);
  EXPECT_EQ(micro_format_of(*mxf4, true), micro_format("mxf4"));
  EXPECT_EQ(normalised(*nvf4), *nvf4);
}

TEST(MicroRules, TypesThatAreNone) {
  const auto retyped = [](O& o, DType a, DType b) {
    o.a.dtype = a;
    o.b.dtype = b;
    set_micro_scales(o);
  };
  expect_refused(micro_product("mxf8", "mxf8"),
                 {{Code::bad_type,
                   [&](O& o) { retyped(o, DType::bf16, DType::bf16); },
                   {"A is bf16", "e4m3, e5m2, e2m3, e3m2 or e2m1", "the nearest is e4m3"}},
                  {Code::bad_type,
                   [&](O& o) { retyped(o, DType::e2m3, DType::s8); },
                   {"B is s8", "the nearest is e2m3"}},
                  {Code::bad_type,
                   [](O& o) { o.scale_a.dtype = DType::ue4m3; },
                   {"scale_a is ue4m3", "A is e4m3", "ue8m0, one each 32", "the nearest is ue8m0"}},
                  {Code::bad_type,
                   [](O& o) { o.scale_b.dtype = DType::f32; },
                   {"scale_b is f32", "takes ue8m0 scales of shape 256 x 8"}}});
  O plain = micro_product("mxf6", "mxf6");
  plain.scaling = Scaling::none;
  plain.scale_a = plain.scale_b = {};
  expect_says(refusal(plain), {"A is e2m3", "scaling is none", "a scale for every 32",
                               "the nearest scaling is block_scaled"});
}

// Scales row by row, of rows that there are not, or missing.
TEST(MicroRules, ScalesThatAreNone) {
  expect_refused(
      micro_product("mxf8", "mxf4"),
      {{Code::bad_shape,
        [](O& o) { o.scale_a.rows = 384; },
        {"scale_a is 384 x 8", "takes ue8m0 scales of shape 256 x 8"}},
       {Code::bad_shape,
        [](O& o) { o.scale_b.rows = o.b.rows; },
        {"scale_b is " + std::to_string(kMicroN), "takes ue8m0 scales of shape 256 x 8"}},
       {std::nullopt, [](O& o) { o.scale_a.data = at(0x30000010); }},
       {Code::bad_stride, [](O& o) { o.scale_a.row_stride = 16; }, {"scale_a", "tiles"}},
       {Code::bad_pointer, [](O& o) { o.scale_b.data = nullptr; }, {"scale_b is a null pointer"}}});
}

// What TMA asks: of packed operands 16 bytes, of padded ones 32, and pieces of 128 elements.
TEST(MicroRules, RowsOfNarrowElements) {
  const auto depth = [](O& o, std::int64_t k) {
    o.a.columns = o.b.columns = o.a.row_stride = o.b.row_stride = k;
    set_micro_scales(o);
  };
  expect_refused(micro_product("nvf4", "nvf4"),
                 {{std::nullopt, [&](O& o) { depth(o, 96); }},
                  {Code::bad_shape,
                   [&](O& o) { depth(o, 95); },
                   {"K is 95", "A is e2m1, 2 of which are a byte", "the nearest legal K is 96"}},
                  {Code::bad_stride,
                   [&](O& o) { depth(o, 48); },
                   {"24 bytes apart (48 elements of e2m1)", "a multiple of 16 bytes",
                    "row stride is 64 elements"}},
                  {Code::bad_stride,
                   [](O& o) {
                     o.a.row_stride = 1;
                     o.a.column_stride = 256;
                   },
                   {"A is e2m1 and MN-major", "only K-major operands of 8 bits"}}});
  for (const char* narrow : {"mxf6", "mxf6-e3m2", "mxf4"}) {
    SCOPED_TRACE(narrow);
    expect_refused(
        micro_product("mxf8", narrow),
        {{std::nullopt, [&](O& o) { depth(o, 384); }},
         {Code::bad_shape,
          [&](O& o) { depth(o, 320); },
          {"K is 320, and B is " + std::string(numeric::name(micro_format(narrow)->element)),
           "beside e4m3", "pieces of 128 elements", "the nearest legal K is 384"}},
         {Code::bad_stride,
          [](O& o) { o.b.row_stride = 272; },
          {"the rows of B", "a multiple of 32 bytes apart"}},
         {Code::bad_pointer,
          [](O& o) { o.b.data = at(0x20000010); },
          {"address must be a multiple of 32 bytes"}},
         {std::nullopt, [](O& o) { o.a.data = at(0x10000010); }}});
  }
}

// Each group's scales begin at a tile: as many rows as there can be.
TEST(MicroRules, ScalesOfGroups) {
  EXPECT_EQ(block_scales::grouped_rows(1, 1), 128);
  EXPECT_EQ(block_scales::grouped_rows(128, 1), 128);
  EXPECT_EQ(block_scales::grouped_rows(129, 1), 256);
  EXPECT_EQ(block_scales::grouped_rows(2, 2), 256) << "one each";
  EXPECT_EQ(block_scales::grouped_rows(130, 2), 384) << "129 and 1";
  O o = micro_product("mxf8", "mxf4");
  o.groups.emplace();
  o.groups->offsets = at(0x60000000);
  o.b.batch = 5;
  o.b.batch_stride = kMicroN * kMicroK;
  set_micro_scales(o);
  EXPECT_EQ(o.scale_a.rows, 768) << "200 + 5 * 127 is 835";
  EXPECT_EQ(o.scale_b.rows, 256);
  EXPECT_EQ(o.scale_b.batch, 5);
  EXPECT_EQ(refusal(o), "");
  o.scale_a.rows = 256;
  expect_says(refusal(o), {"scale_a is 256 x 8", "ue8m0 scales of shape 768 x 8"});
}

}  // namespace
}  // namespace warpwright
