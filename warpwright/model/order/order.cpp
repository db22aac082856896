// The life of what the order checker follows: clusters, threads, operations and their numbers.
#include "warpwright/model/order/order.h"

#include <string>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {

Order::Order(Machine& machine) : machine_(machine), machine_numbers_(machine.end_of_numbers()) {
  places_.push_back({{}, ""});
  operations_.emplace_back();  // number 0 is nobody's
  if (machine.options().hash_order) relation = std::make_unique<Relation>();
}

// --- life ----------------------------------------------------------------------------------------
void Order::launched(Cluster& cluster) {
  ClusterOrder& o = cluster.order;
  GridRun& grid = *cluster.grid;
  o.threads_per_cta = grid.threads_per_cta;
  o.first_thread = grid.first_number +
                   static_cast<std::uint32_t>(cluster.ctas.front()->index) * o.threads_per_cta;
  o.threads = static_cast<std::uint32_t>(cluster.ctas.size()) * o.threads_per_cta;
  o.next_component = o.threads;
  for (const auto& cta : cluster.ctas) {
    cta->order.cells = std::vector<Cell>(cta->shared.size() / piece_bytes + 1);
    cta->order.fences.resize(cta->warpgroups.size());
    cta->order.warps.resize(cta->warp_meetings.size());
    for (const auto& thread : cta->threads) {
      ThreadOrder& t = thread->order;
      t.component = static_cast<std::uint32_t>(cta->rank) * o.threads_per_cta +
                    static_cast<std::uint32_t>(thread->index);
      t.number = o.first_thread + t.component;
      if (grid.launch->dependent) {
        begins_behind(grid.complete, *thread);
      } else {
        waited_for_grids(*thread);
      }
    }
  }
}

void Order::exits(Thread& thread) {
  thread.cta->order.exited.add(thread.order.executed);
  thread.cta->order.exited_order.add(thread.order.order);
  thread.cta->grid->known.join(thread.order.grid);
  if (knows_prerequisites(thread)) thread.cta->knows_prerequisites = true;
  if (relation) relation->exits(thread);
}

void Order::cta_exits(Cta& cta) {
  const Clock known = cta.order.exited.take();
  const Clock ordered = cta.order.exited_order.take();
  if (relation) relation->cta_exits(cta);
  for (const MBarrier& bar : cta.barriers) {
    for (const BarrierOrder::Visit& v : bar.order.visits) {
      // A later arrival of the same thread elsewhere says nothing of this one, unless at a scope
      // that orders what came before it. That MMAs are over says nothing of a commit's arrival.
      if (v.phase <= bar.observed || (!v.commit && ordered[v.component] >= v.time)) continue;
      report_visit(cta, bar, v);
    }
  }
  if (cta.order.visited) {
    for (const Cell& cell : cta.order.cells) {
      check_peer(cta, cell.write, true, ordered, known);
      check_peer(cta, cell.read, false, ordered, known);
      if (!cell.more) continue;
      for (const Entry& x : cell.more->writes) check_peer(cta, x, true, ordered, known);
      for (const Entry& x : cell.more->reads) check_peer(cta, x, false, ordered, known);
    }
  }
  // Nobody can touch its memory any more: let go of the operations that its shadow names.
  for (std::vector<Cell>* cells : {&cta.order.cells, &cta.order.tensor}) {
    for (Cell& cell : *cells) {
      if (cell.write.mask != 0) release_entry(cell.write);
      if (cell.read.mask != 0) release_entry(cell.read);
      if (!cell.more) continue;
      for (const Entry& x : cell.more->writes) release_entry(x);
      for (const Entry& x : cell.more->reads) release_entry(x);
    }
    cells->clear();
  }
  for (const MBarrier& bar : cta.barriers) {
    if (bar.order.component == 0 || known[bar.order.component] >= bar.order.latest) continue;
    machine_.report({Check::barrier_outlived,
                     machine_.barrier_text(cta, bar) + " of CTA " + std::to_string(cta.index) +
                         " counts a tensor load that no thread of the CTA waited for: the CTA may "
                         "exit before the load lands. Mend: wait for the phase before the exit",
                     {}});
  }
}

void Order::visits(const Thread& by, Cta& cta, Site site) {
  cta.order.visited = true;
  if (knows_of(by, cta)) return;
  machine_.finding(Check::cluster_lifetime,
                   machine_.who(by) + " reaches into the shared memory of CTA rank " +
                       std::to_string(cta.rank) +
                       ", and nothing says that this CTA has started. Mend: let the cluster meet "
                       "at its barrier first",
                   site);
}

void Order::check_peer(const Cta& cta, const Entry& x, bool write, const Clock& ordered,
                       const Clock& executed) {
  if (x.mask == 0 || x.asynchronous) return;
  const ClusterOrder& cluster = cta.cluster->order;
  const std::uint32_t c = x.who - cluster.first_thread;
  if (c / cluster.threads_per_cta == static_cast<std::uint32_t>(cta.rank)) return;
  // A read must be over, a write have come.
  if (ordered[c] >= x.time || (!write && executed[c] >= x.time)) return;
  const std::uint64_t key = std::uint64_t{1} << 63 | std::uint64_t{x.place} << 1 | (write ? 1 : 0);
  if (!reported_.insert(key).second) return;
  const char* what = write ? "store" : "load";
  Finding f{Check::cluster_lifetime, {}, places_[x.place].site};
  f.accesses.push_back(describe(x.who, x.place, false, write, what));
  f.missing = "an order of the access before the exit of the CTA whose memory it is";
  f.mend =
      "let all CTAs meet at the cluster barrier after their last access to each other's shared "
      "memory, and wait there before they exit";
  f.sentence = "CTA rank " + std::to_string(cta.rank) + " may exit before the " + what + " by " +
               thread_text(x.who, x.place) + " at " + at_line(f.site) +
               " has reached its shared memory. Missing: " + f.missing + ". Mend: " + f.mend;
  machine_.report(std::move(f));
}

void Order::report_slip(const Cta& cta, const MBarrier& bar, const BarrierOrder::Waited& w) {
  const std::uint64_t key = std::uint64_t{3} << 62 | w.place;
  if (!reported_.insert(key).second) return;
  Finding f{Check::stale_parity, {}, places_[w.place].site};
  f.accesses.push_back(describe(w.number, w.place, false, false, "wait"));
  const std::string wait =
      "the wait of " + thread_text(w.number, w.place) + " at " + at_line(f.site);
  const std::string which = machine_.barrier_text(cta, bar);
  const std::string cause = slip_cause(f, bar, w);
  f.sentence = wait +
               (bar.phase >= 2 ? " for phase " + std::to_string(bar.phase - 2) + " of " + which
                               : " on " + which + ", the first, which a fresh barrier lets pass,") +
               " may come after phase " + std::to_string(bar.phase - 1) +
               " is complete: it would wait for ever, or for the wrong phase. " + cause +
               " Missing: " + f.missing + ". Mend: " + f.mend;
  machine_.report(std::move(f));
}

void Order::report_visit(const Cta& cta, const MBarrier& bar, const BarrierOrder::Visit& v) {
  const char* what = v.commit ? "tcgen05.commit" : "mbarrier.arrive";
  Finding f{v.commit ? Check::pair_lifetime : Check::cluster_lifetime, {}, places_[v.place].site};
  f.accesses.push_back(describe(v.number, v.place, v.commit, true, what));
  f.missing = "a wait, before the exit, for the phase that the arrival belongs to";
  f.mend =
      "wait for the last phase of every barrier that peers signal, or let all CTAs meet at the "
      "cluster barrier before they exit";
  f.sentence = "CTA rank " + std::to_string(cta.rank) + " may exit before the arrival of " +
               thread_text(v.number, v.place) + " at " + at_line(f.site) + " reaches " +
               machine_.barrier_text(cta, bar) + ". Missing: " + f.missing + ". Mend: " + f.mend;
  machine_.report(std::move(f));
}

// --- grids that follow each other ----------------------------------------------------------------
void Order::begins_behind(int complete, Thread& thread) {
  for (int i = GridRun::nothing + 1; i <= complete; ++i) thread.order.grid.raise(end_of(i), 1);
}

void Order::waited_for_grids(Thread& by) {
  const GridRun& grid = *by.cta->grid;
  if (grid.index > 0) by.order.grid.join(machine_.grid_before(grid).known);
  by.order.grid.raise(end_of(grid.index - 1), 1);
}

bool Order::knows_prerequisites(const Thread& by) {
  return by.order.grid[end_of(by.cta->grid->index - 1)] > 0;
}

bool Order::knows_far(const Clock& grid, std::uint32_t number, std::uint32_t component,
                      std::uint32_t time) const {
  return grid[component] >= time || grid[end_of(machine_.grid_of(number).index)] > 0;
}

// --- places, operations, components --------------------------------------------------------------
std::uint32_t Order::place(Site site, const char* role) {
  const Place wanted{site, role};
  const auto key = reinterpret_cast<std::uintptr_t>(site.file) / 8 +
                   reinterpret_cast<std::uintptr_t>(role) / 8 * 7 +
                   static_cast<std::uintptr_t>(site.line);
  std::uint32_t& cached = place_cache_[key % place_cache_.size()];
  const auto same = [&](const Place& p) {
    return p.site.file == site.file && p.site.line == site.line && p.role == role;
  };
  if (cached != 0 && same(places_[cached])) return cached;
  for (std::uint32_t i = 1; i < places_.size(); ++i) {
    if (same(places_[i])) return cached = i;
  }
  places_.push_back(wanted);
  return cached = static_cast<std::uint32_t>(places_.size() - 1);
}

std::uint32_t Order::new_operation(Thread& by, const char* what, Site site) {
  std::uint32_t number = 0;
  if (free_operations_.empty()) {
    number = static_cast<std::uint32_t>(operations_.size());
    operations_.emplace_back();
  } else {
    number = free_operations_.back();
    free_operations_.pop_back();
  }
  Operation& op = operations_[number];
  op = {};
  op.issuer = &by;
  op.what = what;
  op.number = by.order.number;
  op.place = place(site, by.role);
  op.references = 1;  // the engine's
  return number;
}

std::uint32_t Order::new_component(Cluster& cluster) {
  return cluster.order.next_component++;
}

void Order::end(std::uint32_t operation) {
  if (--operations_[operation].references == 0) free_operations_.push_back(operation);
}

void Order::release_entry(const Entry& entry) {
  if (entry.asynchronous) end(entry.who);
}

void Order::tick(Thread& by) {
  by.order.time = ++by.cta->cluster->order.time;
}

}  // namespace warpwright::model
