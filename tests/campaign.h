// What only script/campaign runs in full, and the sample of it that script/test takes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace warpwright {

/// Does script/campaign run this?
inline bool campaign() {
  const char* asked = std::getenv("WARPWRIGHT_CAMPAIGN");
  return asked != nullptr && std::string_view(asked) == "1";
}

/// All of them in a campaign; elsewhere every `step`-th, beginning with `first`, and a line about
/// it.
template <class T>
std::vector<T> sampled(const std::vector<T>& all, std::size_t step, std::size_t first = 0) {
  if (campaign()) return all;
  std::vector<T> some;
  for (std::size_t i = first % step; i < all.size(); i += step) some.push_back(all[i]);
  std::printf("%zu of %zu cases; script/campaign runs all\n", some.size(), all.size());
  return some;
}

}  // namespace warpwright

/// The rest of a test is for campaigns alone.
#define WW_CAMPAIGN_ONLY() \
  if (!::warpwright::campaign()) GTEST_SKIP() << "did not run: a part of script/campaign"
