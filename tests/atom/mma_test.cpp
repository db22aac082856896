#include "warpwright/atom/mma.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/must.h"
#include "warpwright/atom/ldmatrix.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

Mma mma_of(const MmaRow& row) {
  Mma mma{row.kind, row.m, row.n, row.k};
  for (int i = 0; i < kDTypeCount; ++i) {
    if ((row.operands >> i & 1) != 0) mma.a = mma.b = static_cast<DType>(i);
    if ((row.sums >> i & 1) != 0) mma.sums = static_cast<DType>(i);
  }
  mma.scale_block = row.scale_block;
  mma.scale = row.scale;
  return mma;
}

// A row, and the majors it may have.
std::vector<Mma> register_mmas() {
  std::vector<Mma> all;
  for (const MmaRow& row : kMmaRows) {
    const Mma mma = mma_of(row);
    if (row.kind != MmaKind::quad_pair) {
      all.push_back(mma);
      continue;
    }
    for (const DType sums : {DType::f16, DType::f32}) {
      for (int majors = 0; majors < 4; ++majors) {
        all.push_back(mma);
        all.back().sums = sums;
        all.back().a_major = (majors & 1) != 0 ? Major::mn : Major::k;
        all.back().b_major = (majors & 2) != 0 ? Major::mn : Major::k;
      }
    }
  }
  return all;
}

struct At {
  int row, column;
  friend bool operator==(const At&, const At&) = default;
};

At at(const layout::Layout& tv, int rows, int thread, int value) {
  const int number = static_cast<int>(tv(thread, value));
  return {number % rows, number / rows};
}

// The maps of a warp as the PTX manual writes them: row g, column t of the group.
TEST(MmaTest, WarpFragmentsAreTheManuals) {
  int checked = 0;
  for (const Mma& mma : register_mmas()) {
    if (mma.kind == MmaKind::quad_pair) continue;
    const int each = 32 / register_bits(mma, mma.a);
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4;
      const int t = lane % 4;
      const layout::Layout a = mma_layout_a(mma);
      const layout::Layout b = mma_layout_b(mma);
      const layout::Layout c = mma_layout_c(mma);
      ASSERT_EQ(layout::size(a, 1) * 32, mma.m * mma.k) << to_text(mma);
      ASSERT_EQ(layout::size(b, 1) * 32, mma.n * mma.k) << to_text(mma);
      ASSERT_EQ(layout::size(c, 1) * 32, mma.m * mma.n) << to_text(mma);
      for (int v = 0; v < layout::size(a, 1); ++v) {
        const int r = v / each;
        const int down = mma.m == 16 ? r % 2 : 0;
        const int beside = mma.m == 16 ? r / 2 : r;
        ASSERT_EQ(at(a, mma.m, lane, v),
                  (At{g + 8 * down, each * t + v % each + 4 * each * beside}))
            << to_text(mma) << " A of lane " << lane;
      }
      for (int v = 0; v < layout::size(b, 1); ++v) {
        ASSERT_EQ(at(b, mma.n, lane, v), (At{g, each * t + v % each + 4 * each * (v / each)}))
            << to_text(mma) << " B of lane " << lane;
      }
      for (int v = 0; v < layout::size(c, 1); ++v) {
        ASSERT_EQ(at(c, mma.m, lane, v), (At{g + 8 * (v / 2), 2 * t + v % 2}));
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 32 * 4 * 15);
}

// A quad pair's, and that the four of a warp are lanes 4q and on and 16 + 4q and on.
TEST(MmaTest, QuadPairFragmentsAreTheManuals) {
  for (const Mma& mma : register_mmas()) {
    if (mma.kind != MmaKind::quad_pair) continue;
    const layout::Layout lanes = mma_thr_id(mma);
    for (int t = 0; t < 8; ++t) {
      const int h = t / 4;
      EXPECT_EQ(lanes(t), t % 4 + 16 * h);
      for (int v = 0; v < 4; ++v) {
        EXPECT_EQ(at(mma_layout_a(mma), 8, t, v),
                  mma.a_major == Major::k ? (At{t, v}) : (At{4 * h + v, t % 4}));
        EXPECT_EQ(at(mma_layout_b(mma), 8, t, v),
                  mma.b_major == Major::k ? (At{t, v}) : (At{4 * h + v, t % 4}));
      }
      for (int v = 0; v < 8; ++v) {
        EXPECT_EQ(at(mma_layout_c(mma), 8, t, v),
                  mma.sums == DType::f16
                      ? (At{t, v})
                      : (At{(t & 1) + (v & 2) + 4 * h, (t & 2) + (v & 1) + (v & 4)}));
      }
    }
  }
}

TEST(MmaTest, EveryElementHasOneHolder) {
  for (const Mma& mma : register_mmas()) {
    const struct {
      layout::Layout tv;
      int elements;
    } operands[] = {{mma_layout_a(mma), mma.m * mma.k},
                    {mma_layout_b(mma), mma.n * mma.k},
                    {mma_layout_c(mma), mma.m * mma.n}};
    for (const auto& [tv, elements] : operands) {
      std::vector<int> seen(static_cast<std::size_t>(elements), 0);
      for (std::int64_t i = 0; i < layout::size(tv); ++i)
        ++seen.at(static_cast<std::size_t>(tv(i)));
      for (const int count : seen) ASSERT_EQ(count, 1) << to_text(mma);
    }
  }
}

// wgmma's fragments are four of a warp's stacked, and ldmatrix fills one of a warp.
TEST(MmaTest, OtherFragmentsAreTheSame) {
  const struct {
    DType type;
    int k;
  } rows[] = {{DType::bf16, 16}, {DType::e4m3, 32}, {DType::tf32, 8}};
  for (const auto& [type, k] : rows) {
    const Mma warp{MmaKind::warp, 16, 8, k, type, type};
    ASSERT_EQ(mma_fault(warp), nullptr);
    const layout::Layout stacked = wgmma_layout_a_register_tv(numeric::bits(type));
    for (int thread = 0; thread < kWarpgroupThreads; ++thread) {
      for (int v = 0; v < layout::size(stacked, 1); ++v) {
        const At one = at(mma_layout_a(warp), 16, thread % 32, v);
        EXPECT_EQ(at(stacked, 64, thread, v), (At{one.row + 16 * (thread / 32), one.column}));
      }
    }
  }
  const Mma warp{MmaKind::warp, 16, 8, 16, DType::f16, DType::f16};
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < 8; ++v) {
      EXPECT_EQ(at(mma_layout_a(warp), 16, lane, v), (At{matrix_row(lane, v % 2) + 8 * (v / 2 % 2),
                                                         matrix_col(lane, v % 2) + 8 * (v / 4)}));
    }
    for (int v = 0; v < 4; ++v) {
      EXPECT_EQ(at(mma_layout_c(warp), 16, lane, v), (At{c_row(lane, v), c_col(lane, v)}));
    }
  }
}

TEST(MmaTest, Targets) {
  const Mma volta{MmaKind::quad_pair, 8, 8, 4};
  EXPECT_EQ(mma_support(volta, 70), MmaSupport::native);
  EXPECT_EQ(mma_support(volta, 75), MmaSupport::native);
  EXPECT_EQ(mma_support(volta, 80), MmaSupport::emulated);
  const Mma ampere{MmaKind::warp, 16, 8, 16, DType::bf16, DType::bf16};
  EXPECT_EQ(mma_support(ampere, 75), MmaSupport::absent);
  EXPECT_EQ(mma_support(ampere, 80), MmaSupport::native);
  EXPECT_EQ(mma_support(ampere, 120), MmaSupport::native);
  const Mma ada{MmaKind::warp, 16, 8, 32, DType::e4m3, DType::e5m2};
  EXPECT_EQ(mma_support(ada, 86), MmaSupport::absent);
  EXPECT_EQ(mma_support(ada, 89), MmaSupport::native);
  EXPECT_EQ(mma_support(ada, 90), MmaSupport::emulated);
  EXPECT_EQ(mma_support(ada, 120), MmaSupport::native);
  const Mma fp4{MmaKind::f8f6f4, 16, 8, 32, DType::e2m1, DType::e4m3};
  EXPECT_EQ(mma_support(fp4, 100), MmaSupport::absent);
  EXPECT_EQ(mma_support(fp4, 121), MmaSupport::native);
  const Mma scaled{MmaKind::mxf4nvf4, 16,       8,        64, DType::e2m1, DType::e2m1,
                   DType::f32,        Major::k, Major::k, 16, DType::ue4m3};
  EXPECT_EQ(mma_support(scaled, 120), MmaSupport::native);
  EXPECT_EQ(mma_support(scaled, 90), MmaSupport::absent);
  // Lane 6 has scales of row 1 of A in pair 1, and of column 1 of B as lane 2 of four.
  expect_contains(register_table(make_tiled_mma(scaled)), "\n  6      1 of 1    1 of 2\n");
  const Mma hopper{MmaKind::wgmma, 64, 128, 16};
  EXPECT_EQ(mma_support(hopper, 90), MmaSupport::native);
  EXPECT_EQ(mma_support(hopper, 100), MmaSupport::absent);
  const Mma blackwell{MmaKind::tcgen05, 128, 128, 16};
  EXPECT_EQ(mma_support(blackwell, 100), MmaSupport::native);
  EXPECT_EQ(mma_support(blackwell, 120), MmaSupport::absent);
  EXPECT_EQ(mma_support(ampere, 60), MmaSupport::absent);
}

TEST(MmaTest, RefusalsSayWhatWouldBeLegal) {
  const auto has = [](const std::string& text, const char* part) { expect_contains(text, part); };
  const Mma ampere{MmaKind::warp, 16, 8, 16};
  EXPECT_EQ(mma_refusal(ampere), "");
  EXPECT_EQ(mma_refusal(ampere, 80), "");
  has(mma_refusal(ampere, 75), "it has m8n8k4 of f16 into f32/f16, m16n8k8 of f16");
  has(mma_refusal(ampere, 75), "this one is on sm_80, 86,");
  has(mma_refusal(ampere, 72), "targets are sm_70, 75,");
  Mma wrong = ampere;
  wrong.a = DType::bf16;
  has(mma_refusal(wrong), "there is m16n8k16 of f16 into f32/f16, m16n8k16 of bf16 into f32");
  wrong = ampere;
  wrong.b_major = Major::mn;
  has(mma_refusal(wrong), "only K-major");
  wrong = {MmaKind::mxf4, 16, 8, 64, DType::e2m1, DType::e2m1};
  has(mma_refusal(wrong), "scales are each of 32");
  has(mma_refusal({MmaKind::wgmma, 64, 12, 16}), "multiple of 8");
  has(mma_refusal({MmaKind::tcgen05, 96, 64, 16}), "64 or 128 rows");
  EXPECT_THROW(parse_mma("mma", "m16n8k3"), layout::Error);
  EXPECT_THROW(parse_mma("mma", "16x8x16"), layout::Error);
  EXPECT_THROW(parse_mma("mma", "m16n8k16k"), layout::Error);
  EXPECT_THROW(parse_mma("gmma", "m64n64k16"), layout::Error);
}

TEST(MmaTest, ParsesWhatItPrints) {
  for (const MmaRow& row : kMmaRows) {
    const std::string shape =
        "m" + std::to_string(row.m) + "n" + std::to_string(row.n) + "k" + std::to_string(row.k);
    const Mma parsed = parse_mma(name(row.kind), shape);
    EXPECT_EQ(mma_fault(parsed), nullptr) << shape;
    EXPECT_EQ(parsed.kind, row.kind);
    expect_contains(to_text(parsed), shape);
  }
}

}  // namespace
}  // namespace warpwright::atom
