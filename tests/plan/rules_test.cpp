// The rules on products: every refusal names the tensor, the rule and the nearest legal value.
#include "warpwright/plan/product/rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/must.h"
#include "tests/plan/refused.h"
#include "tests/problem_changes.h"

namespace warpwright {
namespace {

using tests::Code;
using tests::expect_refused;
using tests::expect_says;
using tests::O;
using tests::refusal;

// The number behind the words "nearest legal".
std::int64_t nearest_in(const std::string& sentence) {
  const std::size_t at = sentence.find("nearest legal");
  if (at == std::string::npos) ADD_FAILURE() << "no nearest legal value in: " << sentence;
  const std::size_t digit = sentence.find_first_of("0123456789", at);
  if (digit == std::string::npos) ADD_FAILURE() << "no number in: " << sentence;
  return std::stoll(sentence.substr(digit));
}

constexpr int kM = 64;
constexpr int kN = 160;
constexpr int kK = 320;
constexpr int kBatch = 2;

// Memory for everything that a product may have, larger than any of it.
struct Memory {
  alignas(64) std::byte a[kBatch * kM * kK * 2] = {};
  alignas(64) std::byte b[kBatch * kN * kK * 2] = {};
  alignas(64) std::byte c[kBatch * kM * kN * 4] = {};
  alignas(64) std::byte d[kBatch * kM * kN * 4] = {};
  alignas(64) float scale_a[kBatch * kM * 3] = {};
  alignas(64) float scale_b[kBatch * kN] = {};
  alignas(64) float scale_d[4] = {};
  alignas(64) float bias[kBatch * kN] = {};
  alignas(64) float d_scales[kBatch * kM * 4] = {};
};

Memory& memory() {
  static Memory all;
  return all;
}

// A legal product of bf16.
GemmOperands legal() {
  Memory& all = memory();
  GemmOperands o;
  o.a = matrix(all.a, DType::bf16, kM, kK);
  o.b = matrix(all.b, DType::bf16, kN, kK);
  o.c = matrix(all.c, DType::bf16, kM, kN);
  o.d = matrix(all.d, DType::bf16, kM, kN);
  o.beta = 0;
  return o;
}

// A legal product of e4m3 with these scales.
GemmOperands scaled(Scaling scaling) {
  GemmOperands o = legal();
  o.a.dtype = o.b.dtype = DType::e4m3;
  o.scaling = scaling;
  const bool block = scaling == Scaling::blockwise;
  const bool row = scaling == Scaling::row_column;
  o.scale_a = matrix(memory().scale_a, DType::f32, block || row ? kM : 1, block ? 3 : 1);
  o.scale_b = matrix(memory().scale_b, DType::f32, row ? kN : block ? 2 : 1, block ? 3 : 1);
  return o;
}

TEST(Rules, Operands) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  O base = legal();
  base.beta = 0.5F;
  expect_refused(
      base,
      {{Code::bad_value, [&](O& o) { o.alpha = nan; }, {"alpha", "NaN"}},
       {Code::bad_value, [&](O& o) { o.beta = nan; }, {"beta", "NaN"}},
       {Code::bad_pointer, [](O& o) { o.a.data = nullptr; }, {"A", "null"}},
       {Code::bad_pointer, [](O& o) { o.b.data = nullptr; }, {"B", "null"}},
       {Code::bad_pointer, [](O& o) { o.c.data = nullptr; }, {"C", "null"}},
       {Code::bad_pointer, [](O& o) { o.d.data = nullptr; }, {"D", "null"}},
       {Code::bad_shape, [](O& o) { o.a.rows = -1; }, {"A", "negative"}},
       {Code::bad_shape, [](O& o) { o.b.columns = 40; }, {"A", "B", "K", "160 x 320"}},
       {Code::bad_shape, [](O& o) { o.d.columns = 72; }, {"D", "64 x 160"}},
       {Code::bad_shape, [](O& o) { o.c.rows = 60; }, {"C", "64 x 160"}},
       {Code::bad_type, [](O& o) { o.a.dtype = DType::f16; }, {"A is fp16 and B is bf16"}},
       {Code::bad_stride, [](O& o) { o.d.column_stride = 2; }, {"D", "row-major"}},
       // Rows that do not start at multiples of 16 bytes, and rows that overlap.
       {Code::bad_stride, [](O& o) { o.a.row_stride = 321; }, {"A", "642 bytes", "16", "328"}},
       {Code::bad_stride, [](O& o) { o.b.row_stride = 40; }, {"B", "40", "320"}},
       {Code::bad_stride, [](O& o) { o.d.row_stride = 159; }, {"D", "159", "160"}},
       {Code::bad_pointer, [](O& o) { o.a.data = memory().a + 8; }, {"A", "16 bytes", "8"}},
       {Code::bad_pointer, [](O& o) { o.d.data = memory().d + 1; }, {"D", "element size"}},
       // C does not matter when beta is 0, A and B not when alpha is 0.
       {{}, [](O& o) { o.beta = 0, o.c = {}; }},
       {{}, [](O& o) { o.alpha = 0, o.a.data = o.b.data = nullptr; }}});
}

// What programs read: the tensor, the rule and the nearest legal value.
TEST(Rules, RefusalsHaveFields) {
  struct Row {
    std::function<void(O&)> change;
    std::string tensor, rule, nearest;
  };
  const Row rows[] = {
      {[](O& o) { o.beta = 2, o.c = {}; }, "C", "give C, or leave beta out", ""},
      {[](O& o) { o.a.data = nullptr; }, "A", "a tensor of 64 x 320 elements needs memory", ""},
      {[](O& o) { o.b.columns = 40; }, "A", "their columns are both K and must agree", "160 x 320"},
      {[](O& o) { o.a.row_stride = 321; }, "A", "they must be a multiple of 16 bytes apart",
       "328 elements"},
      {[](O& o) { o.b.row_stride = 40; }, "B", "", "320"},
      {[](O& o) { o.d.column_stride = 2; }, "D", "it must be row-major", "1"},
      {[](O& o) { o.a.data = memory().a + 8; }, "A",
       "address must be a multiple of 16 bytes for TMA", ""},
      {[](O& o) { o.a.dtype = DType::f16; }, "A",
       "A and B are both bf16, both fp16, or each e4m3 or e5m2", "fp16"},
      {[](O& o) { o.epilogue.bias = Bias::rows, o.bias = matrix(memory().bias, DType::f32, 9, 1); },
       "bias", "a bias along the rows of D is M x 1", "64 x 1"},
      {[](O& o) { o = scaled(Scaling::tensor), o.scale_a.dtype = DType::bf16; }, "scale_a",
       "tensor scaling of A (64 x 320) takes f32 scales of shape 1 x 1", ""},
      {[](O& o) {
         o.scaling = Scaling::tensor,
         o.scale_a = o.scale_b = matrix(memory().bias, DType::f32, 1, 1);
       },
       "A", "only operands of 8 bits have scales", "none"},
  };
  for (const Row& row : rows) {
    O o = legal();
    row.change(o);
    const auto said = must(tests::refused(o), row.rule);
    EXPECT_EQ(said->tensor, row.tensor) << said->reason;
    EXPECT_EQ(said->rule, row.rule) << said->reason;
    EXPECT_EQ(said->nearest, row.nearest) << said->reason;
  }
}

// One scale of A, of B and of D is what kernels read of a batch.
TEST(Rules, ScalesOfWholeTensorsAreNoBatch) {
  GemmOperands o = legal();
  o.c = {};
  o.a.dtype = o.b.dtype = DType::e4m3;
  o.d.dtype = DType::e4m3;
  o.d.batch = 2;
  o.d.batch_stride = kM * kN;
  o.scaling = Scaling::tensor;
  alignas(16) static float scales[2] = {1, 2};
  const MatrixView one = matrix(scales, DType::f32, 1, 1);
  MatrixView two = one;
  two.batch = 2;
  two.batch_stride = 1;
  for (MatrixView GemmOperands::*const scale :
       {&GemmOperands::scale_a, &GemmOperands::scale_b, &GemmOperands::scale_d}) {
    o.scale_a = o.scale_b = o.scale_d = one;
    EXPECT_EQ(refusal(o), "");
    o.*scale = two;
    expect_says(refusal(o), {"is a batch of 2 scales", "nearest legal batch is 1"});
    (o.*scale).batch_stride = 0;
    EXPECT_EQ(refusal(o), "") << "one that serves both";
  }
}

// Beta is 1 where nobody says otherwise, and what is given is read, or refused.
TEST(Rules, BetaAndC) {
  GemmOperands o = legal();
  o.beta = GemmOperands{}.beta;
  EXPECT_EQ(o.beta, 1);
  EXPECT_TRUE(describe(o)->reads_c());
  o.beta = 0;
  EXPECT_FALSE(describe(o)->reads_c());
  for (const float beta : {0.0F, 1.0F}) {
    o.c = {};
    o.beta = beta;
    EXPECT_EQ(refusal(o), "");
    EXPECT_FALSE(describe(o)->reads_c());
    EXPECT_EQ(beta_of(o), 0);
  }
  // One that has only an address is a C too.
  o.c.data = memory().c;
  expect_says(refusal(o), {"C is 0 x 0", "as large as D"});
  o.c = {};
  o.beta = 0.5F;
  expect_says(refusal(o), {"beta is 0.5", "there is no C"});
}

TEST(Rules, DLiesApartFromEveryInput) {
  GemmOperands o = scaled(Scaling::blockwise);
  o.d.dtype = DType::e4m3;
  o.scale_d = matrix(memory().scale_d, DType::f32, 1, 1);
  o.epilogue.bias = Bias::columns;
  o.bias = matrix(memory().bias, DType::f32, kN, 1);
  Memory& all = memory();
  const auto lies_at = [](void* place) { return [=](O& p) { p.d.data = place; }; };
  const Code overlap = Code::overlap;
  expect_refused(o, {{overlap, lies_at(all.a), {"D overlaps A"}},
                     {overlap, lies_at(all.b + kN * kK - 16), {"D overlaps B"}},
                     {overlap, lies_at(all.scale_a), {"D overlaps scale_a"}},
                     {overlap, lies_at(all.scale_b), {"D overlaps scale_b"}},
                     {overlap, lies_at(all.scale_d), {"D overlaps scale_d"}},
                     {overlap, lies_at(all.bias), {"D overlaps the bias"}},
                     {{}, lies_at(all.c)}});
  O with_c = legal();
  with_c.beta = 1;
  expect_refused(with_c, {{overlap, [](O& p) { p.c.data = memory().d + 16; }, {"D overlaps C"}},
                          {{}, [](O& p) { p.c = p.d; }}});
  // A batch reaches further than its first matrix.
  O batch = legal();
  batch.d.batch = 2;
  batch.d.batch_stride = kM * kN;
  expect_refused(batch,
                 {{{}, [](O& p) { p.a.data = memory().d + 2 * kM * kN * 2; }},
                  {overlap, [](O& p) { p.a.data = memory().d + kM * kN * 2; }, {"D overlaps A"}}});
}

TEST(Rules, TheNearestLegalStrideIsLegal) {
  // 13 columns: rows 8 apart overlap, and 13 apart are no multiple of 16 bytes.
  for (const std::int64_t k : {8, 13, 15, 16, 17, 100}) {
    for (const std::int64_t stride : {std::int64_t{1}, std::int64_t{8}, k - 1, k, k + 1}) {
      GemmProblem p = packed_problem(64, 64, k, DType::bf16, DType::bf16);
      p.a.row_stride = stride;
      p.b.row_stride = (k + 7) / 8 * 8;
      const std::string said = refusal(p);
      if (said.empty()) continue;
      SCOPED_TRACE(said);
      p.a.row_stride = nearest_in(said);
      EXPECT_EQ(refusal(p), "");
    }
  }
}

TEST(Rules, Problems) {
  const auto changed = [](const std::function<void(GemmProblem&)>& change) {
    GemmProblem p = packed_problem(256, 256, 64, DType::bf16, DType::bf16, true);
    change(p);
    return refusal(p);
  };
  EXPECT_EQ(changed([](GemmProblem&) {}), "");
  expect_says(changed([](GemmProblem& p) { set_m(p, -1); }), {"M", "-1", "0"});
  expect_says(changed([](GemmProblem& p) { set_n(p, std::int64_t{1} << 31); }),
              {"N", "nearest legal"});
  expect_says(changed([](GemmProblem& p) { set_k(p, std::int64_t{1} << 40); }),
              {"K", "nearest legal"});
  expect_says(changed([](GemmProblem& p) { set_batch(p, 0); }), {"batch", "0", "1"});
  expect_says(changed([](GemmProblem& p) { p.c.dtype = DType::f32; }), {"C", "D", "f32", "bf16"});
  expect_says(changed([](GemmProblem& p) { p.a.row_stride = 65; }), {"A", "65", "72"});
  expect_says(changed([](GemmProblem& p) { p.b.row_stride = std::int64_t{1} << 40; }),
              {"B", "2^40"});
  expect_says(changed([](GemmProblem& p) { p.c.row_stride = 255; }), {"C", "255", "256"});
}

TEST(Rules, Types) {
  const DType all[] = {DType::bf16, DType::f16, DType::e4m3, DType::e5m2, DType::f32, DType::s8};
  const auto is_8bit = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  const auto is_16bit = [](DType t) { return t == DType::bf16 || t == DType::f16; };
  for (const DType a : all) {
    for (const DType b : all) {
      for (const DType d : all) {
        for (const bool gated : {false, true}) {
          GemmProblem p = packed_problem(64, 64, 64, a, d);
          p.b.dtype = b;
          p.epilogue.gated = gated;
          if (gated) p.epilogue.activation = Activation::silu;
          const bool operands = (is_8bit(a) && is_8bit(b)) || (is_16bit(a) && a == b);
          const bool result = is_16bit(d) || d == DType::f32 || (is_8bit(d) && is_8bit(a)) ||
                              (gated && d == DType::e4m3);
          const std::string said = refusal(p);
          EXPECT_EQ(said.empty(), operands && result)
              << numeric::name(a) << " " << numeric::name(b) << " " << numeric::name(d) << " "
              << gated << ": " << said;
          EXPECT_EQ(said.empty(), said.find("the nearest") == std::string::npos) << said;
        }
      }
    }
  }
}

// The epilogue adds no C of 8 bits.
TEST(Rules, NoNarrowC) {
  for (const DType d : {DType::e4m3, DType::e5m2, DType::bf16, DType::f32}) {
    GemmProblem p = packed_problem(64, 64, 64, DType::e4m3, d);
    p.c.dtype = d;
    p.c.row_stride = p.d.row_stride;
    EXPECT_EQ(refusal(p), "") << numeric::name(d);
    read_c(p);
    const bool narrow = d == DType::e4m3 || d == DType::e5m2;
    EXPECT_EQ(refusal(p).find("no kernel adds in 8 bits") != std::string::npos, narrow)
        << refusal(p);
  }
}

TEST(Rules, MajorsOfOperands) {
  struct Row {
    DType type;
    std::int64_t rows, k, row_stride, column_stride;
    const char* said;  // a part of the refusal; empty: legal
    atom::Major major = atom::Major::k;
  };
  const Row table[] = {
      {DType::bf16, 64, 80, 80, 1, ""},
      {DType::bf16, 64, 80, 1, 64, "", atom::Major::mn},
      {DType::bf16, 64, 80, 1, 72, "", atom::Major::mn},
      {DType::f16, 64, 80, 1, 68, "the nearest legal column stride is 72"},
      {DType::f16, 64, 80, 1, 56, "less than its 64 rows; the nearest legal is 64"},
      {DType::bf16, 60, 80, 1, 60, "the columns of A are 120 bytes apart"},
      {DType::bf16, 64, 80, 2, 128, "one of them is 1"},
      {DType::bf16, 64, 80, 80, 2, "one of them is 1"},
      {DType::bf16, 64, 80, 1, -64, "less than its 64 rows"},
      {DType::bf16, 64, 80, 1, std::int64_t{1} << 39, "2^40"},
      {DType::e4m3, 64, 80, 1, 64, "only K-major"},
      {DType::e4m3, 64, 80, 88, 1, "the nearest legal row stride is 96"},
      {DType::e5m2, 64, 80, 96, 1, ""},
      // One row, or one column: K-major if that is legal.
      {DType::bf16, 1, 80, 80, 1, ""},
      {DType::bf16, 1, 80, 1, 8, "", atom::Major::mn},
      {DType::bf16, 1, 80, 123, 8, "", atom::Major::mn},
      {DType::bf16, 64, 1, 8, 64, ""},
      {DType::bf16, 64, 1, 1, 64, "", atom::Major::mn},
      {DType::bf16, 64, 1, 1, 1, "the nearest legal row stride is 8"},
      {DType::bf16, 1, 1, 1, 8, "", atom::Major::mn},
      {DType::bf16, 1, 1, 8, 1, ""},
  };
  for (const Row& row : table) {
    for (const bool of_a : {true, false}) {
      GemmProblem p = packed_problem(64, 64, row.k, row.type, DType::bf16);
      p.a.row_stride = p.b.row_stride = (row.k + 15) / 16 * 16;
      of_a ? set_m(p, row.rows) : set_n(p, row.rows);
      (of_a ? p.a.row_stride : p.b.row_stride) = row.row_stride;
      (of_a ? p.a.column_stride : p.b.column_stride) = row.column_stride;
      p.d.row_stride = 64;
      SCOPED_TRACE(std::to_string(&row - table) + (of_a ? " A" : " B"));
      std::string expected = row.said;
      if (!of_a && expected.find("of A") != std::string::npos) {
        expected.replace(expected.find("of A"), 4, "of B");
      }
      if (expected.empty()) {
        EXPECT_EQ(refusal(p), "");
        EXPECT_EQ(of_a ? major_a(p) : major_b(p), row.major);
      } else {
        expect_says(refusal(p), {expected, of_a ? "A " : "B "});
      }
    }
  }
}

TEST(Rules, Scales) {
  for (const Scaling scaling : {Scaling::tensor, Scaling::row_column, Scaling::blockwise}) {
    SCOPED_TRACE(name(scaling));
    const O base = scaled(scaling);
    const auto shape = [](const MatrixView& v) { return shape_of(v.rows, v.columns); };
    expect_refused(
        base,
        {{Code::bad_pointer,
          [](O& o) { o.scale_a.data = nullptr; },
          {"scale_a", "null", shape(base.scale_a)}},
         {Code::bad_pointer,
          [](O& o) { o.scale_b.data = nullptr; },
          {"scale_b", "null", shape(base.scale_b)}},
         {Code::bad_type, [](O& o) { o.scale_a.dtype = DType::bf16; }, {"scale_a is bf16", "f32"}},
         {Code::bad_type,
          [](O& o) { o.scale_b.dtype = DType::ue8m0; },
          {"scale_b is ue8m0", "f32"}},
         {Code::bad_shape, [](O& o) { ++o.scale_a.rows; }, {"scale_a is", shape(base.scale_a)}},
         {Code::bad_shape, [](O& o) { ++o.scale_b.columns; }, {"scale_b is", shape(base.scale_b)}},
         {Code::bad_pointer,
          [](O& o) { o.scale_a.data = static_cast<std::byte*>(o.scale_a.data) + 2; },
          {"scale_a", "element size", "4"}},
         {Code::bad_shape, [](O& o) { o.scale_a.batch = 2; }, {"scale_a", "batch of 2", "1"}},
         {Code::unsupported,
          [](O& o) { o.a.dtype = o.b.dtype = DType::f16; },
          {"scaling is", "fp16", "the nearest scaling is none"}},
         {Code::bad_value,
          [](O& o) { o.scaling = Scaling::none; },
          {"scale_a is given", "scaling is none"}},
         // Not read, so of no interest.
         {{}, [](O& o) { o.alpha = 0, o.scale_a = o.scale_b = {}; }}});
  }
  // Any strides, as of a slice or a transposed tensor, but no negative ones.
  GemmOperands block = scaled(Scaling::blockwise);
  block.scale_a.row_stride = 1;
  block.scale_a.column_stride = kM;
  EXPECT_EQ(refusal(block), "");
  block.scale_a.row_stride = -1;
  expect_says(refusal(block), {"scale_a", "row stride of -1", "0"});
  EXPECT_EQ(describe(scaled(Scaling::blockwise))->accumulation, Accumulation::promoted);
  EXPECT_EQ(describe(scaled(Scaling::tensor))->accumulation, Accumulation::fast);
}

TEST(Rules, ScaleOfTheResultAndPromotion) {
  GemmOperands o = scaled(Scaling::tensor);
  o.scale_d = matrix(memory().scale_d, DType::f32, 1, 1);
  expect_says(refusal(o), {"scale_d", "bf16", "leave scale_d out"});
  o.d.dtype = DType::e5m2;
  EXPECT_EQ(refusal(o), "");
  EXPECT_TRUE(describe(o)->scale_d.rows == 1);
  expect_refused(
      o, {{Code::bad_shape, [](O& p) { p.scale_d.rows = 2; }, {"scale_d is 2 x 1", "1 x 1"}},
          {Code::bad_shape, [](O& p) { p.scale_d.dtype = DType::f16; }, {"scale_d", "f32"}}});
  GemmOperands wide = legal();
  wide.accumulation = Accumulation::promoted;
  expect_says(refusal(wide), {"accumulation is promoted", "bf16", "fast"});
}

// Codes and scales: 160 columns are a block of 128 and a short one.
TEST(Rules, ResultsThatAreQuantised) {
  GemmOperands o = scaled(Scaling::tensor);
  o.d.dtype = DType::e4m3;
  o.epilogue.quantise = QuantiseD::block_1x128;
  o.d_scales = matrix(memory().d_scales, DType::f32, kM, 2);
  EXPECT_EQ(refusal(o), "");
  EXPECT_TRUE(describe(o)->d_scales == PlannedMatrix{});
  expect_refused(
      o,
      {{Code::bad_pointer, [](O& p) { p.d_scales = {}; }, {"d_scales is a null pointer", "64 x 2"}},
       {Code::bad_shape, [](O& p) { p.d_scales.columns = 1; }, {"d_scales is 64 x 1", "64 x 2"}},
       {Code::bad_type, [](O& p) { p.d_scales.dtype = DType::f16; }, {"d_scales is fp16", "f32"}},
       {Code::bad_stride,
        [](O& p) { p.d_scales.row_stride = 0; },
        {"d_scales", "stride of 0", "1"}},
       {Code::overlap, [](O& p) { p.d_scales.row_stride = 1; }, {"overlap each other", "64"}},
       {Code::overlap, [](O& p) { p.d_scales.data = p.d.data; }, {"d_scales overlaps D"}},
       {Code::overlap,
        [](O& p) { p.scale_d = matrix(p.d_scales.data, DType::f32, 1, 1); },
        {"d_scales overlaps scale_d"}},
       {Code::overlap, [](O& p) { p.d_scales.data = p.scale_a.data; }, {"overlaps scale_a"}},
       {Code::bad_type, [](O& p) { p.d.dtype = DType::bf16; }, {"D is bf16", "e4m3"}},
       {Code::bad_type, [](O& p) { p.b.dtype = DType::e5m2; }, {"B is e5m2", "e4m3"}},
       {Code::unsupported, [](O& p) { p.beta = 1; }, {"C is read", "legal beta is 0"}},
       {Code::unsupported,
        [](O& p) { p.scale_d = matrix(memory().scale_d, DType::f32, 1, 1); },
        {"scale_d", "leave scale_d out"}},
       {Code::bad_value,
        [](O& p) { p.epilogue.quantise = QuantiseD::none; },
        {"d_scales is given", "leave it out"}},
       // Rows of the scales, or blocks of them, lie side by side.
       {{}, [](O& p) { p.d_scales.row_stride = 1, p.d_scales.column_stride = kM; }}});
}

TEST(Rules, Batches) {
  GemmOperands base = legal();
  base.beta = 1;
  base.a.batch = base.b.batch = base.c.batch = base.d.batch = 2;
  base.a.batch_stride = kM * kK;
  base.b.batch_stride = kN * kK;
  base.c.batch_stride = base.d.batch_stride = kM * kN;
  EXPECT_EQ(describe(base)->batch(), 2);
  EXPECT_EQ(describe(base)->b.batch_stride, kN * kK);
  const Code shape = Code::bad_shape;
  const Code stride = Code::bad_stride;
  expect_refused(
      base,
      {{shape, [](O& o) { o.a.batch = 3; }, {"A is a batch of 3", "D of 2", "is 2"}},
       {shape, [](O& o) { o.b.batch = 0; }, {"B is a batch of 0", "is 1"}},
       {shape, [](O& o) { o.c.batch = 3; }, {"C is a batch of 3"}},
       {shape, [](O& o) { o.d.batch = 0; }, {"D is a batch of 0", "1"}},
       {shape, [](O& o) { o.d.batch = 1; }, {"A is a batch of 2", "D of 1"}},
       {stride, [](O& o) { o.a.batch_stride += 4; }, {"A", "16 bytes", "nearest legal", "20488"}},
       {stride, [](O& o) { o.b.batch_stride = -8; }, {"B", "-8", "nearest legal", "0"}},
       {stride, [](O& o) { o.c.batch_stride = -8; }, {"C", "-8", "0"}},
       {Code::overlap,
        [](O& o) { o.d.batch_stride = kM * kN - 1; },
        {"matrices of D overlap", "10240"}},
       {Code::overlap, [](O& o) { o.d.batch_stride = 0; }, {"matrices of D overlap"}},
       {{}, [](O& o) { o.b.batch = 1; }},  // one matrix for all
       // Matrices of an input may overlap each other, as windows of a sequence do.
       {{}, [](O& o) { o.a.batch_stride = 8; }}});
  GemmProblem far = *describe(base);
  far.b.batch_stride = std::int64_t{1} << 40;
  expect_says(refusal(far), {"B", "2^40", "nearest legal"});
  far.b.batch_stride = nearest_in(refusal(far).substr(refusal(far).rfind("nearest")));
  EXPECT_EQ(refusal(far), "");
  GemmOperands shared = base;
  shared.b.batch = 1;
  EXPECT_EQ(describe(shared)->b.batch_stride, 0);
  // So says a stride of 0, and a plan for the one serves the other.
  GemmOperands expanded = base;
  expanded.a.batch_stride = expanded.b.batch_stride = expanded.c.batch_stride = 0;
  EXPECT_EQ(refusal(expanded), "");
  GemmOperands single = base;
  single.a.batch = single.b.batch = single.c.batch = 1;
  const auto made = must(plan(single, model_facts()));
  EXPECT_FALSE(mismatch(*made, expanded));
  // D's matrices side by side in long rows, as attention's heads are.
  const auto abreast = [](std::int64_t row_stride) {
    GemmProblem p = packed_problem(kM, 32, kK, DType::bf16, DType::bf16);
    set_batch(p, 4);
    p.d.batch_stride = 32;
    p.d.row_stride = row_stride;
    return refusal(p);
  };
  EXPECT_EQ(abreast(128), "");
  expect_says(abreast(127), {"matrices of D overlap"});
}

TEST(Rules, PathsOfTheResult) {
  GemmProblem p = packed_problem(128, 128, 64, DType::e4m3, DType::bf16, true);
  EXPECT_EQ(result_path(p, true), EpiloguePath::tma);
  EXPECT_EQ(result_path(p, false), EpiloguePath::tma);
  set_batch(p, 3);
  p.d.batch_stride = 128 * 128 + 4;
  p.c.batch_stride = 128 * 128;
  EXPECT_EQ(result_path(p, true), EpiloguePath::elements);
  EXPECT_EQ(result_path(p, false), EpiloguePath::tma);
  read_c(p, false);
  EXPECT_EQ(result_path(p, false), EpiloguePath::none);
  GemmProblem gated = packed_problem(128, 48, 64, DType::e4m3, DType::e4m3);
  gated.epilogue.activation = Activation::silu;
  gate(gated);
  gated.d.row_stride = 32;
  EXPECT_EQ(result_path(gated, true), EpiloguePath::elements) << "rows of 24 bytes";
  set_n(gated, 64);
  EXPECT_EQ(result_path(gated, true), EpiloguePath::tma);
}

TEST(Rules, Gates) {
  GemmOperands base = legal();
  base.epilogue = {Activation::silu, true, Bias::none};
  base.d.columns = kN / 2;
  EXPECT_EQ(result_columns(*describe(base)), kN / 2);
  expect_refused(base,
                 {{Code::bad_shape, [](O& o) { o.d.columns = kN; }, {"D is", "gated", "64 x 80"}},
                  {Code::unsupported,
                   [](O& o) { o.epilogue.activation = Activation::quick_gelu; },
                   {"gated", "quick_gelu", "gelu, silu and swiglu_oai", "silu"}},
                  {Code::bad_shape, [](O& o) { o.beta = 1; }, {"C", "64 x 80"}},
                  {Code::unsupported,
                   [](O& o) { o.beta = 1, o.c.columns = kN / 2; },
                   {"gated product takes no C", "beta is 0"}}});
  for (const std::int64_t n : {1, 7, 8, 17, 24, 100, 168, 384, 511}) {
    for (const auto& [scaling, interleaved] : {std::pair{Scaling::tensor, false},
                                               {Scaling::blockwise, false},
                                               {Scaling::tensor, true},
                                               {Scaling::blockwise, true}}) {
      GemmProblem p = packed_problem(64, n, 64, DType::e4m3, DType::bf16);
      p.epilogue = base.epilogue;
      p.epilogue.interleaved = interleaved;
      p.scaling = scaling;
      const std::int64_t unit = interleaved ? 2 : scaling == Scaling::blockwise ? 128 : 16;
      const std::string said = refusal(p);
      EXPECT_EQ(said.empty(), n % unit == 0) << said;
      if (said.empty()) continue;
      expect_says(said, {"N is " + std::to_string(n), interleaved ? "pairs" : "halves"});
      set_n(p, nearest_in(said));
      p.d.row_stride = p.n();
      EXPECT_GT(p.n(), 0);
      EXPECT_EQ(refusal(p), "");
    }
  }
}

TEST(Rules, Biases) {
  for (const Bias bias : {Bias::rows, Bias::columns}) {
    const std::int64_t length = bias == Bias::rows ? kM : kN;
    GemmOperands base = legal();
    base.epilogue.bias = bias;
    base.bias = matrix(memory().bias, DType::f32, length, 1);
    expect_refused(
        base,
        {{Code::bad_pointer,
          [](O& o) { o.bias.data = nullptr; },
          {"bias", "null", shape_of(length, 1)}},
         {Code::bad_shape, [](O& o) { ++o.bias.rows; }, {"the bias is", shape_of(length, 1)}},
         {Code::bad_shape,
          [](O& o) { std::swap(o.bias.rows, o.bias.columns); },
          {"the bias is 1 x"}},
         {Code::bad_stride, [](O& o) { o.bias.row_stride = 2; }, {"bias", "stride of 2", "1"}},
         {Code::bad_type,
          [](O& o) { o.bias.dtype = DType::f16; },
          {"bias is fp16", "D is bf16", "f32"}},
         {Code::bad_shape, [](O& o) { o.bias.batch = 2; }, {"bias", "batch of 2"}},
         {{}, [](O& o) { o.bias.dtype = DType::bf16; }},
         {Code::bad_type,
          [](O& o) { o.d.dtype = DType::f32, o.bias.dtype = DType::bf16; },
          {"bias is bf16", "D is f32"}},
         {Code::bad_value,
          [](O& o) { o.epilogue.bias = Bias::none; },
          {"bias is given", "rows or columns"}}});
  }
}

// A plan for operands as if every kernel were there.
Plan plan_of(const GemmOperands& operands) {
  Plan plan;
  plan.problem = *describe(operands);
  plan.d_path = result_path(plan.problem, true);
  plan.c_path = result_path(plan.problem, false);
  return plan;
}

TEST(Rules, LaunchesOfOtherOperands) {
  GemmOperands base = scaled(Scaling::row_column);
  base.epilogue = {Activation::gelu, false, Bias::columns};
  base.bias = matrix(memory().bias, DType::f32, kN, 1);
  const auto mismatches = [](const O& of, const std::vector<tests::Refused>& rows) {
    tests::expect_mismatches(plan_of(of), of, rows);
  };
  const Code code = Code::plan_mismatch;
  mismatches(base,
             {{{}, [](O& o) { o.scale_a.row_stride = 2; }},
              {{}, [](O& o) { o.alpha = 0; }},
              {code,
               [](O& o) { o.accumulation = Accumulation::promoted; },
               {"accumulation", "row-column scaling", "fast"}},
              {code,
               [](O& o) {
                 o.scaling = Scaling::tensor;
                 o.scale_a.rows = o.scale_b.rows = 1;
               },
               {"scaling", "row-column"}},
              {code, [](O& o) { o.epilogue.activation = Activation::silu; }, {"epilogue"}},
              {code, [](O& o) { o.epilogue.bias = Bias::rows, o.bias.rows = kM; }, {"epilogue"}},
              {code, [](O& o) { o.bias.dtype = DType::bf16; }, {"epilogue"}},
              {code, [](O& o) { o.b.dtype = DType::e5m2; }, {"types"}},
              {code, [](O& o) { o.d.batch = 2, o.d.batch_stride = kM * kN; }, {"batch of 2", "1"}},
              {Code::bad_shape, [](O& o) { o.scale_a.rows = 1; }, {"scale_a is 1 x 1"}}});
  // Strides of a batch; extents and strides of rows, K-major for MN-major; C; D's address, where
  // the plan stores it by copies.
  GemmOperands batch = legal();
  batch.d.batch = batch.a.batch = 2;
  batch.d.batch_stride = kM * kN;
  batch.a.batch_stride = kM * kK;
  mismatches(batch, {{code, [](O& o) { o.a.batch_stride -= 8; }, {"batch strides"}}});
  mismatches(legal(),
             {{code, [](O& o) { o.a.row_stride = 1, o.a.column_stride = kM; }, {"strides"}},
              {code, [](O& o) { o.b.row_stride += 8; }, {"strides"}},
              {code, [](O& o) { o.d.rows = o.a.rows = 63; }, {"63", "64"}},
              {code, [](O& o) { o.beta = 1; }, {"beta", "C"}},
              {code, [](O& o) { o.d.data = memory().d + 2; }, {"D", "16"}},
              {code, [](O& o) { o.d.column_stride = 2; }, {"stride"}},
              {code, [](O& o) { o.d.batch = 2; }, {"batch"}}});
}

TEST(Rules, GatesWithLimitsAndInTurns) {
  GemmProblem p = packed_problem(64, 64, 64, DType::bf16, DType::bf16);
  p.epilogue.activation = Activation::swiglu_oai;
  expect_says(refusal(p), {"swiglu_oai", "not gated"});
  p.epilogue = {.interleaved = true};
  expect_says(refusal(p), {"interleaved", "not gated", "halves"});
  p.epilogue = {.activation = Activation::swiglu_oai, .gated = true, .interleaved = true};
  gate(p);
  EXPECT_EQ(refusal(p), "");
  EXPECT_EQ(formula(p),
            "D[64,32] = swiglu_oai(P, P') with P[0,0',1,1',...] = alpha * A[64,64] * B[64,64]^T, "
            "bf16 -> bf16");
  const auto fault = [](const GemmProblem& problem) {
    const auto refused = product_fault(problem);
    return refused ? refused->reason : std::string();
  };
  p.epilogue.gate = GateNumbers{1, 0, 10};
  EXPECT_EQ(fault(p), "");
  EXPECT_FALSE(normalised(p).epilogue.gate) << "a plan serves any";
  p.epilogue.gate->limit = 0;
  expect_says(fault(p), {"gate_limit is 0", "above 0", "leave it out"});
  p.epilogue.gate = GateNumbers{-1.5F, 0, 10};
  expect_says(fault(p), {"gate_alpha is -1.5", "nearest legal is 1.5"});
  p.epilogue.gate = GateNumbers{1, std::nanf(""), 10};
  expect_says(fault(p), {"gate_beta is nan", "finite"});
  GemmProblem plain = packed_problem(64, 64, 64, DType::bf16, DType::bf16);
  plain.epilogue.gate = GateNumbers{};
  expect_says(fault(plain), {"not gated", "leave them out"});
  p.epilogue.gate.reset();
  std::swap(p.b.row_stride, p.b.column_stride);
  expect_says(refusal(p), {"B is MN-major", "interleaved", "column stride of 1"});
  p.epilogue.interleaved = false;
  EXPECT_EQ(refusal(p), "");
  p = packed_problem(64, 128, 128, DType::e4m3, DType::bf16);
  p.b.dtype = DType::s4;
  p.packed.emplace();
  p.epilogue = {.activation = Activation::swiglu_oai, .gated = true};
  gate(p);
  EXPECT_EQ(refusal(p), "");
  p.epilogue.interleaved = true;
  expect_says(refusal(p), {"B are packed", "interleaved", "halves"});
}

TEST(Rules, Formulas) {
  EXPECT_EQ(formula(*describe(legal())),
            "D[64,160] = alpha * A[64,320] * B[160,320]^T, bf16 -> bf16");
  GemmOperands gated = scaled(Scaling::blockwise);
  gated.b.dtype = DType::e5m2;
  gated.d.columns = kN / 2;
  gated.epilogue = {Activation::silu, true, Bias::none};
  EXPECT_EQ(formula(*describe(gated)),
            "D[64,80] = silu(P) * P' with [P,P'] = alpha * A[64,320] * B[160,320]^T, "
            "e4m3,e5m2 -> bf16, blockwise scales, promoted accumulation");
  GemmProblem p = packed_problem(16, 24, 32, DType::f16, DType::f32, true);
  set_batch(p, 3);
  p.epilogue = {Activation::gelu, false, Bias::rows};
  p.a.row_stride = 1;
  p.a.column_stride = 16;
  EXPECT_EQ(formula(p),
            "3 times D[16,24] = gelu(alpha * A[16,32] * B[24,32]^T + beta * C + bias of rows), "
            "fp16 -> f32, A MN-major");
}

TEST(Rules, HugeStridesDoNotWrap) {
  EXPECT_EQ(reach({{3, 10}, {4, 1}}), 24);
  EXPECT_EQ(reach({{0, 10}, {4, 1}}), 0);
  EXPECT_EQ(reach({{1, std::numeric_limits<std::int64_t>::min()}, {4, 1}}), 4);
  EXPECT_EQ(reach({{1000, std::numeric_limits<std::int64_t>::max()}}), std::int64_t{1} << 58);
  GemmOperands o = legal();
  o.d.data = memory().a;
  o.a.data = memory().d;
  ASSERT_EQ(refusal(o), "");
  // Not an overlap, which only D would have to mend.
  for (const std::int64_t stride : {std::int64_t{1} << 62, INT64_MAX}) {
    o.d.row_stride = stride;
    expect_says(refusal(o), {"D has a row stride of ", "2^56 bytes", "nearest legal is"});
  }
  o = legal();
  o.a.rows = o.d.rows = INT64_MAX;
  expect_says(refusal(o), {"A has 9223372036854775807 rows", "nearest legal number is 2147479551"});
}

TEST(Rules, TheLargestExtentSaysWhyItIsNoPowerOfTwo) {
  GemmProblem p = packed_problem(256, 256, 64, DType::bf16, DType::bf16);
  set_m(p, std::numeric_limits<std::int32_t>::max());
  expect_says(refusal(p), {"M is 2147483647", "tiles reach up to 4096 beyond",
                           "nearest legal value is 2147479551"});
}

TEST(Rules, TypesArePrintedAsTheyAreInHelp) {
  EXPECT_EQ(numeric::word(DType::f16), "fp16");
  EXPECT_EQ(numeric::word(DType::bf16), "bf16");
  // Both are read, and kernels keep their names.
  EXPECT_EQ(numeric::parse_dtype("fp16"), DType::f16);
  EXPECT_EQ(numeric::parse_dtype("f16"), DType::f16);
  EXPECT_EQ(numeric::name(DType::f16), "f16");
}

}  // namespace
}  // namespace warpwright
