// tcgen05.shift: rows of tensor memory that move, what follows it in its thread without more, and
// what does not.
#include <gtest/gtest.h>

#include "tests/must.h"
#include "tests/ptx_texts/tensor_mma.h"

namespace warpwright::tests {
namespace {

using model::Mode;

// Shifts of lanes from `lane` on, at `column` of the accumulators.
std::string shift(int lane, int column, const std::string& opcode) {
  return "add.u32 %u10, %u1, " + std::to_string(lane << 16 | column) + ";\n" + opcode +
         " [%u10];\n";
}
const std::string kShift = "tcgen05.shift.cta_group::1.down";

// 31 of 32 rows take what the next one had.
void shift_rows(std::vector<std::uint32_t>& sums, int columns, int cta, int lane, int column) {
  for (int row = lane; row < lane + 31; ++row) {
    for (int i = column; i < column + 8; ++i) {
      const auto at = index_of((cta * kLanes + row) * columns + i);
      sums[at] = sums[at + index_of(columns)];
    }
  }
}

TEST(TensorShift, MovesRowsOfAWarp) {
  for (const Mode mode : {Mode::eager, Mode::latest, Mode::random}) {
    for (const int lane : {0, 32, 64, 96}) {
      MmaCase c{.n = 24, .steps = 0};
      c.behind = shift(lane, 3, kShift);
      const MmaNumbers x = mma_numbers(c, 7);
      std::vector<std::uint32_t> sums = x.sums;
      shift_rows(sums, 24, 0, lane, 3);
      const Ran ran = run(mma_text(c), mma_given(c, x, mode));
      EXPECT_TRUE(ran.report.clean()) << ran.report.text();
      EXPECT_EQ(ran.out, sums);
    }
  }
}

TEST(TensorShift, MovesRowsOfBothCtas) {
  MmaCase c{.m = 256, .n = 32, .steps = 0, .pair = true};
  // The manual's own example writes it so.
  c.behind = shift(32, 8, "tcgen05.shift.down.cta_group::2") +
             shift(64, 16, "tcgen05.shift.cta_group::2.down");
  const MmaNumbers x = mma_numbers(c, 8);
  std::vector<std::uint32_t> sums = x.sums;
  for (const int cta : {0, 1}) {
    shift_rows(sums, 32, cta, 32, 8);
    shift_rows(sums, 32, cta, 64, 16);
  }
  const Ran ran = run(mma_text(c), mma_given(c, x, Mode::latest));
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  EXPECT_EQ(ran.out, sums);
}

// A convolution's step: A, which lies in tensor memory, is shifted between two MMAs, behind one
// that has read it, before one that reads it. `between` follows the shifts.
MmaCase convolution() {
  MmaCase c{.n = 16, .a_in_tmem = true};
  for (const int lane : {0, 32, 64, 96}) c.between += shift(lane, kColumnsOfA + 8, kShift);
  return c;
}

TEST(TensorShift, FollowsAndPrecedesMmas) {
  const MmaCase c = convolution();
  const MmaNumbers x = mma_numbers(c, 9);
  MmaNumbers shifted = x;
  for (int row = 0; row < kLanes; ++row) {
    if (row % 32 == 31) continue;
    for (int k = kStepDepth; k < 2 * kStepDepth; ++k) {
      shifted.a[index_of(row * 2 * kStepDepth + k)] = x.a[index_of((row + 1) * 2 * kStepDepth + k)];
    }
  }
  for (const Mode mode : {Mode::eager, Mode::latest, Mode::random, Mode::starve}) {
    const Ran ran = run(mma_text(c), mma_given(c, x, mode));
    EXPECT_TRUE(ran.report.clean()) << ran.report.text();
    EXPECT_EQ(ran.out, mma_sums(c, shifted));
  }
}

// The finding of that code, or else what there was.
std::string shift_finding(const MmaCase& c, const std::string& text, const std::string& code) {
  const model::Report report = run(text, mma_given(c, mma_numbers(c, 1), Mode::latest)).report;
  const std::string said = finding(report, code);
  return said.empty() ? "not " + code + ": " + report.text() : said;
}
std::string shift_finding(const MmaCase& c, const std::string& code) {
  return shift_finding(c, mma_text(c), code);
}
void expect_found(const std::string& said, const std::string& part) {
  expect_contains(said, part);
}

std::string copy(const std::string& shape, int lane) {
  return descriptor("%w4", 1024, 8, false) + "add.u32 %u10, %u1, " +
         std::to_string((lane << 16 | kColumnsOfA) + 8) + ";\ntcgen05.cp.cta_group::1." + shape +
         " [%u10], %w4;\n";
}

// The rows that stay may be copied anew behind the shift, and nothing else.
TEST(TensorShift, ARowIsCopiedBehindIt) {
  MmaCase c = convolution();
  c.n = 128;  // as many bytes of B as a copy may read
  const std::string shifts = c.between;
  c.between = shifts + copy("4x256b", 31);
  EXPECT_EQ(shift_finding(c, "U5").substr(0, 6), "not U5");
  c.between = shifts + copy("128x256b", 0);
  expect_found(shift_finding(c, "U5"), "tcgen05.shift");
  c.between = copy("4x256b", 31) + shifts;
  expect_found(shift_finding(c, "U5"), "commit after the copy");
  c.between = shifts + shift(0, kColumnsOfA + 8, kShift);
  expect_found(shift_finding(c, "U5"), "commit after the shift");
}

TEST(TensorShift, IsWaitedFor) {
  MmaCase c{.n = 16, .steps = 0};
  c.behind = shift(0, 0, kShift);
  const std::string text = mma_text(c);
  EXPECT_EQ(shift_finding(c, text, "U5").substr(0, 6), "not U5");
  const std::string wait =
      "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q2, [%u0], 0;\n@%q2 bra WAITED;\nbra.uni "
      "WAIT;\n";
  expect_found(shift_finding(c, replaced(text, wait, ""), "U5"), "tcgen05.shift");
  const std::string commit =
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%u0];\n";
  const std::string without = replaced(text, commit, "");
  EXPECT_NE(shift_finding(c, without, "D1").substr(0, 6), "not D1");
  expect_found(shift_finding(c, replaced(without, c.behind, commit + c.behind), "U5"), "the shift");
  const std::string after = "WAITED:\ntcgen05.fence::after_thread_sync;\n";
  expect_found(shift_finding(c, replaced(text, after, "WAITED:\n"), "U6"), "after_thread_sync");
}

TEST(TensorShift, BeginsWithAWarpsLanesOfWhatIsThere) {
  const auto of = [](const std::string& behind, const std::string& code) {
    MmaCase c{.n = 16, .steps = 0};
    c.behind = behind;
    return shift_finding(c, code);
  };
  expect_found(of(shift(16, 0, kShift), "U2"),
               "it begins at lane 16; a shift begins at lane 0, 32, 64 or 96");
  expect_found(of(shift(128, 0, kShift), "U2"), "it begins at lane 128");
  expect_found(of(shift(0, 505, kShift), "U1"), "columns 505 to 512");
  expect_found(of(shift(0, 12, kShift), "M1"), "from column 12 on");
  expect_found(of(shift(0, 0, "tcgen05.shift.cta_group::2.down"), "U4"), "cta_group::2");
}

TEST(TensorShift, IsOnlyOfSomeTargets) {
  const auto fault = [](const std::string& target, const std::string& opcode) {
    MmaCase c{.target = target, .n = 16, .steps = 0};
    c.behind = shift(0, 0, opcode);
    return refusal_of(mma_text(c));
  };
  for (const char* target : {"sm_100a", "sm_103a", "sm_110a"}) {
    EXPECT_EQ(fault(target, kShift), "");
  }
  for (const std::string target : {"sm_100f", "sm_103f", "sm_110f"}) {
    EXPECT_EQ(fault(target, kShift), std::string(target)
                                         .append(" has no ")
                                         .append(kShift)
                                         .append(": that is of sm_100a, sm_103a or sm_110a"));
  }
  expect_found(fault("sm_100a", "tcgen05.shift.cta_group::1.up"),
               "is not in the subset; the nearest instruction is tcgen05.shift.cta_group::1.down");
}

// Without it, and by another lane.
TEST(TensorShift, MutantsAreFound) {
  MmaCase c{.n = 16, .steps = 0};
  c.behind = shift(0, 0, kShift);
  const MmaNumbers x = mma_numbers(c, 1);
  const std::string text = mma_text(c);
  const Ran right = run(text, mma_given(c, x));
  int of_shift = 0;
  for (const model::Mutation& mutation : model::mutations(right.report.sites)) {
    if (mutation.at != model::SyncKind::tmem_shift) continue;
    ++of_shift;
    Given given = mma_given(c, x, Mode::latest);
    given.mutation = mutation;
    const Ran ran = run(text, given);
    EXPECT_TRUE(!ran.report.clean() || ran.out != right.out) << mutation.how();
  }
  EXPECT_EQ(of_shift, 3) << "dropped, the first, a lane";
}

}  // namespace
}  // namespace warpwright::tests
