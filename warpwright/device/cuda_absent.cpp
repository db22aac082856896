// The CUDA devices of a build without the CUDA side: none, and every function says why. CMake takes
// this file instead of the .cu files.
#include "warpwright/device/cuda.h"
#include "warpwright/device/launch_parts.h"
#include "warpwright/device/measure.h"
#include "warpwright/device/pack.h"
#include "warpwright/device/quantise.h"
#include "warpwright/device/sort_slots.h"

#include <utility>

namespace warpwright::device {
namespace {

Refusal absent() {
  return {RefusalCode::no_device,
          "this build has no CUDA side; " + as_rule("a build with nvcc 13.0 or newer has it")};
}

// Any function of a Backend.
template <class R, class... Arguments>
R refuse_all(Arguments...) {
  return absent();
}

}  // namespace

const Backend& cuda_backend() {
  static const Backend backend = {refuse_all, refuse_all, refuse_all, refuse_all,
                                  refuse_all, refuse_all, refuse_all};
  return backend;
}

bool built_with_cuda() {
  return false;
}
std::vector<DeviceFacts> cuda_devices() {
  return {};
}
Result<DeviceFacts> cuda_device(int /*index*/) {
  return absent();
}
std::optional<Refusal> synchronise_cuda() {
  return absent();
}
std::optional<Refusal> use_cuda_device(int /*index*/) {
  return absent();
}
std::optional<Refusal> copy_to_host(void* /*to*/, const void* /*from*/, std::int64_t /*bytes*/) {
  return absent();
}
std::optional<Refusal> quantise_on_cuda(const Quantisation& what, void* /*stream*/) {
  if (auto r = fault(what)) return r;
  return absent();
}
std::optional<Refusal> reorder_scales_on_cuda(const ScaleReordering& what, void* /*stream*/) {
  if (auto r = fault(what)) return r;
  return absent();
}
std::optional<Refusal> sort_slots_on_cuda(const SlotSort& what, void* /*stream*/) {
  if (auto r = fault(what)) return r;
  return absent();
}
Result<WeightsThere> look_on_cuda(weights::Source /*source*/,
                                  const weights::PackOptions& /*options*/, void* /*stream*/) {
  return absent();
}
std::optional<Refusal> pack_on_cuda(const WeightsThere& /*weights*/, void* /*packed*/,
                                    void* /*stream*/) {
  return absent();
}
Result<std::vector<double>> measure_plans(const std::vector<Plan>& /*plans*/,
                                          const GemmOperands& /*like*/,
                                          const std::vector<std::int64_t>& /*lengths*/) {
  return absent();
}
int current_cuda_device() {
  return -1;
}
std::optional<Refusal> stream_fault(void* /*stream*/, int /*index*/) {
  return absent();
}
bool is_captured(void* /*stream*/) {
  return false;
}
std::optional<Refusal> synchronise_stream(void* /*stream*/) {
  return absent();
}

CudaBuffer::CudaBuffer(CudaBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
CudaBuffer& CudaBuffer::operator=(CudaBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
CudaBuffer::~CudaBuffer() = default;
Result<std::shared_ptr<CudaBuffer>> CudaBuffer::make(std::int64_t /*bytes*/, int /*poison*/) {
  return absent();
}
std::optional<Refusal> CudaBuffer::fill(int /*byte*/) {
  return absent();
}
std::optional<Refusal> CudaBuffer::from_host(const void* /*data*/, std::int64_t /*bytes*/) {
  return absent();
}
std::optional<Refusal> CudaBuffer::to_host(void* /*data*/, std::int64_t /*bytes*/) const {
  return absent();
}

}  // namespace warpwright::device
