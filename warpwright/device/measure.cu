#include "warpwright/device/measure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "warpwright/device/cuda.h"
#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/launch_parts.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::device {
namespace {

// Small numbers in every format that there is, finite and not 0: how much power a product takes
// depends on its operands, if less than on the kernel.
constexpr int kFilling = 0x3c;
constexpr int kRounds = 7;
constexpr double kRoundSeconds = 1e-3;
constexpr std::int64_t kMostLaunches = 64;  // of a round
constexpr std::int64_t kLine = 256;

// Calls of this thread do not end captures of others.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// What is destroyed in the end.
template <class Handle, cudaError_t (*destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (handle != nullptr) destroy(handle);
  }
  Owned(Owned&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Handle handle = nullptr;
};
using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

// The tensors of a product, B second.
std::vector<MatrixView*> tensors_of(GemmOperands& o) {
  std::vector<MatrixView*> all;
  for_each_tensor_of([&](const char*, MatrixView& view) { all.push_back(&view); }, o);
  return all;
}

// Where the tensors lie in a set of operands: bytes from its begin, -1 of one that is left out. As
// far behind a line as the caller's is, and the header of packed weights in front of their tiles.
struct SetLayout {
  std::vector<std::int64_t> begin;
  std::int64_t bytes = 0;
};

SetLayout layout_of(GemmOperands like) {
  SetLayout layout;
  const auto tensors = tensors_of(like);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool is_packed = like.packed && i == 1;
    const std::int64_t bytes = extent_bytes(is_packed ? stored_b(like) : *tensors[i]);
    layout.begin.push_back(-1);
    if (bytes == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(tensors[i]->data);
    layout.begin[i] =
        layout.bytes + (is_packed ? packed::kHeaderBytes : static_cast<std::int64_t>(address % 16));
    layout.bytes = (layout.begin[i] + bytes + kLine - 1) / kLine * kLine;
  }
  return layout;
}

// Sets of operands, one behind the other: enough of them that one comes round again when L2 has
// forgotten it.
class Sets {
 public:
  static Result<Sets> make(const GemmOperands& like, const std::vector<std::int64_t>& lengths,
                           std::int64_t l2_bytes) {
    const SetLayout layout = layout_of(like);
    std::size_t free = 0;
    std::size_t total = 0;
    if (auto r = cuda_refusal(cudaMemGetInfo(&free, &total), "asking for free memory")) return *r;
    const std::int64_t bytes = std::max<std::int64_t>(layout.bytes, 1);
    const std::int64_t room = static_cast<std::int64_t>(free / 2) / bytes;
    const std::int64_t count =
        std::max<std::int64_t>(1, std::min({2 * l2_bytes / bytes + 2, room, kMostLaunches}));
    Sets made;
    auto memory = CudaBuffer::make(count * bytes, kFilling);
    if (!memory) return memory.refusal();
    made.memory_ = *memory;
    if (like.groups) {
      if (auto r = made.take_lengths(like, lengths)) return *r;
    }
    auto* at = static_cast<std::byte*>(made.memory_->data());
    for (std::int64_t i = 0; i < count; ++i, at += bytes) {
      GemmOperands set = like;
      const auto tensors = tensors_of(set);
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        if (layout.begin[t] >= 0) tensors[t]->data = at + layout.begin[t];
      }
      // In place stays in place.
      if (like.c.data != nullptr && like.c.data == like.d.data) set.c.data = set.d.data;
      if (set.groups) set.groups->offsets = made.offsets_->data();
      if (set.is_by_index()) {
        set.groups->rows = static_cast<const std::int32_t*>(made.index_->data());
      }
      made.all.push_back(set);
    }
    return made;
  }

  std::vector<GemmOperands> all;

 private:
  std::optional<Refusal> take_lengths(const GemmOperands& like,
                                      const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> wide(1, 0);
    for (const std::int64_t length : lengths) wide.push_back(wide.back() + length);
    const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
    const bool is_wide = like.groups->type == OffsetType::int64;
    const void* const from = is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
    const auto bytes = static_cast<std::int64_t>(wide.size()) * (is_wide ? 8 : 4);
    auto memory = CudaBuffer::make(bytes);
    if (!memory) return memory.refusal();
    offsets_ = *memory;
    if (auto r = offsets_->from_host(from, bytes)) return r;
    return like.is_by_index() ? take_index(like) : std::nullopt;
  }

  // Tokens as a router sends them: rows side by side are of tokens that lie apart.
  std::optional<Refusal> take_index(const GemmOperands& like) {
    constexpr std::int64_t step = 7919;  // a prime
    const std::int64_t slots = std::max<std::int64_t>(1, like.a.rows * like.groups->rows_divisor);
    std::vector<std::int32_t> index;
    for (std::int64_t r = 0; r < like.m(); ++r) {
      index.push_back(static_cast<std::int32_t>(r * step % slots));
    }
    const std::int64_t bytes = 4 * like.m();
    auto memory = CudaBuffer::make(bytes);
    if (!memory) return memory.refusal();
    index_ = *memory;
    return index_->from_host(index.data(), bytes);
  }

  std::shared_ptr<CudaBuffer> memory_;
  std::shared_ptr<CudaBuffer> offsets_;
  std::shared_ptr<CudaBuffer> index_;
};

// A plan with its memory, and its graph of several launches.
struct Contender {
  const Plan* plan;
  Workspace workspace;
  Graph graph;
};

std::optional<Refusal> start(Contender& c, const Sets& sets, std::int64_t number,
                             cudaStream_t stream) {
  const auto set = static_cast<std::size_t>(number) % sets.all.size();
  return launch_matched(*c.plan, sets.all[set], c.workspace, stream, {});
}

std::optional<Refusal> capture(Contender& c, const Sets& sets, std::int64_t launches,
                               cudaStream_t stream) {
  if (auto r = cuda_refusal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
                            "starting a capture")) {
    return r;
  }
  std::optional<Refusal> refused;
  for (std::int64_t i = 0; i < launches && !refused; ++i) refused = start(c, sets, i, stream);
  Owned<cudaGraph_t, cudaGraphDestroy> graph;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph.handle);
  if (refused) return refused;
  if (auto r = cuda_refusal(ended, "ending a capture")) return r;
  return cuda_refusal(cudaGraphInstantiate(&c.graph.handle, graph.handle, 0), "making a graph");
}

// Milliseconds between two events around `work`, of which it waits for the end.
template <class Work>
Result<double> timed(const Event& begin, const Event& end, cudaStream_t stream, const Work& work) {
  float ms = 0;
  cudaError_t error = cudaEventRecord(begin.handle, stream);
  if (error == cudaSuccess) {
    if (std::optional<Refusal> r = work()) return *r;
    error = cudaEventRecord(end.handle, stream);
  }
  if (error == cudaSuccess) error = cudaEventSynchronize(end.handle);
  if (error == cudaSuccess) error = cudaEventElapsedTime(&ms, begin.handle, end.handle);
  if (auto r = cuda_refusal(error, "timing")) return *r;
  return static_cast<double>(ms);
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

// Launches a round: whole turns round the sets, long enough to be timed.
std::int64_t launches_for(double seconds, std::size_t sets) {
  const auto turn = static_cast<std::int64_t>(sets);
  const auto wanted =
      std::min<double>(std::ceil(kRoundSeconds / seconds), static_cast<double>(kMostLaunches));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted) / turn) * turn;
}

}  // namespace

Result<std::vector<double>> measure_plans(const std::vector<Plan>& plans, const GemmOperands& like,
                                          const std::vector<std::int64_t>& lengths) {
  const RelaxedCapture relaxed;
  if (plans.empty()) return std::vector<double>();
  auto sets = Sets::make(like, lengths, plans.front().device.l2_bytes);
  if (!sets) return sets.refusal();
  Stream stream;
  Event begin;
  Event end;
  for (const cudaError_t error : {cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking),
                                  cudaEventCreate(&begin.handle), cudaEventCreate(&end.handle)}) {
    if (auto r = cuda_refusal(error, "making a stream")) return *r;
  }
  std::vector<Contender> contenders;
  double slowest = 0;  // seconds of a launch, roughly
  for (const Plan& plan : plans) {
    auto workspace = Workspace::make(plan);
    if (!workspace) return workspace.refusal();
    contenders.push_back({&plan, std::move(*workspace), {}});
    Contender& c = contenders.back();
    if (auto r = prepare(plan, c.workspace, stream.handle)) return *r;
    if (auto r = start(c, *sets, 0, stream.handle)) return *r;  // warm
    const auto ms =
        timed(begin, end, stream.handle, [&] { return start(c, *sets, 1, stream.handle); });
    if (!ms) return ms.refusal();
    slowest = std::max(slowest, std::max(*ms, 1e-3) * 1e-3);
  }
  const std::int64_t launches = launches_for(slowest, sets->all.size());
  for (Contender& c : contenders) {
    if (auto r = capture(c, *sets, launches, stream.handle)) return *r;
  }
  std::vector<std::vector<double>> times(contenders.size());
  for (int round = 0; round <= kRounds; ++round) {  // the first one warms
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t who = (static_cast<std::size_t>(round) + turn) % contenders.size();
      const auto ms = timed(begin, end, stream.handle, [&] {
        return cuda_refusal(cudaGraphLaunch(contenders[who].graph.handle, stream.handle),
                            "replaying a graph");
      });
      if (!ms) return ms.refusal();
      if (round > 0) times[who].push_back(*ms * 1e3 / static_cast<double>(launches));
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& each : times) medians.push_back(median(each));
  return medians;
}

}  // namespace warpwright::device
