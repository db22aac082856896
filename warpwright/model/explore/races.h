// Which operations of a run could have come in another order. Internal to model/explore/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "warpwright/model/explore/exploration.h"

namespace warpwright::model {

/// Another order: what is kept of a run's operations, in their order, and what comes behind these
/// and before all others on its object. One of them is delayed so.
struct Reversal {
  std::vector<bool> kept;     ///< of SyncTrace::events
  std::vector<Demand> moved;  ///< none, or the one that now comes first
  std::uint64_t hash = 0;     ///< of all this: equal are the same
  /// Exploration::hash of the run that differs in the pair only; 0 where there is none. Where that
  /// has been run, it is one that this order asks for.
  std::uint64_t expected = 0;
  std::string text;  ///< "A behind B"
};

/// The operations of a run by names that hold in every run.
std::vector<Demand> demands_of(const SyncTrace& trace);

/// Every order that a run could have had instead, each with one pair of operations turned, but for
/// those that expect a run which is `known`.
std::vector<Reversal> reversals(const Exploration& run,
                                const std::function<bool(std::uint64_t)>& known);

}  // namespace warpwright::model
