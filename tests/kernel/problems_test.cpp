// Problems by seed on the model: every kernel of the build once here; script/campaign runs 100,000.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

#include "tests/kernel/problems.h"

namespace warpwright::tests {
namespace {

constexpr double most = 3e6;  // multiplications of one

TEST(Problems, OneForEveryKernel) {
  constexpr std::uint64_t first = 20261122;
  const std::size_t count = drawn_instances(true).size();
  std::printf("%zu problems by the seeds from %llu on\n", count,
              static_cast<unsigned long long>(first));
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      const Problem problem(first + i, most, true);
      const std::string said = problem.fault_on_model();
      const std::lock_guard lock(mutex);
      EXPECT_EQ(said, "") << problem.text();
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
}

// A seed is one problem, and seeds draw all that there is to draw.
TEST(Problems, SeedsNameThem) {
  std::set<std::string> kernels;
  std::set<Activation> activations;
  std::set<Scaling> scalings;
  int batches = 0, in_place = 0, shifted = 0, clusters = 0, twice = 0, in_groups = 0, larger = 0;
  constexpr int count = 3000;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Problem p(seed, most, true);
    ASSERT_EQ(p.text(), Problem(seed, most, true).text());
    kernels.insert(p.instance().name);
    twice += p.twice() ? 1 : 0;
    in_groups += p.in_groups() ? 1 : 0;
    if (p.in_groups()) {
      scalings.insert(p.groups().scaling);
      continue;
    }
    const Ask& ask = p.ask();
    activations.insert(ask.activation);
    scalings.insert(ask.scaling);
    batches += ask.batch > 1 ? 1 : 0;
    in_place += ask.in_place ? 1 : 0;
    shifted += ask.shift > 0 ? 1 : 0;
    clusters += atom::cluster_size(ask.cluster) > 1 ? 1 : 0;
    larger += static_cast<double>(ask.m) * ask.n * ask.k > 2 * most ? 1 : 0;
  }
  std::set<std::string> all;
  for (const Instance& i : drawn_instances(true)) all.insert(i.name);
  EXPECT_EQ(kernels, all);
  EXPECT_EQ(activations.size(), std::size(all_activations));
  EXPECT_GE(scalings.size(), 5U);
  for (const int often : {batches, in_place, shifted, clusters, twice, in_groups}) {
    EXPECT_GT(often, count / 50);
  }
  EXPECT_LT(larger, count / 20);
}

}  // namespace
}  // namespace warpwright::tests
