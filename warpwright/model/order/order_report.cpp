// What the order checker says of two accesses without an order.
#include "warpwright/model/order/order.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {

namespace {

std::string barrier_name(const Operation& load) {
  return std::string(load.barrier) + "[" + std::to_string(load.barrier_index) + "]";
}

std::string fence_for(bool in_shared) {
  return in_shared ? "fence_proxy_async_shared" : "fence_proxy_async_global";
}

// Which wait says that an asynchronous operation without an mbarrier is over.
struct GroupWait {
  std::string_view what;
  const char* missing;
  const char* mend;
};
constexpr GroupWait group_waits[] = {
    {"tcgen05.mma", "a wait for an mbarrier on which a tcgen05.commit after the MMA arrives",
     "commit to the barrier of the stage, and wait on it before the memory is reused"},
    {"tcgen05.cp", "a wait for an mbarrier on which a tcgen05.commit after the copy arrives",
     "commit to the barrier of the stage, and wait on it before the memory is reused"},
    {"wgmma", "a wgmma.wait_group that covers the wgmma's reads",
     "wait for its group (wgmma_wait) before the arrival that hands the memory on"},
    {"cp.async", "a cp.async.wait_group that covers the copy's group, in the thread that issued it",
     "copy_async_wait with fewer groups left pending, then a barrier; or copy_async_arrive behind "
     "the copy, and a wait for that mbarrier"},
};
constexpr GroupWait store_written = {
    "", "a cp.async.bulk.wait_group for the store's group",
    "bulk_wait (not bulk_wait_read) in the issuing thread, then a barrier"};
constexpr GroupWait store_read = {
    "", "a cp.async.bulk.wait_group.read for the store's group",
    "bulk_wait_read in the issuing thread, then a barrier before the memory is reused"};

const GroupWait& wait_for(std::string_view what, bool until_written) {
  const auto* const found = std::ranges::find(group_waits, what, &GroupWait::what);
  if (found != std::end(group_waits)) return *found;
  return until_written ? store_written : store_read;
}

}  // namespace

// --- reports -------------------------------------------------------------------------------------
std::string Order::thread_text(std::uint32_t number, std::uint32_t place) const {
  const GridRun& grid = machine_.grid_of(number);
  const std::uint32_t at = number - grid.first_number;
  return std::string(places_[place].role) + " (" +
         machine_.place_text(grid, at / grid.threads_per_cta, at % grid.threads_per_cta) + ")";
}

Access Order::describe(std::uint32_t number, std::uint32_t place, bool asynchronous, bool write,
                       const char* what) const {
  const GridRun& grid = machine_.grid_of(number);
  const std::uint32_t at = number - grid.first_number;
  Access a;
  a.role = places_[place].role;
  a.cta = static_cast<int>(at / grid.threads_per_cta);
  a.warp = static_cast<int>(at % grid.threads_per_cta / warp_lanes);
  a.lane = static_cast<int>(at % warp_lanes);
  a.site = places_[place].site;
  a.instruction = what;
  a.proxy = asynchronous ? "async" : "generic";
  a.write = write;
  return a;
}

Order::Touched Order::touched(const Actor& y, const Entry& x, std::uintptr_t at) const {
  const auto both = static_cast<std::uint16_t>(x.mask & y.entry.mask);
  const std::uintptr_t begin = at + static_cast<std::uintptr_t>(std::countr_zero(both));
  const int bytes = 16 - std::countl_zero(both) - std::countr_zero(both);
  if (y.in_shared) {
    return {"shared memory of CTA rank " + std::to_string(y.cta->rank), begin, bytes};
  }
  for (const Allocation& a : machine_.allocations()) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    if (begin < base || begin >= base + static_cast<std::uintptr_t>(a.bytes)) continue;
    return {a.name, begin - base, bytes};
  }
  return {"global memory", begin, bytes};
}

void Order::explain_proxy(Finding& f, const Pair& pair) const {
  const Thread& t = pair.t;
  const Actor& y = pair.y;
  const Entry& x = pair.x;
  f.check = Check::missing_proxy_fence;
  f.missing = "a proxy fence between the generic write and the asynchronous access";
  f.mend = "call " + fence_for(y.in_shared) +
           "() in the writing thread after its write and before the barrier or arrival that the "
           "issuing thread waits for";
  if (pair.op != nullptr) {  // a copy that was waited for: the waiter is to fence
    if (t.order.fence_time == 0 || t.order.fence_waits + 1 != t.order.waits) return;
    f.missing += "; the fence that " + machine_.who(t) + " executed at " +
                 at_line(t.order.fence_site) + " comes before the wait at " +
                 at_line(t.waited.site);
    f.mend = "move that fence behind the wait";
    return;
  }
  const auto group = static_cast<std::size_t>(f.accesses[0].warp * warp_lanes / warpgroup_threads);
  const CtaOrder::Fence& near =
      t.cta->order.fences[std::min(group, t.cta->order.fences.size() - 1)];
  if (t.order.fence_time > x.time && x.who != t.order.number) {
    f.check = Check::misplaced_proxy_fence;
    f.missing += "; the fence that " + machine_.who(t) + " executed at " +
                 at_line(t.order.fence_site) +
                 " came before it learnt of the write, so it does not cover it";
  } else if (near.time > x.time && near.number != x.who && y.in_shared) {
    f.check = Check::misplaced_proxy_fence;
    f.missing += "; the fence that " + thread_text(near.number, near.place) + " executed at " +
                 at_line(places_[near.place].site) +
                 " covers only what that thread knew, and this write was not among it";
  }
}

bool Order::explain_landing(Finding& f, const Pair& pair) const {
  const Operation& first = *pair.op;
  const Operation* const second =
      pair.y.asynchronous ? &operations_[pair.y.entry.who] : nullptr;  // what comes after it
  if (second == nullptr || second->barrier == nullptr || first.barrier == nullptr) return false;
  const bool one_barrier = second->barrier_index == first.barrier_index &&
                           std::string_view(second->barrier) == first.barrier;
  if (!one_barrier) {
    f.missing = "places of their own: copies that signal " + barrier_name(first) + " and " +
                barrier_name(*second) + " land in the same bytes, and nobody waited for the first";
    f.mend = "wait on " + barrier_name(first) +
             " before; if these are two stages, look where each begins: they overlap";
    return true;
  }
  if (f.accesses[0].cta == f.accesses[1].cta) return false;
  f.missing = "places of their own: copies that two CTAs issue for " + barrier_name(first) +
              " land in the same bytes of one CTA";
  f.mend = "look at the multicast masks and at which slice each CTA loads";
  return true;
}

void Order::explain_unfinished(Finding& f, const Pair& pair) const {
  const Operation& op = *pair.op;
  f.check = pair.x.map ? Check::tensor_map_changed : Check::in_flight_access;
  if (explain_landing(f, pair)) return;
  const std::string what = op.what;
  if (op.barrier != nullptr && explain_bytes(f, op)) return;
  if (op.barrier == nullptr && explain_commit(f, op)) return;
  if (op.barrier != nullptr) {
    const std::string name = barrier_name(op);
    f.missing = "a wait for the phase of mbarrier " + name + " that the " + what + " signals";
    f.mend = "wait on " + name + " before, in this thread or in one that it then meets";
    const Thread::Waited& waited = pair.t.waited;
    if (waited.barrier == op.signals && waited.phase < op.phase) {
      f.missing += "; its latest wait on it, at " + at_line(waited.site) +
                   (waited.phase < 0 ? ", passed as the barrier was fresh"
                                     : ", saw phase " + std::to_string(waited.phase)) +
                   ", and the copy signals phase " + std::to_string(op.phase);
      f.mend = "look at the parity of that wait: it does not turn with the phases";
    }
  } else if (op.time != 0 && op.issuer->order.order[op.component] >= op.time) {
    f.missing = "an edge from the wait that saw the " + what + " complete, in " +
                thread_text(op.number, op.place) + ", to this access";
    f.mend = "put a barrier, or an arrival and its wait, after that wait and before this access";
  } else {
    const GroupWait& wait = wait_for(what, pair.x_write || pair.x.map);
    f.missing = wait.missing;
    f.mend = wait.mend;
  }
}

void Order::explain_scope(Finding& f, const Pair& pair) const {
  f.check = Check::weak_scope;
  f.missing = "an order at cluster scope: ";
  const Cluster& cluster = *pair.t.cta->cluster;
  const std::uint32_t c = pair.x_number - cluster.order.first_thread;
  const ThreadOrder::Weak* weak =
      pair.op != nullptr
          ? nullptr
          : weak_arrival(cluster, pair.x_number, pair.x.time, pair.t.order.executed[c]);
  if (weak == nullptr) {
    f.missing +=
        "the only path from one to the other goes through an arrival or a wait on an mbarrier at "
        "CTA scope, or through one that is relaxed";
    f.mend = "arrive and wait with Scope::cluster on both sides";
    return;
  }
  const std::string line = at_line(places_[weak->place].site);
  if (weak->barrier == nullptr) {
    f.missing +=
        "the only path from one to the other goes through the cluster barrier, where the "
        "arrival at " +
        line + " is relaxed and hands on no write";
    f.mend = "cluster_arrive() there, in place of cluster_arrive_relaxed()";
    return;
  }
  f.missing += "the only path from one to the other goes through mbarrier " +
               std::string(weak->barrier) + "[" + std::to_string(weak->index) +
               "], where the arrival at " + line +
               (weak->relaxed ? " is relaxed" : " is at CTA scope");
  f.mend = "arrive there with Scope::cluster, and wait with Scope::cluster";
}

void Order::explain_race(Finding& f, const Pair& pair) const {
  f.check = Check::data_race;
  if (&machine_.grid_of(pair.x_number) != pair.t.cta->grid) {
    f.missing = "any order: the grids overlap";
    f.mend = "call wait_for_prerequisites() before the access";
  } else if (pair.t.cta->cluster->order.has(pair.x_number)) {
    f.missing = "any order: no barrier, arrival or wait leads from one to the other";
    f.mend = "let both threads meet at a barrier, or hand the memory over through an mbarrier";
  } else {
    f.missing = "any order: the CTAs belong to different clusters of one grid";
    f.mend = flags_set_
                 ? "after its accesses, and those of threads that it has met, let one thread call "
                   "flag_set(), which releases them; flag_wait() in the other cluster, before its "
                   "threads meet and go on"
                 : "let every byte be written by one cluster only, or hand it over with "
                   "flag_set() and flag_wait()";
  }
}

bool Order::explain(Finding& f, const Pair& pair, Verdict verdict) const {
  switch (verdict) {
    case Verdict::proxy:
      explain_proxy(f, pair);
      return true;
    case Verdict::read_proxy:
      f.check = Check::read_then_async_write;
      f.missing = "a proxy fence between the generic read and the asynchronous write";
      f.mend = "call " + fence_for(pair.y.in_shared) +
               "() in the reading thread before it hands the memory back";
      return true;
    case Verdict::scope:
      explain_scope(f, pair);
      return true;
    case Verdict::unreleased:
    case Verdict::unacquired:
      explain_map(f, verdict);
      return true;
    case Verdict::unfinished:
      explain_unfinished(f, pair);
      return true;
    case Verdict::race:
      explain_race(f, pair);
      return true;
    case Verdict::ordered:
    case Verdict::unwaited:
    case Verdict::no_before:
    case Verdict::no_after:
      return false;
  }
  return false;
}

void Order::report(const Thread& t, const Actor& y, const Entry& x, bool x_write, Verdict verdict,
                   std::uintptr_t at) {
  const Operation* const op = x.asynchronous ? &operations_[x.who] : nullptr;
  const std::uint32_t x_place = op != nullptr ? op->place : x.place;
  // One report for two places and a verdict; the cells of a tile would repeat it.
  const std::uint64_t key = (std::uint64_t{x_place} << 32 | y.entry.place) * 32 +
                            static_cast<std::uint64_t>(verdict) * 2 + (x_write ? 1 : 0);
  if (!reported_.insert(key).second) return;

  if (verdict == Verdict::race) note_overwriting(y, x, x_write, at);
  const std::uint32_t x_number = op != nullptr ? op->number : x.who;
  const char* const x_what = op != nullptr ? op->what : x_write ? "store" : "load";
  Finding f;
  f.site = places_[y.entry.place].site;
  f.accesses = {describe(x_number, x_place, x.asynchronous, x_write, x_what),
                describe(t.order.number, y.entry.place, y.asynchronous, y.write, y.what)};
  const Touched both = touched(y, x, at);
  for (Access& a : f.accesses) {
    a.memory = both.memory;
    a.begin = both.begin;
    a.bytes = both.bytes;
  }
  if (!explain(f, {t, y, x, x_write, op, x_number, x_place}, verdict)) return;
  report_pair(std::move(f), x_number, x_place, t.order.number, y.entry.place,
              range_text(both.memory, both.begin, both.bytes));
}

void Order::report_pair(Finding f, std::uint32_t x_number, std::uint32_t x_place,
                        std::uint32_t y_number, std::uint32_t y_place, const std::string& where) {
  const auto access_text = [&](const Access& a, std::uint32_t number, std::uint32_t at_place) {
    const bool asynchronous = a.proxy == "async";
    return std::string(asynchronous ? "the asynchronous " : "the ") + (a.write ? "write" : "read") +
           (asynchronous ? " of a " : " (") + a.instruction +
           (asynchronous ? " issued by " : ") by ") + thread_text(number, at_place) + " at " +
           at_line(a.site);
  };
  f.sentence = access_text(f.accesses[0], x_number, x_place) + " and " +
               access_text(f.accesses[1], y_number, y_place) + " touch " + where +
               ". Missing: " + f.missing + ". Mend: " + f.mend;
  machine_.report(std::move(f));
}

}  // namespace warpwright::model
