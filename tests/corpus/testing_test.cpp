// The public testing header itself: what it says when a test fails, and that schedules do not see
// each other's results.
#include <gtest/gtest-spi.h>

#include "tests/corpus/corpus.h"
#include "tests/must.h"

namespace warpwright::corpus {
namespace {

// Counts in global memory; reads shared memory that nothing has written when `dirty`.
auto counter(Buffer<std::uint32_t>& count, bool dirty) {
  return [&count, dirty] {
    const isa::GlobalView<std::uint32_t> view{count.data()};
    view.store(0, view.load(0) + 1);
    if (dirty) (void)isa::SharedView<std::uint32_t>{data()}.load();
  };
}

TEST(Testing, FailuresShowTheReport) {
  Buffer<std::uint32_t> count("count", 1);
  const auto dirty = run(counter(count, true), one_thread, count);
  const auto clean = run(counter(count, false), one_thread, count);
  EXPECT_CLEAN(clean);
  EXPECT_EQ(clean.text(), "14 schedules: nothing found\n");
  EXPECT_FINDING(dirty, Check::uninitialised_read);
  EXPECT_ONLY_FINDINGS(dirty, Check::uninitialised_read);
  EXPECT_EQ(dirty.findings().size(), 1U);
  EXPECT_EQ(dirty.count(Check::uninitialised_read), 14);
  EXPECT_NONFATAL_FAILURE(EXPECT_CLEAN(dirty), "M1 uninitialised read at ");
  EXPECT_NONFATAL_FAILURE(EXPECT_CLEAN(dirty), "in 14 of 14 schedules, first: eager");
  EXPECT_NONFATAL_FAILURE(EXPECT_FINDING(clean, Check::deadlock), "not found: D1 (deadlock)");
  EXPECT_NONFATAL_FAILURE(EXPECT_ONLY_FINDINGS(dirty, Check::deadlock), "not found: D1");
  EXPECT_NONFATAL_FAILURE(EXPECT_ONLY_FINDINGS(dirty), "found, and not expected: M1");
}

TEST(Testing, EveryScheduleStartsFromTheSameMemory) {
  Buffer<std::uint32_t> count("count", 1);
  count[0] = 41;
  Launch launch = one_thread;
  int looked = 0;
  launch.verify = [&]() -> std::string {
    ++looked;
    return count[0] == 42 ? "" : "the count is " + std::to_string(count[0]);
  };
  EXPECT_CLEAN(run(counter(count, false), launch, count));
  EXPECT_EQ(looked, 14);
  EXPECT_EQ(count[0], 42U);  // of the last schedule
  const auto again = run(counter(count, false), launch, count);
  EXPECT_ONLY_FINDINGS(again, Check::wrong_result);
  EXPECT_NONFATAL_FAILURE(EXPECT_CLEAN(again), "the count is 43");
}

TEST(Testing, BuffersAndMaps) {
  Buffer<std::uint32_t> input("the input", 4, Access::input);
  EXPECT_EQ(input[3], 0xffffffffU);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(input.data()) % 128, 0U);
  const auto outcome = run(counter(input, false), one_thread, input);
  EXPECT_ONLY_FINDINGS(outcome, Check::global_bounds);
  expect_contains(outcome.text(), "the input");
  // Memory that was not named is no memory.
  EXPECT_ONLY_FINDINGS(run(counter(input, false), one_thread), Check::global_bounds);
  Buffer<std::uint16_t> matrix("matrix", 64 * 64);
  EXPECT_THROW((void)model::testing::tensor_map(
                   matrix, {.rows = 64, .columns = 60, .box_rows = 8, .box_columns = 60}),
               std::invalid_argument);
}

// A kernel that reads and writes behind the views' back is told so, wherever it does.
TEST(Testing, RawPointers) {
  Buffer<std::uint32_t> words("words", 2048);
  Buffer<std::uint32_t> sum("sum", 1);
  enum class Raw { nothing, load, store };
  const auto kernel = [&](Raw raw) {
    const isa::GlobalView<std::uint32_t> view{words.data()};
    view.store(1500, 3);
    std::uint32_t value = view.load(1500);
    if (raw == Raw::load) value += words.data()[1501];
    if (raw == Raw::store) words[3] = value;
    isa::GlobalView<std::uint32_t>{sum.data()}.store(0, value);
  };
  EXPECT_CLEAN(run(chosen(kernel, Raw::nothing), one_thread, words, sum));
  const auto load = run(chosen(kernel, Raw::load), one_thread, words, sum);
  EXPECT_ONLY_FINDINGS(load, Check::unchecked_access);
  EXPECT_EQ(load.count(Check::unchecked_access), static_cast<int>(load.runs.size()));
  expect_contains(load.text(), "touches bytes 6004 to 6004 of words");
  EXPECT_ONLY_FINDINGS(run(chosen(kernel, Raw::store), one_thread, words, sum),
                       Check::unchecked_access);
  EXPECT_EQ(words[3], 3U);
}

TEST(Testing, Schedules) {
  Buffer<std::uint32_t> count("count", 1);
  Launch launch = one_thread;
  launch.schedules = {
      .eager = false, .latest = false, .timed = false, .random = 2, .starve = 1, .first_seed = 7};
  const auto outcome = run(counter(count, false), launch, count);
  ASSERT_EQ(outcome.runs.size(), 3U);
  EXPECT_EQ(outcome.runs[0].schedule, "random seed 7");
  EXPECT_EQ(outcome.runs[1].schedule, "random seed 8");
  EXPECT_EQ(outcome.runs[2].schedule, "starve seed 7");
  launch.schedules.random = launch.schedules.starve = 0;
  const auto nothing = run(counter(count, false), launch, count);
  EXPECT_NONFATAL_FAILURE(EXPECT_CLEAN(nothing), "no schedule was run");
}

}  // namespace
}  // namespace warpwright::corpus
