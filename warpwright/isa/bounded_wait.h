// Debug build of the GPU side: a wait that lasts too long says who waits on what, and traps.
#pragma once

#include <cstdint>

namespace warpwright::isa {

/// What a kernel that hangs leaves in mapped host memory. The first waiter to give up writes it.
struct WaitReport {
  int claimed;  ///< 0 until somebody writes
  int complete;
  int cta;
  int cluster_rank;
  int warp;
  int lane;
  int index;  ///< of the barrier: its stage
  int parity;
  int line;
  char name[24];
};

#if defined(__CUDACC__)
/// About one second at any clock a Hopper or Blackwell GPU runs at.
constexpr long long wait_bound_cycles = 2'000'000'000;

/// Where this translation unit's kernels report to; null reports nowhere. Set by the launcher.
static __device__ WaitReport* wait_report = nullptr;

/// Fills the report, unless another thread has, and ends the kernel. Inlined everywhere: a call
/// would need registers that a kernel with setmaxnreg does not have.
__device__ __forceinline__ void report_and_trap(const char* name, int index, int parity, int line) {
  volatile WaitReport* r = wait_report;
  if (r != nullptr && atomicCAS_system(const_cast<int*>(&r->claimed), 0, 1) == 0) {
    std::uint32_t rank = 0;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    r->cta = static_cast<int>(blockIdx.x);
    r->cluster_rank = static_cast<int>(rank);
    r->warp = static_cast<int>(threadIdx.x) / 32;
    r->lane = static_cast<int>(threadIdx.x) % 32;
    r->index = index;
    r->parity = parity;
    r->line = line;
    int i = 0;
#pragma unroll 1
    for (; i < 23 && name[i] != '\0'; ++i) r->name[i] = name[i];
    r->name[i] = '\0';
    __threadfence_system();
    r->complete = 1;
    __threadfence_system();
  }
  // Others give the one who writes time to finish.
#pragma unroll 1
  for (int i = 0; i < 1000 && (r == nullptr || r->complete == 0); ++i) __nanosleep(1000);
  __trap();
}
#endif

}  // namespace warpwright::isa
