// What something costs in time of the processor: other work on the machine lengthens the clock's.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace warpwright::tests {

/// The least of so many runs, in seconds.
template <class Run>
double least_seconds(int runs, const Run& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const std::clock_t start = std::clock();
    run();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

}  // namespace warpwright::tests
