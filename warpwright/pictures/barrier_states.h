// How mbarriers stand behind each step of a run: a picture that one can step through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/model/report/barrier_event.h"
#include "warpwright/pictures/barrier_svg.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// How one mbarrier stands.
struct BarrierState {
  std::string barrier;  ///< "full[2]"
  bool made = false;
  std::int64_t phase = 0;  ///< its parity is phase & 1
  int arrivals = 0;        ///< a phase
  int arrived = 0;         ///< of them, in this phase
  std::int64_t bytes = 0;  ///< that this phase expects so far
  std::int64_t landed = 0;
  int waiting = 0;      ///< threads
  std::string waiters;  ///< who they are: "128 threads of TC warps"; empty without any
  friend bool operator==(const BarrierState&, const BarrierState&) = default;
};

/// A step, and how all barriers stand behind it.
struct BarrierMoment {
  BarrierStep step;
  std::vector<BarrierState> states;  ///< in the order in which the barriers were made
};

/// The moments of the barriers of one CTA that `wanted` names: "full" all of that name, "full[1]"
/// one; without any all. Steps of other barriers are left out.
std::vector<BarrierMoment> barrier_moments(const std::vector<model::BarrierEvent>& events, int cta,
                                           const std::vector<std::string>& wanted = {});

/// The barriers of a CTA, in the order in which they were made: "full[0]".
std::vector<std::string> barriers_of(const std::vector<model::BarrierEvent>& events, int cta);

/// States that are drawn at most, of all barriers and steps together: what a page has room for.
inline constexpr std::size_t most_barrier_states = 1600;

/// The view "barrier" of the barriers of one CTA that `wanted` names: a card a barrier, as it
/// stands behind the step that is shown (groups with data-step), above all of them over time. The
/// table has a row a step. Without a script a step is shown at which somebody waits.
View barrier_view(const std::vector<model::BarrierEvent>& events, int cta = 0,
                  const std::vector<std::string>& wanted = {});

}  // namespace warpwright::pictures
