// What is wrong with a kernel shows in its text, at the line of the source.
#include <gtest/gtest.h>

#include "tests/must.h"
#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {
namespace {

using model::Mode;

// Thread 0 writes a word of shared memory, a barrier, all read it.
std::string handed_over(const std::string& barrier) {
  return entry(
      ".loc 1 7 3\n"
      "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p0, %r1, 0;\n"
      "@%p0 bra READ;\nst.shared.u32 [%r9], 42;\nREAD:\n" +
      barrier +
      ".loc 1 20 1, function_name $L__info_string0, inlined_at 2 9 5\n"
      "ld.shared.u32 %r2, [%r9];\nmul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %o, %x1;\n"
      "st.global.u32 [%x2], %r2;");
}

TEST(Findings, NameTheLineOfTheSource) {
  const std::string files = ".file 1 \"/a/b/kernel.cu\"\n.file 2 \"/a/b/tile.h\"\n";
  EXPECT_TRUE(run(handed_over("bar.sync 0;\n") + files, 64, 64, 0, {}, 64).report.clean());
  const Ran raced = run(handed_over("") + files, 64, 64, 0, {}, 64);
  const std::string said = finding(raced.report, "O1");
  expect_contains(said, "b/kernel.cu:20 in b/tile.h:9, k.ptx:");
  expect_contains(said, "b/kernel.cu:7, k.ptx:");
}

// Lane 0 makes a barrier of `count` arrivals, all arrive, all wait in a loop.
std::string waits(int count, const std::string& loop) {
  return entry(
      "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p0, %r1, 0;\n"
      "@%p0 bra MADE;\nmbarrier.init.shared::cta.b64 [%r9], " +
      std::to_string(count) +
      ";\nMADE:\nbar.sync 0;\nmbarrier.arrive.shared::cta.b64 %x1, [%r9];\n" + loop +
      "mul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %o, %x1;\nst.global.u32 [%x2], 7;");
}
const std::string kLoops[] = {
    "WAIT:\n{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%r9], 0;\n"
    "selp.u32 %r2, 1, 0, p;\n}\nsetp.eq.s32 %p1, %r2, 0;\n@%p1 bra WAIT;\n",
    "WAIT:\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r9], 0;\n@%p1 bra DONE;\n"
    "bra WAIT;\nDONE:\n"};

TEST(Findings, ALoopOfQuestionsIsAWait) {
  for (const std::string& loop : kLoops) {
    for (const Mode mode : {Mode::eager, Mode::latest, Mode::random, Mode::starve}) {
      const Ran ran = run(waits(64, loop), 64, 64, 0, {}, 64, mode);
      EXPECT_TRUE(ran.report.clean()) << ran.report.text();
      EXPECT_EQ(ran.out, std::vector<std::uint32_t>(64, 7));
      const Ran hung = run(waits(65, loop), 64, 64, 0, {}, 64, mode);
      const std::string said = finding(hung.report, "D1");
      EXPECT_NE(said.find("k.ptx:"), std::string::npos) << hung.report.text();
    }
  }
}

// CTA 1 waits for a word that CTA 0 writes, then reads what was written before.
std::string flags(const std::string& set) {
  return entry(
      "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra WAIT;\n"
      "st.global.u32 [%o+4], 5;\n" +
      set +
      "bra END;\nWAIT:\nld.acquire.gpu.global.u32 %r2, [%o];\nand.b32 %r2, %r2, 3;\n"
      "setp.ne.s32 %p1, %r2, 3;\n@%p1 bra WAIT;\nld.global.u32 %r3, [%o+4];\n"
      "st.global.u32 [%o+8], %r3;\nEND:\n");
}

TEST(Findings, ALoopOfAcquiringLoadsIsAWait) {
  for (const Mode mode : {Mode::eager, Mode::latest, Mode::random, Mode::starve}) {
    const Ran ran = run(flags("st.release.gpu.global.u32 [%o], 7;\n"), 1, 3, 0, {}, 0, mode, 2);
    EXPECT_TRUE(ran.report.clean()) << ran.report.text();
    EXPECT_EQ(ran.out[2], 5U);
    const Ran hung = run(flags(""), 1, 3, 0, {}, 0, mode, 2);
    EXPECT_NE(finding(hung.report, "D1").find("another than 0x0"), std::string::npos)
        << hung.report.text();
  }
}

TEST(Findings, WildAddressesEndTheRun) {
  EXPECT_NE(finding(run(entry("st.global.u32 [%o+4096], 1;"), 1, 1).report, "M3"), "");
  expect_contains(finding(run(entry("ld.param.u32 %r1, [out+400];"), 1, 1).report, "D3"),
                  "parameters");
  expect_contains(finding(run(entry("L:\nbra L;"), 1, 1).report, "D3"), "has no end");
  EXPECT_NE(finding(run(entry("ld.shared.u32 %r1, [sm];"), 1, 1, 0, {}, 16).report, "M1"), "");
}

// A product of 64 x 8 with zeros: what stands between the instructions of wgmma decides.
std::string multiplies(const std::string& fence, const std::string& between,
                       const std::string& wait) {
  std::string stores =
      "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 6;\n"
      "add.u32 %r3, %r9, %r2;\n";
  for (int i = 0; i < 4; ++i) {
    stores += "st.shared.v4.b32 [%r3+" + std::to_string(16 * i) + "], {0, 0, 0, 0};\n";
  }
  return entry(
      stores +
      "fence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %r4, %r9, 4;\n"
      "and.b32 %r4, %r4, 0x3fff;\nor.b32 %r4, %r4, 0x80000;\nmov.u32 %r5, 16;\n"
      "mov.b64 %x3, {%r4, %r5};\n" +
      fence +
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %x3, %x3, "
      "0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n" +
      between + wait +
      "mul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %o, %x1;\nst.global.f32 [%x2], %f1;");
}

TEST(Findings, AccumulatorsBelongToTheTensorCore) {
  const std::string fence = "wgmma.fence.sync.aligned;\n";
  const std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
  const Ran good = run(multiplies(fence, "", wait), 128, 128, 0, {}, 8192);
  EXPECT_TRUE(good.report.clean()) << good.report.text();
  EXPECT_EQ(good.out, std::vector<std::uint32_t>(128, 0));
  const auto found = [](const std::string& text, const char* code) {
    return finding(run(text, 128, 128, 0, {}, 8192).report, code);
  };
  EXPECT_NE(found(multiplies("", "", wait), "W1"), "");
  EXPECT_NE(found(multiplies(fence, "mov.f32 %f9, %f2;\n", wait), "W2"), "");
  EXPECT_NE(found(multiplies(fence, "", "wgmma.wait_group.sync.aligned 1;\n"), "W2"), "");
}

}  // namespace
}  // namespace warpwright::tests
