// The order checker, causes: what is behind a finding, where the two accesses are its victims.
#include <algorithm>
#include <string>
#include <string_view>

#include "warpwright/model/order/order.h"
#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {

const Thread& Order::thread_of(const Cluster& cluster, std::uint32_t number) const {
  const std::uint32_t at = number - cluster.order.first_thread;
  const std::uint32_t each = cluster.order.threads_per_cta;
  return *cluster.ctas[at / each]->threads[at % each];
}

// --- a phase without the bytes of a load ---------------------------------------------------------
bool Order::explain_bytes(Finding& f, const Operation& load) const {
  if (load.signals == nullptr) return false;
  const MBarrier& bar = *load.signals;
  const bool left = bar.left.phase >= load.phase && load.phase >= 0;
  if (!left) return false;
  const std::string name =
      std::string(load.barrier) + "[" + std::to_string(load.barrier_index) + "]";
  f.missing = "the bytes of the " + std::string(load.what) + " among those that mbarrier " + name +
              " expects: its phase " + std::to_string(bar.left.phase) + " was complete while " +
              std::to_string(bar.left.bytes) + " bytes of copies that signal it had not come";
  f.mend = "expect the bytes of every copy that signals " + name;
  if (bar.left.expects.line > 0) f.mend += ", at " + at_line(bar.left.expects);
  return true;
}

// --- a commit by another lane, or by nobody ------------------------------------------------------
bool Order::explain_commit(Finding& f, const Operation& op) const {
  const Thread& issuer = *op.issuer;
  const std::string_view what = op.what;
  const bool mma = op.step != TensorStep::none;
  const bool store = what == "tensor store" || what == "tensor reduce-add";
  if (!mma && !store) return false;
  const bool committed =
      mma ? issuer.order.mma_committed >= op.time : issuer.order.committed >= op.time;
  if (committed) return false;
  const Thread* other = Machine::bare_commit(
      issuer, mma ? &Thread::bare_commit_site : &Thread::bare_bulk_commit_site);
  const std::string commit = mma ? "tcgen05.commit" : "cp.async.bulk.commit_group";
  const std::string lane = "lane " + std::to_string(issuer.lane());
  f.missing = "a " + commit + " by " + lane + ", which issued the " + std::string(what);
  if (other != nullptr) {
    const Site at = mma ? other->bare_commit_site : other->bare_bulk_commit_site;
    f.missing += ": lane " + std::to_string(other->lane()) + " committed at " + at_line(at) +
                 ", and a commit covers only what its own thread has issued";
  } else if (mma) {
    return false;  // it may still come: a wait is missing first of all
  }
  f.mend = mma ? "tcgen05_commit() in the thread that issues the MMAs, a wait on its barrier, then "
                 "tcgen05_fence_after_sync()"
               : "bulk_commit() in the thread that stores, then bulk_wait_read() in it before the "
                 "memory is reused";
  return true;
}

// --- an arrival at too narrow a scope ------------------------------------------------------------
const ThreadOrder::Weak* Order::weak_arrival(const Cluster& cluster, std::uint32_t number,
                                             std::uint32_t from, std::uint32_t upto) const {
  const ThreadOrder::Weak* first = nullptr;
  for (const ThreadOrder::Weak& w : thread_of(cluster, number).order.weak) {
    if (w.place == 0 || w.time < from || w.time > upto) continue;
    if (first == nullptr || w.time < first->time) first = &w;
  }
  return first;
}

// --- a wait that may slip ------------------------------------------------------------------------
void Order::look_at_read(const Entry& read, const Cell& cell, const Thread& by,
                         std::uint32_t before, LastRead& latest) const {
  if (read.mask == 0) return;
  std::uint32_t place = read.place;
  std::uint32_t order = 0;
  if (!read.asynchronous) {
    if (read.who != by.order.number || read.time > before) return;
    order = read.time;
  } else {
    // The reads of a warpgroup's wgmmas, as far as this thread knows that they are over.
    const Operation& op = operations_[read.who];
    if (op.issuer->cta != by.cta ||
        op.issuer->index / warpgroup_threads != by.index / warpgroup_threads ||
        std::string_view(op.what) != "wgmma" || by.order.order[op.component] < op.time) {
      return;
    }
    place = op.place;
    order = op.time;
  }
  const bool async = cell.write.mask != 0 && cell.write.asynchronous;
  const Operation* brought = async ? &operations_[cell.write.who] : nullptr;
  if (brought != nullptr && brought->barrier == nullptr) brought = nullptr;
  // For what copies brought, before all else: those are the stages that barriers guard.
  const bool better = brought != nullptr && latest.brought == nullptr;
  const bool worse = brought == nullptr && latest.brought != nullptr;
  if (latest.place != 0 && !better && (worse || order <= latest.order)) return;
  latest = {place, order, brought};
}

Order::LastRead Order::last_read(const Thread& by, std::uint32_t before) const {
  LastRead latest;
  for (const Cell& cell : by.cta->order.cells) {
    look_at_read(cell.read, cell, by, before, latest);
    if (!cell.more) continue;
    for (const Entry& read : cell.more->reads) look_at_read(read, cell, by, before, latest);
  }
  return latest;
}

std::string Order::slip_cause(Finding& f, const MBarrier& bar,
                              const BarrierOrder::Waited& w) const {
  f.missing = "an order of the wait before one of these arrivals";
  f.mend =
      "let every thread that waits reach that arrival: a syncwarp or a barrier between the waits "
      "and the thread that arrives, or one arrival for each of them";
  if (bar.arrivals.empty()) return "Only copies complete that phase.";
  const Arrival& last = bar.arrivals.back();
  std::string text = "What may complete phase " + std::to_string(bar.phase - 1) + ": " +
                     machine_.arrivals_text(bar.arrivals);
  const LastRead read = last_read(*last.thread, last.time);
  if (read.place != 0) {
    text += "; the last of them comes behind that thread's read at " +
            at_line(places_[read.place].site);
    if (read.brought != nullptr) {
      text += " of what mbarrier " + std::string(read.brought->barrier) + "[" +
              std::to_string(read.brought->barrier_index) + "] has announced";
    }
  }
  // A ring's barriers have one index a stage.
  if (read.brought != nullptr && read.brought->barrier_index != bar.index &&
      std::string_view(read.brought->barrier) != bar.name) {
    f.site = last.site;
    Access arrival;
    arrival.role = last.thread->role;
    arrival.cta = last.thread->cta->index;
    arrival.warp = last.thread->warp();
    arrival.lane = last.thread->lane();
    arrival.site = last.site;
    arrival.instruction = "mbarrier.arrive";
    arrival.proxy = "generic";
    f.accesses.push_back(std::move(arrival));
    f.missing =
        "an arrival on the barrier of the stage that was read: this one is for another "
        "stage, which its thread has not waited for";
    f.mend = "arrive on " + std::string(bar.name) + "[" +
             std::to_string(read.brought->barrier_index) + "] at " + at_line(last.site) +
             ", not on " + bar.name + "[" + std::to_string(bar.index) +
             "]: release a stage before the state moves on to the next";
    return text + ".";
  }
  const auto beside = [&](const Arrival& a) {
    return a.thread->order.number / warp_lanes == w.number / warp_lanes &&
           a.thread->order.number != w.number;
  };
  const auto lane = std::ranges::find_if(bar.arrivals, beside);
  if (lane != bar.arrivals.end()) {
    f.mend = "a syncwarp between the wait and the arrival at " + at_line(lane->site) +
             " of another lane of the same warp";
  }
  return text + ".";
}

// --- two views that overlap, or two stores to one place ------------------------------------------
bool Order::overwrites_other(const Cell& cell, const Actor& y) const {
  if (y.asynchronous) return false;
  const auto other = [&](const Entry& x) {
    return (x.mask & y.entry.mask) != 0 && !x.asynchronous && x.place != y.entry.place &&
           !same_line(places_[x.place].site, places_[y.entry.place].site);
  };
  return other(cell.write) || (cell.more && std::ranges::any_of(cell.more->writes, other));
}

void Order::note_overwriting(const Actor& y, const Entry& x, bool x_write, std::uintptr_t at) {
  if (!y.in_shared || y.asynchronous || x.asynchronous || y.atomic || x.atomic) return;
  const Cell& cell = y.cta->order.cells[at / piece_bytes];
  if (!y.write) {
    if (x.overwrites) places_[x.place].overwrites = true;
  } else if (!x_write) {
    if (overwrites_other(cell, y)) places_[y.entry.place].overwrites = true;
  } else {  // a value that nobody has read is lost
    const auto meets = [&](const Entry& e) { return (e.mask & x.mask & y.entry.mask) != 0; };
    const bool read =
        meets(cell.read) || (cell.more && std::ranges::any_of(cell.more->reads, meets));
    if (!read) places_[y.entry.place].overwrites = true;
  }
}

Order::Touching Order::touching(Site site) const {
  Touching all;
  for (const Place& p : places_) {
    if (!same_line(p.site, site)) continue;
    all.low = std::min(all.low, p.low);
    all.high = std::max(all.high, p.high);
    all.overwrites = all.overwrites || p.overwrites;
  }
  return all;
}

bool Order::explain_overlap(Finding& f) const {
  const Access& x = f.accesses[0];
  const Access& y = f.accesses[1];
  if (x.proxy != "generic" || y.proxy != "generic" || !x.memory.starts_with("shared")) return false;
  const Touching a = touching(x.site);
  const Touching b = touching(y.site);
  if (same_line(x.site, y.site)) {
    if (!x.write || !y.write || !b.overwrites) return false;
    f.missing =
        "places of their own: two threads store to the same bytes from one line, and the value "
        "of one is lost";
    f.mend =
        "look at the index that each of them computes, or let one thread store; if one is a round "
        "ahead, let both threads meet at a barrier between the rounds";
    return true;
  }
  const bool apart = (a.low < b.low && b.low < a.high && a.high < b.high) ||
                     (b.low < a.low && a.low < b.high && b.high < a.high);
  if (!apart && !(x.write && a.overwrites) && !(y.write && b.overwrites)) return false;
  const auto text = [](Site site, const Touching& t) {
    return at_line(site) + " touches offsets " + std::to_string(t.low) + " to " +
           std::to_string(t.high - 1);
  };
  f.missing = "places of their own: in all, " + text(x.site, a) + ", " + text(y.site, b) +
              ", and the two overlap in offsets " + std::to_string(std::max(a.low, b.low)) +
              " to " + std::to_string(std::min(a.high, b.high) - 1);
  f.mend =
      "if these are two tables or buffers, look where each begins and ends; if they are "
      "one, let both threads meet at a barrier between the accesses";
  return true;
}

void Order::tell_overlaps(std::vector<Finding>& findings) const {
  const auto one_line = [](const Finding& f) {
    return f.accesses.size() == 2 && same_line(f.accesses[0].site, f.accesses[1].site);
  };
  // An index may have been computed from bytes that are garbled.
  const bool garbled = std::ranges::any_of(findings, [&](const Finding& f) {
    return f.check == Check::uninitialised_read || (f.check == Check::data_race && !one_line(f));
  });
  for (Finding& f : findings) {
    if (f.check != Check::data_race || f.accesses.size() != 2) continue;
    const std::string old = ". Missing: " + f.missing + ". Mend: " + f.mend;
    const std::size_t at = f.sentence.find(old);
    if (at == std::string::npos || !explain_overlap(f)) continue;
    f.sentence = f.sentence.substr(0, at) + ". Missing: " + f.missing + ". Mend: " + f.mend;
    f.follows = f.follows || (garbled && one_line(f));
  }
}

}  // namespace warpwright::model
