// The order of accesses to tensor memory, and the end of the MMAs that read shared memory
// (PTX ISA 9.7.16.6). Everything here is asynchronous: what an operation did is known to a thread
// that waited for it, or that was handed the news between two tcgen05 fences.
#include <algorithm>
#include <bit>
#include <string>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

std::string region_text(const Cta& cta, std::uintptr_t piece, std::uint16_t bits) {
  const auto first = static_cast<int>(std::countr_zero(bits)) / 2;
  const auto last = static_cast<int>(15 - std::countl_zero(bits)) / 2;
  const int lane = static_cast<int>(piece) / (tmem_pieces / 4) * warp_lanes;
  const int column = static_cast<int>(piece) % (tmem_pieces / 4) * tmem_piece_columns;
  return "columns " + std::to_string(column + first) + " to " + std::to_string(column + last) +
         " of lanes " + std::to_string(lane) + " to " + std::to_string(lane + warp_lanes - 1) +
         " of the tensor memory of CTA rank " + std::to_string(cta.rank);
}

// Does y of a thread follow x of the same thread without more? MMAs follow each other by chains.
bool follows(TensorStep y, TensorStep x) {
  const auto is_copy = [](TensorStep s) {
    return s == TensorStep::copy || s == TensorStep::row_copy;
  };
  if (x == TensorStep::none || y == TensorStep::none) return false;
  if (x == TensorStep::shift) return y == TensorStep::mma || y == TensorStep::row_copy;
  if (y == TensorStep::shift) return x == TensorStep::mma;
  return is_copy(x) || is_copy(y);
}

// What the step is, in words.
const char* step_text(TensorStep step) {
  return step == TensorStep::mma ? "MMA" : step == TensorStep::shift ? "shift" : "copy";
}

}  // namespace

std::uint32_t Order::begin_mma(Thread& by, std::uint64_t chain, Site site) {
  const std::uint32_t number = begin_tensor(by, "tcgen05.mma", site);
  operations_[number].chain = chain;
  operations_[number].step = TensorStep::mma;
  return number;
}

std::uint32_t Order::begin_step(Thread& by, TensorStep step, Site site) {
  const char* const what = step == TensorStep::shift ? "tcgen05.shift" : "tcgen05.cp";
  const std::uint32_t number = begin_tensor(by, what, site);
  operations_[number].step = step;
  return number;
}

std::uint32_t Order::begin_tensor(Thread& by, const char* what, Site site) {
  ThreadOrder& t = by.order;
  if (t.mmas == 0) {
    t.mmas = new_component(*by.cta->cluster);
    if (relation) {
      relation->name_component(*by.cta->cluster, t.mmas, Relation::Owner::umma, t.number, 0);
    }
  }
  const std::uint32_t number = new_operation(by, what, site);
  Operation& op = operations_[number];
  op.component = t.mmas;
  op.time = ++t.mma_time;
  return number;
}

std::uint32_t Order::begin_tmem(Thread& by, bool load, Site site) {
  Cluster& cluster = *by.cta->cluster;
  WarpOrder& warp = by.cta->order.warps[static_cast<std::size_t>(by.warp())];
  std::uint32_t& component = load ? warp.loads : warp.stores;
  if (component == 0) {
    component = new_component(cluster);
    if (relation) {
      relation->name_component(
          cluster, component, load ? Relation::Owner::tmem_loads : Relation::Owner::tmem_stores,
          static_cast<std::uint32_t>(by.cta->index), static_cast<std::uint32_t>(by.warp()));
    }
  }
  const std::uint32_t number = new_operation(by, load ? "tcgen05.ld" : "tcgen05.st", site);
  operations_[number].component = component;
  operations_[number].time = ++(load ? warp.load_time : warp.store_time);
  return number;
}

void Order::enter_tmem(Actor& y, const TmemRegion& region) {
  std::vector<Cell>& cells = y.cta->order.tensor;
  if (cells.empty()) cells.resize(tmem_pieces);
  for_each_tmem_piece(region, [&](int piece, std::uint16_t mask) {
    y.entry.mask = mask;
    enter(cells[static_cast<std::size_t>(piece)], y, static_cast<std::uintptr_t>(piece));
  });
}

void Order::touch_tmem(std::uint32_t operation, std::span<Thread* const> issuers, Cta& cta,
                       const TmemRegion& region, bool write) {
  const Operation& op = operations_[operation];
  if (relation) {
    const auto where = static_cast<std::uint64_t>(cta.index) << 32 |
                       static_cast<std::uint64_t>(region.halves) << 20 |
                       static_cast<std::uint64_t>(region.column) << 10 |
                       static_cast<std::uint64_t>(region.columns);
    relation->tensor(issuers, where, write,
                     static_cast<std::uint32_t>(places_[op.place].site.line));
  }
  const Distinct distinct(issuers);
  Actor y;
  distinct.speak_for(y);
  y.asynchronous = true;
  y.in_tensor = true;
  y.write = write;
  y.cta = &cta;
  y.what = op.what;
  y.entry = {operation, 0, op.place, 0, true};
  enter_tmem(y, region);
}

void Order::deallocates(std::span<Thread* const> warp, const TmemRegion& region, Site site) {
  Thread& by = *warp.front();
  const std::uint32_t number = new_operation(by, "tcgen05.dealloc", site);
  // One operation of the warp, behind the past of every lane: one that has drained the tensor cores
  // is enough. The lanes learn nothing from each other by it.
  const ThreadOrder before = by.order;
  for (const Thread* lane : warp.subspan(1)) {
    const ThreadOrder& t = lane->order;
    joins_.join(by.order.tensor, t.tensor);
    joins_.join(by.order.handed, t.handed);
    joins_.join(by.order.executed, t.executed);
    by.order.executed.raise(t.component, t.time);
  }
  const Distinct distinct(warp.first(1));
  Actor y;
  distinct.speak_for(y);
  y.asynchronous = true;
  y.in_tensor = true;
  y.frees = true;
  y.write = true;
  y.cta = by.cta;
  y.what = "tcgen05.dealloc";
  y.entry = {number, 0, operations_[number].place, 0, true};
  enter_tmem(y, region);
  // The columns have no past when they are allocated again.
  for_each_tmem_piece(region, [&](int piece, std::uint16_t mask) {
    Cell& cell = by.cta->order.tensor[static_cast<std::size_t>(piece)];
    if (cell.write.mask == mask && cell.write.who == number) {
      release_entry(cell.write);
      cell.write.mask = 0;
    }
  });
  by.order = before;
  end(number);
}

Order::Verdict Order::judge_tensor(const Thread& t, const Actor& y, const Entry& x) const {
  const Operation& op = operations_[x.who];
  const Operation& mine = operations_[y.entry.who];
  if (op.chain != 0 && op.chain == mine.chain && op.number == mine.number) return Verdict::ordered;
  if (op.number == mine.number && follows(mine.step, op.step)) return Verdict::ordered;
  const ThreadOrder& me = t.order;
  if (me.tensor[op.component] >= op.time) return Verdict::ordered;
  // Giving memory back is not asynchronous: to know that its use is over is enough.
  if (me.handed[op.component] >= op.time) return y.frees ? Verdict::ordered : Verdict::no_after;
  // Its issuer has waited for it, and told this thread of the time after that.
  const ThreadOrder& issuer = op.issuer->order;
  for (const ThreadOrder::TensorWait& w : issuer.tensor_waits) {
    if (w.component != op.component || w.upto < op.time || w.time == 0) continue;
    if (me.executed[issuer.component] < w.time) continue;
    return y.frees ? Verdict::ordered : Verdict::no_before;
  }
  return Verdict::unwaited;
}

void Order::tmem_waited(std::span<Thread* const> threads, bool loads) {
  const WarpOrder& warp =
      threads.front()->cta->order.warps[static_cast<std::size_t>(threads.front()->warp())];
  const std::uint32_t component = loads ? warp.loads : warp.stores;
  for (Thread* t : threads) {
    if (component != 0) t->order.tensor.raise(component, loads ? warp.load_time : warp.store_time);
    ThreadOrder& o = t->order;
    o.tensor_waits[o.next_tensor_wait++ % o.tensor_waits.size()] = {
        component, loads ? warp.load_time : warp.store_time, o.time};
    tick(*t);
  }
}

void Order::tensor_fence(Thread& by, bool before, Site site) {
  ThreadOrder& t = by.order;
  if (before) {
    joins_.join(t.handed, t.tensor);
  } else {
    joins_.join(t.tensor, t.handed);
    t.after_site = site;
  }
}

Commit Order::commits(Thread& by) {
  ThreadOrder& t = by.order;
  Commit commit{t.mma_time, t.executed, t.handed, t.passed};
  t.mma_committed = t.mma_time;
  commit.executed.raise(t.component, t.time);
  commit.handed.join(t.tensor);  // a commit includes fence::before_thread_sync
  commit.passed.raise(t.component, t.waits);
  tick(by);
  return commit;
}

void Order::committed(const Thread& by, const Commit& commit, Cta& cta, MBarrier& bar, Site site) {
  const ThreadOrder& t = by.order;
  check_phase(by, commit.passed, commit.executed, false, 1, cta, bar, site);
  if (&cta != by.cta) {
    std::vector<BarrierOrder::Visit>& visits = bar.order.visits;
    if (!visits.empty() && visits.back().phase <= bar.observed) visits.clear();
    visits.push_back({bar.phase, t.number, t.mmas, commit.time, place(site, by.role), true});
  }
  // The arrival comes after all that its thread did before the commit, but it releases no writes.
  bar.order.executed.add(commit.executed);
  bar.order.handed.add(commit.handed);
  bar.order.passed.add(commit.passed);
  if (commit.time == 0) return;
  // The reads of shared memory are over, for both proxies.
  bar.order.near.order.sum.raise(t.mmas, commit.time);
  bar.order.executed.sum.raise(t.mmas, commit.time);
  bar.order.handed.sum.raise(t.mmas, commit.time);
}

bool Order::knows_of(const Thread& by, const Cta& cta) {
  const std::uint32_t per_cta = cta.cluster->order.threads_per_cta;
  for (std::uint32_t i = 0; i < per_cta; ++i) {
    if (by.order.executed[static_cast<std::uint32_t>(cta.rank) * per_cta + i] > 0) return true;
  }
  return false;
}

void Order::report_tensor(const Thread& t, const Actor& y, const Entry& x, bool x_write,
                          Verdict verdict, std::uintptr_t at) {
  const Operation& op = operations_[x.who];
  const std::uint64_t key = (std::uint64_t{op.place} << 32 | y.entry.place) * 32 +
                            static_cast<std::uint64_t>(verdict) * 2 + (x_write ? 1 : 0);
  if (!reported_.insert(key).second) return;
  Finding f;
  f.check = verdict == Verdict::unwaited ? Check::tmem_unordered : Check::tmem_fence;
  f.site = places_[y.entry.place].site;
  f.accesses = {describe(op.number, op.place, true, x_write, op.what),
                describe(t.order.number, y.entry.place, true, y.write, y.what)};
  const std::string what = op.what;
  if (verdict == Verdict::no_after) {
    f.missing = "tcgen05.fence::after_thread_sync between the wait and the later access";
    f.mend = "call tcgen05_fence_after_sync() after the wait or barrier";
    if (t.order.after_site.line > 0) {
      f.missing += "; the latest one of " + machine_.who(t) + ", at " +
                   at_line(t.order.after_site) + ", came before it learnt of that access";
    }
  } else if (verdict == Verdict::no_before) {
    f.missing =
        "tcgen05.fence::before_thread_sync between the earlier access and the arrival or barrier";
    f.mend = "call tcgen05_fence_before_sync() before the arrival or barrier";
  } else if (op.component == op.issuer->order.mmas && explain_commit(f, op)) {
    // said
  } else if (op.component == op.issuer->order.mmas) {
    f.missing = "a wait for an mbarrier on which a tcgen05.commit after the " +
                std::string(step_text(op.step)) + " arrives";
    f.mend = "commit, wait on the barrier, then tcgen05_fence_after_sync()";
  } else {
    const std::string wait = what == "tcgen05.ld" ? "tcgen05.wait::ld" : "tcgen05.wait::st";
    f.missing = wait + " of the warp, and a hand-over from there to the later access";
    f.mend = wait + ", tcgen05_fence_before_sync(), then an arrival or a barrier";
    const auto covers = [&](const ThreadOrder::TensorWait& w) {
      return w.component == op.component && w.upto >= op.time;
    };
    if (std::ranges::any_of(op.issuer->order.tensor_waits, covers)) {
      f.missing = "a hand-over from the " + wait + " that covers it to the later access";
      f.mend =
          "tcgen05_fence_before_sync() and the arrival, or the barrier, behind that wait; and "
          "a wait for it before the later access";
    }
  }
  const auto both = static_cast<std::uint16_t>(x.mask & y.entry.mask);
  report_pair(std::move(f), op.number, op.place, t.order.number, y.entry.place,
              region_text(*y.cta, at, both));
}

}  // namespace warpwright::model
