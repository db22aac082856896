// Launches captured in CUDA graphs, replayed in turns and timed by events. Internal to bench/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bench/device_math.h"
#include "bench/gemm_bench.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::bench {

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

/// Starts one product on a set of operands, by a number that goes round its sets.
using Launch = std::function<std::optional<Refusal>(std::size_t number, void* stream)>;

/// The median and the quartiles.
Timing summarise(std::vector<double> times);

/// Seconds of one launch, roughly: ten of them without a graph.
double estimate(const Launch& launch, cudaStream_t stream);

class Graph;

/// Contenders, in graphs of as many launches each.
class Race {
 public:
  /// A launch takes `each` seconds, roughly, and goes round `sets`. `hot` are products that heat
  /// the card up while they run: long ones of them rest between rounds, as long as the round took.
  Race(std::size_t sets, double each, bool hot, const TimeOptions& options, cudaStream_t stream);

  /// For one graph.
  [[nodiscard]] int launches() const { return launches_; }
  /// The median of a few rounds, for a choice among many of which the fastest so far took `least`;
  /// of one that takes much longer the first round's time.
  [[nodiscard]] double screen(const Launch& launch, double least) const;
  /// Replays the contenders' graphs in turns, each round starting with another one. A round is
  /// enqueued as a whole before it is waited for, so that the host's pace stays out of the times.
  [[nodiscard]] std::vector<Timing> run(const std::vector<Launch>& contenders) const;

 private:
  using Graphs = std::vector<std::unique_ptr<Graph>>;
  [[nodiscard]] Graphs captured(const std::vector<Launch>& contenders) const;
  [[nodiscard]] std::vector<Timing> replay(const Graphs& graphs, int rounds) const;

  int rounds_;
  int launches_;
  bool rests_;
  cudaStream_t stream_;
};

}  // namespace warpwright::bench
