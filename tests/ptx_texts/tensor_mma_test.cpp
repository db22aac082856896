// tcgen05.mma of integers, with masks of lanes and with weights that stay, from texts, against
// products by hand; and what is wrong with words, targets and waits.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ptx_texts/tensor_mma.h"
#include "warpwright/ptx/edits.h"

namespace warpwright::tests {
namespace {

using model::Mode;

constexpr Mode kSchedules[] = {Mode::eager, Mode::latest, Mode::random, Mode::starve};

std::string name_of(const MmaCase& c) {
  return c.opcode + " m" + std::to_string(c.m) + "n" + std::to_string(c.n) +
         (c.a_is_signed ? " s8" : " u8") + (c.b_is_signed ? " s8" : " u8") +
         (c.a_is_mn ? " A mn" : "") + (c.b_is_mn ? " B mn" : "") +
         (c.a_in_tmem ? " A in tensor memory" : "") + (c.saturates ? " saturates" : "");
}

void expect_product(const MmaCase& c, const std::function<bool(int)>& is_zero = {}) {
  SCOPED_TRACE(name_of(c));
  static unsigned turn = 0;
  const MmaNumbers x = mma_numbers(c, ++turn);
  const Ran ran = run(mma_text(c), mma_given(c, x, kSchedules[turn % std::size(kSchedules)], turn));
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  const std::vector<std::uint32_t> sums = mma_sums(c, x, is_zero);
  int wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) wrong += ran.out[i] == sums[i] ? 0 : 1;
  EXPECT_EQ(wrong, 0) << "of " << sums.size();
}

TEST(IntegerMma, OfOneCta) {
  for (const bool a_is_signed : {true, false}) {
    for (const bool b_is_signed : {true, false}) {
      for (const int m : {64, 128}) {
        expect_product({.m = m, .n = 48, .a_is_signed = a_is_signed, .b_is_signed = b_is_signed});
      }
    }
  }
  for (const int n : {8, 16, 24, 32, 256}) expect_product({.n = n, .adds_first = true});
}

TEST(IntegerMma, OfAPair) {
  for (const int m : {128, 256}) {
    for (const int n : {32, 96, 256}) {
      expect_product({.opcode = "tcgen05.mma.cta_group::2.kind::i8",
                      .m = m,
                      .n = n,
                      .pair = true,
                      .b_is_signed = n != 32});
    }
  }
}

TEST(IntegerMma, TakesAFromTensorMemory) {
  for (const int m : {64, 128}) {
    expect_product({.m = m, .n = 32, .a_is_signed = m == 64, .a_in_tmem = true});
  }
  for (const int m : {128, 256}) {
    expect_product({.opcode = "tcgen05.mma.cta_group::2.kind::i8",
                    .m = m,
                    .n = 64,
                    .pair = true,
                    .a_in_tmem = true});
  }
}

TEST(IntegerMma, OfTransposedOperands) {
  expect_product({.n = 16, .a_is_mn = true});
  expect_product({.n = 48, .b_is_mn = true});
  expect_product({.m = 64, .n = 32, .a_is_mn = true, .b_is_mn = true});
  expect_product({.opcode = "tcgen05.mma.cta_group::2.kind::i8",
                  .m = 256,
                  .n = 64,
                  .pair = true,
                  .a_is_mn = true,
                  .b_is_mn = true});
}

// Sums near the ends of s32, which wrap, or become the largest or least.
TEST(IntegerMma, Saturates) {
  for (const bool saturates : {false, true}) {
    expect_product({.n = 32, .saturates = saturates, .adds_first = true});
    expect_product({.n = 32, .b_is_signed = false, .saturates = saturates, .adds_first = true});
  }
  MmaCase c{.n = 16, .steps = 1, .saturates = true, .adds_first = true};
  const MmaNumbers x = mma_numbers(c, 5);
  const std::vector<std::uint32_t> sums = mma_sums(c, x);
  EXPECT_GT(std::ranges::count(sums, 0x7fffffffU), 100);
  EXPECT_GT(std::ranges::count(sums, 0x80000000U), 100);
}

TEST(IntegerMma, LeavesLanesAsTheyAre) {
  const std::vector<std::uint32_t> some = {0xff00ff00U, 0, 0xffffffffU, 0x80000001U};
  expect_product({.n = 16, .adds_first = true, .masks = some});
  expect_product({.m = 64, .n = 16, .masks = some});
  std::vector<std::uint32_t> of_pair = some;
  of_pair.insert(of_pair.end(), {1, 2, 3, 0xfffffffeU});
  for (const int m : {128, 256}) {
    expect_product({.opcode = "tcgen05.mma.cta_group::2.kind::i8",
                    .m = m,
                    .n = 32,
                    .pair = true,
                    .masks = of_pair});
  }
}

TEST(IntegerMma, SaysWhatBecomesOfABuffer) {
  for (const char* use : {"fill", "use", "lastuse", "discard"}) {
    expect_product(
        {.opcode = std::string("tcgen05.mma.cta_group::1.kind::i8.collector::a::") + use, .n = 8});
  }
}

// --- weights that stay
MmaCase stationary(int m, int n) {
  return {.opcode = "tcgen05.mma.ws.cta_group::1.kind::i8", .m = m, .n = n, .weights_stay = true};
}

TEST(StationaryMma, LaysPartsOfNSideBySide) {
  for (const int m : {32, 64, 128}) {
    for (const int n : {64, 128, 256}) expect_product(stationary(m, n));
  }
  MmaCase c = stationary(128, 64);
  c.a_in_tmem = true;
  c.opcode += ".collector::b2::lastuse";
  expect_product(c);
}

// The last example of the manual's, and its third.
TEST(StationaryMma, TakesColumnsForZeros) {
  const auto masked = [](MmaCase c, std::uint64_t word) {
    c.before = "mov.b64 %x8, " + std::to_string(word) + ";\n";
    c.more = ", %x8";
    return c;
  };
  const std::uint64_t spans =
      std::uint64_t{1} << 39 | std::uint64_t{2} << 40 | std::uint64_t{3} << 48;
  const std::uint64_t starts = 0x01020100;
  const std::uint64_t firsts = std::uint64_t{3} << 32;
  const std::string of_32[] = {"1110000", "1100001", "0011100", "0001110"};
  expect_product(masked(stationary(32, 128), spans | starts | firsts),
                 [&](int column) { return of_32[column / 32][index_of(column % 32 % 7)] == '1'; });
  const std::string of_64[] = {"1110000", "0000111"};
  expect_product(masked(stationary(64, 64), spans | std::uint64_t{1} << 32),
                 [&](int column) { return of_64[column / 32][index_of(column % 32 % 7)] == '1'; });
  expect_product(masked(stationary(128, 64), spans & ~(std::uint64_t{1} << 39)));
}

// --- D's factor; a product of zeros is added to it
TEST(HalvedMma, HalvesD) {
  MmaCase c{
      .opcode = "tcgen05.mma.cta_group::1.kind::f16", .n = 16, .steps = 1, .adds_first = true};
  c.more = ", 3";
  c.flips = c.instruction() ^ (1U << 4 | 2U << 17 | 8U << 24);
  MmaNumbers x = mma_numbers(c, 1);
  for (auto* codes : {&x.a, &x.b}) std::ranges::fill(*codes, std::uint8_t{0});
  for (std::size_t i = 0; i < x.sums.size(); ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(&x.sums[i], &value, 4);
  }
  const Ran ran = run(mma_text(c), mma_given(c, x));
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  int wrong = 0;
  for (std::size_t i = 0; i < x.sums.size(); ++i) {
    float value = 0;
    std::memcpy(&value, &ran.out[i], 4);
    wrong += value == static_cast<float>(i) / 8 ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

// --- what is wrong
// The finding of that code, without its place and whose it is; else the report.
std::string found_in(const MmaCase& c, const std::string& text, const std::string& code,
                     Mode mode = Mode::latest) {
  const model::Report report = run(text, mma_given(c, mma_numbers(c, 1), mode)).report;
  const std::string said = finding(report, code);
  if (said.empty()) return "not " + code + ": " + report.text();
  const std::size_t at = said.rfind(": ");
  return said.substr(at == std::string::npos ? 0 : at + 2);
}
std::string refused(const MmaCase& c) {
  return found_in(c, mma_text(c), "U3");
}

TEST(IntegerMma, RefusesWords) {
  const std::string reserved =
      "the instruction descriptor sets a reserved bit, or one for sparsity, saturation of floats, "
      "signs or shifts, which are not used here";
  const std::string type =
      "the instruction descriptor names a type that its kind does not multiply";
  for (const int bit : {0, 2, 6, 13, 14, 23, 29, 30}) {
    EXPECT_EQ(refused({.flips = 1U << bit}), reserved) << bit;
  }
  EXPECT_EQ(refused({.flips = 1U << 8}), type);
  EXPECT_EQ(refused({.flips = 1U << 12}), type);
  EXPECT_EQ(refused({.flips = 1U << 4}), type);
  EXPECT_EQ(refused({.flips = 3U << 4}), "an MMA of kind i8 accumulates in s32");
  EXPECT_EQ(refused({.m = 32}), "an MMA of one CTA computes 64 or 128 rows");
  const std::string columns =
      "N of one CTA's MMA of kind i8 is 8, 24 or a multiple of 16 from 16 to 256 (only the "
      "multiples where B is MN-major)";
  EXPECT_EQ(refused({.n = 40}), columns);
  EXPECT_EQ(refused({.n = 24, .b_is_mn = true}), columns);
  EXPECT_EQ(
      refused({.opcode = "tcgen05.mma.cta_group::2.kind::i8", .m = 256, .n = 48, .pair = true}),
      "N of a CTA pair's MMA of kind i8 is a multiple of 32 from 32 to 256");
  EXPECT_EQ(refused({.n = 8, .a_in_tmem = true}),
            "with A in tensor memory N of an MMA of 128 rows is a multiple of 16");
  EXPECT_EQ(
      refused({.opcode = "tcgen05.mma.cta_group::1.kind::f8f6f4", .flips = 3U << 4 | 1U << 3}),
      reserved);
}

TEST(StationaryMma, RefusesWords) {
  EXPECT_EQ(refused(stationary(128, 32)), "N of tcgen05.mma.ws is 64, 128 or 256");
  MmaCase high = stationary(128, 64);
  high.flips = 8U << 24 ^ 16U << 24;
  EXPECT_EQ(refused(high), "tcgen05.mma.ws computes 32, 64 or 128 rows, in one CTA");
  MmaCase low = stationary(64, 64);
  low.a_in_tmem = true;
  EXPECT_EQ(refused(low),
            "where it would find 32 or 64, which it needs in several lanes, is not known here");
  MmaCase shifted = stationary(64, 64);
  shifted.before = "mov.b64 %x8, 72057594037927936;\n";
  shifted.more = ", %x8";
  EXPECT_EQ(found_in(shifted, mma_text(shifted), "W4"),
            "a zero-column mask descriptor that shifts columns is not used here");
}

std::string fault_of(const MmaCase& c) {
  return refusal_of(mma_text(c));
}

TEST(IntegerMma, IsOnlyOfSomeTargets) {
  for (const char* target : {"sm_100a", "sm_110a"}) EXPECT_EQ(fault_of({.target = target}), "");
  for (const std::string target : {"sm_100f", "sm_103a", "sm_103f", "sm_110f"}) {
    EXPECT_EQ(fault_of({.target = target}),
              target + " has no tcgen05.mma.cta_group::1.kind::i8: that is of sm_100a or sm_110a");
  }
  EXPECT_EQ(fault_of({.more = ", 1"}), "only tcgen05.mma of kinds f16 and tf32 scales D");
  MmaCase f16{.opcode = "tcgen05.mma.cta_group::1.kind::f16", .target = "sm_103f", .more = ", 15"};
  EXPECT_EQ(fault_of(f16), "");
  f16.target = "sm_110a";
  EXPECT_EQ(fault_of(f16), "sm_110a has no tcgen05.mma that scales D");
  f16.target = "sm_100a";
  f16.more = ", 16";
  EXPECT_EQ(fault_of(f16), "tcgen05.mma scales D by 2 to the power of 0 to -15");
}

TEST(IntegerMma, IsWaitedFor) {
  const MmaCase c{.n = 8};
  const std::string text = mma_text(c);
  const std::string wait =
      "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q2, [%u0], 0;\n@%q2 bra WAITED;\nbra.uni "
      "WAIT;\n";
  const std::string ordered = "WAITED:\ntcgen05.fence::after_thread_sync;\n";
  EXPECT_EQ(found_in(c, text, "U5").substr(0, 6), "not U5");
  EXPECT_NE(found_in(c, replaced(text, wait, ""), "U5").substr(0, 6), "not U5");
  EXPECT_NE(found_in(c, replaced(text, ordered, "WAITED:\n"), "U6").substr(0, 6), "not U6");
  EXPECT_NE(found_in(c, replaced(text, "fence.proxy.async.shared::cta;\n", ""), "P1").substr(0, 6),
            "not P1");
  EXPECT_NE(found_in(c, replaced(text, "tcgen05.wait::st.sync.aligned;\n", ""), "U5").substr(0, 6),
            "not U5");
  const std::string commit =
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%u0];\n";
  EXPECT_NE(found_in(c, replaced(text, commit, ""), "D1").substr(0, 6), "not D1");
  const std::string too_early =
      replaced(replaced(text, commit, ""), "mov.u32 %u9,", commit + "mov.u32 %u9,");
  EXPECT_NE(found_in(c, too_early, "U5").substr(0, 6), "not U5");
}

// Bits of the words, and addresses: all that a text says beside what synchronises.
TEST(IntegerMma, EditsAreFound) {
  const MmaCase c{.n = 16, .saturates = true, .adds_first = true};
  const MmaNumbers x = mma_numbers(c, 3);
  ptx::Kernel kernel(mma_text(c), "k.ptx", "k");
  kernel.note_statements();
  const std::vector<std::uint32_t> right = run(kernel, mma_given(c, x)).out;
  int of_mma = 0;
  for (const ptx::Edit& edit : kernel.edits()) {
    if (!edit.opcode.starts_with("tcgen05.mma")) continue;
    ++of_mma;
    ptx::Kernel broken = kernel.with(edit);
    const Ran ran = run(broken, mma_given(c, x, Mode::latest));
    EXPECT_TRUE(!ran.report.clean() || ran.out != right) << edit.how;
  }
  EXPECT_EQ(of_mma, 34);
}

}  // namespace
}  // namespace warpwright::tests
