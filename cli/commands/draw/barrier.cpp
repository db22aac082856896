#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/files/printable.h"
#include "warpwright/pictures/barrier_states.h"

namespace warpwright::cli {
namespace {

struct BarrierOptions : DrawnRun {
  std::vector<std::string> barriers;
  int cta = 0;
};

std::string kind_of(const std::string& barrier) {
  return barrier.substr(0, barrier.find('['));
}

// "full[0] to full[12], turn[0]".
std::string kinds_text(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& first : all) {
    const bool is_first = std::none_of(all.begin(), all.end(), [&](const std::string& other) {
      return &other < &first && kind_of(other) == kind_of(first);
    });
    if (!is_first) continue;
    const auto last = std::find_if(all.rbegin(), all.rend(), [&](const std::string& other) {
      return kind_of(other) == kind_of(first);
    });
    text += (text.empty() ? "" : ", ") + first + (*last == first ? "" : " to " + *last);
  }
  return text;
}

// All where they are few, else the first of each kind.
std::vector<std::string> shown_barriers(const std::vector<std::string>& all) {
  constexpr std::size_t few = 6;
  if (all.size() <= few) return all;
  std::vector<std::string> first;
  for (const std::string& name : all) {
    const bool known = std::any_of(first.begin(), first.end(), [&](const std::string& other) {
      return kind_of(other) == kind_of(name);
    });
    if (!known) first.push_back(name);
  }
  return first;
}

// Refuses a name that no barrier has.
void check_names(const std::vector<std::string>& wanted, const std::vector<std::string>& all) {
  for (const std::string& name : wanted) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const std::string& barrier) {
      return barrier == name || kind_of(barrier) == name;
    });
    if (!known) {
      throw InputError("--barrier \"" + name + "\": the CTA has " + as_rule(kinds_text(all)) + ".");
    }
  }
}

pictures::Picture draw_barrier_picture(BarrierOptions& o, std::ostream& err) {
  o.how.barriers = true;
  const DrawnRecording run = record(o, err);
  if (run.trace.measured) {
    throw InputError("Only the model tells of mbarriers: " + as_rule("leave --device out") + ".");
  }
  const std::vector<std::string> all = pictures::barriers_of(run.barriers, o.cta);
  if (all.empty()) {
    throw InputError(run.barriers.empty()
                         ? std::string("The run has no mbarrier: its warps meet at CTA barriers.")
                         : "CTA " + std::to_string(o.cta) + " has no mbarrier.");
  }
  check_names(o.barriers, all);
  const std::vector<std::string> shown = o.barriers.empty() ? shown_barriers(all) : o.barriers;
  const std::vector<pictures::BarrierMoment> moments =
      pictures::barrier_moments(run.barriers, o.cta, shown);
  const std::size_t states = moments.size() * moments.front().states.size();
  if (states > pictures::most_barrier_states) {
    throw InputError(
        "The run is too long to draw: " + std::to_string(moments.size()) + " events at " +
        std::to_string(moments.front().states.size()) + " barriers (" + joined(shown) + "); " +
        as_rule("at most ",
                std::to_string(pictures::most_barrier_states / moments.front().states.size()),
                " events of so many are drawn") +
        ": give a smaller K, fewer tiles, or fewer --barrier.");
  }
  pictures::Picture picture;
  picture.title = run.title;
  picture.views.push_back(pictures::barrier_view(run.barriers, o.cta, shown));
  pictures::View& view = picture.views.back();
  if (moments.front().states.size() < all.size()) {
    view.caption += " Not all " + std::to_string(all.size()) +
                    " barriers of the CTA are shown; "
                    "--barrier names others: " +
                    kinds_text(all) + ".";
  }
  view.caption += run.remark;
  return picture;
}

}  // namespace

DrawKind add_draw_barrier(CLI::App& app) {
  CLI::App* kind = app.add_subcommand(
      "barrier", "mbarriers of a run, event by event: phase, arrivals, bytes, who waits");
  const auto o = std::make_shared<BarrierOptions>();
  const Values add(*kind);
  add("--barrier", o->barriers, "NAMES",
      "those that are shown: full, or full[0],empty[0] (default: all where they are few, else the "
      "first of each kind)")
      ->delimiter(',');
  add("--cta", o->cta, "I", "whose they are", whole(0, 1'000'000))->capture_default_str();
  add_drawn_run(*kind, *o, {.knobs = true},
                "  warpwright draw barrier --lesson 2 --svg barrier.svg\n"
                "  warpwright draw barrier --lesson 3 --broken --table\n"
                "  warpwright draw barrier gemm --random 128 256 256 --as h200 --barrier "
                "full[0],empty[0] --svg ring.svg");
  return {kind, [o](std::ostream& err) { return draw_barrier_picture(*o, err); }};
}

}  // namespace warpwright::cli
