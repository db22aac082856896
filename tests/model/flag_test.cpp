// Flags in global memory, by which the clusters of a grid order what they hand each other.
#include <gtest/gtest.h>

#include "tests/model/harness.h"
#include "tests/model/mutants.h"
#include "warpwright/isa/draw.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"

namespace warpwright::model {
namespace {

// What is wrong with the kernel below.
enum class Bug { none, no_set, no_wait, other_value, set_early, no_meeting, no_second_meeting };

// A warp of CTA 0 writes 32 words and sets a flag; a warp of CTA 1 waits and reads them. Or both
// are warps of one CTA.
class FlagTest : public testing::Test {
 protected:
  Kernel kernel(Bug bug) {
    return {.shape = {.ctas = in_one_cta_ ? 1 : 2, .threads = in_one_cta_ ? 64 : 32},
            .body =
                [this, bug] {
                  if ((in_one_cta_ ? isa::warp_index() : isa::cta_index()) == 0) {
                    give(bug);
                  } else {
                    take(bug);
                  }
                },
            .memory = {words_.allocation("words"), flag_.allocation("flag")},
            .begin = [this] { flag_[0] = 0; }};
  }

  void give(Bug bug) {
    isa::set_role("giver");
    const int lane = isa::lane_index();
    if (bug == Bug::set_early && lane == 0) isa::flag_set(flag_.data(), 1);
    isa::GlobalView<std::uint32_t>{words_.data()}.store(lane, 100U + static_cast<unsigned>(lane));
    if (bug != Bug::no_meeting) isa::sync_warp();
    if (bug != Bug::no_set && bug != Bug::set_early && lane == 0) isa::flag_set(flag_.data(), 1);
  }

  void take(Bug bug) {
    isa::set_role("taker");
    const int lane = isa::lane_index();
    if (bug != Bug::no_wait && lane == 0) {
      isa::flag_wait(flag_.data(), bug == Bug::other_value ? 2 : 1);
    }
    if (bug != Bug::no_second_meeting) isa::sync_warp();
    const std::uint32_t word = isa::GlobalView<std::uint32_t>{words_.data()}.load((lane + 1) % 32);
    if (bug == Bug::none) {
      EXPECT_EQ(word, 100U + static_cast<unsigned>((lane + 1) % 32));
    }
  }

  Memory<std::uint32_t> words_{32};
  Memory<std::uint32_t> flag_{1};
  bool in_one_cta_ = false;
};

// Within a CTA as a persistent grid has it, whose CTAs may draw what they wait for themselves.
TEST_F(FlagTest, OrdersWarpsOfACtaAndClusters) {
  for (const bool in_one_cta : {true, false}) {
    SCOPED_TRACE(in_one_cta);
    in_one_cta_ = in_one_cta;
    expect_clean(kernel(Bug::none));
    for (const Bug bug : {Bug::no_wait, Bug::set_early, Bug::no_meeting, Bug::no_second_meeting}) {
      SCOPED_TRACE(static_cast<int>(bug));
      expect_found(kernel(bug), Check::data_race);
    }
  }
}

TEST_F(FlagTest, AFlagThatNobodySetsIsADeadlockWithItsName) {
  for (const Bug bug : {Bug::no_set, Bug::other_value}) {
    expect_found(kernel(bug), Check::deadlock);
    const Report report = run(kernel(bug), Options{});
    expect_contains(report.text(), "taker of CTA 1");
    expect_contains(report.text(),
                    bug == Bug::no_set
                        ? "a flag in global memory, word 0 of flag, to be 0x1: it is "
                          "0x0, which nobody has written"
                        : "word 0 of flag, to be 0x2: it is 0x1, last written by "
                          "giver (CTA 0, warp 0, lane 0) at ");
    expect_contains(report.text(), "flag_test.cpp");
  }
}

TEST_F(FlagTest, AFlagOutsideEveryTensorIsFound) {
  static std::uint32_t stranger = 0;
  const Kernel bad{{.ctas = 1, .threads = 1}, [] { isa::flag_set(&stranger, 1); }, {}};
  EXPECT_TRUE(run(bad, Options{}).has(Check::global_bounds));
}

// What is wrong with the count below.
enum class Miscount { none, orders_nothing, before_the_words, no_meeting, one_early };

constexpr int counting_ctas = 3;

// A warp of each of three CTAs writes 32 words, and one thread adds them up.
class WordsTest : public testing::Test {
 protected:
  void write() {
    isa::GlobalView<std::uint32_t>{words_.data()}.store(isa::cta_index() * 32 + isa::lane_index(),
                                                        1);
  }
  void add_up() {
    const isa::GlobalView<std::uint32_t> words{words_.data()};
    std::uint32_t sum = 0;
    for (int i = 0; i < 32 * counting_ctas; ++i) sum += words.load(i);
    isa::GlobalView<std::uint32_t>{sum_.data()}.store(0, sum);
  }

  Memory<std::uint32_t> words_{std::size_t{32} * counting_ctas};
  Memory<std::uint32_t> sum_{1};
};

// A warp of each of three CTAs writes 32 words and counts; who counts last adds all of them up.
class CountTest : public WordsTest {
 protected:
  Kernel kernel(Miscount bug) {
    return {
        .shape = {.ctas = counting_ctas, .threads = 32},
        .body = [this, bug] { work(bug); },
        .memory = {words_.allocation("words"), count_.allocation("count"), sum_.allocation("sum")},
        .dependent = true,
        .begin = [this] { count_[0] = sum_[0] = 0; }};
  }

  void work(Miscount bug) {
    isa::set_role("counter");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const int lane = isa::lane_index();
    std::uint32_t before = 0;
    const auto count = [&] {
      if (lane != 0) return;
      before = bug == Miscount::orders_nothing ? isa::draw(count_.data(), 1000, ready)
                                               : isa::flag_count(count_.data());
    };
    if (bug == Miscount::before_the_words) count();
    write();
    if (bug != Miscount::no_meeting) isa::sync_warp();
    if (bug != Miscount::before_the_words) count();
    before = isa::shuffle(before, 0);
    isa::sync_warp();
    const unsigned last = counting_ctas - (bug == Miscount::one_early ? 2 : 1);
    if (before != last || lane != 0) return;
    add_up();
  }

  Memory<std::uint32_t> count_{1};
};

TEST_F(CountTest, WhoCountsLastSeesWhatAllHaveWritten) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    must_be_clean(run(kernel(Miscount::none), how));
    EXPECT_EQ(*count_.data(), 3U);
    EXPECT_EQ(*sum_.data(), 96U);
  }
}

TEST_F(CountTest, WhatIsNotOrderedIsARace) {
  for (const Miscount bug : {Miscount::orders_nothing, Miscount::before_the_words,
                             Miscount::no_meeting, Miscount::one_early}) {
    SCOPED_TRACE(static_cast<int>(bug));
    expect_found(kernel(bug), Check::data_race);
  }
}

TEST_F(CountTest, MutantsOfACountAreKilled) {
  // Dropped, twice, twice the first time, relaxed.
  EXPECT_EQ(killed_of(SyncKind::flag_count, kernel(Miscount::none), [&] { return sum_[0] == 96; }),
            4);
}

// What is wrong with the addition below.
enum class Misadded { none, before_the_words, no_meeting, adder_reads };

// A warp of each of three CTAs writes 32 words and adds 1 to a flag; the first CTA waits for all of
// them, and adds up the words. An addition releases, and acquires nothing: who has added knows no
// more than before.
class AddTest : public WordsTest {
 protected:
  Kernel kernel(Misadded bug) {
    return {
        .shape = {.ctas = counting_ctas, .threads = 32},
        .body = [this, bug] { work(bug); },
        .memory = {words_.allocation("words"), flag_.allocation("flag"), sum_.allocation("sum")},
        .begin = [this] { flag_[0] = sum_[0] = 0; }};
  }

  void work(Misadded bug) {
    isa::set_role("adder");
    const int lane = isa::lane_index();
    const auto add = [&] {
      if (lane == 0) isa::flag_add(flag_.data());
    };
    if (bug == Misadded::before_the_words) add();
    write();
    if (bug != Misadded::no_meeting) isa::sync_warp();
    if (bug != Misadded::before_the_words) add();
    if (isa::cta_index() != 0 || lane != 0) return;
    if (bug != Misadded::adder_reads) {
      isa::flag_wait(flag_.data(), counting_ctas);
    }
    add_up();
  }

  Memory<std::uint32_t> flag_{1};
};

TEST_F(AddTest, WhoWaitsForAllSeesWhatAllHaveWritten) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    must_be_clean(run(kernel(Misadded::none), how));
    EXPECT_EQ(sum_[0], 32U * counting_ctas);
  }
}

TEST_F(AddTest, WhatIsNotOrderedIsARace) {
  for (const Misadded bug :
       {Misadded::before_the_words, Misadded::no_meeting, Misadded::adder_reads}) {
    SCOPED_TRACE(static_cast<int>(bug));
    expect_found(kernel(bug), Check::data_race);
  }
}

TEST_F(AddTest, MutantsOfAnAdditionAreKilled) {
  // Dropped, twice, twice the first time, relaxed.
  EXPECT_EQ(killed_of(SyncKind::flag_count, kernel(Misadded::none), [&] { return sum_[0] == 96; }),
            4);
}

}  // namespace
}  // namespace warpwright::model
