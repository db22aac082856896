// Operands that a launch copies first, on the model.
#include "tests/run/copies.h"
#include "tests/must.h"

#include "tests/campaign.h"
#include "tests/scheduled.h"

#include "warpwright/simulation/check.h"

namespace warpwright::copies {
namespace {

class CopiesOnModel : public testing::TestWithParam<Kind> {};

TEST_P(CopiesOnModel, GiveTheBitsOfAlignedOperands) {
  expect_same_bits(GetParam(), run_on_model);
}

INSTANTIATE_TEST_SUITE_P(All, CopiesOnModel, testing::ValuesIn(sampled(kinds, 3)),
                         [](const auto& of) { return std::string(of.param.name); });

GemmOperands loose_operands(std::vector<numeric::bf16_t>& memory) {
  memory.assign(3 * 64 * 65, numeric::bf16_t(1.0F));
  GemmOperands o;
  o.a = matrix(memory.data(), DType::bf16, 64, 61);
  o.b = matrix(memory.data() + 64 * 65, DType::bf16, 64, 61);
  o.d = matrix(memory.data() + 2 * 64 * 65, DType::bf16, 64, 64);
  return o;
}

// The copies are no part that a launch may do without.
TEST(Copies, NeedTheWorkspace) {
  std::vector<numeric::bf16_t> memory;
  const GemmOperands o = loose_operands(memory);
  const auto made = must(plan(o, model_facts()));
  ASSERT_TRUE(made->a_copy && made->b_copy);
  EXPECT_EQ(made->workspace_bytes, made->b_copy->at + 64 * 128);
  EXPECT_EQ(made->a_copy->row_stride, 64);
  Workspace none;
  RunOptions how;
  how.workspace = &none;
  const auto refused = must(run(*made, o, how));
  EXPECT_EQ(refused->code, RefusalCode::bad_workspace) << refused->reason;
}

// Once a plan copied an A that an alpha of 0 does not read, and that was not there.
TEST(Copies, AreNotMadeOfWhatIsNotRead) {
  std::vector<numeric::bf16_t> memory;
  GemmOperands o = loose_operands(memory);
  const auto made = must(plan(o, model_facts()));
  ASSERT_TRUE(made->a_copy && made->b_copy);
  o.alpha = 0;
  o.a.data = o.b.data = nullptr;
  EXPECT_FALSE(run(*made, o, RunOptions{}));
  EXPECT_EQ(static_cast<float>(memory[2 * 64 * 65]), 0.0F);
}

// As BLAS has it a sum of nothing is 0 whatever alpha is. Once 0 times infinity was written.
TEST(NothingToSum, IsZeroForEveryAlpha) {
  for (const float alpha : {1.0F, 0.0F, -2.0F, std::numeric_limits<float>::infinity()}) {
    for (const bool grouped : {false, true}) {
      std::vector<numeric::bf16_t> memory(16 * 8, numeric::bf16_t(7.0F));
      const std::vector<std::int32_t> offsets = {0, 3, 16};
      GemmOperands o;
      o.a = matrix(memory.data(), DType::bf16, 16, 0);
      o.b = matrix(memory.data(), DType::bf16, 8, 0);
      o.d = matrix(memory.data(), DType::bf16, 16, 8);
      o.alpha = alpha;
      if (grouped) {
        o.b.batch = 2;
        o.groups = Groups{offsets.data()};
      }
      must_do(run(o, RunOptions{}));
      for (const auto x : memory) {
        ASSERT_EQ(static_cast<float>(x), 0.0F) << "alpha " << alpha << ", groups " << grouped;
      }
    }
  }
}

// A copy is made of what stands there when the product runs, and the next launch waits for the one
// before to have read it.
TEST(Copies, AreMadeByEveryLaunchAndCleanInEverySchedule) {
  std::vector<numeric::bf16_t> memory;
  const GemmOperands o = loose_operands(memory);
  const auto made = must(plan(o, model_facts()));
  auto how = tests::in_schedules(6);
  how.wanted = sampled_mutants(5);
  const auto mutants = must(device::mutate(*made, o, how));
  for (const auto& found : mutants->unbroken) ADD_FAILURE() << found.finding.sentence;
  EXPECT_EQ(mutants->count(device::Mutant::Fate::survived), 0) << mutants->score();
  for (const float value : {1.0F, 2.0F}) {
    std::fill(memory.begin(), memory.begin() + 64 * 65, numeric::bf16_t(value));
    ASSERT_FALSE(run(o, RunOptions{}));
    EXPECT_EQ(static_cast<float>(memory[2 * 64 * 65 + 70]), 61 * value);
  }
}

// What needs none has none.
TEST(Copies, AreForWhatTmaCannotReadAlone) {
  for (int shift = 0; shift < 16; shift += 2) {
    for (int pitch = 64; pitch < 80; ++pitch) {
      GemmProblem p = packed_problem(64, 64, 64, DType::bf16, DType::bf16);
      p.a.row_stride = pitch;
      p.a.alignment = shift == 0 ? 256 : shift & -shift;
      const auto made = must(plan(p, model_facts()));
      EXPECT_EQ(made->a_copy.has_value(), pitch % 8 != 0 || shift != 0) << pitch << " " << shift;
      EXPECT_FALSE(made->b_copy);
      EXPECT_EQ(made->explain().find("is copied to the workspace first") != std::string::npos,
                made->a_copy.has_value());
    }
  }
}

}  // namespace
}  // namespace warpwright::copies
