// What orders: completions that threads wait for, barriers, fences, flags.
#include "warpwright/model/order/order.h"

#include <algorithm>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {

// --- completions that threads wait for -----------------------------------------------------------
void Order::raise(std::span<Thread* const> threads, std::uint32_t component, std::uint32_t time) {
  // Clocks that were one object stay one.
  struct Raised {
    Clock before, after;
  };
  std::vector<Raised> memo;
  const auto one = [&](Clock& clock) {
    for (const Raised& r : memo) {
      if (r.before.identity() == clock.identity()) {
        clock = r.after;
        return;
      }
    }
    Clock before = clock;
    clock.raise(component, time);
    memo.push_back({std::move(before), clock});
  };
  for (Thread* t : threads) {
    one(t->order.order);
    one(t->order.shared);
    if (global_fences_) one(t->order.global);
    one(t->order.executed);
  }
}

void Order::bulk_waited(Thread& by, int pending, bool read_only) {
  ThreadOrder& t = by.order;
  if (t.bulk_read == 0 || t.committed <= static_cast<std::uint32_t>(pending)) return;
  Thread* const self = &by;
  const std::uint32_t over = t.committed - static_cast<std::uint32_t>(pending);
  raise({&self, 1}, t.bulk_read, over);
  if (!read_only) raise({&self, 1}, t.bulk_done, over);
}

void Order::copies_committed(Thread& by) {
  by.order.copy_groups.push_back(++by.order.copy_time);
}

void Order::copies_waited(Thread& by, int pending) {
  ThreadOrder& t = by.order;
  std::uint32_t over = 0;
  while (t.copy_groups.size() > static_cast<std::size_t>(pending)) {
    over = t.copy_groups.front();
    t.copy_groups.pop_front();
  }
  if (t.copies == 0 || over == 0) return;
  // As the thread's own generic writes: `shared` learns of them by a fence.
  t.order.raise(t.copies, over);
  t.executed.raise(t.copies, over);
}

Commit Order::copies_arrive(Thread& by) {
  ThreadOrder& t = by.order;
  Commit arrival{++t.copy_time, t.executed, t.handed, t.passed};
  arrival.executed.raise(t.component, t.time);
  arrival.passed.raise(t.component, t.waits);
  tick(by);
  return arrival;
}

void Order::copies_arrived(const Thread& by, const Commit& arrival, const Cta& cta, MBarrier& bar,
                           Site site) {
  check_phase(by, arrival.passed, arrival.executed, false, 1, cta, bar, site);
  const ThreadOrder& t = by.order;
  // The arrival comes after all that its thread did before, but of its writes it releases those of
  // only the copies, as generic ones: `shared` learns of them by a fence.
  bar.order.executed.add(arrival.executed);
  bar.order.handed.add(arrival.handed);
  bar.order.passed.add(arrival.passed);
  if (t.copies == 0) return;
  bar.order.near.order.sum.raise(t.copies, arrival.time);
  bar.order.executed.sum.raise(t.copies, arrival.time);
}

void Order::wgmma_waited(std::span<Thread* const> threads, WarpgroupOrder& group, int pending) {
  if (group.component == 0 || group.committed <= static_cast<std::uint32_t>(pending)) return;
  raise(threads, group.component, group.committed - static_cast<std::uint32_t>(pending));
}

// --- synchronisation -----------------------------------------------------------------------------
void Order::gather(Thread& by, GatherClocks& into) {
  const ThreadOrder& t = by.order;
  into.order.add(t.order);
  into.order.sum.raise(t.component, t.time);
  into.shared.add(t.shared);
  into.shared.sum.raise(t.component, t.fenced_shared);
  into.global.add(t.global);
  into.global.sum.raise(t.component, t.fenced_global);
  if (!t.grid.empty()) into.grid.add(t.grid);
  if (!t.far.empty()) into.far.add(t.far);
}

void Order::learn(Thread& by, const PublishedClocks& from) {
  joins_.join(by.order.order, from.order);
  joins_.join(by.order.shared, from.shared);
  joins_.join(by.order.global, from.global);
  joins_.join(by.order.grid, from.grid);
  joins_.join(by.order.far, from.far);
}

void Order::learn_passed(Thread& by, const Clock& passed) {
  if (by.order.passed.identity() != passed.identity()) ++by.order.news;
  joins_.join(by.order.passed, passed);
}

void Order::initialised(Thread& by, MBarrier& bar, std::uint32_t component, std::uint32_t base) {
  bar.order = {};
  bar.order.component = component;
  bar.order.base = base;
  bar.order.initialised = by.order.time;
  by.order.makes_barriers = true;
}

void Order::init_fenced(Thread& by) {
  for (MBarrier& bar : by.cta->barriers) {
    if (bar.initialiser == &by && bar.order.published == 0) bar.order.published = by.order.time;
  }
  tick(by);
}

void Order::uses(Thread& by, Cta& cta, MBarrier& bar, const char* operation, Site site) {
  if (bar.initialiser == nullptr) return;
  const std::uint32_t c = bar.initialiser->order.component;
  if (by.cta == &cta && by.order.order[c] >= bar.order.initialised) return;
  if (bar.order.published != 0 && by.order.executed[c] >= bar.order.published) return;
  machine_.report(
      {Check::barrier_unpublished,
       machine_.who(by) + " uses " + machine_.barrier_text(cta, bar) + " (" + operation +
           "), and nothing orders its initialisation by " + machine_.who(*bar.initialiser) +
           " before that. Mend: " +
           (by.cta == &cta ? "let both meet at a CTA or cluster barrier first"
            : bar.order.published != 0
                ? "the initialising thread has fenced, after its arrival on the cluster barrier: "
                  "fence_mbarrier_init() must come before that"
                : "fence.mbarrier_init by the initialising thread, then the cluster barrier, which "
                  "this thread must wait for"),
       site});
}

// The barrier is written by the generic proxy, and a copy signals it in the asynchronous one.
void Order::check_published_to_copies(Thread& by, const Copy& copy, const MBarrier& bar) {
  const Thread* maker = bar.initialiser;
  if (maker == nullptr || copy.from == Copy::From::registers) return;
  const std::uint32_t fenced = std::min(bar.order.published - 1U, bar.order.proxied - 1U) + 1U;
  const std::uint32_t c = maker->order.component;
  if (fenced != 0 &&
      (&by == maker || by.order.order[c] >= fenced || by.order.executed[c] >= fenced)) {
    return;
  }
  machine_.report({Check::barrier_unpublished,
                   machine_.who(by) + ": a copy shall signal " +
                       machine_.barrier_text(*copy.signals, bar) + ", whose initialisation by " +
                       machine_.who(*maker) +
                       " no fence has shown to the asynchronous proxy. Mend: "
                       "fence_mbarrier_init() (or a proxy fence) by the initialising thread, "
                       "before the barrier that publishes it",
                   copy.site});
}

// Whoever waits for this thread from now on finds its reads over.
void Order::settles(Thread& by) {
  ThreadOrder& t = by.order;
  t.settled = t.time;
  if (!t.reads_in_flight) return;
  t.reads_in_flight = false;
  --reads_in_flight;
}

void Order::reads_peer(Thread& by) {
  if (by.order.reads_in_flight) return;
  by.order.reads_in_flight = true;
  ++reads_in_flight;
}

void Order::values_used(Thread& by) {
  if (!by.order.reads_in_flight) return;
  settles(by);
  tick(by);
}

bool Order::knows_end(const Thread& by, const Clock& passed, const Clock& executed, bool at_once,
                      const MBarrier& bar) {
  const auto has_passed = [&](const BarrierOrder::Waited& w) {
    return (at_once && w.component == by.order.component) || passed[w.component] >= w.waits;
  };
  if (std::ranges::any_of(bar.order.waited, has_passed)) return true;
  // Nobody whom it knows of has seen that phase complete. It is, where all of its arrivals come
  // before this one; but nothing else tells of bytes.
  const auto is_before = [&](const Arrival& a) {
    if (a.thread == &by) return a.at_once || !at_once;  // commits arrive in their order
    return a.at_once && executed[a.thread->order.component] >= a.time;
  };
  const auto has_come = [](const PhaseBytes& b) { return b.copy != nullptr; };
  return std::ranges::none_of(bar.bytes_before, has_come) &&
         std::ranges::all_of(bar.before, is_before);
}

void Order::check_phase(const Thread& by, const Clock& passed, const Clock& executed, bool at_once,
                        int count, const Cta& cta, MBarrier& bar, Site site) {
  BarrierOrder::Rounds& own = bar.order.rounds[by.order.component];
  if (own.number == 0 || own.news != by.order.news || !at_once) {
    own = {own.number + 1, 0, by.order.news};
  }
  own.arrivals += count;
  if (bar.phase == 0 || knows_end(by, passed, executed, at_once, bar)) return;
  // The arrivals of this phase are of threads that are ahead of it, in the intended order of things
  // too; or more than fit have come in the phases before.
  std::int64_t here = count, ahead = 0;
  for (const Arrival& a : bar.arrivals) here += a.count;
  for (const auto& [component, rounds] : bar.order.rounds) {
    ahead += std::max<std::int64_t>(0, rounds.number - bar.phase) * rounds.arrivals;
  }
  if (ahead >= here) return;
  const std::string phase = "phase " + std::to_string(bar.phase - 1);
  Finding f{Check::stale_parity, {}, site};
  f.missing = "an order of this arrival behind the end of " + phase;
  f.mend =
      "wait for it in this thread or in one that it meets; or, if more arrive in a phase, "
      "count them at " +
      at_line(bar.made);
  f.sentence = machine_.who(by) + " arrives on phase " + std::to_string(bar.phase) + " of " +
               machine_.barrier_text(cta, bar) + ", and nothing orders the end of " + phase +
               " before that: the arrival may as well count there, in place of another. " +
               machine_.completion_text(bar) + ". Missing: " + f.missing + ". Mend: " + f.mend;
  machine_.report(std::move(f));
}

void Order::arrives(Thread& by, Cta& cta, MBarrier& bar, int count, Scope scope, Site site) {
  check_phase(by, by.order.passed, by.order.executed, true, count, cta, bar, site);
  if (scope != Scope::relaxed) settles(by);
  if (scope == Scope::relaxed || (scope == Scope::cta && &cta != by.cta)) {
    by.order.weak[by.order.next_weak++ % by.order.weak.size()] = {
        by.order.time, place(site, by.role), bar.name, bar.index, scope == Scope::relaxed};
  }
  if (&cta != by.cta) {
    std::vector<BarrierOrder::Visit>& visits = bar.order.visits;
    if (!visits.empty() && visits.back().phase <= bar.observed) visits.clear();
    visits.push_back(
        {bar.phase, by.order.number, by.order.component, by.order.time, place(site, by.role)});
  }
  if (scope != Scope::relaxed) {
    bar.order.executed.add(by.order.executed);
    bar.order.executed.sum.raise(by.order.component, by.order.time);
    if (&cta == by.cta) {
      gather(by, bar.order.near);
    } else if (scope == Scope::cluster) {
      gather(by, bar.order.far);
    }
  }
  // Whatever the semantics: these order only execution.
  bar.order.handed.add(by.order.handed);
  gather_passed(by, bar.order.passed);
  tick(by);
}

void Order::phase_completed(const Cta& cta, MBarrier& bar) {
  BarrierOrder& o = bar.order;
  o.passed_published = o.passed.take();
  for (const BarrierOrder::Waited& w : o.waited) {
    if (o.passed_published[w.component] < w.waits) report_slip(cta, bar, w);
  }
  o.waited.clear();
  o.handed_published = o.handed.take();
  o.near_published = {o.near.order.take(), o.near.shared.take(), o.near.global.take(),
                      o.near.grid.take(), o.near.far.take()};
  o.far_published = {o.far.order.take(), o.far.shared.take(), o.far.global.take(),
                     o.far.grid.take(), o.far.far.take()};
  o.executed_published = o.executed.take();
  if (o.component == 0) return;
  const std::uint32_t time = o.base + static_cast<std::uint32_t>(bar.phase);
  o.near_published.order.raise(o.component, time);
  o.near_published.shared.raise(o.component, time);
  if (global_fences_) o.near_published.global.raise(o.component, time);
  o.executed_published.raise(o.component, time);
}

void Order::waited(Thread& by, MBarrier& bar, Scope scope) {
  if (bar.phase == 0) return;
  joins_.join(by.order.handed, bar.order.handed_published);
  learn_passed(by, bar.order.passed_published);
  if (scope == Scope::relaxed) return;
  learn(by, bar.order.near_published);
  if (scope == Scope::cluster) learn(by, bar.order.far_published);
  joins_.join(by.order.executed, bar.order.executed_published);
}

void Order::saw(Thread& by, MBarrier& bar, Site site) {
  ThreadOrder& t = by.order;
  std::vector<BarrierOrder::Waited>& all = bar.order.waited;
  ++t.waits;
  ++t.news;
  if (!all.empty() && all.back().component == t.component) all.pop_back();  // it asks again
  all.push_back({t.number, t.component, t.waits, place(site, by.role)});
}

void Order::gather_passed(const Thread& by, Gather& into) {
  into.add(by.order.passed);
  into.sum.raise(by.order.component, by.order.waits);
}

void Order::converged(std::span<Thread* const> others, Thread& last) {
  const Clock& first = last.order.passed;
  const auto stale = [&](const Thread& t) {
    return t.order.passed.identity() != first.identity() ||
           first[t.order.component] < t.order.waits;
  };
  if (!stale(last) &&
      std::none_of(others.begin(), others.end(), [&](const Thread* t) { return stale(*t); })) {
    return;
  }
  Gather all;
  gather_passed(last, all);
  for (const Thread* t : others) gather_passed(*t, all);
  last.order.passed = all.take();
  ++last.order.news;
  for (Thread* t : others) {
    t->order.passed = last.order.passed;
    ++t->order.news;
  }
}

void Order::fence(Thread& by, Space space, Site site) {
  ThreadOrder& t = by.order;
  if (t.makes_barriers && space != Space::global) {
    t.makes_barriers = false;
    for (MBarrier& bar : by.cta->barriers) {
      if (bar.initialiser == &by && bar.order.proxied == 0) bar.order.proxied = t.time;
    }
  }
  if (space == Space::shared) {
    t.shared = t.order;
    t.fenced_shared = t.time;
  } else {
    global_fences_ = true;
    t.global = t.order;
    t.far = t.grid;
    t.fenced_global = t.time;
  }
  tick(by);
  if (space == Space::global) return;
  t.fence_time = t.time;
  t.fence_site = site;
  t.fence_waits = t.waits;
  by.cta->order.fences[static_cast<std::size_t>(by.index / warpgroup_threads)] = {
      t.number, t.time, place(site, by.role)};
}

void Order::meets(Thread& by, MeetingOrder& meeting) {
  settles(by);
  gather(by, meeting.clocks);
  meeting.executed.add(by.order.executed);
  meeting.executed.sum.raise(by.order.component, by.order.time);
  meeting.handed.add(by.order.handed);
  gather_passed(by, meeting.passed);
  tick(by);
}

void Order::met(MeetingOrder& meeting, std::span<Thread* const> waiting) {
  const PublishedClocks all{meeting.clocks.order.take(), meeting.clocks.shared.take(),
                            meeting.clocks.global.take(), meeting.clocks.grid.take(),
                            meeting.clocks.far.take()};
  const Clock executed = meeting.executed.take();
  const Clock handed = meeting.handed.take();
  const Clock passed = meeting.passed.take();
  for (Thread* t : waiting) {
    // Usually all of them came to the meeting and have learnt nothing since: the join is `all`.
    learn(*t, all);
    joins_.join(t->order.executed, executed);
    joins_.join(t->order.handed, handed);
    learn_passed(*t, passed);
  }
}

void Order::flag_set(Thread& by, FlagOrder& flag) {
  flags_set_ = true;
  const ThreadOrder& t = by.order;
  const ClusterOrder& cluster = by.cta->cluster->order;
  // What the thread knows of its cluster, in numbers of the grid.
  const auto tell = [&](Clock& to, const Clock& known, const Clock& far, std::uint32_t own) {
    to = far;
    known.for_each_leaf([&](const void*, std::uint32_t first, const auto& times) {
      for (std::uint32_t c = 0; c < times.size() && first + c < cluster.threads; ++c) {
        to.raise(cluster.first_thread + first + c, times[c]);
      }
    });
    for (const auto& [component, number] : cluster.stores) {
      to.raise(stores_of(number), known[component]);
    }
    for (const auto& [component, number] : cluster.copies) {
      to.raise(copies_of(number), known[component]);
    }
    to.raise(t.number, own);
  };
  tell(flag.grid, t.order, t.grid, t.time);
  if (global_fences_) tell(flag.far, t.global, t.far, t.fenced_global);
  flag.cluster = by.cta->cluster;
  flag.passed = t.passed;
  flag.passed.raise(t.component, t.waits);
  tick(by);
}

void Order::flag_added(Thread& by, FlagOrder& flag) {
  const FlagOrder before = flag;
  flag_set(by, flag);
  joins_.join(flag.grid, before.grid);
  joins_.join(flag.far, before.far);
  if (flag.cluster == before.cluster) joins_.join(flag.passed, before.passed);
}

void Order::flag_waited(Thread& by, const FlagOrder& flag) {
  joins_.join(by.order.grid, flag.grid);
  joins_.join(by.order.far, flag.far);
  if (flag.cluster == by.cta->cluster) learn_passed(by, flag.passed);
  // Threads of its own cluster have other numbers in its other clocks.
  const ClusterOrder& cluster = by.cta->cluster->order;
  const auto learn_own = [&](Clock& known, const Clock& told) {
    told.for_each_leaf([&](const void*, std::uint32_t first, const auto& times) {
      for (std::uint32_t i = 0; i < times.size(); ++i) {
        const std::uint32_t c = first + i - cluster.first_thread;
        if (c < cluster.threads && known[c] < times[i]) known.raise(c, times[i]);
      }
    });
  };
  for (const auto& [component, number] : cluster.copies) {
    const std::uint32_t told = flag.grid[copies_of(number)];
    if (by.order.order[component] < told) by.order.order.raise(component, told);
  }
  learn_own(by.order.order, flag.grid);
  learn_own(by.order.executed, flag.grid);
  learn_own(by.order.global, flag.far);
}

void Order::cluster_arrives(Thread& by, bool release, Site site) {
  MeetingOrder& meeting = by.cta->cluster->order.arriving;
  if (release) return meets(by, meeting);
  by.order.weak[by.order.next_weak++ % by.order.weak.size()] = {by.order.time, place(site, by.role),
                                                                nullptr, 0, true};
  // A relaxed arrival makes no write visible. It says what is over: reads whose values are there,
  // for the thread has used them, or has come to a barrier behind them.
  const bool in_flight = by.order.reads_in_flight;
  meeting.executed.add(by.order.executed);
  meeting.executed.sum.raise(by.order.component, in_flight ? by.order.settled : by.order.time);
  meeting.handed.add(by.order.handed);
  gather_passed(by, meeting.passed);
  tick(by);
}

void Order::cluster_completed(Cluster& cluster) {
  ClusterOrder& o = cluster.order;
  o.published = {o.arriving.clocks.order.take(), o.arriving.clocks.shared.take(),
                 o.arriving.clocks.global.take(), o.arriving.clocks.grid.take(),
                 o.arriving.clocks.far.take()};
  o.executed = o.arriving.executed.take();
  o.handed = o.arriving.handed.take();
  o.passed = o.arriving.passed.take();
}

void Order::cluster_waited(Thread& by) {
  const ClusterOrder& o = by.cta->cluster->order;
  learn(by, o.published);
  joins_.join(by.order.executed, o.executed);
  joins_.join(by.order.handed, o.handed);
  learn_passed(by, o.passed);
}

}  // namespace warpwright::model
