// The life of an mbarrier, event by event: what a picture of one shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/model/report/site.h"

namespace warpwright::model {

/// One thing that happened to an mbarrier, and how it stood behind it.
struct BarrierEvent {
  enum class Kind : std::uint8_t {
    init,    ///< made, with `pending` arrivals a phase
    expect,  ///< expects `amount` more transaction bytes
    bytes,   ///< `amount` of them have landed
    arrive,  ///< `amount` arrivals
    flip,    ///< the phase before `phase` is complete
    wait,    ///< somebody waits for the phase of parity `amount`, which is not complete
    pass,    ///< a wait for the phase of parity `amount` returns
  };
  Kind kind = Kind::init;
  std::int64_t time = 0;
  int cta = 0;
  std::string barrier;  ///< "full[2]"
  std::string who;      ///< thread, or the copy whose bytes landed
  std::int64_t amount = 0;
  std::int64_t phase = 0;  ///< the current one; its parity is phase & 1
  int pending = 0;         ///< arrivals that are outstanding
  int expected = 0;        ///< arrivals a phase
  std::int64_t tx = 0;     ///< transaction bytes that are outstanding
  int waiting = 0;         ///< threads that wait
  Site site;
};

/// Puts the events of a run in the order of time, with how the barriers stand behind each then: a
/// thread of the model goes on ahead of others until it meets them.
void put_in_order(std::vector<BarrierEvent>& events);

}  // namespace warpwright::model
