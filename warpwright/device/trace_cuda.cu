// Reads the rings that kernels built with WARPWRIGHT_TRACE write (isa/trace.h) and makes them the
// same event stream as the model's.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "warpwright/device/cuda_kernels.h"
#include "warpwright/device/trace_cuda.h"
#include "warpwright/isa/trace.h"

namespace warpwright::device {

namespace {

RecordInto record_of(const std::string& kernel) {
  const CudaKernel* found = cuda_kernel(kernel);
  return found == nullptr ? nullptr : found->record;
}

std::optional<Refusal> failed(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return std::nullopt;
  cudaGetLastError();
  return refuse(RefusalCode::device_error, what, " failed: ", cudaGetErrorName(error), " (",
                cudaGetErrorString(error), ")");
}

constexpr int label_bytes = 64;

// String literals of device code lie in the kernel's module: only device code can read them.
__global__ void read_labels(const char* const* labels, int count, char* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  char* to = out + i * label_bytes;
  int n = 0;
  for (; n + 1 < label_bytes && labels[i][n] != '\0'; ++n) to[n] = labels[i][n];
  to[n] = '\0';
}

struct Ring {
  isa::TraceRing head;
  std::vector<isa::TraceRecord> records;  // oldest first
};

}  // namespace

struct CudaTrace::State {
  RecordInto hand = nullptr;
  isa::TraceBuffer buffer;
  int ctas = 0;
  double clock_hz = 1e9;

  ~State() {
    if (hand != nullptr) hand({});
    cudaFree(buffer.rings);
    cudaFree(buffer.records);
  }
  [[nodiscard]] std::optional<Refusal> read(std::vector<Ring>& rings) const;
};

CudaTrace::CudaTrace() : state_(std::make_unique<State>()) {}
CudaTrace::~CudaTrace() = default;

bool built_with_trace() {
  return true;
}

Result<std::shared_ptr<CudaTrace>> CudaTrace::start(const Plan& plan) {
  auto recording = std::make_shared<CudaTrace>();
  State& s = *recording->state_;
  if (plan.ctas == 0) return recording;
  s.ctas = plan.ctas;
  if (plan.device.clock_hz > 0) s.clock_hz = plan.device.clock_hz;
  s.buffer.warps = plan.facts().threads / 32;
  const std::size_t rings = static_cast<std::size_t>(s.ctas) * s.buffer.warps;
  if (auto r = failed(cudaMalloc(&s.buffer.rings, rings * sizeof(isa::TraceRing)),
                      "taking memory for the recording")) {
    return *r;
  }
  if (auto r = failed(
          cudaMalloc(&s.buffer.records, rings * isa::trace_ring_records * sizeof(isa::TraceRecord)),
          "taking memory for the recording")) {
    return *r;
  }
  if (auto r = failed(cudaMemset(s.buffer.rings, 0, rings * sizeof(isa::TraceRing)),
                      "preparing the recording")) {
    return *r;
  }
  s.hand = record_of(plan.kernel);
  if (s.hand == nullptr) {
    return refuse(RefusalCode::no_kernel, "the plan's kernel is not among those of this build");
  }
  if (auto r = failed(s.hand(s.buffer), "starting the recording")) return *r;
  return recording;
}

std::optional<Refusal> CudaTrace::State::read(std::vector<Ring>& rings) const {
  std::vector<isa::TraceRing> heads(static_cast<std::size_t>(ctas) * buffer.warps);
  if (auto r = failed(cudaMemcpy(heads.data(), buffer.rings, heads.size() * sizeof heads[0],
                                 cudaMemcpyDeviceToHost),
                      "reading the recording")) {
    return r;
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Ring ring{heads[i], {}};
    const auto kept = std::min<std::uint64_t>(heads[i].written, isa::trace_ring_records);
    ring.records.resize(kept);
    if (kept > 0) {
      if (auto r =
              failed(cudaMemcpy(ring.records.data(), buffer.records + i * isa::trace_ring_records,
                                kept * sizeof(isa::TraceRecord), cudaMemcpyDeviceToHost),
                     "reading the recording")) {
        return r;
      }
      if (kept == isa::trace_ring_records) {
        std::rotate(ring.records.begin(),
                    ring.records.begin() +
                        static_cast<std::ptrdiff_t>(heads[i].written % isa::trace_ring_records),
                    ring.records.end());
      }
    }
    rings.push_back(std::move(ring));
  }
  return std::nullopt;
}

namespace {

// The texts of all labels and roles by their device addresses.
Result<std::map<const char*, std::string>> read_texts(const std::vector<Ring>& rings) {
  std::set<const char*> wanted;
  for (const Ring& ring : rings) {
    if (ring.head.role != nullptr) wanted.insert(ring.head.role);
    for (const isa::TraceRecord& r : ring.records) {
      if (r.label != nullptr) wanted.insert(r.label);
    }
  }
  const std::vector<const char*> labels(wanted.begin(), wanted.end());
  std::vector<char> chars(labels.size() * label_bytes);
  std::map<const char*, std::string> texts;
  if (labels.empty()) return texts;
  const char** there = nullptr;
  char* out = nullptr;
  cudaError_t error = cudaMalloc(&there, labels.size() * sizeof labels[0]);
  if (error == cudaSuccess) error = cudaMalloc(&out, chars.size());
  if (error == cudaSuccess) {
    error =
        cudaMemcpy(there, labels.data(), labels.size() * sizeof labels[0], cudaMemcpyHostToDevice);
  }
  if (error == cudaSuccess) {
    const int count = static_cast<int>(labels.size());
    read_labels<<<(count + 127) / 128, 128>>>(there, count, out);
    error = cudaMemcpy(chars.data(), out, chars.size(), cudaMemcpyDeviceToHost);
  }
  cudaFree(there);
  cudaFree(out);
  if (auto r = failed(error, "reading the labels of the recording")) return *r;
  for (std::size_t i = 0; i < labels.size(); ++i) texts[labels[i]] = &chars[i * label_bytes];
  return texts;
}

// Nanoseconds a tick of clock64, from all rings that ran long enough to tell.
double nanoseconds_per_tick(const std::vector<Ring>& rings, double clock_hz) {
  double ticks = 0;
  double nanoseconds = 0;
  for (const Ring& ring : rings) {
    const double spent =
        static_cast<double>(ring.head.last_nanoseconds - ring.head.first_nanoseconds);
    if (spent < 20e3) continue;  // globaltimer may advance in steps of a microsecond
    nanoseconds += spent;
    ticks += static_cast<double>(ring.head.last_clock - ring.head.first_clock);
  }
  return ticks > 0 ? nanoseconds / ticks : 1e9 / clock_hz;
}

}  // namespace

Result<model::Trace> CudaTrace::finish() {
  State& s = *state_;
  model::TraceBuilder builder;
  if (auto r = failed(cudaDeviceSynchronize(), "the recorded kernel")) return *r;
  std::vector<Ring> rings;
  if (s.ctas > 0) {
    if (auto r = s.read(rings)) return *r;
  }
  const auto texts = read_texts(rings);
  if (!texts) return texts.refusal();
  const auto text = [&](const char* at) {
    const auto found = texts->find(at);
    return found == texts->end() ? std::string("?") : found->second;
  };

  // clock64 counts an SM's own cycles. Warps of a CTA share it; CTAs are placed beside each other
  // by the earliest globaltimer reading of each.
  const double rate = nanoseconds_per_tick(rings, s.clock_hz);
  struct Origin {
    std::int64_t clock = 0;
    std::int64_t nanoseconds = 0;
    bool set = false;
  };
  std::vector<Origin> origins(static_cast<std::size_t>(s.ctas));
  std::int64_t start = -1;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const isa::TraceRing& head = rings[i].head;
    if (head.written == 0) continue;
    Origin& o = origins[i / s.buffer.warps];
    if (!o.set || head.first_clock < o.clock) o = {head.first_clock, head.first_nanoseconds, true};
    if (start < 0 || head.first_nanoseconds < start) start = head.first_nanoseconds;
  }
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const Ring& ring = rings[i];
    if (ring.head.written == 0) continue;
    const int cta = static_cast<int>(i) / s.buffer.warps;
    const Origin& o = origins[static_cast<std::size_t>(cta)];
    const int warp = static_cast<int>(i) % s.buffer.warps;
    const int track =
        builder.add_track(model::TraceTrack::Kind::role, cta,
                          ring.head.role == nullptr ? "thread" : text(ring.head.role), 32 * warp);
    builder.track(track).sm = ring.head.sm;
    builder.track(track).dropped =
        static_cast<std::int64_t>(ring.head.written - ring.records.size());
    for (const isa::TraceRecord& r : ring.records) {
      const std::int64_t time =
          o.nanoseconds - start +
          static_cast<std::int64_t>(static_cast<double>(r.clock - o.clock) * rate);
      switch (r.kind) {
        case isa::TraceRecord::begin:
          builder.begin(track, time, model::label_text(text(r.label), r.a, r.b, r.c));
          break;
        case isa::TraceRecord::begin_wait:
          builder.begin(track, time, "wait " + text(r.label) + "[" + std::to_string(r.a) + "]");
          break;
        case isa::TraceRecord::end:
          builder.end(track, time);
          break;
        default:
          builder.instant(track, time, model::label_text(text(r.label), r.a, r.b, r.c));
      }
    }
  }
  model::Trace trace = builder.finish();
  trace.clock = "nanoseconds";
  trace.measured = true;
  state_ = std::make_unique<State>();
  return trace;
}

}  // namespace warpwright::device
