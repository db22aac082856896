// The order checker, tensor maps in global memory: they are written by threads and read by TMA
// through a proxy of its own, which sees a write only behind a release by its writer and an
// acquire by the thread that uses the map.
#include <algorithm>

#include "warpwright/model/parts.h"

namespace warpwright::model {

void Order::acquires_map(Thread& by, std::uintptr_t address) {
  ThreadOrder& t = by.order;
  const auto known = std::find_if(t.maps.begin(), t.maps.end(),
                                  [&](const AcquiredMap& m) { return m.address == address; });
  AcquiredMap& map = known == t.maps.end() ? t.maps.emplace_back() : *known;
  map = {address, t.order, t.grid, t.time};
  tick(by);
}

Order::Verdict Order::judge_map(const Thread& t, const Actor& y, const Entry& x) const {
  const ThreadOrder& me = t.order;
  const ClusterOrder& cluster = t.cta->cluster->order;
  const bool own = x.who == me.number;
  const auto knows = [&](const Clock& order, const Clock& grid, std::uint32_t time) {
    if (!cluster.has(x.who)) return knows_far(grid, x.who, x.who, x.time);
    return own ? time >= x.time : order[x.who - cluster.first_thread] >= x.time;
  };
  if (x.asynchronous) return Verdict::unreleased;
  if (!knows(me.order, me.grid, me.time)) return Verdict::race;
  if (!x.map) return Verdict::unreleased;
  return knows(y.map->order, y.map->grid, y.map->time) ? Verdict::ordered : Verdict::unacquired;
}

void Order::uses_map(std::uint32_t operation, Thread& by, std::uintptr_t address, Site site) {
  const std::vector<AcquiredMap>& maps = by.order.maps;
  const auto acquired = std::find_if(maps.begin(), maps.end(),
                                     [&](const AcquiredMap& m) { return m.address == address; });
  if (acquired == maps.end()) {
    // Whoever wrote it, this grid or one before: without the acquire an old map may be in use.
    Finding f{Check::tensor_map_changed, {}, site};
    explain_map(f, Verdict::unacquired);
    f.sentence = machine_.who(by) + ": " + operations_[operation].what +
                 " goes through a tensor map in global memory that this thread has not acquired. "
                 "Missing: " +
                 f.missing + ". Mend: " + f.mend;
    machine_.report(std::move(f));
    return;
  }
  if (!tracked(address, sizeof(TensorMap))) return;
  Thread* const self = &by;
  const Operation& op = operations_[operation];
  Actor y;
  y.threads = {&self, 1};
  y.asynchronous = true;
  y.in_shared = false;
  y.map = &*acquired;
  y.what = op.what;
  y.entry = {operation, 0, op.place, 0xffff, true, false, true};
  for (std::uintptr_t at = address; at < address + sizeof(TensorMap); at += 16) {
    enter(*global_cell(at), y, at);
  }
}

void Order::explain_map(Finding& f, Verdict verdict) {
  f.check = Check::tensor_map_changed;
  if (verdict == Verdict::unreleased) {
    f.missing = "a release of the map by its writer to the proxy through which copies read it";
    f.mend =
        "write the map in shared memory and copy it with tensormap_cp_fenceproxy(), which releases "
        "it";
  } else {
    f.missing =
        "an acquire of the map by the thread that issues the copy, after it has learnt of the "
        "write";
    f.mend =
        "call fence_proxy_tensormap_acquire() in the issuing thread, behind the barrier or the "
        "wait_for_prerequisites() that follows the write";
  }
}

}  // namespace warpwright::model
