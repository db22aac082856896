// mbarriers, named barriers, the cluster barrier and the register pool (PTX ISA 9.7.13).
#include <algorithm>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

constexpr int max_count = (1 << 20) - 1;

}  // namespace

MBarrier& Machine::barrier_of(Cta& cta, std::uint32_t offset, const char* operation, Site site) {
  const int slot =
      offset % 8 == 0 && offset + 8 <= cta.shared.size() ? cta.barrier_at[offset / 8] : -1;
  if (slot < 0 || !cta.barriers[static_cast<std::size_t>(slot)].live) {
    fatal(Check::dead_barrier,
          std::string(operation) + " at offset " + std::to_string(offset) + " of CTA rank " +
              std::to_string(cta.rank) + ", where no live mbarrier is",
          site);
  }
  MBarrier& bar = cta.barriers[static_cast<std::size_t>(slot)];
  // The initialisation must have been published to whoever uses the barrier.
  if (current_ != nullptr && current_ != bar.initialiser) {
    const bool remote = current_->cta != &cta;
    const bool cluster_passed = cta.cluster->generation > bar.cluster_generation;
    const bool fenced = bar.fenced && cta.cluster->generation > bar.fence_generation;
    if (remote ? !(fenced && cluster_passed)
               : !(cluster_passed || cta.barrier_generation > bar.cta_generation)) {
      finding(
          Check::barrier_unpublished,
          who(*current_) + " uses " + barrier_text(cta, bar) + " (" + operation +
              ") before its initialisation at " + at_line(bar.made) + " was published. Mend: " +
              (remote ? "fence.mbarrier_init by the initialising thread, then the cluster barrier"
                      : "let all threads meet at a CTA or cluster barrier between the two"),
          site);
    } else if (order) {
      order->uses(*current_, cta, bar, operation, site);
    }
  }
  return bar;
}

MBarrier& Machine::barrier(std::uint32_t address, const char* operation, bool may_be_remote,
                           Site site) {
  Cta& cta = owner(address, operation, site);
  MBarrier& bar = barrier_of(cta, address & 0xffffffu, operation, site);
  if (&cta != current_->cta && !may_be_remote) {
    fatal(Check::remote_operation,
          who(*current_) + ": " + operation + " on " + barrier_text(cta, bar) +
              " of another CTA; only arrive, expect_tx and complete_tx may be remote",
          site);
  }
  return bar;
}

void Machine::note_barrier(BarrierEvent::Kind kind, const Cta& cta, const MBarrier& bar,
                           const Thread* by, std::int64_t amount, Site site) {
  if (options_.barrier_events == nullptr) return;
  const std::string whose = kind == BarrierEvent::Kind::bytes ? "TMA"
                            : by == nullptr                   ? ""
                                                              : who(*by);
  options_.barrier_events->push_back({kind, now(), cta.index,
                                      std::string(bar.name) + "[" + std::to_string(bar.index) + "]",
                                      whose, amount, bar.phase, bar.pending, bar.expected, bar.tx,
                                      static_cast<int>(bar.waiting.size()), site});
}

void Machine::settle(const Cta& cta, MBarrier& bar) {
  if (bar.pending != 0 || bar.tx != 0) return;
  if (bar.on_their_way > 0) {
    const auto expects = std::ranges::find(bar.bytes, nullptr, &PhaseBytes::copy);
    bar.left = {bar.phase, bar.on_their_way, expects == bar.bytes.end() ? Site{} : expects->site};
  }
  ++bar.phase;
  if (order) order->phase_completed(cta, bar);
  if (explore) explore->flipped(bar);
  bar.pending = bar.expected;
  note_barrier(BarrierEvent::Kind::flip, cta, bar, nullptr, 0, bar.made);
  bar.before.swap(bar.arrivals);
  bar.arrivals.clear();
  bar.bytes_before.swap(bar.bytes);
  bar.bytes.clear();
  wake_all(bar.waiting);
}

void Machine::poll_failed(const Cta& cta, const MBarrier& bar, Site site) {
  // The hardware spins on; here a thread that spins this long is said to hang, when all others
  // only spin, too: some schedules hold back for long those that it waits for.
  constexpr int most_polls = 20000;
  Thread& self = *current_;
  if (++self.failed_polls < 2) return;  // a question asked once costs nothing
  if (!in_vain()) self.failed_polls = 2;
  if (self.failed_polls > most_polls) {
    fatal(Check::spin_budget,
          who(self) + " asked " + std::to_string(most_polls) + " times in vain for " +
              barrier_text(cta, bar) + ": " + std::to_string(bar.pending) + " of " +
              std::to_string(bar.expected) + " arrivals and " + std::to_string(bar.tx) +
              " transaction bytes are outstanding",
          site);
  }
  if (timed()) return;  // the question takes time, and whoever is behind goes first
  ask_again_later();
}

void Machine::observe(MBarrier& bar, std::int64_t phase, Scope scope, Site site) {
  bar.observed = std::max(bar.observed, phase);
  current_->waited = {&bar, phase, site};
  if (!order) return;
  order->waited(*current_, bar, scope);
  if (phase == bar.phase - 1) order->saw(*current_, bar, site);
}

void Machine::arrive(Cta& cta, MBarrier& bar, const Thread& by, int count, bool drop, Site site,
                     bool at_once) {
  // Only the last arrival of a phase counts: until it comes nobody can slip.
  if (bar.phase > 0 && bar.observed < bar.phase - 1 && count == bar.pending) {
    finding(Check::stale_parity,
            who(by) + " arrives on phase " + std::to_string(bar.phase) + " of " +
                barrier_text(cta, bar) + ", but no wait has seen phase " +
                std::to_string(bar.phase - 1) +
                " complete: a waiter by parity can slip two phases. " + completion_text(bar) +
                ". Missing: a wait for it before this arrival, or a count of both as one phase. "
                "Mend: wait for it in this thread or in one that it meets; or, if more arrive in a "
                "phase, count them at " +
                at_line(bar.made),
            site);
  }
  if (count < 1 || count > bar.pending) {
    // One that comes before the phase is over mostly has a wait missing, which is told before.
    finding(Check::arrival_count,
            who(by) + " arrives " + std::to_string(count) + " on " + barrier_text(cta, bar) +
                ", which has " + std::to_string(bar.pending) + " of " +
                std::to_string(bar.expected) + " arrivals pending in phase " +
                std::to_string(bar.phase) + early_arrival_text(bar, by),
            site, bar.pending == 0 && bar.tx != 0 && !findings_.empty());
    stopped_ = true;
    throw Stop{};
  }
  if (drop) bar.expected -= count;
  bar.pending -= count;
  bar.arrivals.push_back({&by, by.cta->rank, count, site, by.order.time, at_once});
  note_barrier(BarrierEvent::Kind::arrive, cta, bar, &by, count, site);
  if (explore) explore->arrived(bar, SyncEvent::Kind::arrival, "arrival", site);
  settle(cta, bar);
}

void Machine::complete_tx(Cta& cta, MBarrier& bar, const Copy& copy) {
  bar.tx -= copy.bytes;
  bar.bytes.push_back({copy.issuer, copy.site, copy.instruction(), copy.bytes});
  note_barrier(BarrierEvent::Kind::bytes, cta, bar, copy.issuer, copy.bytes, copy.site);
  if (explore) explore->arrived(bar, SyncEvent::Kind::arrival, copy.instruction(), copy.site);
  if (bar.tx < -max_count) {
    report(bytes_finding(
        cta, bar, barrier_text(cta, bar) + " counts fewer than -(2^20 - 1) transaction bytes"));
    stopped_ = true;
    throw Stop{};
  }
  settle(cta, bar);
}

void act::name_barrier(std::uint32_t address, const char* name, int index, const char* arrivers) {
  Machine& m = machine();
  MBarrier& bar = m.barrier(address, "naming a barrier", false, {});
  bar.name = name;
  bar.index = index;
  bar.arrivers = arrivers;
  m.note_barrier(BarrierEvent::Kind::init, *m.current().cta, bar, &m.current(), bar.expected,
                 bar.made);
}

void act::mbarrier_init(std::uint32_t address, int count, Site site) {
  Machine& m = machine();
  Cta& cta = m.owner(address, "mbarrier.init", site);
  const std::uint32_t offset = address & 0xffffffu;
  m.check_shared(cta, offset, 8, "mbarrier.init", site);
  if (&cta != m.current().cta) {
    m.fatal(Check::remote_operation, m.who(m.current()) + ": mbarrier.init on another CTA", site);
  }
  if (offset % 8 != 0) {
    m.fatal(Check::misaligned, "mbarrier.init at an address that is no multiple of 8", site);
  }
  if (count < 1 || count > max_count) {
    m.fatal(Check::arrival_count,
            "mbarrier.init with count " + std::to_string(count) + "; legal are 1 to 2^20 - 1",
            site);
  }
  std::int16_t& slot = cta.barrier_at[offset / 8];
  if (slot >= 0 && cta.barriers[static_cast<std::size_t>(slot)].live) {
    m.finding(Check::barrier_storage,
              m.who(m.current()) + " initialises " +
                  m.barrier_text(cta, cta.barriers[static_cast<std::size_t>(slot)]) +
                  " again while it lives, made first at " +
                  at_line(cta.barriers[static_cast<std::size_t>(slot)].made) +
                  ". Mend: 8 bytes of its own for each barrier, or mbarrier_invalidate() first",
              site);
  }
  if (slot < 0) {
    slot = static_cast<std::int16_t>(cta.barriers.size());
    cta.barriers.emplace_back();
  }
  MBarrier& bar = cta.barriers[static_cast<std::size_t>(slot)];
  const std::uint32_t component = bar.order.component;
  const std::uint32_t base = bar.order.base + static_cast<std::uint32_t>(bar.phase) + 1;
  bar = MBarrier{};
  bar.offset = offset;
  bar.live = true;
  bar.expected = bar.pending = count;
  bar.initialiser = &m.current();
  bar.made = site;
  if (m.order) m.order->initialised(m.current(), bar, component, base);
  if (m.explore) m.explore->initialised(cta, bar);
  bar.cta_generation = cta.barrier_generation;
  bar.cluster_generation = cta.cluster->generation;
}

void mbarrier_invalidate(std::uint32_t address, Site site) {
  Machine& m = machine();
  MBarrier& bar = m.barrier(address, "mbarrier.inval", false, site);
  if (!bar.waiting.empty()) {
    m.fatal(Check::dead_barrier, "mbarrier.inval while threads wait on it", site);
  }
  bar.live = false;
}

void act::mbarrier_expect(std::uint32_t address, int bytes, Site site) {
  Machine& m = machine();
  MBarrier& bar = m.barrier(address, "mbarrier.expect_tx", false, site);
  if (m.explore) m.explore->may_arrive(bar);
  bar.tx += bytes;
  bar.bytes.push_back({&m.current(), site, nullptr, bytes});
  m.note_barrier(BarrierEvent::Kind::expect, *m.current().cta, bar, &m.current(), bytes, site);
  if (m.explore) {
    m.explore->arrived(bar, SyncEvent::Kind::expectation, "expectation of bytes", site);
  }
  if (bytes < 0 || bar.tx > max_count) {
    m.fatal(Check::transaction_bytes,
            m.barrier_text(m.owner(address, "", site), bar) +
                " expects more than 2^20 - 1 transaction bytes",
            site);
  }
}

void act::mbarrier_arrive(std::uint32_t address, int count, bool drop, Scope scope, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().arrive);
  MBarrier& bar = m.barrier(address, "mbarrier.arrive", true, site);
  Cta& cta = m.owner(address, "mbarrier.arrive", site);
  if (m.explore) m.explore->may_arrive(bar);
  if (m.order) m.order->arrives(m.current(), cta, bar, count, scope, site);
  m.arrive(cta, bar, m.current(), count, drop, site);
}

bool act::mbarrier_test(std::uint32_t address, int parity, bool may_suspend, Scope scope,
                        Site site) {
  Machine& m = machine();
  m.maybe_yield();
  MBarrier& bar =
      m.barrier(address, may_suspend ? "mbarrier.try_wait" : "mbarrier.test_wait", false, site);
  ++m.statistics.barrier_waits;
  m.spend(m.costs().wait);
  if (m.explore) return m.explore->test(bar, parity, may_suspend, scope, site);
  if ((bar.phase & 1) == parity) {
    m.poll_failed(*m.current().cta, bar, site);
    return false;
  }
  if (may_suspend && m.options().spurious_try_wait && m.options().mode == Mode::random &&
      m.chance(20)) {
    m.note(m.who(m.current()) + " is told \"not yet\" by a try_wait whose phase is complete");
    return false;
  }
  m.current().failed_polls = 0;
  m.observe(bar, bar.phase - 1, scope, site);
  return true;
}

Wait Machine::wait_for(const MBarrier& bar, Site site) const {
  return {.kind = Wait::Kind::mbarrier,
          .site = site,
          .cta = current_->cta,
          .offset = bar.offset,
          .phase = bar.phase};
}

bool Machine::look_for_stale_parity(const MBarrier& bar, std::int64_t awaited, Site site) {
  if (!bar.live || bar.phase <= awaited + 1) return false;
  // A real waiter polls: by now the parity it polls for says "not complete" again.
  finding(Check::stale_parity,
          who(*current_) + " waited for phase " + std::to_string(awaited) + " of " +
              barrier_text(*current_->cta, bar) +
              ", and the next phase completed before it looked: it would wait for ever",
          site);
  return true;
}

void act::mbarrier_wait(std::uint32_t address, int parity, Scope scope, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  MBarrier& bar = m.barrier(address, "a wait", false, site);
  ++m.statistics.barrier_waits;
  m.spend(m.costs().wait);
  if (m.explore) return m.explore->wait(bar, parity, scope, site);
  Thread& self = m.current();
  self.failed_polls = 0;
  if ((bar.phase & 1) != parity) {  // the phase of this parity is complete
    m.observe(bar, bar.phase - 1, scope, site);
    m.note_barrier(BarrierEvent::Kind::pass, *self.cta, bar, &self, parity, site);
    return;
  }
  const std::int64_t awaited = bar.phase;
  bar.waiting.push_back(&self);
  m.note_barrier(BarrierEvent::Kind::wait, *self.cta, bar, &self, parity, site);
  m.block(m.wait_for(bar, site));
  m.observe(bar, awaited, scope, site);
  m.note_barrier(BarrierEvent::Kind::pass, *self.cta, bar, &self, parity, site);
  static_cast<void>(m.look_for_stale_parity(bar, awaited, site));
}

void act::fence_mbarrier_init(Site /*site*/) {
  Thread& self = machine().current();
  for (MBarrier& bar : self.cta->barriers) {
    if (bar.initialiser != &self || bar.fenced) continue;
    bar.fenced = true;
    bar.fence_generation = self.cta->cluster->generation;
  }
  if (machine().order) machine().order->init_fenced(self);
}

void act::fence_proxy_async(Space space, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().proxy_fence);
  if (m.order) m.order->fence(m.current(), space, site);
}

// The current thread may come to it.
static NamedBarrier& named_barrier_of(Machine& m, int id, int threads, Site site) {
  Thread& self = m.current();
  if (id < 0 || id > 15 || threads % warp_lanes != 0 || threads < warp_lanes ||
      threads > (m.shape().threads + 31) / 32 * 32) {
    m.fatal(Check::named_barrier,
            "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                " threads: ids are 0 to 15 and counts multiples of 32 up to the CTA's threads",
            site);
  }
  NamedBarrier& bar = self.cta->named[static_cast<std::size_t>(id)];
  if (bar.arrived > 0 && bar.expected != threads) {
    m.fatal(Check::named_barrier,
            m.who(self) + " comes to named barrier " + std::to_string(id) + " with " +
                std::to_string(threads) + " threads; others came with " +
                std::to_string(bar.expected),
            site);
  }
  return bar;
}

void act::named_barrier(int id, int threads, bool wait, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  NamedBarrier& bar = named_barrier_of(m, id, threads, site);
  m.spend(m.costs().named_barrier);
  // The barrier counts warps, 32 threads each, and a warp comes when all of its lanes have.
  Meeting& warp = self.cta->warp_meetings[static_cast<std::size_t>(self.warp())];
  if (!m.gather(warp, lanes_of_warp(), site, {wait ? "barrier.sync" : "barrier.arrive"})) return;
  if (m.explore) {
    m.explore->may_meet(*self.cta, bar, id);
  }
  const std::uint64_t mine = std::uint64_t{1} << self.warp();
  if ((bar.warps & mine) != 0) {
    m.fatal(Check::named_barrier,
            m.who(self) + " comes to named barrier " + std::to_string(id) +
                " again, which still counts this warp's last arrival: " +
                std::to_string(bar.arrived) + " of " + std::to_string(threads) +
                " threads have come. Mend: another barrier for each meeting, or a barrier.sync "
                "between the two",
            site);
  }
  bar.expected = threads;
  bar.warps |= mine;
  bar.ever |= mine;
  bar.arrived += warp_lanes;
  if (m.order) {
    for (Thread* lane : warp.waiting) m.order->meets(*lane, bar.order);
    m.order->meets(self, bar.order);
  }
  if (m.explore) m.explore->meets(warp.waiting, self, bar, site);
  const bool complete = bar.arrived >= threads;
  if (complete) {
    bar.arrived = 0;
    bar.warps = 0;
    ++self.cta->barrier_generation;
    if (m.order || m.explore) {
      std::vector<Thread*> all = bar.waiting;
      if (wait) {
        all.insert(all.end(), warp.waiting.begin(), warp.waiting.end());
        all.push_back(&self);
      }
      if (m.order) m.order->met(bar.order, all);
      if (m.explore) m.explore->met(bar, all);
    }
    m.wake_all(bar.waiting);
  }
  if (complete || !wait) return m.let_go(warp);
  const Wait waits{.kind = Wait::Kind::named, .site = site, .cta = self.cta, .id = id};
  for (Thread* lane : warp.waiting) m.wait_on(*lane, waits);
  bar.waiting.insert(bar.waiting.end(), warp.waiting.begin(), warp.waiting.end());
  warp.waiting.clear();
  bar.waiting.push_back(&self);
  m.block(waits);
}

void Machine::cluster_settle(Cluster& cluster) {
  if (cluster.arrived == 0 || cluster.arrived < cluster.live_threads) return;
  cluster.arrived = 0;
  ++cluster.generation;
  if (order) order->cluster_completed(cluster);
  if (explore) explore->cluster_completed(cluster);
  wake_all(cluster.waiting);
}

// All lanes of the warp come to an instruction of the cluster barrier.
static void come_as_warp(const char* what, Site site) {
  Machine& m = machine();
  Meeting& warp = m.current().cta->warp_meetings[static_cast<std::size_t>(m.current().warp())];
  if (m.gather(warp, lanes_of_warp(), site, {what})) m.let_go(warp);
}

void act::cluster_arrive(bool release, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  come_as_warp("barrier.cluster.arrive", site);
  Thread& self = m.current();
  Cluster& cluster = *self.cta->cluster;
  if (self.cluster_generation >= 0) {
    m.fatal(Check::cluster_lifetime,
            m.who(self) + " arrives twice on the cluster barrier without waiting", site);
  }
  m.spend(m.costs().cluster_barrier);
  self.cluster_generation = cluster.generation;
  ++cluster.arrived;
  if (m.order) m.order->cluster_arrives(self, release, site);
  if (m.explore) m.explore->cluster_arrives(self);
  m.cluster_settle(cluster);
}

void act::cluster_wait(Site site) {
  Machine& m = machine();
  come_as_warp("barrier.cluster.wait", site);
  Thread& self = m.current();
  Cluster& cluster = *self.cta->cluster;
  if (self.cluster_generation < 0) {
    m.fatal(Check::cluster_lifetime, m.who(self) + " waits on the cluster barrier it never reached",
            site);
  }
  while (cluster.generation <= self.cluster_generation) {
    cluster.waiting.push_back(&self);
    m.block({.kind = Wait::Kind::cluster, .site = site, .cta = self.cta});
  }
  self.cluster_generation = -1;
  self.peers_run = true;
  if (m.order) m.order->cluster_waited(self);
  if (m.explore) m.explore->cluster_waited(self);
}

std::uint32_t map_rank(std::uint32_t address, int rank) {
  return (address & 0xffffffu) | static_cast<std::uint32_t>(rank) << 24;
}

void set_max_registers(int count, bool increase, Site site) {
  Machine& m = machine();
  Thread& self = m.current();
  Cta& cta = *self.cta;
  const auto at = static_cast<std::size_t>(self.index / warpgroup_threads);
  Warpgroup& group = cta.warpgroups[at];
  if (count < 24 || count > 256 || count % 8 != 0) {
    m.fatal(Check::register_pool,
            "setmaxnreg to " + std::to_string(count) + "; legal are multiples of 8 from 24 to 256",
            site);
  }
  if (increase ? count < group.registers : count > group.registers) {
    m.fatal(Check::register_pool,
            std::string("setmaxnreg.") + (increase ? "inc" : "dec") + " to " +
                std::to_string(count) + " from " + std::to_string(group.registers) +
                " registers goes the wrong way",
            site);
  }
  m.spend(m.costs().set_registers);
  const int change = (count - group.registers) * warpgroup_threads;
  bool last = false;
  m.meet(cta.warpgroup_meetings[at], warpgroup_threads, self.index % warpgroup_threads, site,
         {"setmaxnreg"}, nullptr, [&](std::span<void*>) { last = true; });
  if (!last) return;  // the last thread to come moves the registers for all of them
  const int free_before = cta.free_registers;
  while (cta.free_registers < change) {
    cta.register_waiters.push_back(&self);
    m.block({.kind = Wait::Kind::registers, .site = site, .cta = &cta, .id = count});
  }
  if (m.explore) m.explore->takes_registers(cta, change, free_before);
  cta.free_registers -= change;
  group.registers = count;
  if (change < 0) m.wake_all(cta.register_waiters);
}

}  // namespace warpwright::model
