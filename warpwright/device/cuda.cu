// CUDA devices: facts, tensor maps, launches.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/device/build.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/cuda_kernels.h"
#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/launch_parts.h"
#include "warpwright/facts/machines.h"
#include "warpwright/isa/bounded_wait.h"
#include "warpwright/plan/moe/moe_grids.h"

namespace warpwright::device {

namespace {

std::string cuda_text(cudaError_t error) {
  int driver = 0;  // stays so where there is none
  if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
      driver == 0) {
    return "no NVIDIA driver here";
  }
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

std::optional<Refusal> failed(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return std::nullopt;
  cudaGetLastError();  // a later call must not report this one again
  return refuse(RefusalCode::device_error, what, " failed: ", cuda_text(error));
}

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// The driver's encoder, without linking libcuda.
EncodeTiled encoder() {
  static const EncodeTiled function = [] {
    void* pointer = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &pointer, 12000,
                                         cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess) {
      cudaGetLastError();
      return static_cast<EncodeTiled>(nullptr);
    }
    return reinterpret_cast<EncodeTiled>(pointer);
  }();
  return function;
}

CUtensorMapDataType map_type(const MapRequest& r) {
  switch (r.dtype) {
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::e2m1:
    case DType::s4:
      return r.padded ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
                      : CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
    case DType::e2m3:
    case DType::e3m2:
      return CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;  // 8-bit floats: a copy does not look inside
  }
}

CUtensorMapSwizzle map_swizzle(atom::SmemSwizzle swizzle) {
  switch (swizzle) {
    case atom::SmemSwizzle::b128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    case atom::SmemSwizzle::b64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case atom::SmemSwizzle::b32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case atom::SmemSwizzle::none:
      break;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

static_assert(sizeof(CUtensorMap) == sizeof(isa::TensorMap));

isa::TensorMap encode_by_driver(const MapRequest& r) {
  const EncodeTiled function = encoder();
  if (function == nullptr) {
    throw EncodeFailure{"the CUDA driver has no tensor maps; one for CUDA 12.0 or newer is needed"};
  }
  std::array<cuuint64_t, 4> extents{};
  std::array<cuuint64_t, 3> strides{};
  std::array<cuuint32_t, 4> box{};
  const std::array<cuuint32_t, 4> steps = {1, 1, 1, 1};
  for (int d = 0; d < r.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    extents[at] = static_cast<cuuint64_t>(r.extent(d));
    box[at] = static_cast<cuuint32_t>(r.box(d));
    if (d > 0) strides[at - 1] = static_cast<cuuint64_t>(r.stride(d) * numeric::bits(r.dtype) / 8);
  }
  CUtensorMap map;
  const CUresult result =
      function(&map, map_type(r), static_cast<cuuint32_t>(r.rank()), const_cast<void*>(r.base),
               extents.data(), strides.data(), box.data(), steps.data(),
               CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(r.swizzle),
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw EncodeFailure{std::string("the driver refused the tensor map of ") + r.tensor +
                        " (CUresult " + std::to_string(static_cast<int>(result)) + ")"};
  }
  isa::TensorMap out;
  std::memcpy(out.opaque, &map, sizeof out.opaque);
  return out;
}

// Encoding takes the driver about as long as the rest of a launch's preparation, and a map is a
// function only of its request: every thread keeps those of its last launches, at a place that the
// address chooses (a model's layers and their buffers come round again and again).
const isa::TensorMap& encode(const MapRequest& r) {
  struct Kept {
    MapRequest request;
    isa::TensorMap map;
  };
  constexpr std::size_t places = 512;
  thread_local std::vector<Kept> kept(places);
  const auto address = reinterpret_cast<std::uintptr_t>(r.base);
  const std::uint64_t mixed = (address ^ static_cast<std::uint64_t>(r.outer) << 40 ^
                               static_cast<std::uint64_t>(r.box_inner + 4 * r.box_outer)) *
                              0x9E3779B97F4A7C15U;
  Kept& place = kept[mixed >> 55];
  if (!(place.request == r)) {
    place.map = encode_by_driver(r);
    place.request = r;
  }
  return place.map;
}

// Asks the runtime how many clusters of 2 to 16 CTAs of a kernel that fills an SM run
// together on the current device; none where no kernel is built for it.
std::array<int, 17> count_resident_clusters(int major) {
  std::array<int, 17> counts{};
  const std::vector<CudaKernel>& all = cuda_kernels();
  const auto first =
      std::find_if(all.begin(), all.end(), [&](const CudaKernel& k) { return k.major == major; });
  if (first == all.end()) return counts;
  const void* function = first->function;
  const int bytes = first->shared_bytes;
  cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  for (std::size_t size = 2; size < counts.size(); ++size) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(size);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(size));
    config.blockDim = dim3(static_cast<unsigned>(first->threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
    config.attrs = &attribute;
    config.numAttrs = 1;
    if (cudaOccupancyMaxActiveClusters(&counts[size], function, &config) != cudaSuccess) {
      counts[size] = 0;
    }
  }
  cudaGetLastError();
  return counts;
}

// Leaves the current device as it was.
DeviceFacts facts_of(int index) {
  int current = 0;
  cudaGetDevice(&current);
  cudaSetDevice(index);
  cudaDeviceProp prop{};
  cudaGetDeviceProperties(&prop, index);
  int clock_khz = 0;
  int memory_khz = 0;
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index);
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, index);
  DeviceFacts f;
  // A device whose card is known has its rates from its description; the rest comes from the
  // runtime.
  const std::string name = prop.name;
  if (const MachineNumbers* const known = machine_of_card(name)) f = *known_facts(known->name);
  f.name = "cuda:" + std::to_string(index) + " " + name;
  // What plans ask is what the code that runs there can do.
  const int own = prop.major * 10 + prop.minor;
  f.architecture = code_architecture(own);
  if (f.architecture != own) f.name += ", code for sm_" + std::to_string(f.architecture);
  f.sms = prop.multiProcessorCount;
  f.shared_bytes_per_cta = static_cast<std::int64_t>(prop.sharedMemPerBlockOptin);
  f.l2_bytes = prop.l2CacheSize;
  f.memory_bytes = static_cast<std::int64_t>(prop.totalGlobalMem);
  f.clock_hz = clock_khz * 1e3;
  if (f.memory_bytes_per_second == 0) {
    f.memory_bytes_per_second = 2.0 * memory_khz * 1e3 * prop.memoryBusWidth / 8;
  }
  estimate_roofs(f);
  f.resident_clusters = count_resident_clusters(f.architecture / 10);
  cudaSetDevice(current);
  return f;
}

// Mapped host memory for the bounded waits, made when first asked for.
isa::WaitReport* wait_report() {
  static isa::WaitReport* report = [] {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, sizeof(isa::WaitReport), cudaHostAllocMapped) != cudaSuccess) {
      cudaGetLastError();
      return static_cast<isa::WaitReport*>(nullptr);
    }
    std::memset(memory, 0, sizeof(isa::WaitReport));
    return static_cast<isa::WaitReport*>(memory);
  }();
  return report;
}

// The kernel that this thread launched last, to name the part a hanging warp plays.
thread_local const KernelFacts* launched = nullptr;

// Why a kernel hung, where its bounded waits said so.
std::optional<Refusal> hang() {
  const isa::WaitReport* r = bounds_waits ? wait_report() : nullptr;
  if (r == nullptr || r->complete == 0) return std::nullopt;
  const std::string role = launched != nullptr ? launched->role_of_warp(r->warp) : "a warp";
  return refuse(RefusalCode::device_error, "the kernel hung: ", role, " (warp ", r->warp, ", lane ",
                r->lane, ") of CTA ", r->cta, " (rank ", r->cluster_rank,
                ") waited too long for mbarrier ", r->name, "[", r->index, "], phase parity ",
                r->parity, ", at line ", r->line);
}

isa::TensorMap encode_kept(const MapRequest& request) {
  return encode(request);
}

std::optional<Refusal> clear(void* memory, std::int64_t bytes, cudaStream_t stream,
                             const char* what) {
  return cuda_refusal(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), stream), what);
}

// Puts the grids on the stream, each dependent on the one before it: that lets it start early, and
// it waits itself, which code for architectures before sm_90 cannot. The one that multiplies is
// `product`'s, where there is one.
std::optional<Refusal> start(LaunchGrids& grids, const DeviceFacts& device, int architecture,
                             const Plan* product, cudaStream_t stream, bool dependent) {
  const bool waits = device.architecture >= 90;
  std::array<const CudaKernel*, 4> kernels{};
  for (int i = 0; i < grids.count; ++i) {
    const std::string_view name = grids.grids[i].kernel;
    if (auto r = load_kernel(name, architecture, kernels[i])) return r;
  }
  for (int i = 0; i < grids.count; ++i) {
    Grid& grid = grids.grids[i];
    const cudaError_t error = start_grid(
        {kernels[i]->function, grid.ctas, grid.threads, grid.shared_bytes,
         grid.in_clusters ? grid.cluster_size : 0, waits && (dependent || i > 0), stream},
        grid.params.data());
    if (error != cudaSuccess) {
      return cuda_refusal(
          error, "launching " + (grid.multiplies && product != nullptr ? product->name()
                                                                       : std::string(grid.kernel)));
    }
  }
  return std::nullopt;
}

std::optional<Refusal> launch_here(const Plan& plan, const GemmOperands& operands,
                                   Workspace& workspace, void* stream,
                                   const LaunchOptions& options) {
  auto* const in = static_cast<cudaStream_t>(stream);
  if (plan.ctas == 0) {
    if (!options.check_offsets) return std::nullopt;
    return clear(static_cast<std::byte*>(workspace.data()) + plan.flag_bytes, status_bytes, in,
                 "clearing the status of the offsets");
  }
  LaunchGrids grids;
  try {
    bind_launch(plan, operands, {workspace.data(), options.check_offsets, options.zero_rest},
                encode_kept, grids);
  } catch (const EncodeFailure& failure) {
    return refuse(RefusalCode::device_error, failure.sentence);
  }
  bool clears = false;
  if (plan.workspace_bytes > 0 && workspace.data() != nullptr) {
    clears = workspace.note_launch(plan, is_captured(in), options.check_offsets) ==
             Workspace::Flags::clear_first;
  }
  std::optional<Refusal> refused;
  if (clears) refused = clear(workspace.data(), plan.flag_bytes, in, "clearing the flags");
  if constexpr (bounds_waits) launched = &plan.facts();
  if (!refused) {
    refused = start(grids, plan.device, plan.facts().architecture, &plan, in, options.dependent);
  }
  if (refused) workspace.forget();
  return refused;
}

// Loads a plan's kernels.
std::optional<Refusal> load_kernels(const Plan& plan) {
  const CudaKernel* kernel = nullptr;
  if (auto r = load_kernel(plan.kernel, plan.facts().architecture, kernel)) return r;
  if (plan.problem.groups) {
    if (auto r = load_kernel(zero_rows_kernel, plan.facts().architecture, kernel)) return r;
  }
  if (plan.problem.is_by_index()) {
    if (auto r = load_kernel(check_rows_kernel, plan.facts().architecture, kernel)) return r;
  }
  if (plan.a_copy || plan.b_copy) {
    if (auto r = load_kernel(copy_rows_kernel, plan.facts().architecture, kernel)) return r;
  }
  return std::nullopt;
}

std::optional<Refusal> prepare_here(const Plan& plan, Workspace& workspace, void* stream) {
  if (auto r = load_kernels(plan)) return r;
  if (plan.flag_bytes == 0 || workspace.data() == nullptr) return std::nullopt;
  auto* const in = static_cast<cudaStream_t>(stream);
  if (auto r = clear(workspace.data(), plan.flag_bytes, in, "clearing the flags")) return r;
  if (!is_captured(in)) workspace.note_cleared(plan.flag_bytes);
  return std::nullopt;
}

Result<std::shared_ptr<void>> allocate_here(std::int64_t bytes) {
  auto buffer = CudaBuffer::make(bytes);
  if (!buffer) return buffer.refusal();
  std::shared_ptr<CudaBuffer> owner = *buffer;
  return std::shared_ptr<void>(owner, owner->data());
}

std::optional<Refusal> clear_here(void* memory, std::int64_t bytes, void* stream) {
  return clear(memory, bytes, static_cast<cudaStream_t>(stream), "clearing the flags");
}

std::optional<Refusal> launch_mixture_here(const MixturePlan& plan, const MixtureOperands& operands,
                                           void* workspace, bool clears, void* stream,
                                           const MixtureLaunchOptions& options) {
  MixtureGrids all;
  try {
    bind_mixture(plan, operands, workspace, encode_kept, all, options.only.has_value());
  } catch (const EncodeFailure& failure) {
    return refuse(RefusalCode::device_error, failure.sentence);
  }
  if (clears) {
    if (auto r = clear_here(workspace, plan.flag_bytes(), stream)) return r;
  }
  for (int i = 0; i < all.count; ++i) {
    MixtureStepGrids& step = all.steps[static_cast<std::size_t>(i)];
    if (options.only && step.row->step != *options.only) continue;
    if (bounds_waits) launched = step.product != nullptr ? &step.product->facts() : nullptr;
    if (auto r = start(step.grids, plan.device, plan.device.architecture, step.product,
                       static_cast<cudaStream_t>(stream),
                       options.dependent || (i > 0 && !options.only))) {
      return r;
    }
  }
  return std::nullopt;
}

std::optional<Refusal> prepare_mixture_here(const MixturePlan& plan) {
  const CudaKernel* kernel = nullptr;
  for (const StepRow& row : rows_of(plan)) {
    auto refused = row.product != nullptr
                       ? load_kernels(plan.*row.product->plan)
                       : load_kernel(row.kernel, plan.device.architecture, kernel);
    if (refused) return refused;
  }
  return std::nullopt;
}

Result<std::uint32_t> read_word_here(const void* word, void* stream) {
  auto* const in = static_cast<cudaStream_t>(stream);
  std::uint32_t read = 0;
  const char* const what = "reading the status of the offsets";
  if (auto r =
          failed(cudaMemcpyAsync(&read, word, sizeof read, cudaMemcpyDeviceToHost, in), what)) {
    return *r;
  }
  if (auto r = synchronise_stream(stream)) return *r;
  return read;
}

}  // namespace

std::optional<Refusal> cuda_refusal(cudaError_t error, const std::string& what) {
  return failed(error, what);
}

cudaError_t watch_waits(WatchWaits watch) {
  if (!bounds_waits || watch == nullptr) return cudaSuccess;
  return watch(wait_report());
}

const Backend& cuda_backend() {
  static const Backend backend = {launch_here,    prepare_here,        allocate_here,
                                  read_word_here, launch_mixture_here, prepare_mixture_here,
                                  clear_here};
  return backend;
}

bool built_with_cuda() {
  return true;
}

std::vector<DeviceFacts> cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::vector<DeviceFacts> facts;
  for (int i = 0; i < count; ++i) facts.push_back(facts_of(i));
  return facts;
}

Result<DeviceFacts> cuda_device(int index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    return refuse(RefusalCode::no_device, "there is no CUDA device here",
                  (error != cudaSuccess ? " (" + cuda_text(error) + ")" : std::string()));
  }
  if (index < 0 || index >= count) {
    return refuse(RefusalCode::no_device, "there is no CUDA device ", index, "; ",
                  as_rule("there are 0 to ", count - 1));
  }
  return facts_of(index);
}

std::optional<Refusal> use_cuda_device(int index) {
  return failed(cudaSetDevice(index), "choosing CUDA device " + std::to_string(index));
}

int current_cuda_device() {
  int index = -1;
  if (cudaGetDevice(&index) != cudaSuccess) cudaGetLastError();
  return index;
}

std::optional<Refusal> stream_fault(void* stream, int index) {
  auto* const given = static_cast<cudaStream_t>(stream);
  if (given == nullptr || given == cudaStreamLegacy || given == cudaStreamPerThread) {
    return std::nullopt;
  }
  int device = -1;
  if (auto r = failed(cudaStreamGetDevice(given, &device), "asking for the stream's device")) {
    return r;
  }
  if (device == index) return std::nullopt;
  return refuse(RefusalCode::wrong_device, "the stream is of CUDA device ", device,
                " and the tensors lie on device ", index, ": the nearest is ",
                as_nearest("a stream of device ", index));
}

bool is_captured(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status) != cudaSuccess) {
    cudaGetLastError();
  }
  return status == cudaStreamCaptureStatusActive;
}

std::optional<Refusal> synchronise_stream(void* stream) {
  return failed(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the kernel");
}

std::optional<Refusal> synchronise_cuda() {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) return std::nullopt;
  if (auto r = hang()) return r;
  return failed(error, "the kernel");
}

std::optional<Refusal> copy_to_host(void* to, const void* from, std::int64_t bytes) {
  return failed(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost),
                "copying from the GPU");
}

CudaBuffer::CudaBuffer(CudaBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

CudaBuffer& CudaBuffer::operator=(CudaBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CudaBuffer::~CudaBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

Result<std::shared_ptr<CudaBuffer>> CudaBuffer::make(std::int64_t bytes, int poison) {
  auto buffer = std::make_shared<CudaBuffer>();
  const std::size_t size = bytes > 0 ? static_cast<std::size_t>(bytes) : 1;
  if (cudaMalloc(&buffer->data_, size) != cudaSuccess) {
    cudaGetLastError();
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    return refuse(RefusalCode::out_of_memory, "the GPU has no memory for ", bytes, " more bytes; ",
                  as_rule(free, " of ", total, " are free"));
  }
  buffer->bytes_ = bytes;
  if (auto r = buffer->fill(poison)) return *r;
  return buffer;
}

std::optional<Refusal> CudaBuffer::fill(int byte) {
  const auto size = static_cast<std::size_t>(bytes_);
  // A stream that does not wait for the default one may use it at once.
  if (auto r = failed(cudaMemset(data_, byte, size), "filling device memory")) return r;
  return failed(cudaStreamSynchronize(nullptr), "filling device memory");
}

std::optional<Refusal> CudaBuffer::from_host(const void* data, std::int64_t bytes) {
  return failed(cudaMemcpy(data_, data, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice),
                "copying to the GPU");
}

std::optional<Refusal> CudaBuffer::to_host(void* data, std::int64_t bytes) const {
  return copy_to_host(data, data_, bytes);
}

}  // namespace warpwright::device
