#include "warpwright/pictures/barrier_svg.h"

#include <algorithm>

#include "warpwright/facts/format.h"
#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::BarrierEvent;
using Kind = model::BarrierEvent::Kind;

constexpr double kBarrierWidth = 1180;
constexpr double kBarrierLeft = 190;
constexpr double kBarrierRight = 24;
constexpr double kBarrierTop = 64;
constexpr double kPhaseRow = 22;
constexpr double kCurveRow = 30;

// One of the three numbers that a barrier's lanes show.
struct Curve {
  const char* name;
  const char* fill;
  std::int64_t (*value)(const BarrierEvent&);
};
constexpr Curve kCurves[] = {
    {"arrivals outstanding", "#86cfb0",
     [](const BarrierEvent& e) -> std::int64_t { return e.pending; }},
    {"bytes outstanding", "#8fb9e3", [](const BarrierEvent& e) -> std::int64_t { return e.tx; }},
    {"threads that wait", "#b8c4d2",
     [](const BarrierEvent& e) -> std::int64_t { return e.waiting; }},
};

std::string phase_text(std::int64_t phase) {
  return "phase " + std::to_string(phase) + ", parity " + std::to_string(phase & 1);
}

using OneBarrier = std::vector<const BarrierEvent*>;

std::vector<OneBarrier> by_barrier(const std::vector<BarrierEvent>& events, int cta) {
  std::vector<OneBarrier> barriers;
  for (const BarrierEvent& e : events) {
    if (e.cta != cta) continue;
    const auto at = std::find_if(barriers.begin(), barriers.end(),
                                 [&](const auto& b) { return b.front()->barrier == e.barrier; });
    if (at == barriers.end()) {
      barriers.push_back({&e});
    } else {
      at->push_back(&e);
    }
  }
  return barriers;
}

std::string lanes_of(const OneBarrier& events, const LanePlace& place, double top) {
  const std::int64_t end = place.end;
  const auto x = [&](std::int64_t time) {
    return place.left + static_cast<double>(time) / static_cast<double>(end) * place.width;
  };
  std::string svg = svg_text(16, top + 15, events.front()->barrier, 13, "font-weight=\"600\"");
  std::int64_t begin = events.front()->time;
  const auto phase = [&](std::int64_t number, std::int64_t until) {
    svg += svg_box(x(begin), top, std::max(1.0, x(until) - x(begin) - 1), kPhaseRow - 4,
                   (number & 1) == 0 ? "#f2e08a" : "#f4bd86", phase_text(number));
    if (x(until) - x(begin) > 92) svg += svg_text(x(begin) + 5, top + 13, phase_text(number), 11);
    begin = until;
  };
  for (const BarrierEvent* e : events) {
    if (e->kind == Kind::flip) phase(e->phase - 1, e->time);
  }
  phase(events.back()->phase, end);
  double y = top + kPhaseRow;
  for (const Curve& curve : kCurves) {
    std::int64_t most = 0;
    for (const BarrierEvent* e : events) most = std::max(most, curve.value(*e));
    if (most == 0) continue;
    svg += svg_text(place.left - 8, y + 18, curve.name, 11, "text-anchor=\"end\"");
    for (std::size_t i = 0; i < events.size();) {
      const std::int64_t value = curve.value(*events[i]);
      std::size_t next = i + 1;
      while (next < events.size() && curve.value(*events[next]) == value) ++next;
      const std::int64_t begin_of_value = events[i]->time;
      const std::int64_t until = next < events.size() ? events[next]->time : end;
      i = next;
      if (value <= 0 || until <= begin_of_value) continue;
      const double height =
          std::max(2.0, static_cast<double>(value) / static_cast<double>(most) * (kCurveRow - 6));
      svg += svg_box(x(begin_of_value), y + kCurveRow - 4 - height,
                     std::max(1.0, x(until) - x(begin_of_value)), height, curve.fill,
                     std::to_string(value) + " " + curve.name);
    }
    y += kCurveRow;
  }
  return svg;
}

double height_of(const OneBarrier& events) {
  double height = kPhaseRow + 18;
  for (const Curve& curve : kCurves) {
    if (std::any_of(events.begin(), events.end(),
                    [&](const auto* e) { return curve.value(*e) > 0; }))
      height += kCurveRow;
  }
  return height;
}

}  // namespace

std::vector<BarrierStep> barrier_steps(const std::vector<BarrierEvent>& events, int cta) {
  std::vector<BarrierStep> steps;
  for (const BarrierEvent& e : events) {
    if (e.cta != cta) continue;
    BarrierStep* last = steps.empty() ? nullptr : &steps.back();
    const bool same = last != nullptr && last->event.kind == e.kind &&
                      last->event.barrier == e.barrier && last->event.site.line == e.site.line &&
                      e.kind != Kind::init && e.kind != Kind::flip &&
                      (e.kind != Kind::bytes || last->event.time == e.time);
    if (same) {
      last->event = e;
      ++last->times;
      last->amount += e.amount;
    } else {
      steps.push_back({e, 1, e.amount, e.who.substr(0, e.who.find(" ("))});
    }
  }
  return steps;
}

std::string step_text(const BarrierStep& step) {
  const BarrierEvent& e = step.event;
  const std::string threads = step.times == 1 ? "" : std::to_string(step.times) + " threads of ";
  switch (e.kind) {
    case Kind::init:
      return "made for " + std::to_string(e.expected) +
             (e.expected == 1 ? " arrival a phase" : " arrivals a phase");
    case Kind::expect:
      return step.who + " expects " + std::to_string(step.amount) + " bytes";
    case Kind::bytes:
      return std::to_string(step.amount) + " bytes land";
    case Kind::arrive:
      return std::to_string(step.amount) + (step.amount == 1 ? " arrival of " : " arrivals of ") +
             step.who;
    case Kind::flip:
      return "phase " + std::to_string(e.phase - 1) + " is complete: the parity is " +
             std::to_string(e.phase & 1);
    case Kind::wait:
      return threads + step.who + (step.times == 1 ? " waits for parity " : " wait for parity ") +
             std::to_string(e.amount);
    case Kind::pass:
      return threads + step.who + (step.times == 1 ? " goes on: parity " : " go on: parity ") +
             std::to_string(e.amount) + " is over";
  }
  return "";
}

std::string barrier_text(const std::vector<BarrierStep>& steps, int most) {
  std::string text = "  cycle  barrier       phase  arrivals     bytes  waiting  what\n";
  for (std::size_t i = 0; i < steps.size() && i < static_cast<std::size_t>(most); ++i) {
    const BarrierEvent& e = steps[i].event;
    text += format("%7lld  %-12s %6lld  %4d/%-4d %8lld  %7d  ", static_cast<long long>(e.time),
                   e.barrier.c_str(), static_cast<long long>(e.phase), e.pending, e.expected,
                   static_cast<long long>(e.tx), e.waiting) +
            step_text(steps[i]) + "\n";
  }
  if (steps.size() > static_cast<std::size_t>(most)) {
    text += "  ... and " + std::to_string(steps.size() - static_cast<std::size_t>(most)) +
            " more; --json has them all.\n";
  }
  return text;
}

double barrier_lanes_height(const std::vector<BarrierEvent>& events, int cta) {
  double height = 0;
  for (const OneBarrier& b : by_barrier(events, cta)) height += height_of(b);
  return height;
}

std::string barrier_lanes(const std::vector<BarrierEvent>& events, const LanePlace& place,
                          int cta) {
  const double bottom = place.top + barrier_lanes_height(events, cta);
  std::string svg;
  for (const Tick& tick : round_ticks(0, place.end, false)) {
    const double share = static_cast<double>(tick.time) / static_cast<double>(place.end);
    const double x = place.left + share * place.width;
    svg += svg_box(x, place.top - 10, 1, bottom - place.top + 16, ink::none);
    svg += svg_text(x, bottom + 18, tick.text, 10,
                    share > 0.96 ? "text-anchor=\"end\"" : "text-anchor=\"middle\"");
  }
  double top = place.top;
  for (const OneBarrier& b : by_barrier(events, cta)) {
    svg += lanes_of(b, place, top);
    top += height_of(b);
  }
  return svg;
}

std::string barrier_svg(const std::string& title, const std::vector<BarrierEvent>& events,
                        int cta) {
  LanePlace place{kBarrierLeft, title.empty() ? 18 : kBarrierTop,
                  kBarrierWidth - kBarrierLeft - kBarrierRight, 1};
  for (const BarrierEvent& e : events) {
    if (e.cta == cta) place.end = std::max(place.end, e.time);
  }
  std::string svg = svg_head(kBarrierWidth, place.top + barrier_lanes_height(events, cta) + 26);
  if (!title.empty()) svg += svg_text(16, 30, title, 16, "font-weight=\"600\"");
  return svg + barrier_lanes(events, place, cta) + "</svg>\n";
}

}  // namespace warpwright::pictures
