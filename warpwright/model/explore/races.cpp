#include "warpwright/model/explore/races.h"

#include <algorithm>
#include <unordered_map>

#include "warpwright/model/explore/names.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

using Kind = SyncEvent::Kind;

std::string text(const SyncTrace& trace, const SyncEvent& e) {
  std::string all = std::string("the ") + e.what + " of " + e.role + " (CTA " +
                    std::to_string(e.cta) + ", warp " + std::to_string(e.thread / warp_lanes) +
                    ", lane " + std::to_string(e.thread % warp_lanes) + ") on " +
                    trace.objects[e.object].text;
  if (e.site.line > 0) all += std::string(" at ") + e.site.file + ":" + std::to_string(e.site.line);
  return all;
}

class Races {
 public:
  Races(const Exploration& run, const std::function<bool(std::uint64_t)>& known)
      : trace_(run.trace), hash_(run.hash), known_(known), names_(run.trace.events.size()) {
    for (std::size_t i = 0; i < names_.size(); ++i) names_[i] = name_of(trace_.events[i]);
  }

  std::vector<Reversal> find() {
    for (const SyncPhase& phase : trace_.phases) of_phase(phase);
    for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
      const SyncEvent& e = trace_.events[i];
      switch (e.kind) {
        case Kind::arrival:
        case Kind::expectation:
          earlier_arrival(e);
          break;
        case Kind::observation:
          earlier_observation(e, e.state - 2);
          break;
        case Kind::read:
        case Kind::write:
          word(i, e);
          break;
      }
    }
    for (const SyncPending& pending : trace_.pending) blocked(pending.wait);
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint64_t name_of(const SyncEvent& e) const { return name_of(e, e.state); }
  [[nodiscard]] std::uint64_t name_of(const SyncEvent& e, std::int64_t state) const {
    return name_of_event(trace_.objects[e.object].name, e.name, e.turn, e.kind, state);
  }

  // The run in which two operations on a word that follow each other have changed places, and
  // nothing else has.
  [[nodiscard]] std::uint64_t swapped(const SyncEvent& a, const SyncEvent& b) const {
    const bool a_writes = a.kind == Kind::write;
    const bool b_writes = b.kind == Kind::write;
    const std::int64_t next = b.state - (a_writes ? 1 : 0);  // of b, and then of a
    return hash_ - name_of(a) - name_of(b) + name_of(b, next) +
           name_of(a, next + (b_writes ? 1 : 0));
  }

  // Does `known` tell of the event?
  static bool knows(const Clock& known, const SyncEvent& e) { return known[e.agent] >= e.time; }

  const SyncPhase* phase(std::uint32_t object, std::int64_t number) {
    if (by_phase_.empty()) {
      for (const SyncPhase& p : trace_.phases) {
        by_phase_[static_cast<std::uint64_t>(p.object) << 32 |
                  static_cast<std::uint64_t>(p.phase)] = &p;
      }
    }
    const auto at = by_phase_.find(static_cast<std::uint64_t>(object) << 32 |
                                   static_cast<std::uint64_t>(number));
    return at == by_phase_.end() ? nullptr : at->second;
  }

  // The flip behind a phase does not wait for those who observe the one before, nor for bytes that
  // are yet to be expected.
  void of_phase(const SyncPhase& p) {
    for (const std::uint32_t i : p.observations) {
      const SyncEvent& w = trace_.events[i];
      if (p.complete && !knows(p.arrived, w)) delay(w, nullptr, 0);
    }
    for (const std::uint32_t i : p.arrivals) {
      const SyncEvent& e = trace_.events[i];
      if (e.kind != Kind::expectation) continue;
      const bool ordered = std::any_of(p.arrivals.begin(), p.arrivals.end(), [&](std::uint32_t a) {
        return trace_.events[a].kind == Kind::arrival && knows(trace_.events[a].before, e);
      });
      if (!ordered) delay(e, nullptr, 0);
    }
  }

  // An arrival that does not know of the flip before its phase might have been one of the phase
  // before, in place of one that came.
  void earlier_arrival(const SyncEvent& b) {
    if (b.state < 1) return;
    const std::uint32_t component = trace_.objects[b.object].component;
    if (b.before[component] >= static_cast<std::uint32_t>(b.state)) return;
    const SyncPhase* const before = phase(b.object, b.state - 1);
    if (before == nullptr) return;
    for (const std::uint32_t i : before->arrivals) {
      const SyncEvent& a = trace_.events[i];
      if (a.agent != b.agent && !knows(b.before, a)) delay(a, &b, b.state - 1);
    }
  }

  // A wait for a parity might have returned when the object was in an earlier `state`.
  void earlier_observation(const SyncEvent& w, std::int64_t state) {
    if (state < 0) return;
    const std::uint32_t component = trace_.objects[w.object].component;
    if (w.before[component] >= static_cast<std::uint32_t>(state) + 1) return;
    const SyncPhase* const open = phase(w.object, state);
    if (open == nullptr) return;
    for (const std::uint32_t i : open->arrivals) {
      const SyncEvent& a = trace_.events[i];
      if (a.agent != w.agent && !knows(w.before, a)) delay(a, &w, state);
    }
  }

  const std::vector<std::uint32_t>& accesses(std::uint32_t object) {
    if (by_object_.empty()) {
      by_object_.resize(trace_.objects.size());
      for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
        const Kind kind = trace_.events[i].kind;
        if (kind != Kind::read && kind != Kind::write) continue;
        by_object_[trace_.events[i].object].push_back(i);
      }
    }
    return by_object_[object];
  }

  void word(std::uint32_t index, const SyncEvent& e) {
    const std::vector<std::uint32_t>& all = accesses(e.object);
    const auto here = std::find(all.begin(), all.end(), index);
    if (e.kind == Kind::read) return earlier_read(e, all.begin(), here);
    // Behind the latest write, or the reads since then.
    for (auto at = here; at != all.begin();) {
      const SyncEvent& x = trace_.events[*--at];
      if (x.kind == Kind::write) {
        if (std::next(at) == here && !knows(e.before, x)) delay(x, &e, 0, swapped(x, e));
        return;
      }
      if (!knows(e.before, x)) delay(x, &e, 0, std::next(at) == here ? swapped(x, e) : 0);
    }
  }

  using At = std::vector<std::uint32_t>::const_iterator;
  // A read might have come before the latest write, or before the latest one that lets it.
  void earlier_read(const SyncEvent& e, At begin, At here) {
    const At own = here;
    while (here != begin) {
      const SyncEvent& x = trace_.events[*--here];
      if (x.kind != Kind::write) continue;
      if (knows(e.before, x)) return;
      const std::uint32_t value = x.value_before & (e.waits ? e.mask : 0);
      if (e.waits && (value == e.wanted) == e.any_other) continue;
      return delay(x, &e, 0, std::next(here) == own && e.time > 0 ? swapped(x, e) : 0);
    }
  }

  void blocked(const SyncEvent& w) {
    if (w.kind == Kind::observation) return earlier_observation(w, w.state - 1);
    const std::vector<std::uint32_t>& all = accesses(w.object);
    SyncEvent never = w;
    never.time = 0;
    earlier_read(never, all.begin(), all.end());
  }

  // All that does not come behind `late`, and then `first`, which finds `state`.
  void delay(const SyncEvent& late, const SyncEvent* first, std::int64_t state,
             std::uint64_t expected = 0) {
    if (expected != 0 && known_(expected)) return;
    Reversal r;
    r.expected = expected;
    r.kept.resize(trace_.events.size());
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const SyncEvent& e = trace_.events[i];
      if (knows(e.after, late)) continue;
      r.kept[i] = true;
      r.hash += names_[i];
    }
    if (first != nullptr) {
      if (first->kind == Kind::read || first->kind == Kind::write) state = writes_kept(r, *first);
      r.moved.push_back(
          {trace_.objects[first->object].name, first->name, first->turn, first->kind, state});
      r.hash += name_of_event(trace_.objects[first->object].name, first->name, first->turn,
                              first->kind, state);
      r.text = text(trace_, *first) + " comes before " + text(trace_, late);
    } else {
      r.hash += mix_names(late.name, mix_names(late.turn, trace_.objects[late.object].name));
      r.text = text(trace_, late) + " comes behind the end of the phase";
    }
    out_.push_back(std::move(r));
  }

  std::int64_t writes_kept(const Reversal& r, const SyncEvent& of) {
    const std::vector<std::uint32_t>& all = accesses(of.object);
    return std::count_if(all.begin(), all.end(), [&](std::uint32_t i) {
      return r.kept[i] && trace_.events[i].kind == Kind::write;
    });
  }

  const SyncTrace& trace_;
  std::uint64_t hash_;
  const std::function<bool(std::uint64_t)>& known_;
  std::vector<std::uint64_t> names_;
  std::unordered_map<std::uint64_t, const SyncPhase*> by_phase_;
  std::vector<std::vector<std::uint32_t>> by_object_;
  std::vector<Reversal> out_;
};

}  // namespace

std::vector<Demand> demands_of(const SyncTrace& trace) {
  std::vector<Demand> all;
  all.reserve(trace.events.size());
  for (const SyncEvent& e : trace.events) {
    all.push_back({trace.objects[e.object].name, e.name, e.turn, e.kind, e.state});
  }
  return all;
}

std::vector<Reversal> reversals(const Exploration& run,
                                const std::function<bool(std::uint64_t)>& known) {
  return Races(run, known).find();
}

}  // namespace warpwright::model
