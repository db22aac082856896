// Offsets of groups through `run` and `launch`, on the model.
#include "tests/run/offsets.h"
#include "tests/must.h"

#include <random>

#include "tests/campaign.h"
#include "tests/scheduled.h"

namespace warpwright::offsets {
namespace {

class OffsetsOnModel : public testing::TestWithParam<Offsets> {};

TEST_P(OffsetsOnModel, AreCheckedWhereThatIsAskedFor) {
  for (const std::string& kernel : kernels) expect_checked(kernel, GetParam(), run_on_model);
}

TEST_P(OffsetsOnModel, RowsInNoGroupAreCleared) {
  for (const std::string& kernel : kernels) expect_cleared(kernel, GetParam(), run_on_model);
}

// Without a check too: that the writes of two groups meet is no fault of the kernel.
TEST(Offsets, ThatOverlapAreNoFindingOfTheModel) {
  const Offsets& given = all_offsets.back();
  ASSERT_TRUE(given.overlap);
  for (const std::string& kernel : kernels) {
    Product product(given.of, run_on_model);
    const auto made = must(product.plan_by(kernel));
    expect_told(run(*made, product.operands, RunOptions{}), given);
    const auto report = device::launch_on_model(*made, product.operands);
    ASSERT_FALSE(report);
    expect_told(report.refusal(), given);
    const auto checked = device::check(*made, product.operands, tests::in_schedules(3));
    ASSERT_FALSE(checked);
    expect_told(checked.refusal(), given);
  }
}

// A D whose rows begin and end anywhere.
TEST(Offsets, RowsThatBeginAnywhereAreCleared) {
  std::mt19937 random(20261123);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t rows = 1 + random() % 60;
    const std::int64_t columns = 1 + random() % 70;
    const std::int64_t pitch = columns + random() % 9;
    constexpr std::int64_t element = 2;
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + ", pitch " +
                 std::to_string(pitch));
    const std::int32_t first = static_cast<std::int32_t>(random() % (rows + 1));
    const std::int32_t last = first + static_cast<std::int32_t>(random() % (rows - first + 1));
    const std::vector<std::int32_t> of = {first, last};
    std::vector<numeric::bf16_t> a(static_cast<std::size_t>(rows * 32), numeric::bf16_t(1.0F));
    std::vector<numeric::bf16_t> b(static_cast<std::size_t>(columns * 32), numeric::bf16_t(1.0F));
    std::vector<std::byte> d(static_cast<std::size_t>((rows * pitch + 8) * element),
                             std::byte{0x55});
    const std::vector<std::byte> before = d;
    const auto shift = static_cast<std::size_t>(element * (random() % 8));
    GemmOperands o{.a = matrix(a.data(), DType::bf16, rows, 32),
                   .b = matrix(b.data(), DType::bf16, columns, 32),
                   .d = matrix(d.data() + shift, DType::bf16, rows, columns)};
    o.d.row_stride = pitch;
    o.groups = Groups{of.data(), OffsetType::int32, 0};
    RunOptions how;
    how.launch.zero_rest = true;
    must_do(run(o, how));
    for (std::size_t at = 0; at < d.size(); ++at) {
      const std::int64_t byte = static_cast<std::int64_t>(at) - static_cast<std::int64_t>(shift);
      const std::int64_t row = byte / (pitch * element);
      const bool outside = byte < 0 || row >= rows || byte % (pitch * element) >= columns * element;
      if (outside) {
        ASSERT_EQ(d[at], before[at]) << "byte " << byte << " lies outside";
      } else if (row < first || row >= last) {
        ASSERT_EQ(d[at], std::byte{0}) << "byte " << byte << " of row " << row;
      }
    }
  }
}

// Tokens by index: which number is the first that names none, by counting on the host.
TEST(Offsets, NumbersOfTokensAreCheckedToo) {
  constexpr std::uint32_t seed = 20261127;
  std::mt19937 random(seed);
  for (int i = 0; i < 24; ++i) {
    const auto draw = [&](std::int64_t below) {
      return static_cast<std::int32_t>(random() % below);
    };
    const std::int64_t rows = 1 + draw(150), tokens = 1 + draw(20), n = 64, k = 64;
    const int divisor = 1 + draw(4);
    const std::int64_t slots = tokens * divisor;
    std::vector<std::int32_t> of = {draw(rows + 1), 0, draw(rows + 1)};
    if (of[0] > of[2]) std::swap(of[0], of[2]);
    of[1] = of[0] + draw(of[2] - of[0] + 1);
    std::vector<std::int32_t> index(static_cast<std::size_t>(rows));
    for (std::int32_t& x : index) x = draw(slots);
    const std::vector<std::int32_t> strays = {-1, INT32_MIN, static_cast<std::int32_t>(slots),
                                              INT32_MAX};
    for (int j = draw(4); j > 0; --j)
      index[static_cast<std::size_t>(draw(rows))] = strays[static_cast<std::size_t>(draw(4))];
    if (i % 4 == 0) of[2] = i % 8 == 0 ? of[1] - 1 : static_cast<std::int32_t>(rows + 7);
    std::string want;
    if (of[2] < of[1] || of[2] > rows) want = "the offsets of group 1 are not in order";
    for (std::int32_t r = of[0]; want.empty() && r < of[2]; ++r) {
      const std::int32_t x = index[static_cast<std::size_t>(r)];
      if (x < 0 || x >= slots)
        want = "rows[" + std::to_string(r) + "] is " + std::to_string(x) + " and names no row of A";
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(i) + ": " + want);
    std::vector<numeric::bf16_t> a(static_cast<std::size_t>(tokens * k), numeric::bf16_t(1.0F));
    std::vector<numeric::bf16_t> b(static_cast<std::size_t>(2 * n * k), numeric::bf16_t(1.0F));
    std::vector<numeric::bf16_t> d(static_cast<std::size_t>(rows * n));
    GemmOperands o{.a = matrix(a.data(), DType::bf16, tokens, k),
                   .b = matrix(b.data(), DType::bf16, n, k),
                   .d = matrix(d.data(), DType::bf16, rows, n)};
    o.b.batch = 2;
    o.b.batch_stride = n * k;
    o.groups = Groups{of.data(), OffsetType::int32, 0};
    o.groups->rows = index.data();
    o.groups->rows_divisor = divisor;
    RunOptions how;
    how.launch = {.check_offsets = true, .zero_rest = i % 2 == 0};
    const auto told = run(o, how);
    EXPECT_EQ(told.has_value(), !want.empty()) << told->reason;
    if (told) {
      EXPECT_EQ(told->code, RefusalCode::bad_value);
      EXPECT_EQ(told->reason.find(want), 0U) << told->reason;
    }
    for (std::int32_t r = of[0]; r < std::min<std::int64_t>(of[2], rows); ++r) {
      const std::int32_t x = index[static_cast<std::size_t>(r)];
      const float due = x < 0 || x >= slots ? 0.0F : static_cast<float>(k);
      EXPECT_EQ(static_cast<float>(d[static_cast<std::size_t>(r * n)]), due) << "row " << r;
    }
    how.launch = {};
    EXPECT_FALSE(run(o, how)) << "nobody asked";
    auto few = tests::in_schedules(2);
    few.check_offsets = true;
    const auto made = must(plan(o, model_facts()));
    const auto checked = must(device::check(*made, o, few));
    EXPECT_TRUE(checked->clean()) << checked->findings.front().finding.sentence;
  }
}

TEST(Offsets, OfNoGroupsAreRefused) {
  std::vector<numeric::bf16_t> tensor(64 * 64);
  std::vector<numeric::bf16_t> d(64 * 64);
  const GemmOperands o{.a = matrix(tensor.data(), DType::bf16, 64, 64),
                       .b = matrix(tensor.data(), DType::bf16, 64, 64),
                       .d = matrix(d.data(), DType::bf16, 64, 64)};
  for (const bool check : {true, false}) {
    RunOptions how;
    how.launch = {.check_offsets = check, .zero_rest = !check};
    const auto told = must(run(o, how));
    EXPECT_EQ(told->code, RefusalCode::bad_value);
  }
  Workspace none;
  EXPECT_EQ(offsets_fault(*plan(o, model_facts()), none, nullptr)->code, RefusalCode::bad_value);
}

INSTANTIATE_TEST_SUITE_P(All, OffsetsOnModel, testing::ValuesIn(sampled(all_offsets, 3)),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace warpwright::offsets
