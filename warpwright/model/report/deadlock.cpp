// A hang: who waits for what, and which of them is the cause of the others.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <string_view>

#include "warpwright/facts/format.h"
#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

// What may have kept a thread waiting, the smaller the weight the surer.
struct Cause {
  int weight = 100;
  Site site;
  std::string text;
  std::string missing;
  std::string mend;
};

struct Blocked {
  const Machine& machine;
  std::vector<const Thread*> threads;  // of one grid
};

MBarrier* barrier_of(const Wait& wait) {
  const int slot = wait.cta->barrier_at[wait.offset / 8];
  return slot < 0 ? nullptr : &wait.cta->barriers[static_cast<std::size_t>(slot)];
}

std::string name_of(const MBarrier& bar, const Cta& cta) {
  std::string text = std::string(bar.name) + "[" + std::to_string(bar.index) + "]";
  if (cta.cluster->ctas.size() > 1) text += " of CTA rank " + std::to_string(cta.rank);
  return text;
}

bool waits_at(const Thread& t, const Meeting& meeting) {
  return std::ranges::find(meeting.waiting, &t) != meeting.waiting.end();
}

// The meeting where the thread waits, and its first and last member.
struct Gathering {
  const Meeting* meeting;
  int first;
  int count;
  const char* of;
};
Gathering gathering_of(const Thread& t) {
  const Meeting& warp = t.cta->warp_meetings[static_cast<std::size_t>(t.warp())];
  if (waits_at(t, warp)) return {&warp, t.warp() * warp_lanes, warp_lanes, "warp"};
  const int group = t.index / warpgroup_threads;
  return {&t.cta->warpgroup_meetings[static_cast<std::size_t>(group)], group * warpgroup_threads,
          warpgroup_threads, "warpgroup"};
}

// "warps 4 to 7" of the threads' warps.
std::string warps_text(const std::vector<int>& warps) {
  std::string text = warps.size() > 1 ? "warps " : "warp ";
  for (std::size_t i = 0; i < warps.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < warps.size() && warps[last + 1] == warps[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += std::to_string(warps[i]);
    if (last > i) text += " to " + std::to_string(warps[last]);
    i = last;
  }
  return text;
}

// Does the text of a barrier's arrivers speak of this role?
bool names(const char* arrivers, std::string_view role) {
  const std::string_view text = arrivers;
  const std::string_view word = role.substr(0, role.find(' '));
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

// --- one cause each ------------------------------------------------------------------------------
// Registers that nobody gives.
Cause of_registers(const Thread& t, const Machine& m) {
  std::vector<int> keep;
  const Cta& cta = *t.cta;
  const int whole = cta.grid->shape().registers_per_thread;
  for (std::size_t g = 0; g < cta.warpgroups.size(); ++g) {
    const auto first = g * warpgroup_threads;
    if (static_cast<int>(g) == t.index / warpgroup_threads) continue;
    const auto last = std::min(first + warpgroup_threads, cta.threads.size());
    const auto asks = [&](const auto& u) { return u->wait.kind == Wait::Kind::registers; };
    const auto begin = cta.threads.begin();
    if (cta.warpgroups[g].registers < whole || cta.warpgroup_meetings[g].arrived > 0 ||
        std::any_of(begin + static_cast<std::ptrdiff_t>(first),
                    begin + static_cast<std::ptrdiff_t>(last), asks)) {
      continue;
    }
    for (auto w = first / warp_lanes; w * warp_lanes < last; ++w)
      keep.push_back(static_cast<int>(w));
  }
  if (keep.empty()) return {};
  return {
      1, t.wait.site,
      m.who(t) + " waits at " + at_line(t.wait.site) + " for registers that nobody gives: " +
          warps_text(keep) + " of its CTA keep " + std::to_string(whole) + " a thread",
      "a setmaxnreg.dec by " + warps_text(keep),
      "decrease_registers() by all warps of a warpgroup that does not multiply, before it waits "
      "for anything"};
}

// Has a role of these arrivals arrived at a barrier of this name in the CTA, too?
bool arrives_at(const Cta& cta, const char* name, const std::vector<Arrival>& arrivals) {
  const auto same = [&](const Arrival& a) {
    return std::ranges::any_of(arrivals, [&](const Arrival& b) {
      return a.thread->cta == b.thread->cta && std::strcmp(a.thread->role, b.thread->role) == 0;
    });
  };
  return std::ranges::any_of(cta.barriers, [&](const MBarrier& b) {
    return std::strcmp(b.name, name) == 0 &&
           (std::ranges::any_of(b.arrivals, same) || std::ranges::any_of(b.before, same));
  });
}

// Arrivals that went to the barrier of the same name in another CTA, or to the one of another slot,
// where nobody waits.
Cause of_wrong_side(const Thread& t, const MBarrier& bar, const Machine& m) {
  const Cta& own = *t.wait.cta;
  for (const auto& cta : own.cluster->ctas) {
    for (const MBarrier& b : cta->barriers) {
      const bool alike = std::strcmp(b.name, bar.name) == 0 && b.live && &b != &bar;
      if (!alike || cta.get() == &own || b.index != bar.index) continue;
      const bool unseen = b.phase > 0 && b.observed < b.phase - 1;
      const std::vector<Arrival>& went = !b.arrivals.empty() ? b.arrivals : b.before;
      if (!b.waiting.empty() || went.empty() || (b.arrivals.empty() && !unseen)) continue;
      if (b.observed >= 0 || arrives_at(own, bar.name, went)) continue;  // they are meant for both
      const Arrival& a = went.front();
      const std::string right = name_of(bar, own);
      return {2, a.site,
              right + " lacks " + std::to_string(bar.pending) + " of " +
                  std::to_string(bar.expected) + " arrivals, and " + m.arrivals_text(went) +
                  " went to " + name_of(b, *cta) + ", where nobody waits",
              "arrivals on " + right + ", on the side that waits",
              "arrive at " + at_line(a.site) + " on the barrier of CTA rank " +
                  std::to_string(own.rank) + " (map_rank)"};
    }
  }
  return {};
}

// A commit that nobody makes: MMAs were issued, and those who wait for their commit have what the
// issuer waits for.
Cause of_commit(const Thread& t, const MBarrier& bar, const Machine& m) {
  if (!bar.arrivals.empty() || std::string_view(bar.arrivers).find("commit") == std::string::npos) {
    return {};
  }
  const std::string name = name_of(bar, *t.wait.cta);
  for (const auto& cta : t.wait.cta->cluster->ctas) {
    for (const auto& u : cta->threads) {
      if (u->mma_site.line == 0 || u->wait.kind != Wait::Kind::mbarrier) continue;
      const MBarrier* theirs = barrier_of(u->wait);
      if (theirs == nullptr || !names(theirs->arrivers, t.role)) continue;
      Cause c{bar.phase == 0 ? 3 : 5, u->mma_site,
              m.who(*u) + " has issued MMAs, the last at " + at_line(u->mma_site) +
                  ", and nothing has told " + name + " of them: no tcgen05.commit of phase " +
                  std::to_string(t.wait.phase) + " has come there",
              "a tcgen05.commit to " + name,
              "tcgen05_commit() on " + std::string(bar.name) +
                  " behind the last MMA, in the thread that issues them"};
      const MBarrier* peer = nullptr;
      const Cta* of = nullptr;
      for (const auto& other : t.wait.cta->cluster->ctas) {
        for (const MBarrier& b : other->barriers) {
          const bool told = b.phase > bar.phase && !b.before.empty() &&
                            b.before.back().thread == u.get() && b.index == bar.index;
          if (&b == &bar || std::strcmp(b.name, bar.name) != 0 || !told) continue;
          peer = &b;
          of = other.get();
        }
      }
      if (peer != nullptr) {
        c.site = peer->before.back().site;
        c.text += ", while " + name_of(*peer, *of) + " was told at " + at_line(c.site);
        c.mend = "look at the mask of the commit at " + at_line(c.site);
      } else if (u->commit_site.line > 0) {
        c.text += "; its latest one, at " + at_line(u->commit_site) + ", was for another barrier";
      }
      return c;
    }
  }
  return {};
}

// Bytes have come, and whoever should expect them has not arrived.
Cause of_unexpected(const Thread& t, const MBarrier& bar) {
  const auto expects = [](const PhaseBytes& p) { return p.copy == nullptr; };
  if (bar.tx >= 0 || bar.bytes.empty() || std::ranges::any_of(bar.bytes, expects)) return {};
  const PhaseBytes& first = bar.bytes.front();
  const std::string name = name_of(bar, *t.wait.cta);
  return {3, first.site,
          "a " + std::string(first.copy) + " at " + at_line(first.site) + " has brought " + name +
              " " + std::to_string(-bar.tx) + " bytes of phase " + std::to_string(bar.phase) +
              " that nobody expects, and " + std::to_string(bar.pending) + " of " +
              std::to_string(bar.expected) + " arrivals lack",
          "an arrival that expects them" +
              (*bar.arrivers == '\0' ? std::string() : ", of " + std::string(bar.arrivers)),
          "mbarrier_arrive_expect() in every CTA whose barrier such copies signal"};
}

// Whoever arrived in the phase before has gone past this slot of the ring, and left it as it is.
Cause of_passing(const Thread& t, const MBarrier& bar, const Machine& m) {
  if (!bar.arrivals.empty()) return {};
  const auto slots = [&](const Cta& cta, const char* name) {
    return std::ranges::count_if(cta.barriers,
                                 [&](const MBarrier& b) { return std::strcmp(b.name, name) == 0; });
  };
  const std::int64_t all = slots(*t.wait.cta, bar.name);
  for (const Arrival& a : bar.before) {
    if (a.thread->exited || a.thread->wait.kind != Wait::Kind::mbarrier) continue;
    const MBarrier* theirs = barrier_of(a.thread->wait);
    if (theirs == nullptr || theirs == &bar) continue;
    const bool ring = slots(*a.thread->wait.cta, theirs->name) == all;
    if (!ring || bar.phase * all + bar.index >= theirs->phase * all + theirs->index) continue;
    const std::string name = name_of(bar, *t.wait.cta);
    return {6, a.site,
            name + " lacks " + std::to_string(bar.pending) + " of " + std::to_string(bar.expected) +
                " arrivals of phase " + std::to_string(bar.phase) + ", and " + m.who(*a.thread) +
                ", which arrived in the phase before at " + at_line(a.site) + ", waits at " +
                at_line(a.thread->wait.site) + " for " + name_of(*theirs, *a.thread->wait.cta) +
                ", further on in the ring",
            "its arrival on " + name + " for phase " + std::to_string(bar.phase),
            "arrive at " + at_line(a.site) +
                " for every slot that is taken, also for the last one "
                "of a tile"};
  }
  return {};
}

// Everybody else has exited, or those who arrived in the phase before have.
Cause of_exits(const Thread& t, const MBarrier& bar, const Machine& m) {
  const Cta& own = *t.wait.cta;
  const auto exited =
      std::ranges::find_if(bar.before, [](const Arrival& a) { return a.thread->exited; });
  const std::string lacks = name_of(bar, own) + " lacks " + std::to_string(bar.pending) + " of " +
                            std::to_string(bar.expected) + " arrivals of phase " +
                            std::to_string(bar.phase);
  if (exited != bar.before.end()) {
    return {4, t.wait.site,
            lacks + ", and " + m.who(*exited->thread) + ", which arrived in the phase before at " +
                at_line(exited->site) + ", has exited",
            "an arrival for phase " + std::to_string(bar.phase) + " at " + at_line(exited->site) +
                " before that exit",
            "let both sides count the same phases: one turn of the loop more there, or one wait "
            "fewer here"};
  }
  bool alone = true;
  for (const auto& cta : own.cluster->ctas) {
    for (const auto& u : cta->threads) {
      alone = alone && (u->exited || (u->wait.kind == Wait::Kind::mbarrier && u->wait.cta == &own &&
                                      u->wait.offset == bar.offset));
    }
  }
  if (!alone) return {};
  return {4, t.wait.site, lacks + ", and all other threads of its cluster have exited without one",
          "the arrivals of those whom it counts: " + std::string(bar.arrivers),
          "let whoever skips the work skip this wait too, or let all that the barrier counts come"};
}

// Fewer come than the barrier counts.
Cause of_count(const Thread& t, const MBarrier& bar, const Machine& m) {
  if (bar.arrivals.empty() || bar.pending == 0) return {};
  const Thread& one = *bar.arrivals.front().thread;
  std::vector<int> idle;  // warps of the same role that have not come
  for (const auto& u : one.cta->threads) {
    const auto from = [&](const Arrival& a) {
      return a.thread->cta == u->cta && a.thread->warp() == u->warp();
    };
    const bool alike = !u->exited && std::strcmp(u->role, one.role) == 0;
    if (!alike || std::ranges::any_of(bar.arrivals, from)) continue;
    if (idle.empty() || idle.back() != u->warp()) idle.push_back(u->warp());
  }
  std::string apart = warps_text(idle) + " of the same role have";  // who has not come
  std::string ranks;
  for (const auto& cta : t.wait.cta->cluster->ctas) {
    const auto from = [&](const Arrival& a) { return a.thread->cta == cta.get(); };
    if (cta->live_threads == 0 || std::ranges::any_of(bar.arrivals, from)) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(cta->rank);
  }
  const bool remote = bar.arrivals.front().thread->cta != t.wait.cta || bar.arrivals.size() > 1;
  if (!ranks.empty() && (remote || bar.expected == static_cast<int>(bar.arrivals.size()) * 2)) {
    apart = "those of CTA rank " + ranks + " have";
  }
  const std::string text = name_of(bar, *t.wait.cta) + " counts " + std::to_string(bar.expected) +
                           " arrivals a phase since " + at_line(bar.made) + ", and phase " +
                           std::to_string(bar.phase) + " has had " +
                           std::to_string(bar.expected - bar.pending) + ": " +
                           m.arrivals_text(bar.arrivals);
  const std::string lack =
      std::to_string(bar.pending) + (bar.pending == 1 ? " arrival more" : " arrivals more");
  if (idle.empty() && !apart.starts_with("those")) {
    return {6, bar.made, text + "; no other warp of that role is there",
            lack + ", or a count of " + std::to_string(bar.expected - bar.pending),
            "initialise it at " + at_line(bar.made) + " for as many arrivals as come in a phase"};
  }
  return {6, bar.arrivals.front().site, text + "; " + apart + " not arrived",
          lack + (*bar.arrivers == '\0' ? "" : ", of " + std::string(bar.arrivers)),
          "let those arrive at " + at_line(bar.arrivals.front().site) + " too, or count fewer at " +
              at_line(bar.made)};
}

// Two first waits, each for the other side's first signal.
Cause of_first_waits(const Thread& t, const MBarrier& bar, const Blocked& all) {
  if (bar.phase != 0 || !bar.arrivals.empty()) return {};
  for (const Thread* u : all.threads) {
    if (u->wait.kind != Wait::Kind::mbarrier || u->wait.cta != t.wait.cta) continue;
    const MBarrier* theirs = barrier_of(u->wait);
    if (theirs == nullptr || theirs == &bar || theirs->phase != 0 || !theirs->arrivals.empty())
      continue;
    if (!names(theirs->arrivers, t.role) || !names(bar.arrivers, u->role)) continue;
    // A slot that is to be filled is empty at first: that wait is the one which must pass.
    const bool mine = std::string_view(bar.name).find("empty") != std::string_view::npos;
    const Thread& first = mine ? t : *u;
    const MBarrier& its = mine ? bar : *theirs;
    return {7, first.wait.site,
            all.machine.who(t) + " waits for phase 0 of " + name_of(bar, *t.wait.cta) + " and " +
                all.machine.who(*u) + " for phase 0 of " + name_of(*theirs, *u->wait.cta) +
                ": each for the other's first arrival",
            "a first wait that passes: on a fresh barrier a wait for parity 1 does",
            "let the wait on " + std::string(its.name) + " at " + at_line(first.wait.site) +
                " begin with the other parity"};
  }
  return {};
}

Cause of_mbarrier(const Thread& t, const Blocked& all) {
  const MBarrier* bar = barrier_of(t.wait);
  if (bar == nullptr || bar->pending == 0) return {};
  const Machine& m = all.machine;
  Cause best;
  for (Cause c : {of_wrong_side(t, *bar, m), of_commit(t, *bar, m), of_unexpected(t, *bar),
                  of_exits(t, *bar, m), of_count(t, *bar, m), of_passing(t, *bar, m),
                  of_first_waits(t, *bar, all)}) {
    if (c.weight < best.weight) best = std::move(c);
  }
  return best;
}

// Threads of a warp or warpgroup that went on without the others, to a barrier that waits for all.
Cause of_meeting(const Thread& t, const Machine& m) {
  const Gathering g = gathering_of(t);
  const Thread* stray = nullptr;
  std::vector<int> warps;
  for (int i = g.first; i < g.first + g.count && i < static_cast<int>(t.cta->threads.size()); ++i) {
    const Thread& u = *t.cta->threads[static_cast<std::size_t>(i)];
    if (u.exited || waits_at(u, *g.meeting)) continue;
    const bool all = u.wait.kind == Wait::Kind::cluster || u.wait.kind == Wait::Kind::named ||
                     u.wait.kind == Wait::Kind::meeting;
    if (!all) return {};
    if (stray == nullptr) stray = &u;
    if (warps.empty() || warps.back() != u.warp()) warps.push_back(u.warp());
  }
  if (stray == nullptr) return {};
  const char* what = stray->wait.kind == Wait::Kind::cluster ? "the cluster barrier"
                     : stray->wait.kind == Wait::Kind::named ? "a named barrier"
                                                             : stray->wait.what;
  return {5, t.wait.site,
          m.who(t) + " and others wait at " + t.wait.what + " (" + at_line(t.wait.site) +
              ") for the rest of their " + g.of + ", and " + warps_text(warps) +
              " went past it to " + what + " (" + at_line(stray->wait.site) + ")",
          std::string(t.wait.what) + " by " + warps_text(warps),
          std::string("let all threads of the ") + g.of + " execute it"};
}

Cause of_named(const Thread& t, const Machine&) {
  const NamedBarrier& bar = t.cta->named[static_cast<std::size_t>(t.wait.id)];
  if ((bar.ever & ~bar.warps) != 0) return {};  // one that has come before may come again
  std::vector<int> warps;
  for (int w = 0; w < 64; ++w) {
    if ((bar.warps >> w & 1) != 0) warps.push_back(w);
  }
  const std::string id = "named barrier " + std::to_string(t.wait.id);
  return {
      8, t.wait.site,
      id + " counts " + std::to_string(bar.expected) + " threads, and " +
          std::to_string(bar.arrived) + " have come, " + warps_text(warps) +
          "; no other warp ever has",
      std::to_string(bar.expected - bar.arrived) + " threads more, or a count of " +
          std::to_string(bar.arrived),
      "count the threads that come, at " + at_line(t.wait.site) + ", or let the others come too"};
}

Cause cause_of(const Thread& t, const Blocked& all) {
  switch (t.wait.kind) {
    case Wait::Kind::registers:
      return of_registers(t, all.machine);
    case Wait::Kind::mbarrier:
      return of_mbarrier(t, all);
    case Wait::Kind::meeting:
      return of_meeting(t, all.machine);
    case Wait::Kind::named:
      return of_named(t, all.machine);
    default:
      return {};
  }
}

// Threads that wait for one thing at one line are one line of the report.
struct Waiters {
  const Thread* first = nullptr;
  int count = 0;
};

// The bytes of the phase before, or, in the first one, of the slot before in the ring.
const std::vector<PhaseBytes>& history_of(const Cta& cta, const MBarrier& bar) {
  for (const MBarrier& b : cta.barriers) {
    const bool beside = std::strcmp(b.name, bar.name) == 0 && b.index == bar.index - 1;
    if (bar.bytes_before.empty() && beside) return b.bytes_before;
  }
  return bar.bytes_before;
}

// The thread whose copies brought bytes in the phase before and have brought none in this one, as
// it hangs itself; null where the bytes do not fit that.
const Thread* hanging_sender(const Cta& cta, const MBarrier& bar) {
  if (bar.tx <= 0) return nullptr;
  const auto sends = [](const PhaseBytes& p, const Thread* t) {
    return p.copy != nullptr && p.thread == t;
  };
  const Thread* hangs = nullptr;
  std::int64_t bytes = 0;
  for (const PhaseBytes& p : history_of(cta, bar)) {
    const auto again = [&](const PhaseBytes& now) { return sends(now, p.thread); };
    const auto arrived = [&](const Arrival& a) { return a.thread == p.thread; };
    if (p.copy == nullptr || std::ranges::any_of(bar.bytes, again)) continue;
    if (p.thread->exited || std::ranges::any_of(bar.arrivals, arrived)) return nullptr;
    hangs = p.thread;
    bytes += p.bytes;
  }
  return bytes == bar.tx ? hangs : nullptr;
}

}  // namespace

std::string Machine::flag_text(const Wait& wait) const {
  const auto hex = [](std::uint32_t value) { return format("0x%x", value); };
  std::string text = "a flag in global memory";
  for (const Allocation& a : allocations()) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    if (wait.word < base || wait.word >= base + static_cast<std::uintptr_t>(a.bytes)) continue;
    text += ", word " + std::to_string((wait.word - base) / sizeof wait.value) + " of " + a.name;
    break;
  }
  text += (wait.any_other ? ", to be another than " : ", to be ") + hex(wait.value);
  if (wait.mask != ~0U && !wait.any_other) text += " in the bits of " + hex(wait.mask);
  std::uint32_t now = 0;
  std::memcpy(&now, wait.now, sizeof now);
  text += ": it is " + hex(now);
  const auto flag = flags_.find(wait.word);
  if (flag == flags_.end() || flag->second.writer.empty())
    return text + ", which nobody has written";
  return text + ", last written by " + flag->second.writer + " at " + at_line(flag->second.written);
}

std::string Machine::wait_text(const Wait& wait) const {
  const Cta& cta = *wait.cta;
  switch (wait.kind) {
    case Wait::Kind::mbarrier: {
      const int slot = cta.barrier_at[wait.offset / 8];
      if (slot < 0) return "an invalidated mbarrier";
      const MBarrier& bar = cta.barriers[static_cast<std::size_t>(slot)];
      std::string text = barrier_text(cta, bar) + ", phase " + std::to_string(wait.phase) +
                         ": pending " + std::to_string(bar.pending) + " of " +
                         std::to_string(bar.expected) + " arrivals, " + std::to_string(bar.tx) +
                         " transaction bytes";
      if (*bar.arrivers != '\0') text += "; to arrive: " + std::string(bar.arrivers);
      text += "; arrived:";
      std::map<std::string, int> arrived;
      for (const Arrival& a : bar.arrivals) {
        std::string from =
            std::string(a.thread->role) + " warp " + std::to_string(a.thread->warp());
        if (cta.cluster->ctas.size() > 1) from += " of CTA rank " + std::to_string(a.rank);
        arrived[from] += a.count;
      }
      for (const auto& [from, count] : arrived) {
        text += " " + from + (count > 1 ? " (" + std::to_string(count) + ")" : "") + ",";
      }
      if (arrived.empty()) text += " nobody,";
      text.pop_back();
      return text;
    }
    case Wait::Kind::named: {
      const NamedBarrier& bar = cta.named[static_cast<std::size_t>(wait.id)];
      return "named barrier " + std::to_string(wait.id) + ": " + std::to_string(bar.arrived) +
             " of " + std::to_string(bar.expected) + " threads arrived";
    }
    case Wait::Kind::cluster:
      return "the cluster barrier: " + std::to_string(cta.cluster->arrived) + " of " +
             std::to_string(cta.cluster->live_threads) + " threads arrived";
    case Wait::Kind::meeting:
      return std::string("other lanes to come to ") + wait.what;
    case Wait::Kind::bulk:
      return "its bulk stores";
    case Wait::Kind::registers:
      return "setmaxnreg.inc to " + std::to_string(wait.id) + " registers: the CTA has " +
             std::to_string(cta.free_registers) + " free";
    case Wait::Kind::tensor_memory:
      return std::string(wait.what) + " of " + std::to_string(wait.id) +
             " columns: other allocations to be given back, or the pair's other CTA to come";
    case Wait::Kind::flag:
      return flag_text(wait);
    case Wait::Kind::grids:
      return "the grids before to end";
    case Wait::Kind::none:
      break;
  }
  return "nothing";
}

void Machine::report_deadlock() {
  // The grid that must go on first: all behind it wait for it.
  const GridRun* grid = nullptr;
  for (const auto& cluster : clusters_) {
    if (cluster->live_threads > 0 && (grid == nullptr || cluster->grid->index < grid->index)) {
      grid = cluster->grid;
    }
  }
  Blocked blocked{*this, {}};
  std::map<std::string, Waiters> groups;
  int behind = 0;
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      for (const auto& thread : cta->threads) {
        if (thread->exited) continue;
        if (cluster->grid != grid) {
          ++behind;
          continue;
        }
        blocked.threads.push_back(thread.get());
        Waiters& w =
            groups[std::string(thread->role) + " of CTA " + std::to_string(cta->index) + " (" +
                   at_line(thread->wait.site) + ") waits for " + wait_text(thread->wait)];
        if (w.first == nullptr) w.first = thread.get();
        ++w.count;
      }
    }
  }
  Cause cause;
  for (const auto& [key, w] : groups) {
    Cause c = cause_of(*w.first, blocked);
    if (c.weight < cause.weight) cause = std::move(c);
  }
  Finding f{Check::deadlock, "no thread can run and nothing is in flight.", {}};
  f.site = cause.text.empty() && !blocked.threads.empty() ? blocked.threads.front()->wait.site
                                                          : cause.site;
  f.missing = cause.missing;
  f.mend = cause.mend;
  if (!cause.text.empty()) {
    f.sentence += " Cause: " + cause.text + ". Missing: " + f.missing + ". Mend: " + f.mend;
  }
  int shown = 0;
  for (const auto& [key, w] : groups) {
    if (++shown > 24) {
      f.sentence += "\n  ... and " + std::to_string(groups.size() - 24) + " more groups";
      break;
    }
    f.sentence +=
        "\n  " + std::to_string(w.count) + (w.count == 1 ? " thread: " : " threads: ") + key;
  }
  if (behind > 0) {
    f.sentence +=
        "\n  " + std::to_string(behind) + " threads of the grids behind wait for this one";
  }
  report(std::move(f));
  report_bytes_left();
}

void Machine::report_bytes_left() {
  std::vector<Finding> all;
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      for (const MBarrier& bar : cta->barriers) {
        if (!bar.live || bar.pending != 0 || bar.tx == 0) continue;
        const Thread* hangs = hanging_sender(*cta, bar);
        Finding f = bytes_finding(
            *cta, bar,
            barrier_text(*cta, bar) + " has all its arrivals but " + std::to_string(bar.tx) +
                " transaction bytes " +
                (bar.tx > 0 ? "were expected and never came" : "came that nobody expected") +
                (hangs == nullptr ? ""
                                  : "; " + who(*hangs) + ", which sent them before, waits itself"));
        f.follows = hangs != nullptr;
        all.push_back(std::move(f));
      }
    }
  }
  // Where some expect too little, others may lack what went astray: those come behind.
  const auto too_many = [](const Finding& f) { return f.missing.starts_with("an expectation"); };
  std::stable_partition(all.begin(), all.end(), too_many);
  for (Finding& f : all) report(std::move(f));
}

}  // namespace warpwright::model
