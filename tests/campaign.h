// What only script/campaign runs in full, and the sample of it that script/test takes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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

/// All of them in a campaign, or its part; elsewhere every `step`-th, beginning with `first`, and a
/// line about it.
template <class T>
std::vector<T> sampled(const std::vector<T>& all, std::size_t step, std::size_t first = 0) {
  if (campaign()) return part_of(all);
  std::vector<T> some;
  for (std::size_t i = first % step; i < all.size(); i += step) some.push_back(all[i]);
  std::printf("%zu of %zu cases; script/campaign runs all\n", some.size(), all.size());
  return some;
}

}  // namespace warpwright

/// The rest of a test is only for campaigns.
#define WW_CAMPAIGN_ONLY() \
  if (!::warpwright::campaign()) GTEST_SKIP() << "did not run: a part of script/campaign"
