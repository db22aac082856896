#include "warpwright/model/order.h"

#include <algorithm>
#include <bit>
#include <string>

#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

constexpr std::uint32_t piece_bytes = 16;

// Bytes [begin, end) of 16 as a mask.
std::uint16_t mask_of(unsigned begin, unsigned end) {
  return static_cast<std::uint16_t>((1u << end) - (1u << begin));
}

// Calls visit(address of the 16-byte piece, mask) for every piece of the range.
template <class Visit>
void for_each_cell(std::uintptr_t address, std::int64_t bytes, const Visit& visit) {
  const std::uintptr_t end = address + static_cast<std::uintptr_t>(bytes);
  for (std::uintptr_t at = address / piece_bytes * piece_bytes; at < end; at += piece_bytes) {
    const auto from = static_cast<unsigned>(at < address ? address - at : 0);
    const auto to = static_cast<unsigned>(std::min<std::uintptr_t>(end - at, piece_bytes));
    visit(at, mask_of(from, to));
  }
}

std::string at_line(Site site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}

std::string range_text(const std::string& memory, std::uint64_t begin, std::int64_t bytes) {
  return "bytes " + std::to_string(begin) + " to " +
         std::to_string(begin + static_cast<std::uint64_t>(bytes) - 1) + " of " + memory;
}

}  // namespace

Order::Order(Machine& machine) : machine_(machine) {
  places_.push_back({{}, ""});
  operations_.emplace_back();  // number 0 is nobody's
  if (machine.options().hash_order) relation = std::make_unique<Relation>();
}

// --- life ----------------------------------------------------------------------------------------
void Order::launched(Cluster& cluster) {
  ClusterOrder& o = cluster.order;
  const auto threads = static_cast<std::uint32_t>(machine_.shape().threads);
  o.threads_per_cta = (threads + warp_lanes - 1) / warp_lanes * warp_lanes;
  o.first_thread = static_cast<std::uint32_t>(cluster.ctas.front()->index) * o.threads_per_cta;
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
    }
  }
}

void Order::exits(Thread& thread) {
  thread.cta->order.exited.add(thread.order.executed);
  thread.cta->order.exited_order.add(thread.order.order);
  if (relation) relation->exits(thread);
}

void Order::cta_exits(Cta& cta) {
  const Clock known = cta.order.exited.take();
  const Clock ordered = cta.order.exited_order.take();
  if (relation) relation->cta_exits(cta);
  for (const MBarrier& bar : cta.barriers) {
    for (const BarrierOrder::Visit& v : bar.order.visits) {
      // A later arrival of the same thread elsewhere says nothing of this one, unless at a scope
      // that orders what came before it.
      if (v.phase <= bar.observed || ordered[v.component] >= v.time) continue;
      report_visit(cta, bar, v);
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

// --- the rule ------------------------------------------------------------------------------------
Order::Verdict Order::judge(const Thread& t, bool alone, const Actor& y, const Entry& x,
                            bool x_write) const {
  if (y.in_tensor) return judge_tensor(t, y, x);
  if (y.map != nullptr) return judge_map(t, y, x);
  const ThreadOrder& me = t.order;
  const ClusterOrder& cluster = t.cta->cluster->order;
  if (x.asynchronous) {
    const Operation& op = operations_[x.who];
    if (op.atomic && y.atomic) return Verdict::ordered;
    if (!cluster.has(op.number)) return Verdict::race;
    if (op.time == 0) return Verdict::unfinished;
    // Completion carries the proxy fence, so one clock serves both proxies.
    if (me.order[op.component] >= op.time) return Verdict::ordered;
    if (me.executed[op.component] >= op.time) {
      // It is over, and this thread knows. Only who reads what it wrote needs more than that.
      // A pipeline's empty slots rest on this: their arrivals are at CTA scope even across CTAs,
      // here as in CUTLASS (ClusterBarrier::arrive(cta_id), sm90_pipeline.hpp), since the reads
      // that they report were completed by wgmma.wait_group and no write is handed on.
      return !x_write || y.write ? Verdict::ordered : Verdict::scope;
    }
    return Verdict::unfinished;
  }
  if (!cluster.has(x.who)) {
    // Flags order what threads do, not what the copy engine does for them.
    return !y.asynchronous && me.grid[x.who] >= x.time ? Verdict::ordered : Verdict::race;
  }
  const std::uint32_t c = x.who - cluster.first_thread;
  const bool own = alone && x.who == me.number;
  if (!y.asynchronous) {
    if (own || me.order[c] >= x.time) return Verdict::ordered;
    return me.executed[c] >= x.time ? Verdict::scope : Verdict::race;
  }
  const Clock& fenced = y.in_shared ? me.shared : me.global;
  if (fenced[c] >= x.time) return Verdict::ordered;
  if (own && (y.in_shared ? me.fenced_shared : me.fenced_global) >= x.time) return Verdict::ordered;
  const bool executed = own || me.executed[c] >= x.time;
  // The disputed rule: a read that is over, then an asynchronous write without a fence.
  if (!x_write && !machine_.options().fence_after_reads) {
    return executed ? Verdict::ordered : Verdict::race;
  }
  if (own || me.order[c] >= x.time) return x_write ? Verdict::proxy : Verdict::read_proxy;
  return executed ? Verdict::scope : Verdict::race;
}

void Order::check(Actor& y, const Entry& x, bool x_write, std::uintptr_t at) {
  if (y.ordered_valid && y.map == nullptr && y.ordered_who == x.who && y.ordered_time == x.time &&
      y.ordered_asynchronous == x.asynchronous && y.ordered_write == x_write) {
    return;
  }
  for (std::size_t i = 0; i < y.threads.size(); ++i) {
    const bool alone = y.alike.empty() || y.alike[i] == 1;
    const Verdict verdict = judge(*y.threads[i], alone, y, x, x_write);
    if (verdict == Verdict::ordered) continue;
    return y.in_tensor ? report_tensor(*y.threads[i], y, x, x_write, verdict, at)
                       : report(*y.threads[i], y, x, x_write, verdict, at);
  }
  y.ordered_valid = true;
  y.ordered_who = x.who;
  y.ordered_time = x.time;
  y.ordered_asynchronous = x.asynchronous;
  y.ordered_write = x_write;
}

// Does whoever is ordered after `y` come after `x` as well? Then `x` may be forgotten.
bool Order::covered(const Actor& y, const Entry& x) const {
  const Thread& t = *y.threads.front();
  const ClusterOrder& cluster = t.cta->cluster->order;
  if (y.asynchronous) {
    // An operation hands on nothing of its issuer's past; but groups and phases end in order.
    if (!x.asynchronous) return false;
    const Operation& later = operations_[y.entry.who];
    const Operation& earlier = operations_[x.who];
    return cluster.has(earlier.number) && later.component == earlier.component &&
           earlier.time != 0 && earlier.time <= later.time;
  }
  if (x.asynchronous) {
    const Operation& op = operations_[x.who];
    return cluster.has(op.number) && op.time != 0 && t.order.order[op.component] >= op.time;
  }
  if (!cluster.has(x.who)) return t.order.grid[x.who] >= x.time;
  return x.who == t.order.number || t.order.order[x.who - cluster.first_thread] >= x.time;
}

void Order::install_read(Cell& cell, const Actor& y) {
  const auto drops = [&](Entry& x) {
    if (x.mask == 0 || (x.mask & ~y.entry.mask) != 0 || !covered(y, x)) return x.mask == 0;
    release_entry(x);
    x.mask = 0;
    return true;
  };
  drops(cell.read);
  if (cell.more) std::erase_if(cell.more->reads, drops);
  if (y.asynchronous) ++operations_[y.entry.who].references;
  if (cell.read.mask == 0) {
    cell.read = y.entry;
    return;
  }
  if (!cell.more) cell.more = std::make_unique<Cell::More>();
  cell.more->reads.push_back(y.entry);
}

void Order::enter(Cell& cell, Actor& y, std::uintptr_t at) {
  const std::uint16_t mask = y.entry.mask;
  const auto meets = [&](const Entry& x) { return (x.mask & mask) != 0; };
  if (meets(cell.write)) check(y, cell.write, true, at);
  if (y.write && meets(cell.read)) check(y, cell.read, false, at);
  if (cell.more) {
    for (const Entry& x : cell.more->writes) {
      if (meets(x)) check(y, x, true, at);
    }
    if (y.write) {
      for (const Entry& x : cell.more->reads) {
        if (meets(x)) check(y, x, false, at);
      }
    }
  }
  // A thread that reads piece by piece, all at once, is one reader.
  Entry& same = y.write ? cell.write : cell.read;
  if (!y.asynchronous && !same.asynchronous && same.mask != 0 && same.who == y.entry.who &&
      same.time == y.entry.time && same.place == y.entry.place && !y.write) {
    same.mask |= mask;
    return;
  }
  if (!y.write) return install_read(cell, y);
  // What was ordered before the write needs no watching any more: conflicts meet the write first.
  const auto overwritten = [&](Entry& x) {
    if (x.mask == 0) return true;
    x.mask &= static_cast<std::uint16_t>(~mask);
    if (x.mask != 0) return false;
    release_entry(x);
    return true;
  };
  overwritten(cell.read);
  overwritten(cell.write);
  if (cell.more) {
    std::erase_if(cell.more->reads, overwritten);
    std::erase_if(cell.more->writes, overwritten);
  }
  if (y.asynchronous) ++operations_[y.entry.who].references;
  if (cell.write.mask == 0) {
    cell.write = y.entry;
    return;
  }
  if (!cell.more) cell.more = std::make_unique<Cell::More>();
  cell.more->writes.push_back(y.entry);
}

// --- accesses ------------------------------------------------------------------------------------
void Order::generic(Thread& by, Cta& cta, std::uint32_t offset, int bytes, bool write, Site site) {
  if (relation) relation->generic(by, offset, write, site);
  Thread* const self = &by;
  Actor y;
  y.threads = {&self, 1};
  y.write = write;
  y.cta = &cta;
  y.what = write ? "store" : "load";
  y.entry = {by.order.number, by.order.time, place(site, by.role), 0, false};
  for_each_cell(offset, bytes, [&](std::uintptr_t at, std::uint16_t mask) {
    y.entry.mask = mask;
    enter(cta.order.cells[at / piece_bytes], y, at);
  });
}

bool Order::tracked(std::uintptr_t address, std::int64_t bytes) const {
  for (const Allocation& a : machine_.allocations()) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    if (a.writable && address < base + static_cast<std::uintptr_t>(a.bytes) &&
        base < address + static_cast<std::uintptr_t>(bytes)) {
      return true;
    }
  }
  return false;
}

std::uint64_t Order::in_allocation(std::uintptr_t address) const {
  std::uint64_t index = 0;
  for (const Allocation& a : machine_.allocations()) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    ++index;
    if (address >= base && address < base + static_cast<std::uintptr_t>(a.bytes)) {
      return index << 56 | (address - base);
    }
  }
  return 0;
}

Cell* Order::global_cell(std::uintptr_t address) {
  constexpr std::uintptr_t page_bytes = piece_bytes * std::tuple_size_v<Page>;
  const std::uintptr_t number = address / page_bytes;
  if (last_page_ == nullptr || number != last_page_number_) {
    std::unique_ptr<Page>& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    last_page_ = page.get();
    last_page_number_ = number;
  }
  return &(*last_page_)[address % page_bytes / piece_bytes];
}

void Order::generic_global(Thread& by, std::uintptr_t address, std::int64_t bytes, bool write,
                           Site site, bool releases_map) {
  if (!tracked(address, bytes)) return;
  if (relation) relation->generic(by, in_allocation(address), write, site);
  Thread* const self = &by;
  Actor y;
  y.threads = {&self, 1};
  y.write = write;
  y.in_shared = false;
  y.what = releases_map ? "tensormap.cp_fenceproxy" : write ? "store" : "load";
  y.entry = {by.order.number, by.order.time, place(site, by.role), 0, false, releases_map};
  for_each_cell(address, bytes, [&](std::uintptr_t at, std::uint16_t mask) {
    y.entry.mask = mask;
    enter(*global_cell(at), y, at);
  });
}

Order::Distinct::Distinct(std::span<Thread* const> all) {
  for (Thread* t : all) {
    const auto same = [&](const Thread* d) {
      return d->order.order.identity() == t->order.order.identity() &&
             d->order.shared.identity() == t->order.shared.identity() &&
             d->order.executed.identity() == t->order.executed.identity() &&
             d->order.tensor.identity() == t->order.tensor.identity() &&
             d->order.handed.identity() == t->order.handed.identity();
    };
    const auto end = threads.begin() + static_cast<std::ptrdiff_t>(count);
    const auto at = std::find_if(threads.begin(), end, same);
    if (at == end) threads[count++] = t;
    ++alike[static_cast<std::size_t>(at - threads.begin())];
  }
}

void Order::touch(std::uint32_t operation, std::span<Thread* const> issuers, Cta& cta,
                  std::span<const std::uint32_t> pieces, bool write) {
  const Distinct distinct(issuers);
  const Operation& op = operations_[operation];
  if (relation) {
    const std::uint64_t where = pieces.empty() ? 0 : pieces.front() + (pieces.size() << 32);
    relation->asynchronous(issuers, where, write, true,
                           static_cast<std::uint32_t>(places_[op.place].site.line));
  }
  Actor y;
  distinct.speak_for(y);
  y.asynchronous = true;
  y.write = write;
  y.cta = &cta;
  y.what = op.what;
  y.entry = {operation, 0, op.place, 0xffff, true};
  for (const std::uint32_t piece : pieces) {
    enter(cta.order.cells[piece], y, std::uintptr_t{piece} * piece_bytes);
  }
}

void Order::touch_global(std::uint32_t operation, Thread& by, std::uintptr_t address,
                         std::int64_t bytes, bool write) {
  Thread* const self = &by;
  const Operation& op = operations_[operation];
  if (relation) {
    relation->asynchronous({&self, 1}, in_allocation(address), write, false,
                           static_cast<std::uint32_t>(places_[op.place].site.line));
  }
  Actor y;
  y.threads = {&self, 1};
  y.asynchronous = true;
  y.write = write;
  y.atomic = op.atomic;
  y.in_shared = false;
  y.what = op.what;
  y.entry = {operation, 0, op.place, 0, true};
  for_each_cell(address, bytes, [&](std::uintptr_t at, std::uint16_t mask) {
    y.entry.mask = mask;
    enter(*global_cell(at), y, at);
  });
}

void Order::begin_load(Thread& by, Copy& copy, MBarrier& bar) {
  if (bar.order.component == 0) {
    bar.order.component = new_component(*copy.signals->cluster);
    if (relation) {
      relation->name_component(*copy.signals->cluster, bar.order.component,
                               Relation::Owner::barrier,
                               static_cast<std::uint32_t>(copy.signals->index), bar.offset);
    }
  }
  copy.reading = new_operation(by, copy.answers ? "try_cancel" : "tensor load", copy.site);
  Operation& op = operations_[copy.reading];
  op.component = bar.order.component;
  op.barrier = bar.name;
  op.barrier_index = bar.index;
}

void Order::begin_store(Thread& by, Copy& copy) {
  ThreadOrder& t = by.order;
  if (t.bulk_read == 0) {
    t.bulk_read = new_component(*by.cta->cluster);
    t.bulk_done = new_component(*by.cta->cluster);
    if (relation) {
      relation->name_component(*by.cta->cluster, t.bulk_read, Relation::Owner::bulk_read, t.number,
                               0);
      relation->name_component(*by.cta->cluster, t.bulk_done, Relation::Owner::bulk_done, t.number,
                               0);
    }
  }
  const char* what = copy.reduce_add ? "tensor reduce-add" : "tensor store";
  copy.reading = new_operation(by, what, copy.site);
  copy.writing = new_operation(by, what, copy.site);
  operations_[copy.reading].component = t.bulk_read;
  operations_[copy.reading].time = t.committed + 1;
  operations_[copy.writing].component = t.bulk_done;
  operations_[copy.writing].time = t.committed + 1;
  operations_[copy.writing].atomic = copy.reduce_add;
}

std::uint32_t Order::begin_wgmma(Thread& by, WarpgroupOrder& group, Site site) {
  if (group.component == 0) {
    group.component = new_component(*by.cta->cluster);
    if (relation) {
      relation->name_component(*by.cta->cluster, group.component, Relation::Owner::wgmma,
                               static_cast<std::uint32_t>(by.cta->index),
                               static_cast<std::uint32_t>(by.index / warpgroup_threads));
    }
  }
  const std::uint32_t number = new_operation(by, "wgmma", site);
  operations_[number].component = group.component;
  operations_[number].time = group.committed + 1;
  return number;
}

void Order::signalled(Copy& copy, MBarrier& bar) {
  Operation& op = operations_[copy.reading];
  op.time = bar.order.base + static_cast<std::uint32_t>(bar.phase) + 1;
  op.component = bar.order.component;
  bar.order.latest = op.time;
  end(copy.reading);
}

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
}

void Order::learn(Thread& by, const PublishedClocks& from) {
  joins_.join(by.order.order, from.order);
  joins_.join(by.order.shared, from.shared);
  joins_.join(by.order.global, from.global);
  joins_.join(by.order.grid, from.grid);
}

void Order::initialised(Thread& by, MBarrier& bar, std::uint32_t component, std::uint32_t base) {
  bar.order = {};
  bar.order.component = component;
  bar.order.base = base;
  bar.order.initialised = by.order.time;
}

void Order::init_fenced(Thread& by) {
  for (MBarrier& bar : by.cta->barriers) {
    if (bar.initialiser == &by && bar.order.published == 0) bar.order.published = by.order.time;
  }
  if (by.order.init_fence == 0) by.order.init_fence = by.order.time;
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
                           : "fence.mbarrier_init by the initialising thread, then the cluster "
                             "barrier, which this thread must wait for"),
       site});
}

void Order::arrives(Thread& by, Cta& cta, MBarrier& bar, Scope scope, Site site) {
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
  bar.order.handed.add(by.order.handed);  // whatever the semantics: it orders execution alone
  tick(by);
}

void Order::phase_completed(MBarrier& bar) {
  BarrierOrder& o = bar.order;
  o.handed_published = o.handed.take();
  o.near_published = {o.near.order.take(), o.near.shared.take(), o.near.global.take(),
                      o.near.grid.take()};
  o.far_published = {o.far.order.take(), o.far.shared.take(), o.far.global.take(),
                     o.far.grid.take()};
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
  if (scope == Scope::relaxed) return;
  learn(by, bar.order.near_published);
  if (scope == Scope::cluster) learn(by, bar.order.far_published);
  joins_.join(by.order.executed, bar.order.executed_published);
}

void Order::fence(Thread& by, Space space, Site site) {
  ThreadOrder& t = by.order;
  if (space == Space::shared) {
    t.shared = t.order;
    t.fenced_shared = t.time;
  } else {
    global_fences_ = true;
    t.global = t.order;
    t.fenced_global = t.time;
  }
  tick(by);
  if (space == Space::global) return;
  t.fence_time = t.time;
  t.fence_site = site;
  by.cta->order.fences[static_cast<std::size_t>(by.index / warpgroup_threads)] = {
      t.number, t.time, place(site, by.role)};
}

void Order::meets(Thread& by, MeetingOrder& meeting) {
  gather(by, meeting.clocks);
  meeting.executed.add(by.order.executed);
  meeting.executed.sum.raise(by.order.component, by.order.time);
  meeting.handed.add(by.order.handed);
  tick(by);
}

void Order::met(MeetingOrder& meeting, std::span<Thread* const> waiting) {
  const PublishedClocks all{meeting.clocks.order.take(), meeting.clocks.shared.take(),
                            meeting.clocks.global.take(), meeting.clocks.grid.take()};
  const Clock executed = meeting.executed.take();
  const Clock handed = meeting.handed.take();
  for (Thread* t : waiting) {
    // Usually all of them came to the meeting and have learnt nothing since: the join is `all`.
    learn(*t, all);
    joins_.join(t->order.executed, executed);
    joins_.join(t->order.handed, handed);
  }
}

void Order::flag_set(Thread& by, FlagOrder& flag) {
  const ThreadOrder& t = by.order;
  const ClusterOrder& cluster = by.cta->cluster->order;
  flag.grid = t.grid;
  t.order.for_each_leaf([&](const void*, std::uint32_t first, const auto& times) {
    for (std::uint32_t c = 0; c < times.size(); ++c) {
      if (first + c < cluster.threads) flag.grid.raise(cluster.first_thread + first + c, times[c]);
    }
  });
  flag.grid.raise(t.number, t.time);
  tick(by);
}

void Order::flag_waited(Thread& by, const FlagOrder& flag) {
  joins_.join(by.order.grid, flag.grid);
}

void Order::cluster_arrives(Thread& by, bool release) {
  MeetingOrder& meeting = by.cta->cluster->order.arriving;
  if (release) return meets(by, meeting);
  meeting.handed.add(by.order.handed);
  // A relaxed arrival hands on what fence.mbarrier_init released, and nothing else.
  meeting.executed.sum.raise(by.order.component, by.order.init_fence);
}

void Order::cluster_completed(Cluster& cluster) {
  ClusterOrder& o = cluster.order;
  o.published = {o.arriving.clocks.order.take(), o.arriving.clocks.shared.take(),
                 o.arriving.clocks.global.take(), o.arriving.clocks.grid.take()};
  o.executed = o.arriving.executed.take();
  o.handed = o.arriving.handed.take();
}

void Order::cluster_waited(Thread& by) {
  const ClusterOrder& o = by.cta->cluster->order;
  learn(by, o.published);
  joins_.join(by.order.executed, o.executed);
  joins_.join(by.order.handed, o.handed);
}

// --- reports -------------------------------------------------------------------------------------
std::string Order::thread_text(std::uint32_t number, std::uint32_t place) const {
  const auto threads = static_cast<std::uint32_t>(machine_.shape().threads + warp_lanes - 1) /
                       warp_lanes * warp_lanes;
  const std::uint32_t index = number % threads;
  std::string text = std::string(places_[place].role) + " (";
  if (machine_.shape().ctas > 1) text += "CTA " + std::to_string(number / threads) + ", ";
  return text + "warp " + std::to_string(index / warp_lanes) + ", lane " +
         std::to_string(index % warp_lanes) + ")";
}

Access Order::describe(std::uint32_t number, std::uint32_t place, bool asynchronous, bool write,
                       const char* what) const {
  const auto threads = static_cast<std::uint32_t>(machine_.shape().threads + warp_lanes - 1) /
                       warp_lanes * warp_lanes;
  Access a;
  a.role = places_[place].role;
  a.cta = static_cast<int>(number / threads);
  a.warp = static_cast<int>(number % threads / warp_lanes);
  a.lane = static_cast<int>(number % warp_lanes);
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

  const bool known_foreign =
      verdict == Verdict::race && f.accesses[0].cta / machine_.shape().cluster_size !=
                                      f.accesses[1].cta / machine_.shape().cluster_size;
  const std::string fence = y.in_shared ? "fence_proxy_async_shared" : "fence_proxy_async_global";
  switch (verdict) {
    case Verdict::proxy: {
      f.check = Check::missing_proxy_fence;
      f.missing = "a proxy fence between the generic write and the asynchronous access";
      const auto group =
          static_cast<std::size_t>(f.accesses[0].warp * warp_lanes / warpgroup_threads);
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
      if (op->barrier != nullptr) {
        const std::string name =
            std::string(op->barrier) + "[" + std::to_string(op->barrier_index) + "]";
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
      f.missing = known_foreign ? "any order: the CTAs belong to different clusters of one grid"
                                : "any order: no barrier, arrival or wait leads from one to the "
                                  "other";
      f.mend = known_foreign
                   ? "let every byte be written by one cluster only"
                   : "let both threads meet at a barrier, or hand the memory over through "
                     "an mbarrier";
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
