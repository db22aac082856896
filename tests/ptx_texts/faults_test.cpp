// Texts that are no PTX, or none of the subset: a sentence with the line.
#include <gtest/gtest.h>

#include "tests/must.h"
#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {
namespace {

// "LINE: sentence" of what keeps a text from being a kernel; empty where nothing does.
std::string fault(const std::string& text, const std::string& name = "k") {
  try {
    ptx::Kernel(text, "k.ptx", name);
  } catch (const ptx::Fault& f) {
    return std::to_string(f.line) + ": " + f.what();
  }
  return {};
}
std::string in_body(const std::string& body) {
  return fault(entry(body));
}
std::string first_line(const std::string& sentence) {
  return std::to_string(kFirstLine) + ": " + sentence;
}

TEST(Faults, OfWhatIsNoText) {
  EXPECT_EQ(fault(""), "1: the text begins with the end of the text, and PTX begins with .version");
  EXPECT_EQ(fault("// a\n\nint main() {}"),
            "3: the text begins with \"int main() {}\", and PTX begins with .version");
  EXPECT_EQ(fault(kHead), "4: the text has no .entry");
  EXPECT_EQ(fault("/* never"), "1: the comment that begins here has no end");
}

TEST(Faults, OfVersionsAndTargets) {
  EXPECT_EQ(fault(".version 6.2\n"),
            "1: .version 6.2 is older than what is known: the nearest is 6.3");
  EXPECT_EQ(fault(".version 10.0\n"),
            "1: .version 10.0 is newer than what is known: the nearest is 9.0");
  EXPECT_EQ(fault(".version 9.0\n.target sm_130a\n"),
            "2: .target sm_130a is none of those that are known: the nearest is sm_100a");
  EXPECT_EQ(fault(".version 8.7\n.target sm_120f\n"),
            "2: .version 8.7 does not know sm_120f: the first that does is 8.8");
  EXPECT_EQ(fault(".version 9.0\n.target sm_90a\n.address_size 32\n"),
            "3: .address_size is not 64");
}

// What keeps a text of a target from having an instruction.
std::string fault_of(const std::string& target, const std::string& body) {
  std::string text = entry(body);
  text.replace(text.find("sm_90a"), 6, target);
  return fault(text);
}

TEST(Faults, OfInstructionsThatATargetLacks) {
  EXPECT_EQ(fault_of("sm_90", "wgmma.fence.sync.aligned;"),
            first_line("sm_90 has no wgmma.fence.sync.aligned: that is of sm_90a"));
  EXPECT_EQ(fault_of("sm_100a", "wgmma.fence.sync.aligned;"),
            first_line("sm_100a has no wgmma.fence.sync.aligned: that is of sm_90a"));
  EXPECT_EQ(fault_of("sm_75", "cp.async.wait_all;"),
            first_line("sm_75 has no cp.async.wait_all: that is of sm_80 or later"));
  EXPECT_EQ(fault_of("sm_80", "cp.async.wait_all;"), "");
  EXPECT_EQ(fault_of("sm_89", "cp.async.bulk.commit_group;"),
            first_line("sm_89 has no cp.async.bulk.commit_group: that is of sm_90 or later"));
  EXPECT_EQ(fault_of("sm_120", "setmaxnreg.inc.sync.aligned.u32 232;"),
            first_line("sm_120 has no setmaxnreg.inc.sync.aligned.u32: that is of sm_90a, or "
                       "sm_100a or later, with a or f"));
  EXPECT_EQ(fault_of("sm_120f", "setmaxnreg.inc.sync.aligned.u32 232;"), "");
}

TEST(Faults, OfTextsThatAreCut) {
  const std::string whole = entry("add.u32 %r0, %r1, %r2;\nst.shared.v2.b32 [%r1+8], {%r2, %r3};");
  EXPECT_EQ(fault(whole), "");
  int lines = 1;
  for (std::size_t i = 0; i + 2 < whole.size(); ++i) {
    const std::string said = fault(whole.substr(0, i));
    EXPECT_NE(said, "") << whole.substr(0, i);
    EXPECT_LE(std::atoi(said.c_str()), lines) << said;
    lines += whole[i] == '\n' ? 1 : 0;
  }
}

TEST(Faults, NameTheNearestInstruction) {
  EXPECT_EQ(in_body("fence.sc.gpu;"),
            first_line("\"fence.sc.gpu\" is not in the subset; the nearest instruction is "
                       "fence.proxy.async"));
  expect_contains(in_body("add.s33 %r0, %r1, %r2;"), "the nearest instruction is add.s32");
  expect_contains(
      in_body("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0}, %x0, %x1, 0, 1, 1;"),
      "nearest instruction is wgmma.mma_async.sync.aligned.m64n8k");
  expect_contains(in_body("call f;"), "\"call\" is not in the subset");
}

TEST(Faults, OfOperands) {
  EXPECT_EQ(in_body("add.u32 %r0, %r1;"), first_line("add.u32 has 2 operands, and takes 3"));
  EXPECT_EQ(in_body("add.u32 %r0, %x1, %r2;"),
            first_line("a register of 64 bits stands where add.u32 takes 32"));
  EXPECT_EQ(in_body("add.u32 %x0, %r1, %r2;"),
            first_line("a register of 64 bits stands where add.u32 writes 32"));
  EXPECT_EQ(in_body("add.u32 %r0, %q1, %r2;"),
            first_line("there is no register %q1; the special one nearest to it is %tid.x"));
  EXPECT_EQ(in_body("mov.u32 %r0, %tid.w;"),
            first_line("there is no register %tid.w; the special one nearest to it is %tid.x"));
  EXPECT_EQ(in_body("mov.u64 %x0, table;"), first_line("there is no variable table"));
  EXPECT_EQ(in_body("bra NOWHERE;"), first_line("there is no label NOWHERE"));
  EXPECT_EQ(in_body("@%q bra L;"), first_line("there is no predicate %q"));
  EXPECT_EQ(in_body("ld.shared.v4.u32 {%r0, %r1}, [%r2];"),
            first_line("ld.shared.v4.u32 moves a list of 4"));
  EXPECT_EQ(in_body("setmaxnreg.inc.sync.aligned.u32 25;"),
            first_line("setmaxnreg takes multiples of 8 from 24 to 256"));
  EXPECT_EQ(in_body("add.u32 %r0, 0f3f80, 1;"), first_line("\"0f3f80\" is no number"));
  EXPECT_EQ(in_body(".reg .b256 %q;"),
            first_line("registers of the type \".b256\" are not in the subset"));
  EXPECT_EQ(in_body(".local .align 3 .b8 x[8];"),
            first_line("an alignment is a power of two up to 4096"));
  EXPECT_EQ(in_body(".reg .b32 %q<200000>;"),
            first_line("the entry has more than 100000 registers"));
  EXPECT_EQ(
      in_body("add.u32 %r0, %r1, %r2"),
      std::to_string(kFirstLine + 1) + ": \";\" is missing behind add.u32: there is \"ret;\"");
}

TEST(Faults, OfEntriesAndLaunches) {
  EXPECT_EQ(fault(entry(""), "kk"), "0: there is no entry kk; the nearest is k");
  EXPECT_EQ(fault(kHead + ".entry a()\n{\nret;\n}\n.entry b()\n{\nret;\n}\n", ""),
            "8: the text has several entries, and which one is not said: the first is a");
  const ptx::Kernel kernel(kHead + ".entry k(.param .u32 n)\n.maxntid 64, 1, 1\n{\nret;\n}\n",
                           "k.ptx", "");
  EXPECT_EQ(kernel.parameter_bytes(), 4U);
  const auto refused = [&](ptx::Launch launch) {
    try {
      static_cast<void>(kernel.shape(launch));
    } catch (const ptx::Fault& f) {
      return std::string(f.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({.block = {65, 1, 1}}), "the block has 65 threads, and k takes at most 64");
  EXPECT_EQ(refused({.grid = {3, 1, 1}, .cluster = 2}),
            "the cluster has 2 CTAs, and must divide the grid's x, 3, and be 16 at most");
  EXPECT_EQ(refused({.dynamic_bytes = 300000}),
            "shared memory of 300000 bytes: a CTA has at most 232448");
  EXPECT_EQ(refused({.grid = {0, 1, 1}}), "a grid or block is empty");
  EXPECT_EQ(refused({.grid = {4, 2, 3}, .block = {8, 8, 1}, .cluster = 4}), "");
}

}  // namespace
}  // namespace warpwright::tests
