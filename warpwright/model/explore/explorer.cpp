#include "warpwright/model/explore/explorer.h"

#include <utility>

#include "warpwright/model/explore/names.h"
#include "warpwright/model/explore/races.h"

namespace warpwright::model {
namespace {

constexpr int another_lane = 19;

std::string number_text(double seconds) {
  const std::string all = std::to_string(seconds + 0.05);
  return all.substr(0, all.find('.') + 2);
}

}  // namespace

std::string Explored::text() const {
  const std::string count =
      std::to_string(classes) + (classes == 1 ? " class" : " classes") + " of schedules";
  if (complete && classes == 1) return "the only class of schedules of this case";
  if (complete) return "all " + count + " of this case";
  return "stopped after " + count + " in " + number_text(seconds) + " s; not all: " + why;
}

Explorer::Explorer(const ExploreLimits& limits)
    : limits_(limits), start_(std::chrono::steady_clock::now()) {
  queue_.emplace_back();
}

double Explorer::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::optional<Explorer::Task> Explorer::take() {
  while (!queue_.empty() && queue_.front().expected != 0 &&
         classes_.contains(queue_.front().expected)) {
    queue_.pop_front();
  }
  if (queue_.empty() || so_far_.classes + out_ >= limits_.classes ||
      (so_far_.runs > 0 && seconds() >= limits_.seconds)) {
    return std::nullopt;
  }
  Task task = std::move(queue_.front());
  queue_.pop_front();
  ++out_;
  return task;
}

void Explorer::grow(const Task& task, const std::shared_ptr<const std::vector<Demand>>& all) {
  const auto known = [this](std::uint64_t hash) { return classes_.contains(hash); };
  for (Reversal& turned : reversals(task.run, known)) {
    const std::uint64_t key = mix_names(turned.hash, task.run.patient ? 1 : 0);
    if (!seen_.insert(key).second) continue;
    Task next;
    next.run.all = all;
    next.run.kept = std::move(turned.kept);
    next.run.moved = std::move(turned.moved);
    next.run.patient = task.run.patient;
    next.expected = turned.expected;
    next.run.queued = task.run.queued;
    next.turned = task.turned;
    next.turned.push_back(std::move(turned.text));
    queue_.push_back(std::move(next));
  }
}

std::int64_t Explorer::give(Task&& task) {
  --out_;
  ++so_far_.runs;
  Exploration& run = task.run;
  if (run.cancels && !run.queued) {  // the first one, which now begins anew
    Task first;
    first.run.queued = true;
    queue_.push_back(std::move(first));
    return 1;
  }
  if (run.elected != 0) return 1;  // a further run of the first class, and no order of its own
  const bool differs = task.asks && run.hash != task.parent;
  if (run.beyond != nullptr) beyond_ = run.beyond;
  if (differs) beyond_ = "what a thread does depends on the answers of try_wait";
  if (!run.repeated && !task.asks) beyond_ = "some order could not be repeated";
  const auto [at, is_new] = classes_.try_emplace(run.hash, so_far_.classes + 1);
  if (!is_new) return at->second;
  if (++so_far_.classes == 1) {
    Task other;
    other.run.elected = another_lane;
    other.run.queued = run.queued;
    other.turned.emplace_back("elect.sync elects lane " + std::to_string(another_lane));
    queue_.push_back(std::move(other));
  }
  const auto all = std::make_shared<const std::vector<Demand>>(demands_of(run.trace));
  grow(task, all);
  if (run.asked) {
    Task other;
    other.run.all = all;
    other.run.patient = !run.patient;
    other.run.queued = run.queued;
    other.turned = task.turned;
    other.turned.emplace_back(run.patient ? "try_wait answers \"not yet\""
                                          : "try_wait answers as late as it can");
    other.asks = true;
    other.parent = run.hash;
    queue_.push_back(std::move(other));
  }
  return at->second;
}

const Explored& Explorer::explored() {
  so_far_.seconds = seconds();
  so_far_.complete = queue_.empty() && out_ == 0 && beyond_.empty();
  so_far_.why = !beyond_.empty()                            ? beyond_
                : so_far_.classes + out_ >= limits_.classes ? "as many as were asked for"
                                                            : "the time is over";
  return so_far_;
}

}  // namespace warpwright::model
