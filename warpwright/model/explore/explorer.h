// All schedules of a small case: one run for each order in which its synchronising operations can
// come, found by turning one pair of them after the other. docs/model.md, "All schedules of a small
// case", says which pairs there are, and why all others commute.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "warpwright/model/explore/exploration.h"

namespace warpwright::model {

/// When an exploration stops.
struct ExploreLimits {
  std::int64_t classes = 100'000;
  double seconds = 60;
};

/// How far it came. `complete` only when every order has been run.
struct Explored {
  std::int64_t classes = 0;  ///< of schedules: orders that differ
  std::int64_t runs = 0;     ///< it took; some find an order that is known
  double seconds = 0;
  bool complete = false;
  std::string why;  ///< not complete
  /// "all 12 classes of schedules of this case", or "the first 12 classes ..., not all: ...".
  [[nodiscard]] std::string text() const;
};

/// Says which runs are to be made, and learns from each. Tasks are taken and given back in one
/// order, however many are out at once: so the numbers of classes are the same in every exploration
/// that its limits do not end.
class Explorer {
 public:
  explicit Explorer(const ExploreLimits& limits);

  struct Task {
    Exploration run;
    std::vector<std::string> turned;  ///< the pairs, from the first run's order to this one
    /// For `give`: of the first run, of a turned pair, or of another way to answer try_wait.
    bool asks = false;
    std::uint64_t parent = 0;    ///< hash of the class that it asks about
    std::uint64_t expected = 0;  ///< a class of this hash would make it needless (Reversal)
  };
  /// The next run, while there is one.
  std::optional<Task> take();
  /// What came of it, in the order of `take`. The number of its class, from 1: a new one, if there
  /// were fewer before.
  std::int64_t give(Task&& task);

  [[nodiscard]] const Explored& explored();

 private:
  void grow(const Task& task, const std::shared_ptr<const std::vector<Demand>>& all);
  [[nodiscard]] double seconds() const;

  ExploreLimits limits_;
  std::chrono::steady_clock::time_point start_;
  std::deque<Task> queue_;
  std::int64_t out_ = 0;  // taken and not given back
  std::unordered_map<std::uint64_t, std::int64_t> classes_;
  std::unordered_set<std::uint64_t> seen_;  // orders asked for
  Explored so_far_;
  std::string beyond_;
};

}  // namespace warpwright::model
