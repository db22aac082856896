// All schedules of small kernels: one run a class finds what every interleaving of synchronising
// operations finds, and what sampled schedules find only sometimes.
#include "warpwright/model/explore/explorer.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/must.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/draw.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/model/testing.h"

namespace warpwright::model::testing {
namespace {

using Word = std::uint32_t;

// A kernel of a few threads, each with a list of operations: all orders of them can be tried.
struct Step {
  enum class What : std::uint8_t { draw, set, await, count, arrive, wait, ask, load };
  What what = What::draw;
  int at = 0;  // word or barrier
  Word value = 0;
};
using Program = std::vector<std::vector<Step>>;

constexpr int words = 4;  // two for flags, two to draw from
constexpr int barriers = 2;

class Interpreter {
 public:
  Interpreter(const Program& program, std::vector<int> counts)
      : program_(program), counts_(std::move(counts)) {}

  void operator()(Word* word, const float* memory) {
    const int thread = isa::thread_index();
    isa::set_role("worker");
    const isa::SharedAddress at = isa::shared_base();
    if (thread == 0) {
      for (int b = 0; b < barriers; ++b) {
        isa::mbarrier_init(at + 8 * static_cast<unsigned>(b), counts_[static_cast<std::size_t>(b)]);
      }
      isa::fence_mbarrier_init();
    }
    isa::cluster_arrive();
    isa::cluster_wait();
    for (const Step& step : program_[static_cast<std::size_t>(thread)]) {
      act(step, word, at + 8 * static_cast<unsigned>(step.at), memory);
    }
  }

  std::vector<std::vector<Word>> log;

 private:
  void act(const Step& step, Word* word, isa::SharedAddress bar, const float* memory) {
    std::vector<Word>& mine = log[static_cast<std::size_t>(isa::thread_index())];
    const int parity = static_cast<int>(step.value);
    switch (step.what) {
      case Step::What::draw:
        return mine.push_back(
            isa::draw(word + 2 + step.at, step.value, isa::wait_for_prerequisites()));
      case Step::What::set:
        return isa::flag_set(word + step.at, step.value);
      case Step::What::await:
        return mine.push_back(isa::flag_wait(word + step.at, step.value));
      case Step::What::count:
        return mine.push_back(isa::flag_count(word + step.at, step.value));
      case Step::What::arrive:
        return isa::mbarrier_arrive<isa::Scope::cta>(bar);
      case Step::What::wait:
        return isa::mbarrier_wait<isa::Scope::cta>(bar, parity);
      case Step::What::ask:
        if (isa::mbarrier_try_wait<isa::Scope::cta>(bar, parity)) return;
        return isa::mbarrier_wait<isa::Scope::cta>(bar, parity);
      case Step::What::load:
        isa::mbarrier_arrive_expect(bar, 16);
        return isa::bulk_load(isa::shared_base() + 128 + 16 * static_cast<unsigned>(step.value),
                              memory, 16, bar);
    }
  }

  const Program& program_;
  std::vector<int> counts_;
};

// What the runs of one order come to: what the threads got, and all that is found in any of them:
// what the state of the machine tells may depend on what has come of an operation that nobody waits
// for. That is all that is known about runs that a finding ends before their time.
struct End {
  std::set<std::string> codes;
  std::vector<std::vector<Word>> log;
  friend bool operator==(const End&, const End&) = default;
};
constexpr std::uint64_t ended_early = 1;
using Ends = std::map<std::uint64_t, End>;

class Case {
 public:
  Case(const Program& program, std::vector<int> counts) : interpreter_(program, std::move(counts)) {
    threads_ = static_cast<int>(program.size());
    std::fill(word_.begin(), word_.end(), 0U);
  }

  // Runs it once, and adds what came of it.
  void run(Exploration& exploration, Ends& all) {
    interpreter_.log.assign(static_cast<std::size_t>(threads_), {});
    std::fill(word_.begin(), word_.end(), 0U);
    Options how;
    how.exploration = &exploration;
    const Report report = model::run({.threads = threads_, .shared_bytes = 1024}, how,
                                     {word_.allocation(), memory_.allocation()},
                                     [this] { interpreter_(word_.data(), memory_.data()); });
    const bool ends = !report.has(Check::arrival_count);
    End& end = all[ends ? exploration.hash : ended_early];
    for (const Finding& f : report.findings) {
      // What an exit finds of a load that nobody waits for, B8 says in every run of the order.
      if (f.check == Check::transaction_bytes && report.has(Check::barrier_outlived)) continue;
      end.codes.insert(std::string(code(f.check)));
    }
    if (!ends) return;
    if (end.log.empty()) end.log = interpreter_.log;
    EXPECT_EQ(end.log, interpreter_.log) << "one order, two results";
  }

  // Every interleaving.
  Ends all(std::size_t most) {
    Ends ends;
    std::vector<std::uint32_t> choices;
    for (runs = 0; runs < most; ++runs) {
      Exploration one;
      one.chooses = true;
      one.choices = choices;
      run(one, ends);
      choices.resize(one.widths.size());
      while (!choices.empty() && choices.back() + 1 == one.widths[choices.size() - 1]) {
        choices.pop_back();
      }
      if (choices.empty()) return ends;
      ++choices.back();
    }
    return {};
  }

  Ends reduced() {
    Explorer explorer({.classes = 100'000, .seconds = 60});
    Ends ends;
    while (auto task = explorer.take()) {
      run(task->run, ends);
      explorer.give(*std::move(task));
    }
    explored = explorer.explored();
    return ends;
  }

  Explored explored;
  std::size_t runs = 0;

 private:
  Interpreter interpreter_;
  int threads_ = 0;
  Buffer<Word> word_{"word", words};
  Buffer<float> memory_{"memory", 64, Access::input};
};

std::string text(const Ends& ends) {
  std::string all;
  for (const auto& [hash, end] : ends) {
    all += std::to_string(hash % 10000) + ":";
    for (const std::string& c : end.codes) all += " " + c;
    for (const auto& of : end.log) {
      all += " [";
      for (const Word w : of) all += " " + std::to_string(w);
      all += " ]";
    }
    all += "\n";
  }
  return all;
}

std::string text(const Program& program) {
  constexpr const char* names[] = {"draw",   "set",  "await", "count",
                                   "arrive", "wait", "ask",   "load"};
  std::string all;
  for (const auto& thread : program) {
    for (const Step& s : thread) {
      all += std::string(names[static_cast<int>(s.what)]) + "(" + std::to_string(s.at) + "," +
             std::to_string(s.value) + ") ";
    }
    all += "\n";
  }
  return all;
}

Program random_program(std::mt19937& random, std::vector<int>& counts) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Program program(2 + static_cast<std::size_t>(below(2)));
  counts = {1 + below(2), 1 + below(2)};
  for (auto& thread : program) {
    const int steps = 1 + below(program.size() == 2 ? 5 : 3);
    for (int i = 0; i < steps; ++i) {
      Step s;
      s.what = static_cast<Step::What>(below(8));
      s.at = below(2);
      s.value = static_cast<Word>(below(2));
      if (s.what == Step::What::set || s.what == Step::What::count) s.value = 1;
      if (s.what == Step::What::draw) s.value = 3;
      thread.push_back(s);
    }
  }
  return program;
}

// The same orders, each with the same values, and the same findings in each.
void compare(const Program& program, const std::vector<int>& counts) {
  SCOPED_TRACE(text(program) + "counts " + std::to_string(counts[0]) + " " +
               std::to_string(counts[1]));
  Case brute(program, counts);
  const Ends expected = brute.all(campaign() ? 5000 : 1000);
  if (expected.empty()) return;  // too many interleavings
  Case reduced(program, counts);
  const Ends found = reduced.reduced();
  if (expected.contains(ended_early)) {
    EXPECT_FALSE(reduced.explored.complete);
    EXPECT_TRUE(found.contains(ended_early));
    return;
  }
  EXPECT_TRUE(reduced.explored.complete) << reduced.explored.why;
  EXPECT_TRUE(found == expected) << "all interleavings:\n"
                                 << text(expected) << "one run a class:\n"
                                 << text(found);
}

TEST(Explore, FindsWhatEveryInterleavingFinds) {
  for (const unsigned seed : sampled_seeds(2000, 50)) {
    std::mt19937 random(seed);
    std::vector<int> counts;
    const Program program = random_program(random, counts);
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare(program, counts);
  }
}

// Numbers that four CTAs draw: what the kernel does wrong it does in two of 24 orders.
TEST(Explore, AlwaysFindsWhatOneOrderShows) {
  Buffer<Word> counter("counter", 1);
  Buffer<Word> flag("flag", 1);
  counter[0] = flag[0] = 0;
  const auto kernel = [&] {
    isa::set_role("worker");
    const Word drawn = isa::draw(counter.data(), 3, isa::wait_for_prerequisites());
    const int cta = isa::cta_index();
    // Both ends must have come the other way round for the flag to stay down.
    if (cta == 0 && drawn != 3) isa::flag_set(flag.data(), 1);
    if (cta == 3 && drawn != 0) isa::flag_set(flag.data(), 1);
    if (cta == 1) isa::flag_wait(flag.data(), 1);
  };
  Launch launch{.ctas = 4, .threads = 1};
  launch.schedules.exhaustive.emplace();
  const Outcome all = testing::run(kernel, launch, counter, flag);
  EXPECT_TRUE(all.explored->complete) << all.explored->why;
  EXPECT_GE(all.explored->classes, 24);
  EXPECT_ONLY_FINDINGS(all, Check::deadlock);
  int seen = 0;
  constexpr int tried = 40;
  for (std::uint64_t seed = 1; seed <= tried; ++seed) {
    counter[0] = flag[0] = 0;
    launch.schedules = {.timed = false, .random = 6, .starve = 2, .first_seed = 10 * seed};
    seen += testing::run(kernel, launch, counter, flag).has(Check::deadlock) ? 1 : 0;
  }
  EXPECT_GT(seen, 0);
  EXPECT_LT(seen, tried);
}

// A flag that goes on to 2 before somebody has seen that it is 1.
TEST(Explore, AFlagThatGoesOnTooEarlyHangs) {
  Buffer<Word> flag("flag", 1);
  flag[0] = 0;
  const auto kernel = [&] {
    isa::set_role(isa::cta_index() == 0 ? "giver" : "taker");
    if (isa::cta_index() == 0) {
      isa::flag_set(flag.data(), 1);
      isa::flag_set(flag.data(), 2);
    } else {
      isa::flag_wait(flag.data(), 1);
    }
  };
  Launch launch{.ctas = 2, .threads = 1};
  launch.schedules.exhaustive.emplace();
  const Outcome all = testing::run(kernel, launch, flag);
  EXPECT_TRUE(all.explored->complete) << all.explored->why;
  EXPECT_EQ(all.explored->classes, 2);
  EXPECT_EQ(all.count(Check::deadlock), 1) << all.text();
}

// Three warps come to a named barrier for two, and only the first waits: who meets whom is open.
TEST(Explore, NamedBarriersPairWhoeverComes) {
  const auto kernel = [] {
    isa::set_role("warp");
    if (isa::thread_index() < 32) {
      isa::named_barrier_sync(1, 64);
    } else {
      isa::named_barrier_arrive(1, 64);
    }
  };
  const LaunchShape shape{.threads = 96, .shared_bytes = 1024};
  std::set<std::uint64_t> expected;
  std::vector<std::uint32_t> choices;
  do {
    Exploration one;
    one.chooses = true;
    one.choices = choices;
    Options how;
    how.exploration = &one;
    model::run(shape, how, {}, kernel);
    expected.insert(one.hash);
    choices.resize(one.widths.size());
    while (!choices.empty() && choices.back() + 1 == one.widths[choices.size() - 1]) {
      choices.pop_back();
    }
    if (!choices.empty()) ++choices.back();
  } while (!choices.empty());
  Launch launch{.threads = 96, .shared_bytes = 1024};
  launch.schedules.exhaustive.emplace();
  const Outcome all = testing::run(kernel, launch);
  EXPECT_TRUE(all.explored->complete) << all.explored->text();
  EXPECT_EQ(all.explored->classes, static_cast<std::int64_t>(expected.size()));
  EXPECT_EQ(expected.size(), 3U);
  EXPECT_EQ(all.count(Check::deadlock), 1) << all.text();
}

TEST(Explore, StopsAtALimitAndSaysSo) {
  Buffer<Word> counter("counter", 1);
  counter[0] = 0;
  const auto kernel = [&] { isa::draw(counter.data(), 5, isa::wait_for_prerequisites()); };
  Launch launch{.ctas = 6, .threads = 1};
  launch.schedules.exhaustive.emplace();
  const Outcome all = testing::run(kernel, launch, counter);
  EXPECT_EQ(all.explored->text(), "all 720 classes of schedules of this case");
  counter[0] = 0;
  launch.schedules.exhaustive->classes = 50;
  const Outcome some = testing::run(kernel, launch, counter);
  EXPECT_FALSE(some.explored->complete);
  EXPECT_EQ(some.explored->classes, 50);
  expect_contains(some.explored->text(), "not all: as many as were asked for");
}

}  // namespace
}  // namespace warpwright::model::testing
