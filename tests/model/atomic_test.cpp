// Words of global memory that threads update at once.
#include "warpwright/isa/atomic.h"

#include "tests/model/harness.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright::model {
namespace {

constexpr LaunchShape updaters{.ctas = 2, .threads = 64};

TEST(Atomic, UpdatesInAnyOrderGiveTheSame) {
  Memory<std::uint64_t> words(2);
  Memory<float> largest(1);
  const Kernel kernel{updaters,
                      [&] {
                        const int i = isa::cta_index() * 64 + isa::thread_index();
                        const std::uint64_t wide = std::uint64_t{1} << 40;
                        isa::global_add(&words[0], wide + static_cast<unsigned>(i));
                        isa::global_min(&words[1], 3 * wide - static_cast<unsigned>(i));
                        isa::global_max(&largest[0], 0.5F * static_cast<float>(i));
                      },
                      {words.allocation("words"), largest.allocation("largest")}};
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    words[0] = 5;
    words[1] = ~std::uint64_t{0};
    largest[0] = 0;
    must_be_clean(run(kernel, how));
    EXPECT_EQ(words[0], 5 + (std::uint64_t{128} << 40) + 127 * 64);
    EXPECT_EQ(words[1], (std::uint64_t{3} << 40) - 127);
    EXPECT_EQ(largest[0], 63.5F);
  }
}

TEST(Atomic, OrdersNothing) {
  Memory<std::uint64_t> words(1);
  expect_found({updaters,
                [&] {
                  isa::global_add(&words[0], 1);
                  if (isa::cta_index() == 1) isa::GlobalView<std::uint64_t>{&words[0]}.store(0, 0);
                },
                {words.allocation("words")}},
               Check::data_race);
}

TEST(Atomic, OfNoWordOfTheGrid) {
  Memory<std::uint64_t> words(2);
  expect_found({one_thread, [&] { isa::global_add(&words[1], 1); }, {{words.data(), 8, "a word"}}},
               Check::global_bounds);
  auto* const between = reinterpret_cast<float*>(reinterpret_cast<char*>(words.data()) + 2);
  expect_found({one_thread, [&] { isa::global_max(between, 1); }, {words.allocation("words")}},
               Check::misaligned);
}

}  // namespace
}  // namespace warpwright::model
