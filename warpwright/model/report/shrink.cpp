#include "warpwright/model/report/shrink.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace warpwright::model {

std::vector<std::int64_t> shrink(const std::vector<std::int64_t>& decisions,
                                 const std::function<bool(const std::vector<std::int64_t>&)>& shows,
                                 int most_runs) {
  const auto holds = [&shows](std::vector<std::int64_t> set) {
    std::sort(set.begin(), set.end());
    return shows(set);
  };
  if (holds({})) return {};
  std::vector<std::int64_t> kept = decisions;
  const auto begin = [&kept](std::size_t count) {
    return std::vector(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
  };
  std::size_t low = 0;
  std::size_t high = kept.size();
  int runs = 1;
  while (low + 1 < high) {
    const std::size_t middle = (low + high) / 2;
    ++runs;
    if (holds(begin(middle))) {
      high = middle;
    } else {
      low = middle;
    }
  }
  kept.resize(high);
  // Pieces of half the size after every round; single decisions until none can go.
  for (std::size_t piece = std::max<std::size_t>(1, kept.size() / 2);;) {
    bool smaller = false;
    for (std::size_t at = 0; at < kept.size() && runs < most_runs;) {
      std::vector<std::int64_t> rest = begin(at);
      const std::size_t after = std::min(at + piece, kept.size());
      rest.insert(rest.end(), kept.begin() + static_cast<std::ptrdiff_t>(after), kept.end());
      ++runs;
      if (holds(rest)) {
        kept = std::move(rest);
        smaller = true;
      } else {
        at += piece;
      }
    }
    if (runs >= most_runs || (piece == 1 && !smaller)) break;
    piece = std::max<std::size_t>(1, piece / 2);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace warpwright::model
