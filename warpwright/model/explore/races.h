// Which operations of a run could have come in another order. Internal to model/explore/.
#pragma once

#include <cstdint>
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
  std::string text;           ///< "A behind B"
};

/// The operations of a run by names that hold in every run.
std::vector<Demand> demands_of(const SyncTrace& trace);

/// Every order that a run could have had instead, each with one pair of operations turned.
std::vector<Reversal> reversals(const SyncTrace& trace);

}  // namespace warpwright::model
