#include "bench/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/device_math.h"

namespace warpwright::bench {
namespace {

// What the host needs to enqueue a round while the GPU idles.
constexpr double kLeadSeconds = 200e-6;
constexpr int kMaxLaunches = 4096;
constexpr int kScreeningRounds = 5;
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

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Failure{std::string(what) + " failed: " + cudaGetErrorString(error)};
}

void require(const std::optional<Refusal>& refusal) {
  if (refusal) throw Failure{refusal->reason};
}

Stream::Stream() {
  require(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "making a stream");
}

Stream::~Stream() {
  cudaStreamDestroy(handle_);
}

Graph::Graph(const LaunchOnSet& launch, std::size_t sets, int launches, cudaStream_t stream) {
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "starting a capture");
  std::optional<Refusal> refusal;
  for (int i = 0; i < launches && !refusal; ++i) {
    refusal = launch(static_cast<std::size_t>(i) % sets, stream);
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

Graph::~Graph() {
  cudaGraphExecDestroy(executable_);
}

void Graph::replay(cudaStream_t stream) const {
  require(cudaGraphLaunch(executable_, stream), "replaying a graph");
}

std::vector<std::vector<double>> replay(const std::vector<const Graph*>& graphs, const Turns& turns,
                                        cudaStream_t stream) {
  const std::size_t count = graphs.size();
  std::vector<Event> events(2 * count * static_cast<std::size_t>(turns.rounds));
  std::vector<std::size_t> order;
  for (const Graph* graph : graphs) graph->replay(stream);  // warm
  for (std::size_t round = 0; round < static_cast<std::size_t>(turns.rounds); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    if (round == 0 || turns.rests) require(delay(kLeadSeconds, stream));
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t who = (round + turn) % count;
      const std::size_t at = 2 * order.size();
      events[at].record(stream);
      graphs[who]->replay(stream);
      events[at + 1].record(stream);
      order.push_back(who);
    }
    if (!turns.rests) continue;
    require(cudaStreamSynchronize(stream), "timing");
    rest(begin);
  }
  require(cudaStreamSynchronize(stream), "timing");
  std::vector<std::vector<double>> times(count);
  for (std::size_t i = 0; i < order.size(); ++i) {
    times[order[i]].push_back(events[2 * i + 1].since(events[2 * i]) * 1e3 / turns.launches);
  }
  return times;
}

Timing summarise(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&times](double share) {
    return times[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(times.size() - 1)))];
  };
  return {at(0.5), at(0.25), at(0.75)};
}

double estimate(const LaunchOnSet& launch, std::size_t sets, cudaStream_t stream) {
  const Event begin;
  const Event end;
  constexpr int warm = 3;
  constexpr int tries = 10;
  for (int i = 0; i < warm + tries; ++i) {
    if (i == warm) begin.record(stream);
    require(launch(static_cast<std::size_t>(i) % sets, stream));
  }
  end.record(stream);
  require(cudaStreamSynchronize(stream), "timing");
  return std::max(end.since(begin) * 1e-3 / tries, 1e-6);
}

Race::Race(std::size_t sets, double each, bool hot, const TimeOptions& options, cudaStream_t stream)
    : sets_(sets), stream_(stream) {
  turns_.rounds = options.rounds;
  turns_.launches = launches_for(each, options.round_seconds, sets);
  turns_.rests = hot && each > kRestSeconds;
}

std::unique_ptr<Graph> Race::graph(const LaunchOnSet& launch) const {
  return std::make_unique<Graph>(launch, sets_, turns_.launches, stream_);
}

double Race::screen(const LaunchOnSet& launch) const {
  Turns few = turns_;
  few.rounds = kScreeningRounds;
  const auto made = graph(launch);
  return summarise(replay({made.get()}, few, stream_).front()).median;
}

std::vector<Timing> Race::run(const std::vector<const Graph*>& graphs) const {
  std::vector<Timing> timings;
  for (std::vector<double>& times : replay(graphs, turns_, stream_)) {
    timings.push_back(summarise(std::move(times)));
  }
  return timings;
}

}  // namespace warpwright::bench
