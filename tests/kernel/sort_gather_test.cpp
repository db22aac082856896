// The sort of few slots and the gather of their tokens in one launch, on the model: what it writes
// has the bits of the two launches, however many CTAs share it.
#include "warpwright/kernel/moe/sort_gather.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/campaign.h"
#include "tests/kernel/moved_rows.h"
#include "tests/must.h"

namespace warpwright::tests {
namespace {

using kernel::RowForm;
using kernel::SortGatherKernel;

// One launch of a routing and its tokens, and what it leaves.
class OneLaunch {
 public:
  OneLaunch(const Draw& draw, Shape shape, RowForm form, int sms, std::uint64_t seed)
      : routing_(route(draw, seed)), moved_(legal(shape, form), form, &routing_, seed) {
    p_.sort = device::sort_slots_params(routing_.sort_into(offsets_, slots_, rows_, status_));
    p_.gather.rows = moved_.params();
    p_.gather.rows.rows = nullptr;  // not read
    SortGatherKernel::shape(p_, sms);
  }
  OneLaunch(const OneLaunch&) = delete;
  OneLaunch& operator=(const OneLaunch&) = delete;

  model::Report run(const model::Options& how) {
    poison();
    const auto words = std::int64_t{4} * routing_.tokens * routing_.top_k;
    model::Kernel k;
    k.shape = {.ctas = p_.ctas,
               .threads = SortGatherKernel::threads,
               .shared_bytes = SortGatherKernel::shared_bytes_of(p_)};
    k.body = [this] { SortGatherKernel::run(p_); };
    k.memory = moved_.memory();
    k.memory.push_back({const_cast<void*>(p_.sort.ids),
                        std::int64_t{routing_.tokens} * routing_.pitch * (routing_.wide ? 8 : 4),
                        "ids", false});
    k.memory.push_back({offsets_.data(), std::int64_t{4} * (routing_.experts + 1), "offsets"});
    k.memory.push_back({slots_.data(), words, "slots"});
    k.memory.push_back({rows_.data(), words, "rows"});
    k.memory.push_back({&status_, 4, "status"});
    k.dependent = true;
    return model::run(k, how);
  }

  // What a run left that two launches would not have.
  std::string fault() {
    if (offsets_ != routing_.offsets) return "an offset is wrong";
    if (slots_ != routing_.slots) return "a slot is wrong";
    if (rows_ != routing_.rows) return "the row of a slot is wrong";
    if (status_ != routing_.status) return "the status is wrong";
    return moved_.fault();
  }

  [[nodiscard]] int ctas() const { return p_.ctas; }
  [[nodiscard]] const kernel::SortGatherParams& params() const { return p_; }

 private:
  // As the sort's memory is before it.
  void poison() {
    static_cast<void>(routing_.sort_into(offsets_, slots_, rows_, status_));
    moved_.poison();
  }

  Routing routing_;
  Moved moved_;
  std::vector<std::int32_t> offsets_, slots_, rows_;
  std::uint32_t status_ = 0;
  kernel::SortGatherParams p_;
};

void expect_right(OneLaunch& launch, const model::Options& how = {}) {
  must_be_clean(launch.run(how));
  EXPECT_EQ(launch.fault(), "");
}

TEST(SortGather, HasTheBitsOfTwoLaunches) {
  const std::uint64_t seed = 20321;
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto up_to = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int i = 0; i < (campaign() ? 2000 : 40); ++i) {
    const Draw d = any_draw(random, 1);
    Shape shape = shapes[up_to(std::size(shapes))];
    shape.tokens = d.tokens;
    const RowForm form = forms[up_to(std::size(forms))];
    const int sms = 1 + up_to(12);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", number " + std::to_string(i) + ": tokens " +
                 std::to_string(d.tokens) + ", top-k " + std::to_string(d.top_k) + ", experts " +
                 std::to_string(d.experts) + ", k " + std::to_string(shape.k) + ", form " +
                 std::to_string(static_cast<int>(form)) + ", sms " + std::to_string(sms));
    OneLaunch launch(d, shape, form, sms, seed + static_cast<std::uint64_t>(i));
    expect_right(launch);
  }
}

TEST(SortGather, Edges) {
  const auto expect = [](const Draw& draw, int k, int sms, int ctas) {
    SCOPED_TRACE(draw.tokens);
    OneLaunch launch(draw, {draw.tokens, k}, RowForm::blocks, sms, 31);
    EXPECT_EQ(launch.ctas(), ctas);
    expect_right(launch);
  };
  expect({.tokens = 1, .top_k = 1, .experts = 1}, 1, 4, 1);
  // A token by many CTAs, and an expert for each of their warps.
  expect({.tokens = 1, .top_k = 8, .experts = 128}, 2048, 132, 17);
  expect({.tokens = 9, .top_k = 2, .experts = 1024}, 128, 4, 4);
  expect({.tokens = 3, .top_k = 40, .experts = 50, .left_out_percent = 10}, 256, 1, 1);
  expect({.tokens = 33, .top_k = 1, .experts = 4, .left_out_percent = 100}, 300, 7, 7);
  expect({.tokens = 40, .top_k = 1, .experts = 4, .strange_percent = 100}, 8, 7, 7);
  // As many slots as there may be; for another rank nearly all of them.
  expect({.tokens = 512, .top_k = 8, .experts = 1, .experts_total = 128}, 8, 5, 5);
  EXPECT_TRUE(SortGatherKernel::serves(4096, 1024, false));
  EXPECT_FALSE(SortGatherKernel::serves(4097, 1, false));
  EXPECT_TRUE(SortGatherKernel::serves(1024, 128, true));
  EXPECT_FALSE(SortGatherKernel::serves(1025, 128, true));
}

// Its CTAs do not wait for each other, so the order in which they run means nothing.
TEST(SortGather, AThousandSchedules) {
  std::vector<std::uint64_t> seeds(1000);
  std::iota(seeds.begin(), seeds.end(), 1000);
  const Draw draw{.tokens = 20, .top_k = 2, .experts = 5, .left_out_percent = 5};
  for (const RowForm form : forms) {
    OneLaunch launch(draw, {20, 300}, form, 3, 40);
    for (const model::Options& how : model::schedules()) expect_right(launch, how);
    for (const std::uint64_t seed : sampled(seeds, 50)) {
      SCOPED_TRACE(seed);
      model::Options how = model::random_schedule(seed);
      expect_right(launch, how);
      how.mode = model::Mode::starve;
      expect_right(launch, how);
    }
  }
}

TEST(SortGather, MutantsAreKilled) {
  OneLaunch launch({.tokens = 70, .top_k = 2, .experts = 5, .strange_percent = 3}, {70, 130},
                   RowForm::blocks, 2, 50);
  const int killed = expect_killed([&](const model::Options& how) { return launch.run(how); },
                                   [&] { return launch.fault().empty(); }, 20);
  EXPECT_GE(killed, 10);
}

}  // namespace
}  // namespace warpwright::tests
