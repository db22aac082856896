// From a failing random schedule to the few decisions that matter.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace warpwright::model {

/// Looks for a small set of `decisions` (Report::decisions) for which `shows` is still true, as it
/// is for all of them: none; else the shortest beginning, from which delta debugging leaves out
/// ever smaller pieces, at last single decisions. Asks `shows` about `most_runs` times at most,
/// with sorted sets (Options::only); the answer is one.
std::vector<std::int64_t> shrink(const std::vector<std::int64_t>& decisions,
                                 const std::function<bool(const std::vector<std::int64_t>&)>& shows,
                                 int most_runs = 2000);

}  // namespace warpwright::model
