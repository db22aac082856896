// Texts of Blackwell: tensor memory, and what is wrong with whoever touches it.
#include <gtest/gtest.h>

#include "tests/must.h"
#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {
namespace {

const std::string kStore = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r4], {%r1, %r2};\n";
const std::string kStored = "tcgen05.wait::st.sync.aligned;\n";
const std::string kLoad = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r4];\n";
const std::string kLoaded = "tcgen05.wait::ld.sync.aligned;\n";
const std::string kBefore = "tcgen05.fence::before_thread_sync;\n";
const std::string kAfter = "tcgen05.fence::after_thread_sync;\n";
const std::string kFree = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;\n";
const std::string kRelinquish = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n";

// Every thread's number goes to tensor memory and back, and its warp's.
std::string round_trip() {
  return replaced(entry("mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 5;\n"
                        "setp.ne.u32 %p0, %r2, 0;\n@%p0 bra MADE;\n"
                        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 32;\n" +
                        kRelinquish +
                        "MADE:\nbar.sync 0;\nld.shared.u32 %r3, [%r9];\n"
                        "shl.b32 %r4, %r2, 21;\nadd.u32 %r4, %r3, %r4;\n" +
                        kStore + kStored + kLoad + kLoaded +
                        "mul.wide.u32 %x1, %r1, 8;\nadd.s64 %x2, %o, %x1;\n"
                        "st.global.v2.u32 [%x2], {%r10, %r11};\n" +
                        kBefore + "bar.sync 0;\n" + kAfter + "@%p0 bra END;\n" + kFree + "END:\n"),
                  "sm_90a", "sm_100a");
}

std::string found(const std::string& text, const char* code) {
  const Ran ran = run(text, 128, 256, 0, {}, 64, model::Mode::latest);
  const std::string said = finding(ran.report, code);
  return said.empty() ? "not " + std::string(code) + ": " + ran.report.text() : "";
}

TEST(TensorMemory, TakesAndGivesRegisters) {
  const Ran ran = run(round_trip(), 128, 256, 0, {}, 64);
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  for (std::uint32_t thread = 0; thread < 128; ++thread) {
    ASSERT_EQ(ran.out[2 * thread], thread);
    ASSERT_EQ(ran.out[2 * thread + 1], thread / 32);
  }
}

TEST(TensorMemory, FindsWhatIsMissing) {
  const std::string good = round_trip();
  EXPECT_EQ(found(replaced(good, kLoaded, ""), "W2"), "");
  EXPECT_EQ(found(replaced(good, kStored, ""), "U5"), "");
  EXPECT_EQ(found(replaced(good, kFree, ""), "U1"), "");
  EXPECT_EQ(found(replaced(good, kFree, replaced(kFree, "32;", "64;")), "U1"), "");
  EXPECT_EQ(found(replaced(good, "shl.b32 %r4, %r2, 21", "shl.b32 %r4, %r2, 20"), "U2"), "");
  EXPECT_EQ(found(replaced(good, kRelinquish, replaced(kRelinquish, "::1", "::2")), "U4"), "");
}

// Registers of 128 bits, and of 8 with codes of 4 bits.
TEST(BlackwellRegisters, AreWideAndNarrow) {
  const std::string text = entry(
      "mov.u32 %r9, sm;\n.reg .b128 %q<2>;\n"
      "ld.global.b128 %q0, [%i];\nst.shared.b128 [%r9+16], %q0;\n"
      "ld.shared.b128 %q1, [%r9+16];\nmov.b128 {%x1, %x2}, %q1;\n"
      "st.global.v2.b64 [%o], {%x2, %x1};\n"
      "{\n.reg .b8 b0, b1, b2, b3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 b0, 0f40C00000, 0f3F000000;\n"  // 6, 0.5
      "cvt.rn.satfinite.e2m1x2.f32 b1, 0f42C80000, 0fBF800000;\n"  // 100, -1
      "mov.b32 %r1, {b0, b1, b0, b0};\nmov.b32 {b2, b3, b1, b0}, %r1;\n"
      "mov.b32 %r2, {b3, b3, b3, b2};\n}\n"
      "st.global.v2.u32 [%o+16], {%r1, %r2};\n");
  const Ran ran = run(replaced(text, "sm_90a", "sm_100a"), 1, 6, 0, {1, 2, 3, 4}, 64);
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  EXPECT_EQ(ran.out, (std::vector<std::uint32_t>{3, 4, 1, 2, 0x71717a71U, 0x717a7a7aU}));
}

TEST(TensorMemory, RefusesWhatIsNotInTheSubset) {
  const auto in_place_of_load = [](const std::string& line) {
    return refusal_of(replaced(round_trip(), kLoad, line));
  };
  EXPECT_EQ(refusal_of(replaced(round_trip(), "sm_100a", "sm_90a")).substr(0, 17),
            "sm_90a has no tcg");
  EXPECT_EQ(in_place_of_load("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r10, %r11}, [%r4];\n"),
            "tcgen05.ld.sync.aligned.32x32b.x4.b32 takes a list of 4 registers");
  EXPECT_EQ(in_place_of_load("tcgen05.mma.cta_group::1.kind::f16 [%r4], %x1, %x2, %r1, "
                             "{%r1, %r1}, %p0;\n"),
            "tcgen05.mma takes 4 masks of lanes");
  EXPECT_EQ(in_place_of_load("tcgen05.mma.cta_group::1.kind::f16 [%r4], %x1, %x2, %r1, "
                             "{%r1, %r1, %r1, %r1}, %p0;\n"),
            "");
  expect_contains(
      in_place_of_load("tcgen05.mma.sp.cta_group::1.kind::f16 [%r4], %x1, %x2, [%r1], %r1, "
                       "%p0;\n"),
      "nearest");
  EXPECT_EQ(in_place_of_load("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r10, %r11}, [%r4], 512;\n"),
            "the second half of tcgen05.ld.sync.aligned.16x32bx2.x2.b32 lies 0 to 511 columns "
            "further");
}

}  // namespace
}  // namespace warpwright::tests
