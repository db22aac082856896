#include "bench/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>

namespace warpwright::bench {
namespace {

// What the host needs to enqueue a round while the GPU idles.
constexpr double kLeadSeconds = 200e-6;
constexpr int kMaxLaunches = 4096;
constexpr int kScreeningRounds = 5;
// What takes so many times the least is not looked at twice.
constexpr double kHopeless = 1.5;
// Products that take longer and are bound by the tensor cores heat the card up.
constexpr double kRestSeconds = 50e-6;

class Event {
 public:
  Event() { require(cudaEventCreate(&handle_), "making an event"); }
  ~Event() {
    if (handle_ != nullptr) cudaEventDestroy(handle_);
  }
  Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) const {
    require(cudaEventRecord(handle_, stream), "recording an event");
  }
  // Milliseconds since an earlier one.
  [[nodiscard]] double since(const Event& begin) const {
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin.handle_, handle_), "reading a time");
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

void rest(std::chrono::steady_clock::time_point since) {
  std::this_thread::sleep_for(std::chrono::steady_clock::now() - since);
}

// Launches of one round: whole turns round the sets, long enough to be timed.
int launches_for(double each, double seconds, std::size_t sets) {
  const auto count = static_cast<std::int64_t>(sets);
  const auto wanted = static_cast<std::int64_t>(std::ceil(seconds / each));
  const std::int64_t turns = (std::max(wanted, count) + count - 1) / count;
  return static_cast<int>(
      std::min<std::int64_t>(turns * count, std::max<std::int64_t>(kMaxLaunches, count)));
}

}  // namespace

// Many launches round the sets, ready to be replayed.
class Graph {
 public:
  Graph(const Launch& launch, int launches, cudaStream_t stream) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "starting a capture");
    std::optional<Refusal> refusal;
    for (int i = 0; i < launches && !refusal; ++i) {
      refusal = launch(static_cast<std::size_t>(i), stream);
    }
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (refusal) {
      cudaGetLastError();
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw Failure{refusal->reason};
    }
    require(error, "capturing");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    require(made, "making a graph");
    const cudaError_t uploaded = cudaGraphUpload(executable_, stream);
    if (uploaded != cudaSuccess) cudaGraphExecDestroy(executable_);
    require(uploaded, "uploading a graph");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay(cudaStream_t stream) const {
    require(cudaGraphLaunch(executable_, stream), "replaying a graph");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

Stream::Stream() {
  require(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "making a stream");
}

Stream::~Stream() {
  cudaStreamDestroy(handle_);
}

Timing summarise(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&times](double share) {
    return times[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(times.size() - 1)))];
  };
  return {at(0.5), at(0.25), at(0.75)};
}

double estimate(const Launch& launch, cudaStream_t stream) {
  const Event begin;
  const Event end;
  constexpr int warm = 3;
  constexpr int tries = 10;
  for (int i = 0; i < warm + tries; ++i) {
    if (i == warm) begin.record(stream);
    require(launch(static_cast<std::size_t>(i), stream));
  }
  end.record(stream);
  require(cudaStreamSynchronize(stream), "timing");
  return std::max(end.since(begin) * 1e-3 / tries, 1e-6);
}

Race::Race(std::size_t sets, double each, bool hot, const TimeOptions& options, cudaStream_t stream)
    : rounds_(options.rounds),
      launches_(launches_for(each, options.round_seconds, sets)),
      rests_(hot && each > kRestSeconds),
      stream_(stream) {}

double Race::screen(const Launch& launch, double least) const {
  const Graphs graphs = captured({launch});
  const double warm = replay(graphs, 1).front().median;
  if (warm > kHopeless * least) return warm;
  return replay(graphs, kScreeningRounds).front().median;
}

std::vector<Timing> Race::run(const std::vector<Launch>& contenders) const {
  const Graphs graphs = captured(contenders);
  for (const auto& graph : graphs) graph->replay(stream_);  // warm
  return replay(graphs, rounds_);
}

Race::Graphs Race::captured(const std::vector<Launch>& contenders) const {
  Graphs graphs;
  graphs.reserve(contenders.size());
  for (const Launch& launch : contenders) {
    graphs.push_back(std::make_unique<Graph>(launch, launches_, stream_));
  }
  return graphs;
}

std::vector<Timing> Race::replay(const Graphs& graphs, int rounds) const {
  const std::size_t count = graphs.size();
  std::vector<Event> events(2 * count * static_cast<std::size_t>(rounds));
  std::vector<std::size_t> order;
  for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    if (round == 0 || rests_) delay(kLeadSeconds, stream_);
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t who = (round + turn) % count;
      const std::size_t at = 2 * order.size();
      events[at].record(stream_);
      graphs[who]->replay(stream_);
      events[at + 1].record(stream_);
      order.push_back(who);
    }
    if (!rests_) continue;
    require(cudaStreamSynchronize(stream_), "timing");
    rest(begin);
  }
  require(cudaStreamSynchronize(stream_), "timing");
  std::vector<std::vector<double>> times(count);
  for (std::size_t i = 0; i < order.size(); ++i) {
    times[order[i]].push_back(events[2 * i + 1].since(events[2 * i]) * 1e3 / launches_);
  }
  std::vector<Timing> timings;
  timings.reserve(count);
  for (std::vector<double>& of_one : times) timings.push_back(summarise(std::move(of_one)));
  return timings;
}

}  // namespace warpwright::bench
