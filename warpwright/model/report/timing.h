// What operations cost in Mode::timed: a machine in numbers, as the parts of the model use it.
//
// A thread's own instructions cost clocks of its time. What several share, an SM's units, are
// queues: they take work in the order in which it comes and do one piece at a time. All CTAs of an
// SM share them. docs/trace.md says what is left out.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "warpwright/facts/costs.h"

namespace warpwright::model {

/// The path of costs that led to a moment, by the last step of it; 0 where it is not recorded.
using Step = std::uint32_t;

/// A point of the virtual time, and how it came about.
template <class T>
struct Stamped {
  T at{};
  Step step = 0;
  constexpr operator T() const { return at; }  // NOLINT: it stands for its time
};
using Moment = Stamped<std::int64_t>;
using Until = Stamped<double>;

/// All steps of a run (Options::work): each a cost behind the step before.
class PathLog {
 public:
  Step add(Step before, CostKey key, double amount) {
    steps_.push_back({before, key, static_cast<float>(amount)});
    return static_cast<Step>(steps_.size());
  }
  /// What is on the way to a step, and in all steps.
  [[nodiscard]] CostCounts path(Step to) const;
  [[nodiscard]] CostCounts all() const;

 private:
  struct Entry {
    Step before;
    CostKey key;
    float amount;
  };
  std::vector<Entry> steps_;  // of 1 and on
};

/// The units of one SM, in Mode::timed: when each is free.
struct SmUnits {
  Until tma;                         ///< the engine that makes requests of copies
  Until read;                        ///< the way from L2
  Until write;                       ///< and back
  Until lsu;                         ///< the path of cp.async
  Until shared;                      ///< shared memory, as far as warps read and write it together
  Until tensor;                      ///< of wgmma and tcgen05: all four tensor cores
  const void* multiplies = nullptr;  ///< whose wgmmas it did last
  std::array<Until, 4> mma{};        ///< of mma.sync: a partition's tensor core
};

}  // namespace warpwright::model
