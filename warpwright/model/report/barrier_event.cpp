#include "warpwright/model/report/barrier_event.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace warpwright::model {

void put_in_order(std::vector<BarrierEvent>& events) {
  const auto sooner = [](const BarrierEvent& a, const BarrierEvent& b) { return a.time < b.time; };
  if (std::is_sorted(events.begin(), events.end(), sooner)) return;
  std::stable_sort(events.begin(), events.end(), sooner);
  struct Barrier {
    std::int64_t phase = 0;
    int pending = 0;
    std::int64_t tx = 0;
    std::set<std::string> waiting;
  };
  std::map<std::pair<int, std::string>, Barrier> barriers;
  using Kind = BarrierEvent::Kind;
  std::erase_if(events, [&](BarrierEvent& e) {
    Barrier& bar = barriers[{e.cta, e.barrier}];
    // Whose phase is complete by then does not wait for it.
    if (e.kind == Kind::wait && (bar.phase & 1) != e.amount) return true;
    if (e.kind == Kind::init) bar = {e.phase, e.pending, e.tx, {}};
    if (e.kind == Kind::expect) bar.tx += e.amount;
    if (e.kind == Kind::bytes) bar.tx -= e.amount;
    if (e.kind == Kind::arrive) bar.pending -= static_cast<int>(e.amount);
    if (e.kind == Kind::wait) bar.waiting.insert(e.who);
    if (e.kind == Kind::pass) bar.waiting.erase(e.who);
    if (e.kind == Kind::flip) {
      bar.phase = e.phase;
      bar.pending = e.expected;
    }
    e.phase = bar.phase;
    e.pending = bar.pending;
    e.tx = bar.tx;
    e.waiting = static_cast<int>(bar.waiting.size());
    return false;
  });
}

}  // namespace warpwright::model
