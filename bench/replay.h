// Launches captured in CUDA graphs, replayed in turns and timed by events. Internal to bench/:
// failures are exceptions here, and become refusals at its border.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/gemm_bench.h"
#include "warpwright/plan/plan.h"

namespace warpwright::bench {

/// A failure of the runtime or a refusal on the way.
struct Failure {
  std::string sentence;
};

/// Throws a Failure where there is one.
void require(cudaError_t error, const char* what);
void require(const std::optional<Refusal>& refusal);

/// A stream of its own.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return handle_; }

 private:
  cudaStream_t handle_ = nullptr;
};

/// Starts one product on one set of operands.
using Launch = std::function<std::optional<Refusal>(const GemmOperands&, void* stream)>;

/// The same of any kind of product, by the number of the set.
using LaunchOnSet = std::function<std::optional<Refusal>(std::size_t set, void* stream)>;

/// `launch` on one of `sets`, which must stay.
template <class Operands, class F>
LaunchOnSet on_sets(F launch, const std::vector<Operands>& sets) {
  return [launch = std::move(launch), &sets](std::size_t set, void* stream) {
    return launch(sets[set], stream);
  };
}

/// Many launches round the sets, ready to be replayed.
class Graph {
 public:
  Graph(const LaunchOnSet& launch, std::size_t sets, int launches, cudaStream_t stream);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay(cudaStream_t stream) const;

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// How contenders are replayed.
struct Turns {
  int rounds = 21;
  int launches = 1;    ///< in one graph
  bool rests = false;  ///< after each round as long as the round took, so that the card stays cool
};

/// Replays the graphs in turns, each round starting with another one; microseconds of one launch by
/// graph and round. A round is enqueued as a whole before it is waited for, so that the host's pace
/// stays out of the times.
std::vector<std::vector<double>> replay(const std::vector<const Graph*>& graphs, const Turns& turns,
                                        cudaStream_t stream);

/// The median and the quartiles.
Timing summarise(std::vector<double> times);

/// Seconds of one launch, roughly: ten of them without a graph.
double estimate(const LaunchOnSet& launch, std::size_t sets, cudaStream_t stream);

/// Contenders for one problem on the same sets of operands, in graphs of as many launches each.
class Race {
 public:
  /// A launch takes `each` seconds, roughly. `hot` are products that heat the card up while they
  /// run: long ones of them rest between rounds.
  Race(std::size_t sets, double each, bool hot, const TimeOptions& options, cudaStream_t stream);

  [[nodiscard]] int launches() const { return turns_.launches; }
  [[nodiscard]] std::unique_ptr<Graph> graph(const LaunchOnSet& launch) const;
  /// The median of a few rounds, for a choice among many.
  [[nodiscard]] double screen(const LaunchOnSet& launch) const;
  /// All rounds, in turns.
  [[nodiscard]] std::vector<Timing> run(const std::vector<const Graph*>& graphs) const;

 private:
  std::size_t sets_;
  Turns turns_;
  cudaStream_t stream_;
};

}  // namespace warpwright::bench
