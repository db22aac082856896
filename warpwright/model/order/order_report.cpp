// What the order checker says of two accesses without an order.
#include "warpwright/model/order/order.h"

#include <algorithm>
#include <bit>
#include <string>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {

namespace {

std::string barrier_name(const Operation& load) {
  return std::string(load.barrier) + "[" + std::to_string(load.barrier_index) + "]";
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

void Order::report(const Thread& t, const Actor& y, const Entry& x, bool x_write, Verdict verdict,
                   std::uintptr_t at) {
  // One report for two places and a verdict; the cells of a tile would repeat it.
  const std::uint32_t x_place = x.asynchronous ? operations_[x.who].place : x.place;
  const std::uint64_t key = (std::uint64_t{x_place} << 32 | y.entry.place) * 32 +
                            static_cast<std::uint64_t>(verdict) * 2 + (x_write ? 1 : 0);
  if (!reported_.insert(key).second) return;

  const Operation* const op = x.asynchronous ? &operations_[x.who] : nullptr;
  Finding f;
  f.site = places_[y.entry.place].site;
  f.accesses = {describe(op != nullptr ? op->number : x.who, x_place, x.asynchronous, x_write,
                         op != nullptr ? op->what
                         : x_write     ? "store"
                                       : "load"),
                describe(t.order.number, y.entry.place, y.asynchronous, y.write, y.what)};

  // The bytes that both touch.
  const auto both = static_cast<std::uint16_t>(x.mask & y.entry.mask);
  std::uintptr_t begin = at + static_cast<std::uintptr_t>(std::countr_zero(both));
  const int bytes = 16 - std::countl_zero(both) - std::countr_zero(both);
  std::string memory = "global memory";
  if (y.in_shared) {
    memory = "shared memory of CTA rank " + std::to_string(y.cta->rank);
  } else {
    for (const Allocation& a : machine_.allocations()) {
      const auto base = reinterpret_cast<std::uintptr_t>(a.base);
      if (begin < base || begin >= base + static_cast<std::uintptr_t>(a.bytes)) continue;
      memory = a.name;
      begin -= base;
      break;
    }
  }
  for (Access& a : f.accesses) {
    a.memory = memory;
    a.begin = begin;
    a.bytes = bytes;
  }

  const std::uint32_t x_number = op != nullptr ? op->number : x.who;
  const bool foreign = !t.cta->cluster->order.has(x_number);
  const bool other_grid = &machine_.grid_of(x_number) != t.cta->grid;
  const std::string fence = y.in_shared ? "fence_proxy_async_shared" : "fence_proxy_async_global";
  switch (verdict) {
    case Verdict::proxy: {
      f.check = Check::missing_proxy_fence;
      f.missing = "a proxy fence between the generic write and the asynchronous access";
      const auto group =
          static_cast<std::size_t>(f.accesses[0].warp * warp_lanes / warpgroup_threads);
      const CtaOrder::Fence& near =
          t.cta->order.fences[std::min(group, t.cta->order.fences.size() - 1)];
      if (op != nullptr) {
        // The copy was waited for: where its thread fenced is not known.
      } else if (t.order.fence_time > x.time && x.who != t.order.number) {
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
      f.mend = "call " + fence +
               "() in the writing thread after its write and before the barrier or arrival that "
               "the issuing thread waits for";
      break;
    }
    case Verdict::read_proxy:
      f.check = Check::read_then_async_write;
      f.missing = "a proxy fence between the generic read and the asynchronous write";
      f.mend = "call " + fence + "() in the reading thread before it hands the memory back";
      break;
    case Verdict::scope:
      f.check = Check::weak_scope;
      f.missing =
          "an order at cluster scope: the only path from one to the other goes through an arrival "
          "or a wait on an mbarrier at CTA scope, or relaxed";
      f.mend = "arrive and wait with Scope::cluster on both sides";
      break;
    case Verdict::unreleased:
    case Verdict::unacquired:
      explain_map(f, verdict);
      break;
    case Verdict::unfinished: {
      f.check = x.map ? Check::tensor_map_changed : Check::in_flight_access;
      const bool waited = op->time != 0 && op->issuer->order.order[op->component] >= op->time;
      const std::string what = op->what;
      const Operation* const mine =
          y.asynchronous ? &operations_[y.entry.who] : nullptr;  // what comes after it
      const bool both_load = mine != nullptr && mine->barrier != nullptr && op->barrier != nullptr;
      const bool one_barrier = both_load && mine->barrier_index == op->barrier_index &&
                               std::string_view(mine->barrier) == op->barrier;
      if (both_load && !one_barrier) {
        f.missing = "places of their own: copies that signal " + barrier_name(*op) + " and " +
                    barrier_name(*mine) +
                    " land in the same bytes, and nobody waited for the first";
        f.mend = "wait on " + barrier_name(*op) +
                 " before; if these are two stages, look where each begins: they overlap";
      } else if (both_load && f.accesses[0].cta != f.accesses[1].cta) {
        f.missing = "places of their own: copies that two CTAs issue for " + barrier_name(*op) +
                    " land in the same bytes of one CTA";
        f.mend = "look at the multicast masks and at which slice each CTA loads";
      } else if (op->barrier != nullptr) {
        const std::string name = barrier_name(*op);
        f.missing = "a wait for the phase of mbarrier " + name + " that the " + what + " signals";
        f.mend = "wait on " + name + " before, in this thread or in one that it then meets";
      } else if (waited) {
        f.missing = "an edge from the wait that saw the " + what + " complete, in " +
                    thread_text(op->number, op->place) + ", to this access";
        f.mend =
            "put a barrier, or an arrival and its wait, after that wait and before this access";
      } else if (what == "tcgen05.mma") {
        f.missing = "a wait for an mbarrier on which a tcgen05.commit after the MMA arrives";
        f.mend = "commit to the barrier of the stage, and wait on it before the memory is reused";
      } else if (what == "wgmma") {
        f.missing = "a wgmma.wait_group that covers the wgmma's reads";
        f.mend = "wait for its group (wgmma_wait) before the arrival that hands the memory on";
      } else if (what == "cp.async") {
        f.missing =
            "a cp.async.wait_group that covers the copy's group, in the thread that issued it";
        f.mend = "copy_async_wait with fewer groups left pending, then a barrier";
      } else if (x_write || x.map) {
        f.missing = "a cp.async.bulk.wait_group for the store's group";
        f.mend = "bulk_wait (not bulk_wait_read) in the issuing thread, then a barrier";
      } else {
        f.missing = "a cp.async.bulk.wait_group.read for the store's group";
        f.mend = "bulk_wait_read in the issuing thread, then a barrier before the memory is reused";
      }
      break;
    }
    case Verdict::race:
      f.check = Check::data_race;
      f.missing = other_grid ? "any order: the grids overlap"
                  : foreign  ? "any order: the CTAs belong to different clusters of one grid"
                             : "any order: no barrier, arrival or wait leads from one to the "
                               "other";
      f.mend = other_grid ? "call wait_for_prerequisites() before the access"
               : !foreign ? "let both threads meet at a barrier, or hand the memory over through "
                            "an mbarrier"
               : flags_set_
                   ? "after its accesses, and those of threads that it has met, let one thread "
                     "call flag_set(), which releases them; flag_wait() in the other cluster, "
                     "before its threads meet and go on"
                   : "let every byte be written by one cluster only, or hand it over with "
                     "flag_set() and flag_wait()";
      break;
    case Verdict::ordered:
    case Verdict::unwaited:
    case Verdict::no_before:
    case Verdict::no_after:
      return;
  }
  report_pair(std::move(f), op != nullptr ? op->number : x.who, x_place, t.order.number,
              y.entry.place, range_text(memory, begin, bytes));
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
