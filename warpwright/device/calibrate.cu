// Probes for the numbers of a Hopper device. Each is a kernel on isa/ that leaves the clocks it
// took, or is timed from outside.
#include "warpwright/device/calibrate.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "warpwright/atom/descriptor.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/cuda_parts.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/wgmma.h"

namespace warpwright::device {
namespace {

constexpr int kBarrierBytes = 1024;  // in front of what a probe has in shared memory
constexpr int kGroups = 64;          // of eight wgmmas
constexpr int kPerGroup = 8;
constexpr int kTurns = 256;  // of barriers

struct ProbeParams {
  std::uint64_t* clocks;  // of each CTA
  std::byte* data;
  std::int64_t bytes;  // of `data` that a CTA's walk goes round in
  int chunk;           // bytes of a copy
  int stages;
  int count;  // copies of a CTA, or rounds
};

// --- tensor cores --------------------------------------------------------------------------------

// Values near 1 in bf16: power depends on them, so they differ.
WW_DEVICE void fill_operands(isa::SharedAddress base, int bytes) {
  const isa::SharedView<std::uint32_t> words{base};
  for (int i = isa::thread_index(); i < bytes / 4; i += static_cast<int>(blockDim.x)) {
    const std::uint32_t mixed = static_cast<std::uint32_t>(i) * 2654435761U;
    words.store(i, 0x3f803f80U ^ (mixed & 0x807f807fU));
  }
  isa::fence_proxy_async_shared();
  isa::sync_threads(static_cast<int>(blockDim.x));
}

// Groups of eight wgmmas with one wait a group, by every warpgroup of the CTA.
template <int N, bool FromRegisters>
__global__ void __launch_bounds__(256) wgmma_probe(const __grid_constant__ ProbeParams params) {
  constexpr auto k_major = atom::Major::k;
  constexpr atom::OperandTile a_tile{64, 64, 16, k_major, atom::SmemSwizzle::b128};
  constexpr atom::OperandTile b_tile{N, 64, 16, k_major, atom::SmemSwizzle::b128};
  const isa::SharedAddress base = isa::shared_base();
  const isa::SharedAddress b = base + 2 * 64 * 128;
  fill_operands(base, 2 * 64 * 128 + N * 128);
  const isa::SharedAddress a = base + isa::warp_index() / 4 * 64 * 128;
  isa::Fragment<float, N / 2> d;
  for (int i = 0; i < N / 2; ++i) d[i] = 0;
  isa::Fragment<std::uint32_t, 4> from;
  for (int i = 0; i < 4; ++i) from[i] = 0x3f803f80U;
  const std::uint64_t descriptor_a = atom::encode(atom::descriptor(a_tile, a));
  const std::uint64_t descriptor_b = atom::encode(atom::descriptor(b_tile, b));
  isa::sync_threads(static_cast<int>(blockDim.x));
  const long long begin = clock64();
  WW_NO_UNROLL for (int g = 0; g < params.count; ++g) {
    if constexpr (FromRegisters) {
      isa::wgmma_fence(d, from);
    } else {
      isa::wgmma_fence(d);
    }
    WW_UNROLL for (int i = 0; i < kPerGroup; ++i) {
      const std::uint64_t at_b = atom::advance(descriptor_b, atom::k_block_offset<b_tile>(i % 4));
      if constexpr (FromRegisters) {
        isa::wgmma_registers<DType::bf16, N>(d, from, at_b, true);
      } else {
        isa::wgmma<DType::bf16, N>(
            d, atom::advance(descriptor_a, atom::k_block_offset<a_tile>(i % 4)), at_b, true);
      }
    }
    isa::wgmma_commit();
    if constexpr (FromRegisters) {
      isa::wgmma_wait<0>(d, from);
    } else {
      isa::wgmma_wait<0>(d);
    }
  }
  const long long end = clock64();
  float sum = 0;
  for (int i = 0; i < N / 2; ++i) sum += d[i];
  // Never so; the sums count, so that nothing is left out.
  if (sum == 12345.0F) params.clocks[0] = 0;
  if (isa::thread_index() == 0) {
    params.clocks[isa::cta_index()] = static_cast<std::uint64_t>(end - begin);
  }
}

// --- copies --------------------------------------------------------------------------------------

// One thread keeps `stages` copies under way. CTAs read chunks in turn, round and round.
__global__ void __launch_bounds__(32) copy_probe(const __grid_constant__ ProbeParams params) {
  const isa::SharedAddress base = isa::shared_base();
  if (isa::thread_index() != 0) return;
  for (int s = 0; s < params.stages; ++s) isa::mbarrier_init(base + 8 * s, 1);
  isa::fence_mbarrier_init();
  const std::int64_t chunks = params.bytes / params.chunk;
  const auto start = [&](int i) {
    const int stage = i % params.stages;
    const std::int64_t at = (std::int64_t{i} * isa::cta_count() + isa::cta_index()) % chunks;
    isa::mbarrier_arrive_expect(base + 8 * stage, params.chunk);
    isa::bulk_load(base + kBarrierBytes + stage * params.chunk, params.data + at * params.chunk,
                   params.chunk, base + 8 * stage);
  };
  const long long begin = clock64();
  for (int i = 0; i < params.stages && i < params.count; ++i) start(i);
  WW_NO_UNROLL for (int i = 0; i < params.count; ++i) {
    isa::mbarrier_wait<isa::Scope::cta>(base + 8 * (i % params.stages), i / params.stages % 2);
    if (i + params.stages < params.count) start(i + params.stages);
  }
  params.clocks[isa::cta_index()] = static_cast<std::uint64_t>(clock64() - begin);
}

// All threads store 16 bytes at a time.
__global__ void __launch_bounds__(256) store_probe(const __grid_constant__ ProbeParams params) {
  const isa::GlobalView<isa::Words<4>> to{reinterpret_cast<isa::Words<4>*>(params.data)};
  const std::int64_t threads = std::int64_t{isa::cta_count()} * blockDim.x;
  const isa::Words<4> value{};
  for (std::int64_t i = std::int64_t{isa::cta_index()} * blockDim.x + isa::thread_index();
       i < params.bytes / 16; i += threads) {
    to.store(i, value);
  }
}

// --- barriers ------------------------------------------------------------------------------------

// Two warps that wait for each other by turns: an arrival and a wake-up each.
__global__ void __launch_bounds__(64) wake_probe(const __grid_constant__ ProbeParams params) {
  const isa::SharedAddress base = isa::shared_base();
  if (isa::thread_index() == 0) {
    isa::mbarrier_init(base, 1);
    isa::mbarrier_init(base + 8, 1);
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(64);
  if (isa::lane_index() != 0) return;
  const int me = isa::warp_index();
  const long long begin = clock64();
  WW_NO_UNROLL for (int i = 0; i < kTurns; ++i) {
    if (me == 0) {
      isa::mbarrier_arrive<isa::Scope::cta>(base);
      isa::mbarrier_wait<isa::Scope::cta>(base + 8, i % 2);
    } else {
      isa::mbarrier_wait<isa::Scope::cta>(base, i % 2);
      isa::mbarrier_arrive<isa::Scope::cta>(base + 8);
    }
  }
  if (me == 0) params.clocks[0] = static_cast<std::uint64_t>(clock64() - begin);
}

__global__ void __launch_bounds__(128) sync_probe(const __grid_constant__ ProbeParams params) {
  isa::sync_threads(128);
  const long long begin = clock64();
  WW_NO_UNROLL for (int i = 0; i < kTurns; ++i) isa::named_barrier_sync(1, 128);
  if (isa::thread_index() == 0) {
    params.clocks[0] = static_cast<std::uint64_t>(clock64() - begin);
  }
}

__global__ void __launch_bounds__(128) cluster_probe(const __grid_constant__ ProbeParams params) {
  isa::cluster_arrive();
  isa::cluster_wait();
  const long long begin = clock64();
  WW_NO_UNROLL for (int i = 0; i < kTurns; ++i) {
    isa::cluster_arrive();
    isa::cluster_wait();
  }
  if (isa::thread_index() == 0 && isa::cta_index() == 0) {
    params.clocks[0] = static_cast<std::uint64_t>(clock64() - begin);
  }
}

__global__ void empty_probe() {}

// --- the host's side -----------------------------------------------------------------------------

constexpr std::int64_t kMemory = std::int64_t{1} << 30;    // far beyond L2
constexpr std::int64_t kResident = std::int64_t{8} << 20;  // well within it
constexpr int kEmpty = 200;                                // launches of a graph

using Probe = void (*)(ProbeParams);

class Prober {
 public:
  Prober(int sms, int rounds) : sms_(sms), rounds_(rounds) {}
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  ~Prober() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  Result<std::vector<MeasuredNumber>> measured() {
    auto data = CudaBuffer::make(kMemory, 0);
    if (!data) return data.refusal();
    auto clocks = CudaBuffer::make(std::int64_t{8} * sms_, 0);
    if (!clocks) return clocks.refusal();
    data_ = static_cast<std::byte*>((*data)->data());
    clocks_ = static_cast<std::uint64_t*>((*clocks)->data());
    need(cudaStreamCreate(&stream_));
    need(cudaEventCreate(&begin_));
    need(cudaEventCreate(&end_));
    measure_tensor_cores();
    measure_copies();
    measure_barriers();
    measure_launches();
    if (error_ != cudaSuccess) return *cuda_refusal(error_, "calibrating");
    return std::move(all_);
  }

 private:
  void need(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }

  // Clocks of the slowest CTA, and seconds of the launch.
  struct Took {
    double clocks = 0;
    double seconds = 0;
  };
  Took run(Probe probe, ProbeParams params, int ctas, int threads, int shared, int cluster = 1) {
    params.clocks = clocks_;
    params.data = data_;
    if (error_ != cudaSuccess) return {};
    need(cudaFuncSetAttribute(reinterpret_cast<const void*>(probe),
                              cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3(static_cast<unsigned>(ctas));
    launch.blockDim = dim3(static_cast<unsigned>(threads));
    launch.dynamicSmemBytes = static_cast<std::size_t>(shared);
    launch.stream = stream_;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    need(cudaEventRecord(begin_, stream_));
    need(cudaLaunchKernelEx(&launch, probe, params));
    need(cudaEventRecord(end_, stream_));
    need(cudaEventSynchronize(end_));
    float milliseconds = 0;
    need(cudaEventElapsedTime(&milliseconds, begin_, end_));
    std::vector<std::uint64_t> each(static_cast<std::size_t>(std::min(ctas, sms_)));
    need(cudaMemcpy(each.data(), clocks_, 8 * each.size(), cudaMemcpyDeviceToHost));
    return {static_cast<double>(*std::max_element(each.begin(), each.end())), 1e-3 * milliseconds};
  }

  // `one` once for nothing, then as often as asked.
  void add(std::string name, int size, const char* how, const std::function<double()>& one) {
    MeasuredNumber number{std::move(name), size, how, {}};
    one();
    for (int i = 0; i < rounds_ && error_ == cudaSuccess; ++i) number.rounds.push_back(one());
    all_.push_back(std::move(number));
  }

  template <int N>
  void add_wgmma() {
    constexpr int shared = 1024 + 2 * 64 * 128 + N * 128;
    for (const bool registers : {false, true}) {
      for (const int warpgroups : {1, 2}) {
        const Probe probe = registers ? wgmma_probe<N, true> : wgmma_probe<N, false>;
        add(std::string("wgmma_") + (registers ? "registers" : "shared") +
                (warpgroups == 1 ? "_one" : "_more"),
            N, "64 groups of 8 wgmmas, one wait a group", [this, probe, warpgroups] {
              ProbeParams params{};
              params.count = kGroups;
              return run(probe, params, 1, 128 * warpgroups, shared).clocks /
                     (kGroups * kPerGroup * warpgroups);
            });
      }
    }
  }

  void measure_tensor_cores() {
    add_wgmma<8>();
    add_wgmma<16>();
    add_wgmma<32>();
    add_wgmma<64>();
    add_wgmma<128>();
    add_wgmma<256>();
    const auto rate = [this](int ctas, int groups) {
      ProbeParams params{};
      params.count = groups;
      const Took took =
          run(wgmma_probe<256, false>, params, ctas, 256, 1024 + 2 * 64 * 128 + 32768);
      return took.clocks / took.seconds;
    };
    // One SM leaves the clock as high as it goes; all of them, for a third of a second, do not.
    add("clock_hz", 0, "one SM multiplies", [&] { return rate(1, 20'000); });
    add("loaded_clock_hz", 0, "all SMs multiply for a third of a second",
        [&] { return rate(sms_, 230'000); });
  }

  void measure_copies() {
    const auto copies = [this](std::int64_t bytes, int chunk, int stages, int count, int ctas) {
      ProbeParams params{};
      params.bytes = bytes;
      params.chunk = chunk;
      params.stages = stages;
      params.count = count;
      return run(copy_probe, params, ctas, 32, kBarrierBytes + stages * chunk);
    };
    add("tma_load_clocks", 0, "bulk copies of 128 bytes one after the other, from L2",
        [&] { return copies(1 << 16, 128, 1, 512, 1).clocks / 512; });
    add("l2_miss_clocks", 0, "the same through 1 GiB, without the copy engine's own", [&] {
      // 4 KiB apart by the chunk's size, so that each one is a page of DRAM of its own.
      const double miss = copies(kMemory, 4096, 1, 4096, 1).clocks / 4096;
      return miss - copies(1 << 20, 4096, 1, 1024, 1).clocks / 1024 + l2_hit(copies);
    });
    add("tma_bytes_per_clock", 0, "one SM, a ring of 8 copies of 16 KiB, from L2",
        [&] { return 16384.0 * 4096 / copies(kResident, 16384, 8, 4096, 1).clocks; });
    add("l2_bytes_per_second", 0, "all SMs, 8 MiB round and round",
        [&] { return 16384.0 * 2048 * sms_ / copies(kResident, 16384, 8, 2048, sms_).seconds; });
    add("hbm_bytes_per_second", 0, "all SMs, 1 GiB", [&] {
      const int count = static_cast<int>(kMemory / 16384 / sms_);
      return 16384.0 * count * sms_ / copies(kMemory, 16384, 8, count, sms_).seconds;
    });
    add("write_bytes_per_clock", 0, "one SM stores 16 bytes a lane, within L2", [&] {
      ProbeParams params{};
      params.bytes = kResident;
      const Took took = run(store_probe, params, 1, 256, 0);
      return static_cast<double>(kResident) / (took.seconds * highest());
    });
  }

  template <class Copies>
  static double l2_hit(const Copies& copies) {
    return copies(1 << 16, 16, 1, 512, 1).clocks / 512;
  }
  // The clock that was measured first.
  [[nodiscard]] double highest() const {
    for (const MeasuredNumber& n : all_) {
      if (n.name == "clock_hz" && !n.rounds.empty()) return n.rounds.back();
    }
    return 1;
  }

  void measure_barriers() {
    add("wake_clocks", 0, "two warps wait for each other, half a turn without its arrival",
        [&] { return run(wake_probe, {}, 1, 64, kBarrierBytes).clocks / (2 * kTurns); });
    add("named_barrier_clocks", 0, "bar.sync of 128 threads",
        [&] { return run(sync_probe, {}, 1, 128, 0).clocks / kTurns; });
    add("cluster_barrier_clocks", 0, "arrive and wait of two CTAs",
        [&] { return run(cluster_probe, {}, 2, 128, 0, 2).clocks / kTurns; });
  }

  void measure_launches() {
    if (error_ != cudaSuccess) return;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    need(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kEmpty; ++i)
      empty_probe<<<dim3(static_cast<unsigned>(sms_)), 384, 0, stream_>>>();
    need(cudaStreamEndCapture(stream_, &graph));
    if (error_ == cudaSuccess) need(cudaGraphInstantiate(&ready, graph, 0));
    if (error_ == cudaSuccess) {
      add("launch_seconds", 0, "empty kernels one behind the other in a graph", [&] {
        need(cudaEventRecord(begin_, stream_));
        need(cudaGraphLaunch(ready, stream_));
        need(cudaEventRecord(end_, stream_));
        need(cudaEventSynchronize(end_));
        float milliseconds = 0;
        need(cudaEventElapsedTime(&milliseconds, begin_, end_));
        return 1e-3 * milliseconds / kEmpty;
      });
    }
    if (ready != nullptr) cudaGraphExecDestroy(ready);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }

  int sms_;
  int rounds_;
  cudaError_t error_ = cudaSuccess;
  std::byte* data_ = nullptr;
  std::uint64_t* clocks_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::vector<MeasuredNumber> all_;
};

}  // namespace

Result<std::vector<MeasuredNumber>> measure_machine(int index, int rounds) {
  const auto facts = cuda_device(index);
  if (!facts) return facts.refusal();
  if (auto r = probes_fault(*facts)) return *r;
  const int before = current_cuda_device();
  if (auto r = use_cuda_device(index)) return *r;
  auto measured = Prober(facts->sms, rounds).measured();
  if (before >= 0) static_cast<void>(use_cuda_device(before));
  return measured;
}

}  // namespace warpwright::device
