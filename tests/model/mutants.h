// Mutants of the small kernels: killed, or the same program.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/model/harness.h"
#include "warpwright/model/mutation.h"

namespace warpwright::model {

/// What a run of the kernel executes.
inline std::vector<SyncSite> sites_of(const Kernel& kernel) {
  Options how;
  how.count_sites = true;
  return run(kernel, how).sites;
}

/// Under some schedule a check speaks about the mutant.
inline bool killed(const Kernel& kernel, const Mutation& mutation) {
  std::vector<Options> all = schedules();
  for (std::uint64_t seed = 100; seed < 130; ++seed) all.push_back(random_schedule(seed));
  return std::any_of(all.begin(), all.end(), [&](Options how) {
    how.mutation = mutation;
    return !run(kernel, how).clean();
  });
}

/// Under every schedule the mutant orders the same.
inline bool same(const Kernel& kernel, const Mutation& mutation) {
  const std::vector<Options> all = schedules();
  return std::all_of(all.begin(), all.end(), [&](Options how) {
    how.hash_order = true;
    const std::uint64_t unbroken = run(kernel, how).order_hash;
    how.mutation = mutation;
    return run(kernel, how).order_hash == unbroken;
  });
}

/// Every mutant is one or the other; returns how many were killed.
inline int killed_or_same(const Kernel& kernel) {
  int killed_ones = 0;
  for (const Mutation& m : mutations(sites_of(kernel))) {
    SCOPED_TRACE(text(m) + ", " + std::string(m.how()));
    const bool is_killed = killed(kernel, m);
    killed_ones += is_killed ? 1 : 0;
    EXPECT_TRUE(is_killed || same(kernel, m));
  }
  return killed_ones;
}

/// Every mutant of these statements is found by a check, or by what it leaves; returns how many.
template <class IsRight>
int killed_of(SyncKind kind, const Kernel& kernel, const IsRight& is_right) {
  int found = 0;
  for (const Mutation& m : mutations(sites_of(kernel))) {
    if (m.at != kind) continue;
    SCOPED_TRACE(text(m) + ", " + std::string(m.how()));
    ++found;
    bool is_killed = false;
    for (Options how : schedules()) {
      how.mutation = m;
      is_killed = is_killed || !run(kernel, how).clean() || !is_right();
    }
    EXPECT_TRUE(is_killed);
  }
  return found;
}

}  // namespace warpwright::model
