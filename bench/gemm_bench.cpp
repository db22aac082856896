#include "bench/gemm_bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "bench/cublaslt.h"
#include "warpwright/device/cuda.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::bench {
namespace {

constexpr int kMaxSets = 2048;
constexpr int kMaxLaunches = 4096;

// A failure of the runtime or a refusal on the way, as an exception inside this file.
struct Failure {
  std::string sentence;
};

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Failure{std::string(what) + " failed: " + cudaGetErrorString(error)};
}

void require(const std::optional<Refusal>& refusal) {
  if (refusal) throw Failure{refusal->reason};
}

std::int64_t bytes_of(const MatrixView& v) {
  return v.rows * v.columns * (numeric::bits(v.dtype) / 8);
}

// Owners of the runtime's handles.
struct Stream {
  cudaStream_t handle = nullptr;
  Stream() {
    require(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "making a stream");
  }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

struct Event {
  cudaEvent_t handle = nullptr;
  Event() { require(cudaEventCreate(&handle), "making an event"); }
  ~Event() {
    if (handle != nullptr) cudaEventDestroy(handle);
  }
  Event(Event&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

using Launch = std::function<std::optional<Refusal>(const GemmOperands&, void*)>;

// `launches` launches round the sets, ready to be replayed.
class Graph {
 public:
  Graph(const Launch& launch, const std::vector<GemmOperands>& sets, int launches,
        cudaStream_t stream) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "starting a capture");
    std::optional<Refusal> refusal;
    for (int i = 0; i < launches && !refusal; ++i) {
      refusal = launch(sets[static_cast<std::size_t>(i) % sets.size()], stream);
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
    require(cudaGraphUpload(executable_, stream), "uploading a graph");
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

// Replays the graphs in turns, each round starting with another one; microseconds of one launch by
// graph and round. Everything is enqueued before anything is waited for, so that the host's pace
// stays out of the times.
std::vector<std::vector<double>> replay(const std::vector<const Graph*>& graphs, int rounds,
                                        int launches, cudaStream_t stream) {
  const std::size_t count = graphs.size();
  std::vector<Event> events(2 * count * static_cast<std::size_t>(rounds));
  std::vector<std::size_t> order;
  for (const Graph* graph : graphs) graph->replay(stream);  // warm
  for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t who = (round + turn) % count;
      const std::size_t at = 2 * order.size();
      require(cudaEventRecord(events[at].handle, stream), "recording an event");
      graphs[who]->replay(stream);
      require(cudaEventRecord(events[at + 1].handle, stream), "recording an event");
      order.push_back(who);
    }
  }
  require(cudaStreamSynchronize(stream), "timing");
  std::vector<std::vector<double>> times(count);
  for (std::size_t i = 0; i < order.size(); ++i) {
    float ms = 0;
    require(cudaEventElapsedTime(&ms, events[2 * i].handle, events[2 * i + 1].handle),
            "reading a time");
    times[order[i]].push_back(static_cast<double>(ms) * 1e3 / launches);
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

// Copies of the operands, one after the other, in one piece of device memory.
class Sets {
 public:
  Sets(const GemmOperands& host, std::int64_t l2_bytes) {
    const bool reads_c = host.beta != 0.0F;
    const std::int64_t read =
        bytes_of(host.a) + bytes_of(host.b) + (reads_c ? bytes_of(host.c) : 0);
    const std::int64_t all = read + bytes_of(host.d);
    // A set comes round again after all others: these must not fit the cache, twice over.
    const std::int64_t wanted = 2 * std::max<std::int64_t>(l2_bytes, 1) / all + 2;
    std::size_t free = 0;
    std::size_t total = 0;
    require(cudaMemGetInfo(&free, &total), "asking for free memory");
    const std::int64_t step = padded(bytes_of(host.a)) + padded(bytes_of(host.b)) +
                              (reads_c ? padded(bytes_of(host.c)) : 0) + padded(bytes_of(host.d));
    const std::int64_t room = static_cast<std::int64_t>(static_cast<double>(free) * 0.9) / step;
    const std::int64_t count = std::clamp<std::int64_t>(std::min(wanted, room), 1, kMaxSets);
    cold_ = count >= wanted;
    const auto memory = device::CudaBuffer::make(count * step);
    if (!memory) throw Failure{memory.reason()};
    memory_ = *memory;
    auto* at = static_cast<std::byte*>(memory_->data());
    const auto place = [&at](MatrixView& view, const void* data) {
      view.data = at;
      at += padded(bytes_of(view));
      if (data == nullptr) return;
      require(
          cudaMemcpy(view.data, data, static_cast<std::size_t>(bytes_of(view)), cudaMemcpyDefault),
          "copying to the GPU");
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const GemmOperands& from = i == 0 ? host : sets_.front();
      GemmOperands set = host;
      place(set.a, from.a.data);
      place(set.b, from.b.data);
      if (reads_c) place(set.c, from.c.data);
      place(set.d, nullptr);
      sets_.push_back(set);
    }
  }

  [[nodiscard]] const std::vector<GemmOperands>& all() const { return sets_; }
  [[nodiscard]] bool cold() const { return cold_; }

 private:
  static std::int64_t padded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

  std::shared_ptr<device::CudaBuffer> memory_;
  std::vector<GemmOperands> sets_;
  bool cold_ = true;
};

std::vector<double> row_norms(const MatrixView& v) {
  std::vector<double> norms(static_cast<std::size_t>(v.rows));
  std::vector<float> row(static_cast<std::size_t>(v.columns));
  const std::int64_t pitch = v.columns * (numeric::bits(v.dtype) / 8);
  for (std::int64_t i = 0; i < v.rows; ++i) {
    numeric::widen_from(static_cast<const std::byte*>(v.data) + i * pitch, row.data(), row.size(),
                        v.dtype);
    double sum = 0;
    for (const float x : row) sum += static_cast<double>(x) * static_cast<double>(x);
    norms[static_cast<std::size_t>(i)] = std::sqrt(sum);
  }
  return norms;
}

// Whether two results of the product agree up to rounding. By Cauchy and Schwarz the sum of |a b|
// is at most the product of the rows' norms; each side may lose K 2^-24 of it and half an ulp.
std::optional<std::string> difference(const GemmOperands& host, const std::vector<std::byte>& ours,
                                      const std::vector<std::byte>& theirs) {
  const std::vector<double> a = row_norms(host.a);
  const std::vector<double> b = row_norms(host.b);
  const auto columns = static_cast<std::size_t>(host.d.columns);
  const std::size_t pitch = columns * static_cast<std::size_t>(numeric::bits(host.d.dtype) / 8);
  std::vector<float> x(columns);
  std::vector<float> y(columns);
  std::vector<float> c(columns);
  const double alpha = std::abs(static_cast<double>(host.alpha));
  const double beta = std::abs(static_cast<double>(host.beta));
  const double loss = 0x1p-23 * (static_cast<double>(host.a.columns) + 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    numeric::widen_from(ours.data() + i * pitch, x.data(), columns, host.d.dtype);
    numeric::widen_from(theirs.data() + i * pitch, y.data(), columns, host.d.dtype);
    if (beta != 0) {
      numeric::widen_from(static_cast<const std::byte*>(host.c.data) + i * pitch, c.data(), columns,
                          host.d.dtype);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      if (x[j] == y[j] || (std::isnan(x[j]) && std::isnan(y[j]))) continue;
      const auto p = static_cast<double>(x[j]);
      const auto q = static_cast<double>(y[j]);
      const double size =
          alpha * a[i] * b[j] + (beta != 0 ? beta * std::abs(static_cast<double>(c[j])) : 0);
      const double bound =
          loss * size + numeric::ulp(host.d.dtype, std::max(std::abs(p), std::abs(q)));
      if (std::abs(p - q) <= bound) continue;
      char text[160];
      std::snprintf(text, sizeof(text), "D[%zu, %zu] is %.9g here and %.9g by cuBLASLt", i, j, p,
                    q);
      return text;
    }
  }
  return std::nullopt;
}

std::vector<std::byte> result_of(const Launch& launch, const GemmOperands& set,
                                 cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(bytes_of(set.d));
  require(cudaMemsetAsync(set.d.data, 0xff, bytes, stream), "filling D");
  require(launch(set, stream));
  require(cudaStreamSynchronize(stream), "multiplying");
  std::vector<std::byte> result(bytes);
  require(cudaMemcpy(result.data(), set.d.data, bytes, cudaMemcpyDeviceToHost),
          "copying from the GPU");
  return result;
}

// Launches of one round: whole turns round the sets, long enough to be timed.
int launches_for(const Launch& launch, const std::vector<GemmOperands>& sets, double seconds,
                 cudaStream_t stream) {
  const Event begin;
  const Event end;
  constexpr int tries = 10;
  for (int i = -3; i < tries; ++i) {
    if (i == 0) require(cudaEventRecord(begin.handle, stream), "recording an event");
    require(launch(sets[static_cast<std::size_t>(i + 3) % sets.size()], stream));
  }
  require(cudaEventRecord(end.handle, stream), "recording an event");
  require(cudaStreamSynchronize(stream), "timing");
  float ms = 0;
  require(cudaEventElapsedTime(&ms, begin.handle, end.handle), "reading a time");
  const double each = std::max(static_cast<double>(ms) * 1e-3 / tries, 1e-6);
  const auto count = static_cast<std::int64_t>(sets.size());
  const auto wanted = static_cast<std::int64_t>(std::ceil(seconds / each));
  const std::int64_t turns = (std::max(wanted, count) + count - 1) / count;
  return static_cast<int>(
      std::min<std::int64_t>(turns * count, std::max<std::int64_t>(kMaxLaunches, count)));
}

GemmTimes measure(const Plan& plan, const GemmOperands& host, const TimeOptions& options) {
  require(device::prepare_on_cuda(plan));
  const Sets sets(host, plan.device.l2_bytes);
  const Stream stream;
  const Launch ours = [&plan](const GemmOperands& set, void* on) {
    return device::launch_on_cuda(plan, set, nullptr, 0, on);
  };
  GemmTimes times;
  times.operations = 2.0 * static_cast<double>(plan.problem.m) *
                     static_cast<double>(plan.problem.n) * static_cast<double>(plan.problem.k);
  times.cold = sets.cold();
  times.buffer_sets = static_cast<int>(sets.all().size());
  times.rounds = options.rounds;

  const auto library = CublasLt::make(sets.all().front(), options.offers);
  const auto by = [&library](int algorithm) -> Launch {
    return [&library, algorithm](const GemmOperands& set, void* on) {
      return (*library)->launch(algorithm, set, on);
    };
  };
  const std::vector<std::byte> result = result_of(ours, sets.all().front(), stream.handle);
  times.launches = launches_for(ours, sets.all(), options.round_seconds, stream.handle);
  const Graph our_graph(ours, sets.all(), times.launches, stream.handle);
  if (!library) {
    times.baseline = library.reason();
    times.ours =
        summarise(replay({&our_graph}, options.rounds, times.launches, stream.handle).front());
    return times;
  }
  if (const auto wrong =
          difference(host, result, result_of(by(0), sets.all().back(), stream.handle))) {
    throw Failure{"the results differ, so nothing is timed: " + *wrong};
  }
  times.baseline = "cuBLASLt " + (*library)->version();

  // The fastest of the offers by a few replays each; one that does not launch is left out.
  double fastest = 0;
  for (int i = 0; i < (*library)->algorithms(); ++i) {
    try {
      const Graph graph(by(i), sets.all(), times.launches, stream.handle);
      const double time =
          summarise(replay({&graph}, 5, times.launches, stream.handle).front()).median;
      ++times.offered;
      if (fastest == 0 || time < fastest) {
        fastest = time;
        times.best_index = i;
      }
    } catch (const Failure&) {
      if (i == 0) throw;
    }
  }
  const Graph first(by(0), sets.all(), times.launches, stream.handle);
  std::vector<const Graph*> contenders = {&our_graph, &first};
  std::optional<Graph> best;
  if (times.best_index != 0) {
    best.emplace(by(times.best_index), sets.all(), times.launches, stream.handle);
    contenders.push_back(&*best);
  }
  const auto all = replay(contenders, options.rounds, times.launches, stream.handle);
  times.ours = summarise(all[0]);
  times.first = summarise(all[1]);
  times.best = best ? summarise(all[2]) : *times.first;
  // What looked faster in the few replays need not be so in the many.
  if (times.best->median > times.first->median) {
    times.best = times.first;
    times.best_index = 0;
  }
  return times;
}

}  // namespace

double GemmTimes::tflops(const Timing& timing) const {
  return timing.median > 0 ? operations / timing.median * 1e-6 : 0;
}

Result<GemmTimes> time_gemm(const Plan& plan, const GemmOperands& operands,
                            const TimeOptions& options) {
  if (plan.ctas == 0 || !plan.problem.reads_ab) {
    return Refusal{"there is no product to time: M, N, K and alpha must not be 0"};
  }
  try {
    return measure(plan, operands, options);
  } catch (const Failure& failure) {
    return Refusal{failure.sentence};
  }
}

std::string line(const GemmTimes& t) {
  const auto times = [&t](const Timing& x) {
    char text[120];
    std::snprintf(text, sizeof(text), "%.2f us (%.2f..%.2f) %.1f TFLOP/s", x.median, x.low, x.high,
                  t.tflops(x));
    return std::string(text);
  };
  std::string text = "ours " + times(t.ours);
  if (t.first && t.best) {
    char ratio[80];
    std::snprintf(ratio, sizeof(ratio), "; ratio %.3f to the best, %.3f to the first",
                  t.best->median / t.ours.median, t.first->median / t.ours.median);
    text += "; " + t.baseline + " first pick " + times(*t.first) + ", best of " +
            std::to_string(t.offered) + " (number " + std::to_string(t.best_index + 1) + ") " +
            times(*t.best) + ratio;
  } else {
    text += "; no ratio: " + t.baseline;
  }
  text += "; medians (quartiles) of " + std::to_string(t.rounds) + " rounds of " +
          std::to_string(t.launches) + " launches over " + std::to_string(t.buffer_sets) +
          " sets of buffers";
  if (!t.cold) text += ", too small to keep the operands out of L2";
  return text;
}

}  // namespace warpwright::bench
