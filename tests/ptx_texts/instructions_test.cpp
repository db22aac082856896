// What single instructions compute, from registers, numbers and memory.
#include <gtest/gtest.h>

#include <bit>

#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {
namespace {

std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

// One thread; `body` leaves its answer in %r0, or in %x0.
std::uint32_t answer(const std::string& body) {
  const Ran ran = run(entry(body + "\nst.global.u32 [%o], %r0;"), 1, 1);
  EXPECT_TRUE(ran.report.clean()) << body << ran.report.text();
  return ran.out[0];
}
std::uint64_t wide_answer(const std::string& body) {
  const Ran ran = run(entry(body + "\nst.global.u64 [%o], %x0;"), 1, 2);
  EXPECT_TRUE(ran.report.clean()) << body << ran.report.text();
  return ran.out[0] | std::uint64_t{ran.out[1]} << 32;
}
std::uint32_t float_answer(const std::string& body) {
  return answer(body + "\nmov.b32 %r0, %f0;");
}

TEST(Integers, WrapAndExtend) {
  EXPECT_EQ(answer("add.s32 %r0, 2147483647, 1;"), 0x80000000U);
  EXPECT_EQ(answer("sub.u32 %r0, 3, 5;"), 0xfffffffeU);
  EXPECT_EQ(answer("mul.lo.s32 %r0, -3, 5;"), static_cast<std::uint32_t>(-15));
  EXPECT_EQ(answer("mul.hi.u32 %r0, 0x80000000, 6;"), 3U);
  EXPECT_EQ(answer("mul.hi.s32 %r0, 0x80000000, 6;"), static_cast<std::uint32_t>(-3));
  EXPECT_EQ(wide_answer("mul.wide.s32 %x0, -2, 3;"), static_cast<std::uint64_t>(-6));
  EXPECT_EQ(wide_answer("mul.wide.u32 %x0, -2, 3;"), 0x2fffffffaU);
  EXPECT_EQ(answer("mad.lo.s32 %r0, 7, -2, 100;"), 86U);
  EXPECT_EQ(wide_answer("mov.u64 %x1, 10; mad.wide.s32 %x0, -3, 2, %x1;"), 4U);
  EXPECT_EQ(answer("div.s32 %r0, -7, 2;"), static_cast<std::uint32_t>(-3));
  EXPECT_EQ(answer("rem.u32 %r0, 17, 5;"), 2U);
  EXPECT_EQ(answer("min.s32 %r0, -1, 1;"), 0xffffffffU);
  EXPECT_EQ(answer("max.u32 %r0, -1, 1;"), 0xffffffffU);
  EXPECT_EQ(answer("abs.s32 %r0, -9;"), 9U);
}

TEST(Integers, ShiftAndPick) {
  EXPECT_EQ(answer("shl.b32 %r0, 1, 32;"), 0U);
  EXPECT_EQ(answer("shr.s32 %r0, 0x80000000, 40;"), 0xffffffffU);
  EXPECT_EQ(answer("shr.u32 %r0, 0x80000000, 31;"), 1U);
  EXPECT_EQ(answer("shf.l.wrap.b32 %r0, 0x80000000, 1, 33;"), 3U);
  EXPECT_EQ(answer("shf.r.clamp.b32 %r0, 8, 1, 40;"), 1U);
  EXPECT_EQ(answer("bfe.u32 %r0, 0xabcd, 4, 8;"), 0xbcU);
  EXPECT_EQ(answer("bfe.s32 %r0, 0x80, 4, 4;"), 0xfffffff8U);
  EXPECT_EQ(answer("bfi.b32 %r0, 0xf, 0x1000, 4, 3;"), 0x1070U);
  EXPECT_EQ(answer("brev.b32 %r0, 6;"), 0x60000000U);
  EXPECT_EQ(answer("bfind.u32 %r0, 0x00f0;"), 7U);
  EXPECT_EQ(answer("bfind.shiftamt.u32 %r0, 0x00f0;"), 24U);
  EXPECT_EQ(answer("bfind.s32 %r0, -1;"), 0xffffffffU);
  EXPECT_EQ(answer("clz.b32 %r0, 1;"), 31U);
  EXPECT_EQ(answer("popc.b32 %r0, 0x70f;"), 7U);
  EXPECT_EQ(answer("prmt.b32 %r0, 0x33221100, 0x77665544, 0x7531;"), 0x77553311U);
  EXPECT_EQ(answer("prmt.b32 %r0, 0x00008000, 0, 0x9999;"), 0xffffffffU);
  EXPECT_EQ(answer("lop3.b32 %r0, 12, 10, 1, 0xea;"), 9U);  // (a & b) | c
}

TEST(Predicates, CompareAndJoin) {
  const auto says = [](const std::string& setp) {
    return answer("setp.eq.s32 %p1, 1, 1; setp.eq.s32 %p2, 1, 2; " + setp +
                  " selp.u32 %r0, 1, 0, %p0;");
  };
  EXPECT_EQ(says("setp.lt.s32 %p0, -1, 0;"), 1U);
  EXPECT_EQ(says("setp.lt.u32 %p0, -1, 0;"), 0U);
  EXPECT_EQ(says("setp.ge.and.s32 %p0, 5, 5, %p1;"), 1U);
  EXPECT_EQ(says("setp.ge.and.s32 %p0, 5, 5, !%p1;"), 0U);
  EXPECT_EQ(says("setp.ne.or.s32 %p0, 5, 5, %p2;"), 0U);
  EXPECT_EQ(says("setp.eq.s32 %p3|%p0, 1, 1;"), 0U);
  EXPECT_EQ(says("setp.ltu.f32 %p0, 0f7fc00000, 0f00000000;"), 1U);
  EXPECT_EQ(says("setp.neu.f32 %p0, 0f7fc00000, 0f7fc00000;"), 1U);
  EXPECT_EQ(says("setp.ne.f32 %p0, 0f7fc00000, 0f00000000;"), 0U);
  EXPECT_EQ(says("and.pred %p0, %p1, %p2;"), 0U);
  EXPECT_EQ(says("xor.pred %p0, %p1, %p2;"), 1U);
  EXPECT_EQ(says("mov.pred %p0, -1;"), 1U);
}

TEST(Floats, AreRoundedOnce) {
  EXPECT_EQ(float_answer("add.f32 %f0, 0f3f800000, 1.5;"), bits(2.5F));
  EXPECT_EQ(float_answer("mov.f32 %f1, 0f3f800800; fma.rn.f32 %f0, %f1, %f1, 0fbf800000;"),
            bits(0x1p-11F + 0x1p-24F));
  EXPECT_EQ(float_answer("mul.ftz.f32 %f0, 0f00000001, 0f40000000;"), 0U);
  EXPECT_EQ(float_answer("mul.f32 %f0, 0f00000001, 0f40000000;"), 2U);
  EXPECT_EQ(float_answer("max.f32 %f0, 0f7fc00000, 0fc0000000;"), bits(-2.0F));
  EXPECT_EQ(float_answer("copysign.f32 %f0, 0f80000000, 0f40000000;"), bits(-2.0F));
  EXPECT_EQ(float_answer("div.rn.f32 %f0, 0f3f800000, 0f40400000;"), bits(1.0F / 3.0F));
  EXPECT_EQ(float_answer("ex2.approx.ftz.f32 %f0, 0f40400000;"), bits(8.0F));
  EXPECT_EQ(float_answer("add.sat.f32 %f0, 0f3f800000, 0f3f800000;"), bits(1.0F));
  EXPECT_EQ(answer("mov.u32 %r1, 0x40003f80; mov.u32 %r2, 0x40404040; "
                   "mul.rn.bf16x2 %r0, %r1, %r2;"),
            0x40c04040U);
  EXPECT_EQ(answer("mov.u32 %r1, 0x3c004000; mov.u32 %r2, 0x40004000; mov.u32 %r3, 0x3c003c00; "
                   "fma.rn.f16x2 %r0, %r1, %r2, %r3;"),
            0x42004500U);
}

TEST(Conversions, RoundSaturateAndPack) {
  EXPECT_EQ(answer("mov.u16 %h0, 0xff80; cvt.s32.s16 %r0, %h0;"), 0xffffff80U);
  EXPECT_EQ(answer("mov.u32 %r1, 0x1ff; cvt.u32.u8 %r0, %r1;"), 0xffU);
  EXPECT_EQ(answer("mov.u32 %r1, 0x1ff; cvt.sat.u8.u32 %r0, %r1;"), 0xffU);
  EXPECT_EQ(answer("mov.u32 %r1, -5; cvt.sat.u8.s32 %r0, %r1;"), 0U);
  EXPECT_EQ(wide_answer("mov.u32 %r1, -5; cvt.s64.s32 %x0, %r1;"), static_cast<std::uint64_t>(-5));
  EXPECT_EQ(wide_answer("mov.u32 %r1, -5; cvt.u64.u32 %x0, %r1;"), 0xfffffffbU);
  EXPECT_EQ(answer("mov.f32 %f1, 0f40300000; cvt.rni.s32.f32 %r0, %f1;"), 3U);
  EXPECT_EQ(answer("mov.f32 %f1, 0fc0300000; cvt.rzi.s32.f32 %r0, %f1;"),
            static_cast<std::uint32_t>(-2));
  EXPECT_EQ(answer("mov.f32 %f1, 0fc0300000; cvt.rzi.u32.f32 %r0, %f1;"), 0U);
  EXPECT_EQ(answer("mov.f32 %f1, 0f7fc00000; cvt.rzi.s32.f32 %r0, %f1;"), 0U);
  EXPECT_EQ(float_answer("mov.u32 %r1, -3; cvt.rn.f32.s32 %f0, %r1;"), bits(-3.0F));
  // The first operand is the upper half.
  EXPECT_EQ(answer("mov.f32 %f1, 1.0; mov.f32 %f2, 2.0; cvt.rn.bf16x2.f32 %r0, %f1, %f2;"),
            0x3f804000U);
  EXPECT_EQ(answer("mov.f32 %f1, 500.0; mov.f32 %f2, -1.0; "
                   "cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2; cvt.u32.u16 %r0, %h0;"),
            0x7eb8U);
  EXPECT_EQ(answer("mov.u16 %h0, 0x38c0; cvt.rn.f16x2.e4m3x2 %r0, %h0;"), 0x3c00c000U);
  EXPECT_EQ(float_answer("mov.u16 %h0, 0x3c00; cvt.f32.f16 %f0, %h0;"), bits(1.0F));
  EXPECT_EQ(answer("mov.b32 %r1, 0x12345678; mov.b32 {%h0, %h1}, %r1; mov.b32 %r0, {%h1, %h0};"),
            0x56781234U);
}

TEST(Memory, MovesVectorsOfEverySpace) {
  const Ran ran = run(entry("mov.u32 %r9, sm;\n"
                            "ld.global.v2.u32 {%r1, %r2}, [%i+8];\n"
                            "st.shared.v2.b32 [%r9+16], {%r2, %r1};\n"
                            "ld.shared.u8 %r3, [%r9+17];\n"
                            "cvt.u64.u32 %x1, %r9;\ncvta.shared.u64 %x2, %x1;\n"
                            "ld.u32 %r4, [%x2+20];\n"
                            "st.global.v4.b32 [%o], {%r1, %r2, %r3, %r4};\n"
                            "ld.global.nc.L1::no_allocate.s16 %r5, [%i+2];\n"
                            "st.global.u32 [%o+16], %r5;\n"),
                      1, 5, 0, {0xfffe0001U, 2, 3, 0x0500}, 64);
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  EXPECT_EQ(ran.out, (std::vector<std::uint32_t>{3, 0x500, 5, 3, 0xfffffffeU}));
}

TEST(Memory, HasVariablesOfTheText) {
  const std::string text = kHead +
                           ".const .align 4 .b32 table[3] = {5, 6, 7};\n"
                           ".global .align 4 .u32 counter = 40;\n" +
                           entry(
                               ".local .align 8 .b8 depot[16];\n"
                               "mov.u64 %x1, depot;\ncvta.local.u64 %x2, %x1;\n"
                               "ld.const.u32 %r1, [table+4];\nst.local.u32 [%x1+8], %r1;\n"
                               "ld.u32 %r2, [%x2+8];\nld.global.u32 %r3, [counter];\n"
                               "add.u32 %r3, %r3, 1;\nst.global.u32 [counter], %r3;\n"
                               "st.global.v2.u32 [%o], {%r2, %r3};")
                               .substr(kHead.size());
  for (int i = 0; i < 2; ++i) {  // the counter begins anew
    const Ran ran = run(text, 1, 2);
    EXPECT_TRUE(ran.report.clean()) << ran.report.text();
    EXPECT_EQ(ran.out, (std::vector<std::uint32_t>{6, 41}));
  }
}

TEST(Control, BranchesGuardsAndScopes) {
  const Ran ran =
      run(entry("mov.u32 %r0, 0;\nmov.u32 %r1, 0;\n"
                "LOOP:\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r1, %r1, 1;\n"
                "setp.lt.u32 %p0, %r1, %n;\n@%p0 bra LOOP;\n"
                "{\n.reg .pred p;\nsetp.gt.u32 p, %r0, 100;\n@p add.u32 %r0, %r0, 1000;\n}\n"
                "{\n.reg .b32 p;\nmov.u32 p, 5;\n@!%p0 add.u32 %r0, %r0, p;\n}\n"
                "st.global.u32 [%o], %r0;"),
          1, 1, 10);
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  EXPECT_EQ(ran.out[0], 50U);
}

TEST(Warps, ShuffleVoteAndElect) {
  const std::string body =
      "mov.u32 %r1, %tid.x;\nshl.b32 %r9, %r1, 4;\ncvt.u64.u32 %x1, %r9;\nadd.s64 %x2, %o, %x1;\n"
      "shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1;\nselp.u32 %r3, 1, 0, %p1;\n"
      "shfl.sync.bfly.b32 %r4, %r1, 3, 0x1c1f, -1;\n"
      "setp.gt.u32 %p2, %r1, 29;\nvote.sync.ballot.b32 %r5, %p2, -1;\n"
      "elect.sync _|%p3, -1;\n@%p3 add.u32 %r5, %r5, 1;\n"
      "st.global.v4.u32 [%x2], {%r2, %r3, %r4, %r5};";
  const Ran ran = run(entry(body), 32, 128);
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(ran.out[4 * lane], lane == 31 ? 31 : lane + 1);
    EXPECT_EQ(ran.out[4 * lane + 1], lane == 31 ? 0U : 1U);
    EXPECT_EQ(ran.out[4 * lane + 2], lane ^ 3U);
    EXPECT_EQ(ran.out[4 * lane + 3], 0xc0000000U + (lane == 0 ? 1U : 0U));
  }
}

}  // namespace
}  // namespace warpwright::tests
