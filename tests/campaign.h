// What only script/campaign runs in full, and the sample of it that script/test takes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/draws.h"

namespace warpwright {

/// Does script/campaign run this?
inline bool campaign() {
  const char* asked = std::getenv("WARPWRIGHT_CAMPAIGN");
  return asked != nullptr && std::string_view(asked) == "1";
}

/// The part of a campaign that this process runs, of how many: WARPWRIGHT_CAMPAIGN_PART is "3/16"
/// where processes share the cases of a test (script/campaign --jobs).
inline std::pair<std::size_t, std::size_t> campaign_part() {
  const char* asked = std::getenv("WARPWRIGHT_CAMPAIGN_PART");
  if (asked == nullptr) return {0, 1};
  const std::string text = asked;
  return {std::stoul(text), std::stoul(text.substr(text.find('/') + 1))};
}
/// Those of a campaign's cases that are of this part.
template <class T>
std::vector<T> part_of(const std::vector<T>& all) {
  const auto [part, parts] = campaign_part();
  std::vector<T> some;
  for (std::size_t i = part; i < all.size(); i += parts) some.push_back(all[i]);
  return some;
}

/// For this machine, or for the cores that this process may use.
inline int all_threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

/// All of them in a campaign, or its part; elsewhere every `step`-th, from one on that the seed of
/// the run draws, at least one, and a line about it.
template <class T>
std::vector<T> sampled(const std::vector<T>& all, std::size_t step) {
  if (campaign()) return part_of(all);
  const std::size_t every = std::clamp<std::size_t>(all.size(), 1, step);
  // Samples of other sizes begin elsewhere.
  tests::Draws draw(tests::run_seed() + 1000003 * all.size() + step);
  std::vector<T> some;
  for (std::size_t i = static_cast<std::size_t>(draw(0, static_cast<int>(every) - 1));
       i < all.size(); i += every) {
    some.push_back(all[i]);
  }
  std::printf("%zu of %zu cases by the seed %u; script/campaign runs all\n", some.size(),
              all.size(), tests::run_seed());
  return some;
}

/// Cases that come one by one: all are taken in a campaign, elsewhere every `step`-th, from one on
/// that the seed of the run draws.
class Turns {
 public:
  explicit Turns(unsigned step) : step_(step), next_(tests::run_seed() % step) {}
  bool take() { return next_++ % step_ == 0 || campaign(); }

 private:
  unsigned step_, next_;
};

/// Which mutants are made, in the order in which they are counted.
inline auto sampled_mutants(unsigned step) {
  return [turns = Turns(step)](const auto& /*mutation*/) mutable { return turns.take(); };
}

/// The seeds 1 to `all` in a campaign, or its part of them; elsewhere every `step`-th.
inline std::vector<unsigned> sampled_seeds(unsigned all, std::size_t step) {
  std::vector<unsigned> seeds(all);
  std::iota(seeds.begin(), seeds.end(), 1U);
  return sampled(seeds, step);
}

/// How many of the sampled seeds `ran`, which returns whether the build could run its own. Where a
/// sample has none that could, the seeds behind it follow until one can.
template <class Run>
int count_ran(unsigned all, std::size_t step, Run ran) {
  const std::vector<unsigned> seeds = sampled_seeds(all, step);
  int count = 0;
  for (const unsigned seed : seeds) count += ran(seed) ? 1 : 0;
  for (unsigned more = 1; !campaign() && count == 0 && more < all; ++more) {
    count += ran(1 + (seeds.back() + more - 1) % all) ? 1 : 0;
  }
  return count;
}

}  // namespace warpwright

/// The rest of a test is only for campaigns.
#define WW_CAMPAIGN_ONLY() \
  if (!::warpwright::campaign()) GTEST_SKIP() << "did not run: a part of script/campaign"
