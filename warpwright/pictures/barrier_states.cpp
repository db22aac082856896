#include "warpwright/pictures/barrier_states.h"

#include <algorithm>
#include <map>
#include <utility>

#include "warpwright/pictures/svg_parts.h"
#include "warpwright/pictures/timeline_parts.h"

namespace warpwright::pictures {
namespace {

using model::BarrierEvent;
using Kind = BarrierEvent::Kind;

constexpr double kStatesWidth = 1180;
constexpr double kStatesEdge = 16;
constexpr double kCardGap = 12;
constexpr double kCardHeight = 112;
constexpr double kCardsTop = 40;
constexpr double kBarLeft = 74;
constexpr double kLaneLeft = 190;

bool is_wanted(const std::string& barrier, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
           return barrier == w || barrier.substr(0, barrier.find('[')) == w;
         });
}

std::vector<BarrierEvent> chosen_events(const std::vector<BarrierEvent>& events, int cta,
                                        const std::vector<std::string>& wanted) {
  std::vector<BarrierEvent> chosen;
  for (const BarrierEvent& e : events) {
    if (e.cta == cta && is_wanted(e.barrier, wanted)) chosen.push_back(e);
  }
  return chosen;
}

std::string counted(std::int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

// A barrier as its events say it stands.
class Follower {
 public:
  explicit Follower(const std::string& barrier) { state_.barrier = barrier; }

  void take(const BarrierEvent& e) {
    const std::string role = e.who.substr(0, e.who.find(" ("));
    if (e.kind == Kind::expect) state_.bytes += e.amount;
    if (e.kind == Kind::flip) state_.bytes = 0;
    if (e.kind == Kind::wait) ++waiting_[role];
    if (e.kind == Kind::pass) {
      const auto at = waiting_.find(role);
      if (at != waiting_.end() && --at->second <= 0) waiting_.erase(at);
    }
    if (e.waiting == 0) waiting_.clear();
    state_.made = true;
    state_.phase = e.phase;
    state_.arrivals = e.expected;
    state_.arrived = e.expected - e.pending;
    state_.landed = state_.bytes - e.tx;
    state_.waiting = e.waiting;
    state_.waiters.clear();
    for (const auto& [who, threads] : waiting_) {
      state_.waiters += (state_.waiters.empty() ? "" : ", ") +
                        counted(threads, "thread of ", "threads of ") + who;
    }
  }
  [[nodiscard]] const BarrierState& state() const { return state_; }

 private:
  BarrierState state_;
  std::map<std::string, int> waiting_;  // by role
};

class StatesPicture {
 public:
  StatesPicture(const std::vector<BarrierEvent>& events, int cta,
                const std::vector<BarrierMoment>& moments)
      : events_(events), cta_(cta), moments_(moments) {
    if (moments.empty()) return;
    for (const BarrierState& s : moments.back().states) names_.push_back(s.barrier);
    for (const BarrierEvent& e : events) end_ = std::max(end_, e.time);
    columns_ = std::min<std::size_t>(3, names_.size());
    card_ = (kStatesWidth - 2 * kStatesEdge - kCardGap * static_cast<double>(columns_ - 1)) /
            static_cast<double>(columns_);
  }

  std::string draw() {
    for (std::size_t i = 0; i < names_.size(); ++i) frame(i);
    const LanePlace lanes{kLaneLeft, top_of(names_.size() + columns_ - 1) + 22, lane_width(), end_};
    svg_ += barrier_lanes(events_, lanes, cta_);
    const double bottom = lanes.top + barrier_lanes_height(events_, cta_);
    const std::size_t shown = telling_step();
    for (std::size_t step = 0; step < moments_.size(); ++step) {
      moment(step, step == shown, lanes.top, bottom);
    }
    return svg_head(kStatesWidth, bottom + 26) + svg_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double left_of(std::size_t card) const {
    return kStatesEdge + static_cast<double>(card % columns_) * (card_ + kCardGap);
  }
  [[nodiscard]] double top_of(std::size_t card) const {
    const std::size_t line = card / columns_;
    return kCardsTop + static_cast<double>(line) * (kCardHeight + kCardGap);
  }
  static double lane_width() { return kStatesWidth - kLaneLeft - kStatesEdge; }
  [[nodiscard]] double x(std::int64_t time) const {
    return kLaneLeft + static_cast<double>(time) / static_cast<double>(end_) * lane_width();
  }
  [[nodiscard]] double bar_width() const { return card_ - kBarLeft - 170; }

  // What is the same in all steps.
  void frame(std::size_t i) {
    const double x = left_of(i);
    const double y = top_of(i);
    svg_ += "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" + decimal(card_) +
            "\" height=\"" + decimal(kCardHeight) + "\" rx=\"4\" fill=\"none\" stroke=\"" +
            std::string(ink::line) + "\"/>\n";
    svg_ += svg_text(x + 10, y + 20, names_[i], 14, "font-weight=\"600\"");
    for (const auto& [row, word] : {std::pair{0, "arrivals"}, {1, "bytes"}}) {
      svg_ += svg_text(x + 10, y + 46 + 24 * row, word, 12);
      svg_ += svg_box(x + kBarLeft, y + 35 + 24 * row, bar_width(), 14, ink::none);
    }
    svg_ += svg_text(x + 10, y + 96, "waits", 12);
  }

  // The step that says most without the others: a part of the bytes has landed, or some have
  // arrived, and somebody waits.
  [[nodiscard]] std::size_t telling_step() const {
    std::size_t waits = moments_.empty() ? 0 : moments_.size() - 1;
    for (std::size_t i = moments_.size(); i > 0; --i) {
      const BarrierMoment& m = moments_[i - 1];
      for (const BarrierState& s : m.states) {
        if (s.barrier == m.step.event.barrier && s.waiting > 0) waits = i - 1;
      }
    }
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      const BarrierMoment& m = moments_[i];
      for (const BarrierState& s : m.states) {
        if (s.barrier != m.step.event.barrier || s.waiting == 0) continue;
        if (s.landed > 0 && 2 * s.landed >= s.bytes && s.landed < s.bytes) return i;
      }
    }
    return waits;
  }

  // A text in the style of its group.
  void write(double x, double y, const std::string& text, const char* more = "") {
    svg_ += "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\"" + more + ">" + escaped(text) +
            "</text>";
  }

  void filled(double x, double y, double share, std::string_view fill) {
    if (share <= 0) return;
    svg_ += "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" +
            decimal(bar_width() * std::min(1.0, share)) + "\" height=\"14\" fill=\"" +
            std::string(fill) + "\"/>";
  }

  void moment(std::size_t step, bool is_shown, double lanes, double bottom) {
    const BarrierMoment& m = moments_[step];
    svg_ += "<g data-step=\"" + std::to_string(step) + "\" " + data_row(step) +
            " font-size=\"12\" fill=\"" + std::string(ink::text) + "\"" +
            (is_shown ? "" : " style=\"display:none\"") + ">";
    write(kStatesEdge, 22,
          "cycle " + std::to_string(m.step.event.time) + ": " + m.step.event.barrier + ": " +
              step_text(m.step),
          " font-size=\"14\"");
    for (std::size_t i = 0; i < m.states.size(); ++i) state(i, m);
    svg_ += "<rect x=\"" + decimal(x(m.step.event.time) - 0.5) + "\" y=\"" + decimal(lanes - 8) +
            "\" width=\"1.5\" height=\"" + decimal(bottom - lanes + 6) + "\" fill=\"" +
            std::string(ink::strong_red) + "\"/></g>\n";
  }

  void state(std::size_t i, const BarrierMoment& m) {
    const BarrierState& s = m.states[i];
    const double x = left_of(i);
    const double y = top_of(i);
    if (s.barrier == m.step.event.barrier) {
      svg_ += "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" + decimal(card_) +
              "\" height=\"" + decimal(kCardHeight) + "\" rx=\"4\" fill=\"none\" stroke=\"" +
              std::string(ink::strong_red) + "\" stroke-width=\"2\"/>";
    }
    if (!s.made) return write(x + card_ - 10, y + 20, "not made yet", " text-anchor=\"end\"");
    write(x + card_ - 10, y + 20,
          "phase " + std::to_string(s.phase) + ", parity " + std::to_string(s.phase & 1),
          " text-anchor=\"end\" font-weight=\"600\"");
    if (s.arrivals > 0) {
      filled(x + kBarLeft, y + 35, static_cast<double>(s.arrived) / s.arrivals, ink::strong_green);
    }
    write(x + card_ - 10, y + 46,
          std::to_string(s.arrived) + " of " + std::to_string(s.arrivals) + " arrived",
          " text-anchor=\"end\"");
    if (s.bytes > 0) {
      filled(x + kBarLeft, y + 59, static_cast<double>(s.landed) / static_cast<double>(s.bytes),
             ink::strong_blue);
    }
    write(x + card_ - 10, y + 70,
          s.bytes == 0 && s.landed == 0
              ? "none expected"
              : std::to_string(s.landed) + " of " + std::to_string(s.bytes) + " landed",
          " text-anchor=\"end\"");
    write(x + kBarLeft, y + 96, s.waiting == 0 ? "nobody" : s.waiters);
  }

  const std::vector<BarrierEvent>& events_;
  int cta_;
  const std::vector<BarrierMoment>& moments_;
  std::vector<std::string> names_;
  std::int64_t end_ = 1;
  std::size_t columns_ = 1;
  double card_ = 0;
  std::string svg_;
};

}  // namespace

std::vector<std::string> barriers_of(const std::vector<BarrierEvent>& events, int cta) {
  std::vector<std::string> names;
  for (const BarrierEvent& e : events) {
    if (e.cta != cta || std::find(names.begin(), names.end(), e.barrier) != names.end()) continue;
    names.push_back(e.barrier);
  }
  return names;
}

std::vector<BarrierMoment> barrier_moments(const std::vector<BarrierEvent>& events, int cta,
                                           const std::vector<std::string>& wanted) {
  const std::vector<BarrierEvent> chosen = chosen_events(events, cta, wanted);
  std::vector<Follower> followers;
  std::map<std::string, std::size_t> place;
  for (const std::string& name : barriers_of(chosen, cta)) {
    place[name] = followers.size();
    followers.emplace_back(name);
  }
  // A step is the last of several events that follow each other: all of them are taken.
  std::vector<BarrierMoment> moments;
  std::size_t next = 0;
  for (BarrierStep& step : barrier_steps(chosen, cta)) {
    for (int i = 0; i < step.times; ++i, ++next) {
      followers[place[chosen[next].barrier]].take(chosen[next]);
    }
    BarrierMoment moment{std::move(step), {}};
    for (const Follower& f : followers) moment.states.push_back(f.state());
    moments.push_back(std::move(moment));
  }
  return moments;
}

View barrier_view(const std::vector<BarrierEvent>& events, int cta,
                  const std::vector<std::string>& wanted) {
  const std::vector<BarrierEvent> chosen = chosen_events(events, cta, wanted);
  const std::vector<BarrierMoment> moments = barrier_moments(chosen, cta);
  View view;
  view.id = "barrier";
  view.title = "mbarriers, event by event";
  view.caption =
      "A phase is complete when all arrivals have come and all expected bytes have landed; then "
      "the "
      "parity flips, and those who wait for it go on. The cards count up, the lanes below show "
      "what "
      "is outstanding, as the hardware counts it.";
  view.svg = StatesPicture(chosen, cta, moments).draw();
  view.table.header = {"cycle",   "barrier", "what",   "phase",    "parity",
                       "arrived", "of",      "landed", "of bytes", "waiting"};
  for (const BarrierMoment& m : moments) {
    const BarrierEvent& e = m.step.event;
    const auto state = std::find_if(m.states.begin(), m.states.end(),
                                    [&](const BarrierState& s) { return s.barrier == e.barrier; });
    view.table.rows.push_back({std::to_string(e.time), e.barrier, step_text(m.step),
                               std::to_string(e.phase), std::to_string(e.phase & 1),
                               std::to_string(state->arrived), std::to_string(state->arrivals),
                               std::to_string(state->landed), std::to_string(state->bytes),
                               state->waiting == 0 ? "" : state->waiters});
  }
  return view;
}

}  // namespace warpwright::pictures
