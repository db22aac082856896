// Accesses: the rule that two of them must be ordered, and who makes them.
#include "warpwright/model/order/order.h"

#include <algorithm>

#include "warpwright/model/parts.h"

namespace warpwright::model {

namespace {

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

}  // namespace

// --- the rule ------------------------------------------------------------------------------------
Order::Verdict Order::judge_operation(const Thread& t, const Actor& y, const Entry& x,
                                      bool x_write) const {
  const ThreadOrder& me = t.order;
  const ClusterOrder& cluster = t.cta->cluster->order;
  const Operation& op = operations_[x.who];
  if (op.atomic && y.atomic) return Verdict::ordered;
  if (!cluster.has(op.number)) {
    const Clock& known = y.asynchronous ? me.far : me.grid;
    // The end of a grid needs no fence.
    const bool over = (op.stores && op.time != 0 && known[stores_of(op.number)] >= op.time) ||
                      (op.copies && me.grid[copies_of(op.number)] >= op.time);
    return over || knows_far(me.grid, op.number, op.number, UINT32_MAX) ? Verdict::ordered
                                                                        : Verdict::race;
  }
  if (op.time == 0) return Verdict::unfinished;
  if (op.generic && y.asynchronous && !y.in_generic && me.order[op.component] >= op.time) {
    // A generic write that is over: the other proxy needs the fence.
    const Clock& fenced = y.in_shared ? me.shared : me.global;
    return !x_write || fenced[op.component] >= op.time ? Verdict::ordered : Verdict::proxy;
  }
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

Order::Verdict Order::judge(const Thread& t, bool alone, const Actor& y, const Entry& x,
                            bool x_write) const {
  if (y.in_tensor) return judge_tensor(t, y, x);
  if (y.map != nullptr) return judge_map(t, y, x);
  const ThreadOrder& me = t.order;
  const ClusterOrder& cluster = t.cta->cluster->order;
  if (x.asynchronous) return judge_operation(t, y, x, x_write);
  if (x.atomic && y.atomic) return Verdict::ordered;
  if (!cluster.has(x.who)) {
    const bool fences = y.asynchronous && !y.in_generic;
    if (knows_far(fences ? me.far : me.grid, x.who, x.who, x.time) ||
        knows_far(me.grid, x.who, x.who, UINT32_MAX)) {
      return Verdict::ordered;
    }
    return fences && me.grid[x.who] >= x.time ? Verdict::proxy : Verdict::race;
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
  // The disputed rule: a read that is over, then an asynchronous write without a fence. (There is
  // none to be had where the write is of the generic proxy too; answers of launch control always
  // want it.)
  const bool lenient = !y.is_answer && !machine_.options().fence_after_reads;
  if (!x_write && (y.in_generic || lenient)) {
    return executed ? Verdict::ordered : Verdict::race;
  }
  if (y.in_generic && (own || me.order[c] >= x.time)) return Verdict::ordered;
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
  if (!cluster.has(x.who)) return knows_far(t.order.grid, x.who, x.who, x.time);
  return x.who == t.order.number || t.order.order[x.who - cluster.first_thread] >= x.time;
}

bool Order::is_atomic(const Entry& x) const {
  return x.asynchronous ? operations_[x.who].atomic : x.atomic;
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
  y.entry.overwrites = y.in_shared && overwrites_other(cell, y);
  // What was ordered before the write needs no watching any more: conflicts meet the write first.
  // But one of two additions says nothing of the other.
  const auto overwritten = [&](Entry& x) {
    if (x.mask == 0) return true;
    if (y.atomic && is_atomic(x) && !covered(y, x)) return false;
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
void Order::generic(Thread& by, Cta& cta, std::uint32_t offset, int bytes, bool write, Site site,
                    bool atomic) {
  if (relation) relation->generic(by, offset, write, site);
  if (&cta != by.cta) visits(by, cta, site);
  Thread* const self = &by;
  Actor y;
  y.threads = {&self, 1};
  y.write = write;
  y.atomic = atomic;
  y.cta = &cta;
  y.what = atomic ? "addition" : write ? "store" : "load";
  const std::uint32_t here = place(site, by.role);
  y.entry = {by.order.number, by.order.time, here, 0, false, atomic};
  Place& from = places_[here];
  if (offset < from.low) from.low = offset;
  if (offset + static_cast<std::uint32_t>(bytes) > from.high) {
    from.high = offset + static_cast<std::uint32_t>(bytes);
  }
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
  Actor y;
  y.write = write;
  y.what = releases_map ? "tensormap.cp_fenceproxy" : write ? "store" : "load";
  y.entry.map = releases_map;
  enter_global(by, address, bytes, site, y);
}

void Order::atomic_global(Thread& by, std::uintptr_t address, std::int64_t bytes, Site site) {
  Actor y;
  y.write = true;
  y.atomic = true;
  y.what = "atomic increment";
  y.entry.atomic = true;
  enter_global(by, address, bytes, site, y);
}

void Order::enter_global(Thread& by, std::uintptr_t address, std::int64_t bytes, Site site,
                         Actor& y) {
  if (!tracked(address, bytes)) return;
  if (relation) relation->generic(by, in_allocation(address), y.write, site);
  Thread* const self = &by;
  y.threads = {&self, 1};
  y.in_shared = false;
  y.entry.who = by.order.number;
  y.entry.time = by.order.time;
  y.entry.place = place(site, by.role);
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
  y.in_generic = op.generic;
  y.is_answer = op.is_answer;
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

void Order::copy_async(Thread& by, const ThreadCopy& copy) {
  ThreadOrder& t = by.order;
  if (t.copies == 0) {
    t.copies = new_component(*by.cta->cluster);
    by.cta->cluster->order.copies.emplace_back(t.copies, t.number);
    if (relation) {
      relation->name_component(*by.cta->cluster, t.copies, Relation::Owner::copies, t.number, 0);
    }
  }
  const std::uint32_t number = new_operation(by, "cp.async", copy.site);
  Operation& op = operations_[number];
  op.component = t.copies;
  op.time = t.copy_time + 1;
  op.generic = true;
  op.copies = true;
  Thread* const self = &by;
  if (relation) {
    relation->asynchronous({&self, 1}, copy.offset, true, true,
                           static_cast<std::uint32_t>(copy.site.line));
  }
  Actor y;
  y.threads = {&self, 1};
  y.asynchronous = true;
  y.in_generic = true;
  y.what = op.what;
  y.entry = {number, 0, op.place, 0, true};
  y.write = true;
  y.cta = by.cta;
  for_each_cell(copy.offset, copy.bytes, [&](std::uintptr_t at, std::uint16_t mask) {
    y.entry.mask = mask;
    enter(by.cta->order.cells[at / piece_bytes], y, at);
  });
  if (copy.from_bytes > 0 && tracked(copy.from, copy.from_bytes)) {
    y.write = false;
    y.in_shared = false;
    y.ordered_valid = false;
    for_each_cell(copy.from, copy.from_bytes, [&](std::uintptr_t at, std::uint16_t mask) {
      y.entry.mask = mask;
      enter(*global_cell(at), y, at);
    });
  }
  end(number);
}

void Order::begin_load(Thread& by, Copy& copy, MBarrier& bar) {
  check_published_to_copies(by, copy, bar);
  if (bar.order.component == 0) {
    bar.order.component = new_component(*copy.signals->cluster);
    if (relation) {
      relation->name_component(*copy.signals->cluster, bar.order.component,
                               Relation::Owner::barrier,
                               static_cast<std::uint32_t>(copy.signals->index), bar.offset);
    }
  }
  copy.reading = new_operation(by, copy.instruction(), copy.site);
  Operation& op = operations_[copy.reading];
  op.generic = copy.from == Copy::From::registers;
  op.is_answer = copy.from == Copy::From::queue;
  op.component = bar.order.component;
  op.barrier = bar.name;
  op.barrier_index = bar.index;
  op.signals = &bar;
  op.phase = bar.phase;
  bar.on_their_way += copy.bytes;
  copy.passed = by.order.passed;
  copy.passed.raise(by.order.component, by.order.waits);
}

void Order::begin_store(Thread& by, Copy& copy) {
  ThreadOrder& t = by.order;
  if (t.bulk_read == 0) {
    t.bulk_read = new_component(*by.cta->cluster);
    t.bulk_done = new_component(*by.cta->cluster);
    by.cta->cluster->order.stores.emplace_back(t.bulk_done, t.number);
    if (relation) {
      relation->name_component(*by.cta->cluster, t.bulk_read, Relation::Owner::bulk_read, t.number,
                               0);
      relation->name_component(*by.cta->cluster, t.bulk_done, Relation::Owner::bulk_done, t.number,
                               0);
    }
  }
  copy.reading = new_operation(by, copy.instruction(), copy.site);
  copy.writing = new_operation(by, copy.instruction(), copy.site);
  operations_[copy.reading].component = t.bulk_read;
  operations_[copy.reading].time = t.committed + 1;
  operations_[copy.writing].component = t.bulk_done;
  operations_[copy.writing].time = t.committed + 1;
  operations_[copy.writing].atomic = copy.reduce_add;
  operations_[copy.writing].stores = true;
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
  bar.on_their_way -= copy.bytes;
  bar.order.passed.add(copy.passed);
  end(copy.reading);
}

}  // namespace warpwright::model
