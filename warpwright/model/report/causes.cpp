// What is said of an mbarrier whose counts do not add up: who arrived, which bytes came.
#include <algorithm>
#include <cstring>

#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

// Bytes of one line, of all its threads.
struct LineBytes {
  const PhaseBytes* first;
  std::int64_t bytes = 0;
};

std::vector<LineBytes> by_line(const std::vector<PhaseBytes>& all, bool expected) {
  std::vector<LineBytes> lines;
  for (const PhaseBytes& p : all) {
    if ((p.copy == nullptr) != expected) continue;
    const auto known = std::ranges::find_if(lines, [&](const LineBytes& l) {
      return l.first->copy == p.copy && same_line(l.first->site, p.site) &&
             l.first->thread == p.thread;
    });
    if (known == lines.end()) {
      lines.push_back({&p, p.bytes});
    } else {
      known->bytes += p.bytes;
    }
  }
  return lines;
}

std::int64_t sum(const std::vector<LineBytes>& lines) {
  std::int64_t all = 0;
  for (const LineBytes& l : lines) all += l.bytes;
  return all;
}

std::string copy_text(const LineBytes& l) {
  return std::string("a ") + l.first->copy + " at " + at_line(l.first->site);
}

// A barrier of the cluster that counts too many bytes where this one lacks them, or the other way.
const MBarrier* counterpart(const Cta& cta, const MBarrier& bar, const Cta** of) {
  for (const auto& other : cta.cluster->ctas) {
    for (const MBarrier& b : other->barriers) {
      if (&b == &bar || !b.live || b.tx != -bar.tx) continue;
      *of = other.get();
      return &b;
    }
  }
  return nullptr;
}

// Where none does just so: the barrier of that name that has got the most bytes of st.async too
// many, where this one lacks some. (Other copies may be early: their barrier is not at fault.)
const MBarrier* gets_too_many(const Cta& cta, const MBarrier& bar, const Cta** of) {
  const MBarrier* most = nullptr;
  if (bar.tx <= 0) return most;
  for (const auto& other : cta.cluster->ctas) {
    for (const MBarrier& b : other->barriers) {
      const auto stores = [](const PhaseBytes& p) {
        return p.copy != nullptr && std::string_view(p.copy) == "st.async";
      };
      if (!b.live || b.tx >= 0 || std::strcmp(b.name, bar.name) != 0) continue;
      if (!std::ranges::any_of(b.bytes, stores)) continue;
      if (most != nullptr && b.tx >= most->tx) continue;
      most = &b;
      *of = other.get();
    }
  }
  return most;
}

// The copies of one line that account for just so many bytes; null where none or several do.
const LineBytes* of_bytes(const std::vector<LineBytes>& lines, std::int64_t bytes) {
  for (const std::int64_t each : {bytes, 2 * bytes}) {  // of two phases where one has gone on
    const auto fits = [&](const LineBytes& l) { return l.bytes == each; };
    const auto found = std::ranges::find_if(lines, fits);
    if (found == lines.end()) continue;
    return std::find_if(found + 1, lines.end(), fits) == lines.end() ? &*found : nullptr;
  }
  return nullptr;
}

}  // namespace

std::string Machine::arrivals_text(const std::vector<Arrival>& arrivals) const {
  struct Line {
    const Arrival* first;
    int threads;
  };
  std::vector<Line> lines;
  for (const Arrival& a : arrivals) {
    const auto known = std::ranges::find_if(lines, [&](const Line& l) {
      return same_line(l.first->site, a.site) && l.first->thread->cta == a.thread->cta &&
             std::strcmp(l.first->thread->role, a.thread->role) == 0;
    });
    if (known == lines.end()) {
      lines.push_back({&a, 1});
    } else {
      ++known->threads;
    }
  }
  if (lines.empty()) return "only copies";
  std::string text;
  for (const Line& l : lines) {
    if (!text.empty()) text += ", ";
    text += "the arrival of " + who(*l.first->thread) + " at " + at_line(l.first->site);
    if (l.threads > 1) text += " and " + std::to_string(l.threads - 1) + " more of that role there";
  }
  return text;
}

std::string Machine::completion_text(const MBarrier& bar) const {
  return "Phase " + std::to_string(bar.phase - 1) + " was completed by " +
         arrivals_text(bar.before) + "; it counts " + std::to_string(bar.expected) +
         " a phase since " + at_line(bar.made);
}

std::string Machine::bytes_text(const Cta& cta, const MBarrier& bar) const {
  const std::vector<LineBytes> expected = by_line(bar.bytes, true);
  const std::vector<LineBytes> came = by_line(bar.bytes, false);
  std::string text = "Phase " + std::to_string(bar.phase) + ": " + std::to_string(sum(expected)) +
                     " bytes expected";
  for (const LineBytes& l : expected)
    text += " by " + who(*l.first->thread) + " at " + at_line(l.first->site);
  text += ", " + std::to_string(sum(came)) + " came";
  for (const LineBytes& l : came) {
    text += (&l == came.data() ? ": " : ", ") + std::to_string(l.bytes) + " by " + copy_text(l);
    if (cta.cluster->ctas.size() > 1)
      text += " of CTA rank " + std::to_string(l.first->thread->cta->rank);
  }
  return text;
}

Finding Machine::bytes_finding(const Cta& cta, const MBarrier& bar, std::string sentence) const {
  Finding f{Check::transaction_bytes, {}, {}};
  const std::vector<LineBytes> expected = by_line(bar.bytes, true);
  const std::vector<LineBytes> came = by_line(bar.bytes, false);
  sentence += ". " + bytes_text(cta, bar);
  const Site expects = expected.empty() ? Site{} : expected.front().first->site;
  const std::string where = expects.line > 0 ? "at " + at_line(expects) : "for them";
  const bool too_many = bar.tx < 0;
  const std::string bytes = std::to_string(too_many ? -bar.tx : bar.tx) + " bytes";
  const Cta* of = nullptr;
  const MBarrier* other = counterpart(cta, bar, &of);
  const std::vector<LineBytes> theirs =
      other == nullptr || too_many ? came : by_line(other->bytes, false);
  const LineBytes* copy = of_bytes(theirs, too_many ? -bar.tx : bar.tx);
  f.site = expects;
  if (other != nullptr && of == &cta) {
    const std::string right = barrier_text(cta, too_many ? *other : bar);
    const std::string wrong = barrier_text(cta, too_many ? bar : *other);
    if (copy != nullptr) {
      f.site = copy->first->site;
      f.missing = "the signal of " + copy_text(*copy) + " at " + right + ": it goes to " + wrong;
      f.mend = "look which barrier that copy names";
    } else {
      f.missing =
          "one barrier for both: as many bytes are expected of " + right + " as come at " + wrong;
      f.mend = "expect them, " + where + ", of the barrier that the copies signal";
    }
  } else if (other != nullptr && copy != nullptr) {
    f.site = copy->first->site;
    f.missing = bytes + " of copies to CTA rank " + std::to_string(too_many ? of->rank : cta.rank) +
                ": CTA rank " + std::to_string(too_many ? cta.rank : of->rank) +
                " has got as many too many, by " + copy_text(*copy);
    f.mend = "look at the mask of that copy, and whether all CTAs of the cluster load for one tile";
  } else if (const MBarrier* stray = gets_too_many(cta, bar, &of); stray != nullptr) {
    const LineBytes first = by_line(stray->bytes, false).front();
    f.site = first.first->site;
    f.missing = bytes + ": " + barrier_text(*of, *stray) + " has got " +
                std::to_string(-stray->tx) + " too many, by " + copy_text(first);
    f.mend = "look which barrier that copy names";
  } else if (too_many) {
    f.missing =
        "an expectation of " + bytes + (copy == nullptr ? "" : ", those of " + copy_text(*copy));
    f.mend = "count them in mbarrier_arrive_expect() or mbarrier_expect() " + where;
    if (expects.line == 0 && !came.empty()) f.site = came.front().first->site;
  } else {
    f.missing = "copies of " + bytes + " more";
    f.mend = (came.empty() ? "expect them " : "expect " + std::to_string(sum(came)) + " bytes ") +
             (came.empty() ? "of the barrier that copies signal" : where) +
             ", or issue the copy that is left out";
    if (cta.cluster->ctas.size() > 1) f.mend += "; for copies by peers, look at their masks";
  }
  f.sentence = sentence + ". Missing: " + f.missing + ". Mend: " + f.mend;
  return f;
}

std::string Machine::early_arrival_text(const MBarrier& bar, const Thread& by) const {
  if (bar.pending > 0 || bar.tx == 0) {
    std::string text;
    if (!bar.arrivals.empty()) text = ". It has had " + arrivals_text(bar.arrivals);
    return text + ". Mend: initialise it at " + at_line(bar.made) +
           " for as many arrivals as come in a phase, or leave this one out";
  }
  std::string text =
      ". That phase still waits for " + std::to_string(bar.tx) +
      " transaction bytes, so this arrival belongs to the next one and comes too early";
  const MBarrier* passed = by.waited.barrier;
  if (passed != nullptr && passed->live && passed->phase == by.waited.phase + 1 &&
      !passed->before.empty()) {
    text += ": its thread has passed the wait at " + at_line(by.waited.site) + " on " +
            passed->name + "[" + std::to_string(passed->index) + "], which was opened by " +
            arrivals_text(passed->before);
  }
  return text + ". Missing: a wait for phase " + std::to_string(bar.phase) + " of " + bar.name +
         "[" + std::to_string(bar.index) +
         "] before that. Mend: let whoever opens the way wait for this phase first";
}

std::string Machine::fresh_wait_text() const {
  const Thread::Waited& w = current_->waited;
  if (w.barrier == nullptr || w.phase >= 0) return "";
  return ". The latest wait of " + who(*current_) + ", at " + at_line(w.site) + " on mbarrier " +
         w.barrier->name + "[" + std::to_string(w.barrier->index) +
         "], was let pass as the barrier was fresh: nothing had come. Mend: look at the parity of "
         "that wait";
}

std::string Machine::in_flight_text() const {
  const std::string fresh = fresh_wait_text();
  return fresh.empty() ? ". Mend: wait for it, in this thread or in one that it then meets" : fresh;
}

const Thread* Machine::bare_commit(const Thread& of, Site Thread::*at) {
  for (const auto& t : of.cta->threads) {
    if (t->warp() == of.warp() && t.get() != &of && ((*t).*at).line > 0) return t.get();
  }
  return nullptr;
}

}  // namespace warpwright::model
