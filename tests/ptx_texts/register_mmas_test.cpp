// mma.sync by every instruction of atom/mma.h that isa/ has, the other ways of ldmatrix, and CLC:
// what register kernels have beside what Hopper's have.
#include <gtest/gtest.h>

#include "tests/model/mma_products.h"
#include "tests/must.h"
#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {
namespace {

// "{%r4, %r5}"
std::string list(int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) {
    text += (i == 0 ? "%r" : ", %r") + std::to_string(first + i);
  }
  return text + "}";
}

std::string name(DType type) {
  return "." + std::string(numeric::name(type));
}

// As isa/mma.h writes it.
std::string instruction(const Mma& mma) {
  std::string text = "mma.sync.aligned.m" + std::to_string(mma.m) + "n" + std::to_string(mma.n) +
                     "k" + std::to_string(mma.k) + (mma.a_major == Major::k ? ".row" : ".col") +
                     (mma.b_major == Major::k ? ".col" : ".row");
  if (mma.scale_block > 0) {
    text += mma.kind == MmaKind::mxf8f6f4 ? ".kind::mxf8f6f4"
            : mma.kind == MmaKind::mxf4   ? ".kind::mxf4"
                                          : ".kind::mxf4nvf4";
    text += ".block_scale.scale_vec::" + std::to_string(atom::mma_scales(mma)) + "X";
  }
  text += name(mma.sums) + name(mma.a) + name(mma.b) + name(mma.sums);
  return mma.scale_block > 0 ? text + name(mma.scale) : text;
}

// A lane loads word i of A, B, the sums and the scales, which lie at `in`, multiplies, and stores
// its sums.
std::string product_text(const Mma& mma, const atom::MmaScaleSource& from, const char* target) {
  std::string body = "mov.u32 %r19, %tid.x;\nmul.wide.u32 %x1, %r19, 4;\nadd.s64 %x2, %i, %x1;\n";
  body += "add.s64 %x3, %o, %x1;\n";
  const auto load = [&](int to, int word) {
    body +=
        "ld.global.u32 %r" + std::to_string(to) + ", [%x2+" + std::to_string(128 * word) + "];\n";
  };
  const int a = atom::mma_registers_a(mma);
  const int b = atom::mma_registers_b(mma);
  const int c = atom::mma_registers_c(mma);
  for (int i = 0; i < a; ++i) load(i, i);
  for (int i = 0; i < b; ++i) load(4 + i, kRegisters + i);
  for (int i = 0; i < c; ++i) load(8 + i, 2 * kRegisters + i);
  std::string scales;
  if (mma.scale_block > 0) {
    load(16, 3 * kRegisters);
    load(17, 3 * kRegisters + 1);
    const auto pair = [](int byte, int lanes) {
      return "{" + std::to_string(byte) + ", " + std::to_string(lanes) + "}";
    };
    scales = ", {%r16}, " + pair(from.byte_a, from.lanes_a) + ", {%r17}, " +
             pair(from.byte_b, from.lanes_b);
  }
  body += instruction(mma) + " " + list(8, c) + ", " + list(0, a) + ", " + list(4, b) + ", " +
          list(8, c) + scales + ";\n";
  for (int i = 0; i < c; ++i) {
    body +=
        "st.global.u32 [%x3+" + std::to_string(128 * i) + "], %r" + std::to_string(8 + i) + ";\n";
  }
  std::string text = entry(body);
  return text.replace(text.find("sm_90a"), 6, target);
}

TEST(RegisterMmas, MultiplyAsTheManualSays) {
  for (int i = 0; i < kProductCount; ++i) {
    const Mma& mma = kProducts[i];
    for (int choice = 0; choice < scale_sources(mma); ++choice) {
      const Product product(mma, static_cast<unsigned>(i) + 1, choice);
      std::vector<std::uint32_t> in;
      for (const auto* part :
           {&product.a, &product.b, &product.sums, &product.scales_a, &product.scales_b}) {
        in.insert(in.end(), part->begin(), part->end());
      }
      const std::string text = product_text(mma, product.from, "sm_120a");
      const Ran ran = run(text, 32, 32 * kRegisters, 0, in);
      ASSERT_TRUE(ran.report.clean()) << text << ran.report.text();
      EXPECT_EQ(ran.out, product.expected) << text;
    }
  }
}

// Every element of A and of B is the same number, so that only the sums tell lanes apart.
TEST(RegisterMmas, SaturateWhereTheySay) {
  const std::uint32_t ends[] = {0x7fffffffU, 0x7ff00000U, 0x80000000U, 0x80100000U, 0, 0x7ffc0000U};
  for (const auto& [m, k] : {std::pair(8, 16), std::pair(16, 16), std::pair(16, 32)}) {
    for (const int a : {127, -127}) {
      const Mma mma = warp(m, k, DType::s8, DType::s8, DType::s32);
      std::vector<std::uint32_t> in(5 * kRegisters * 32, 0x7f7f7f7fU);
      const auto element = static_cast<std::uint32_t>(a) & 0xffU;
      for (int i = 0; i < kRegisters * 32; ++i) in[index_of(i)] = element * 0x01010101U;
      for (int i = 0; i < kRegisters * 32; ++i) {
        in[index_of(2 * kRegisters * 32 + i)] = ends[i % 6] + static_cast<std::uint32_t>(i);
      }
      const std::string wraps = product_text(mma, {}, "sm_80");
      const std::string saturates = replaced(wraps, ".col.s32", ".col.satfinite.s32");
      const std::int64_t product = std::int64_t{127} * a * k;
      const auto registers = atom::mma_registers_c(mma);
      const Ran one = run(wraps, 32, 32 * kRegisters, 0, in);
      const Ran other = run(saturates, 32, 32 * kRegisters, 0, in);
      EXPECT_TRUE(one.report.clean() && other.report.clean());
      for (int i = 0; i < 32 * registers; ++i) {
        const std::int64_t sum =
            static_cast<std::int32_t>(in[index_of(2 * kRegisters * 32 + i)]) + product;
        const std::int64_t most = 0x7fffffff;
        EXPECT_EQ(one.out[index_of(i)], static_cast<std::uint32_t>(sum));
        EXPECT_EQ(static_cast<std::int32_t>(other.out[index_of(i)]),
                  std::min(std::max(sum, -most - 1), most));
      }
    }
  }
}

TEST(RegisterMmas, AreOfTheirTargets) {
  const auto fault = [](const Mma& mma, const char* target) {
    return refusal_of(product_text(mma, {}, target));
  };
  const Mma bf16 = warp(16, 16, DType::bf16, DType::bf16, DType::f32);
  EXPECT_EQ(fault(bf16, "sm_75"),
            "sm_75 has no mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: that is of sm_80 or "
            "later");
  EXPECT_EQ(fault(bf16, "sm_87"), "");
  const Mma fp8 = warp(16, 32, DType::e4m3, DType::e4m3, DType::f32);
  expect_contains(fault(fp8, "sm_86"), "that is of sm_89 or later");
  EXPECT_EQ(fault(fp8, "sm_89"), "");
  const Mma mxf4 = scaled(MmaKind::mxf4, 64, DType::e2m1, 32, DType::ue8m0);
  expect_contains(fault(mxf4, "sm_120"), "that is of sm_120a, sm_121a or their families");
  expect_contains(fault(mxf4, "sm_100a"), "that is of sm_120a, sm_121a or their families");
  EXPECT_EQ(fault(mxf4, "sm_121f"), "");
}

// Eight rows of 16 elements of 4 bits, in the first half of 16 bytes each.
TEST(Matrices, ArePaddedToBytes) {
  const std::string text = entry(
      "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nadd.u32 %r3, %r9, %r2;\n"
      "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nand.b32 %r4, %r1, 7;\nshl.b32 %r4, %r4, 4;\n"
      "add.u32 %r4, %r9, %r4;\n"
      "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r5}, [%r4];\n"
      "mul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %o, %x1;\nst.global.u32 [%x2], %r5;");
  std::string blackwell = text;
  blackwell.replace(blackwell.find("sm_90a"), 6, "sm_120f");
  const Ran ran = run(blackwell, 32, 32, 0, {}, 128);
  ASSERT_TRUE(ran.report.clean()) << ran.report.text();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    // The lane's four elements are half of a word of its row.
    const std::uint32_t word = lane / 4 * 4 + lane % 4 / 2;
    const std::uint32_t half = lane % 2 == 0 ? word : 0;  // (words are below 32)
    const std::uint32_t padded = (half & 15U) | (half >> 4 & 15U) << 8;
    EXPECT_EQ(ran.out[lane], padded) << lane;
  }
}

// Every CTA does its own tile and those that CLC gives it; `reads` says how it reads an answer.
std::string takes_tiles(const std::string& reads) {
  std::string text = entry(
      "mov.u32 %r9, sm;\nadd.u32 %r8, %r9, 16;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, 0;\n"
      "mbarrier.init.shared::cta.b64 [%r9], 1;\nfence.mbarrier_init.release.cluster;\n"
      "ROUND:\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 16;\n"
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r8], "
      "[%r9];\n"
      "mul.wide.u32 %x1, %r1, 4;\nadd.s64 %x1, %o, %x1;\nst.global.u32 [%x1], 1;\n"
      "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r9], %r2;\n@!%p1 bra WAIT;\n"
      "xor.b32 %r2, %r2, 1;\n" +
      reads +
      "fence.proxy.async.shared::cta;\n"
      "{\n.reg .b128 h;\n.reg .b128 g;\nmov.b128 h, {%x3, %x4};\nmov.b128 g, h;\n"
      "mov.b128 {%x5, %x6}, g;\nmov.b128 h, {%x5, %x6};\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, h;\n@!%p2 bra DONE;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, h;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r4, %r5, _}, h;\n}\n"
      "bra ROUND;\nDONE:");
  return text.replace(text.find("sm_90a"), 6, "sm_100a");
}

TEST(LaunchControl, GivesEveryTileOnce) {
  const std::vector<std::uint32_t> all(40, 1);
  for (const char* reads : {"ld.shared.v2.b64 {%x3, %x4}, [%r8];\n",
                            "ld.shared.b64 %x3, [%r8];\nld.shared.b64 %x4, [%r8+8];\n"}) {
    for (const model::Mode mode : {model::Mode::eager, model::Mode::latest, model::Mode::random}) {
      const Ran ran = run(takes_tiles(reads), 1, 40, 0, {}, 64, mode, 40);
      EXPECT_TRUE(ran.report.clean()) << ran.report.text();
      EXPECT_EQ(ran.out, all);
    }
  }
}

}  // namespace
}  // namespace warpwright::tests
