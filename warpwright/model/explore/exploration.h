// What a run is told of the order in which synchronising operations come, and what it tells of it.
// An Explorer (explorer.h) makes the first of the second until no order is left. docs/model.md,
// "All schedules of a small case", has the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "warpwright/model/clock.h"
#include "warpwright/model/report/site.h"

namespace warpwright::model {

/// What synchronising operations act on. Phased objects are mbarriers and named barriers; each of
/// the others (words that are drawn from, flags, queues of launch control) has one value.
struct SyncObject {
  std::uint64_t name = 0;  ///< the same in every run
  bool phased = false;
  std::uint32_t component = 0;  ///< of its flips in clocks
  std::string text;             ///< "mbarrier full[0] of CTA 1"
};

/// One operation on an object, by a thread or by an asynchronous operation, which are agents.
struct SyncEvent {
  enum class Kind : std::uint8_t {
    arrival,      ///< to a phase: an arrival, or bytes that have come
    expectation,  ///< to a phase: bytes that are to come
    observation,  ///< that a phase is complete
    read,
    write  ///< a write, or a read and a write at once
  };
  Kind kind = Kind::arrival;
  std::uint32_t object = 0;  ///< index in SyncTrace::objects
  std::uint32_t agent = 0;   ///< its component in clocks
  std::uint32_t time = 0;    ///< its number among the agent's
  std::uint32_t turn = 0;    ///< and among the agent's on this object
  std::uint64_t name = 0;    ///< of the agent, the same in every run
  /// For phased objects the phase that was current; else the writes before it.
  std::int64_t state = 0;
  Clock before;  ///< what the agent knew, without what this operation taught it
  Clock after;
  /// For a read that waits: the word it waits for, `wanted` in these bits or any other.
  std::uint32_t wanted = 0;
  std::uint32_t mask = 0;
  bool waits = false;
  bool any_other = false;
  std::uint32_t value_before = 0;  ///< of the word that a write changes
  // Who and where, for what is said of it.
  const char* role = "";
  int cta = 0;
  int thread = 0;
  const char* what = "";
  Site site;
};

/// A phase that was completed, or the last one of its object, which was not.
struct SyncPhase {
  std::uint32_t object = 0;
  std::int64_t phase = 0;
  bool complete = false;
  std::vector<std::uint32_t> arrivals;      ///< events; with expectations
  std::vector<std::uint32_t> observations;  ///< while it was current, of the one before
  Clock arrived;                            ///< of all arrivals together
};

/// A wait that nothing has ended.
struct SyncPending {
  SyncEvent wait;  ///< its state is the current one
};

/// What synchronised in a run, in the order of the run.
struct SyncTrace {
  std::vector<SyncObject> objects;
  std::vector<SyncEvent> events;
  std::vector<SyncPhase> phases;
  std::vector<SyncPending> pending;
};

/// An operation by names that hold in every run, and the state that it is to find.
struct Demand {
  std::uint64_t object = 0;
  std::uint64_t agent = 0;
  std::uint32_t turn = 0;
  SyncEvent::Kind kind = SyncEvent::Kind::arrival;
  std::int64_t state = 0;
};

/// One run: what it is told, and what it says.
struct Exploration {
  /// These operations come in this order on each object, and before all others on it.
  std::shared_ptr<const std::vector<Demand>> all;
  std::vector<bool> kept;     ///< which of them; empty: all
  std::vector<Demand> moved;  ///< and then these
  /// try_wait waits for its phase as long as anything else can go on; else it says "not yet".
  bool patient = false;
  /// The lane of a warp that elect.sync elects.
  int elected = 0;
  /// Some CTA takes clusters off the queue: then it matters when others end, and are launched.
  bool queued = false;
  /// For brute force: which of the agents that could act does, each time that there are several.
  /// Behind the end of the list the first.
  bool chooses = false;
  std::vector<std::uint32_t> choices;

  // Filled by the run.
  SyncTrace trace;
  std::uint64_t hash = 0;             ///< of the order: of every operation, who and in which state
  std::vector<std::uint32_t> widths;  ///< between how many agents each choice was
  bool asked = false;                 ///< some try_wait was asked
  bool repeated = true;               ///< what it was told could be done
  bool cancels = false;               ///< some CTA takes clusters off the queue
  /// Why its orders are not all that there are, or null.
  const char* beyond = nullptr;
};

}  // namespace warpwright::model
