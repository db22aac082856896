// The bounded waits of a debug build: a kernel that waits for what never comes ends and says so.
#define WARPWRIGHT_DEBUG_WAITS 1
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/gpu.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright {
namespace {

// Warp 1 waits for a barrier on which nobody arrives.
__global__ void hang() {
#if WW_CLUSTERS  // before sm_90 no instruction waits for one
  const isa::SharedAddress barrier = isa::shared_base();
  if (isa::thread_index() == 0) isa::mbarrier_init(barrier, 1, {"full", 3});
  __syncthreads();
  if (isa::thread_index() == 37) {
    isa::mbarrier_wait<isa::Scope::cta>(barrier, 0, {"full", 3});
  }
#endif
}

// What the kernel's report says, in a word each.
std::string hang_and_report() {
  isa::WaitReport* report = nullptr;
  if (cudaHostAlloc(&report, sizeof *report, cudaHostAllocMapped) != cudaSuccess)
    return "no memory";
  std::memset(report, 0, sizeof *report);
  if (cudaMemcpyToSymbol(isa::wait_report, &report, sizeof report) != cudaSuccess)
    return "no symbol";
  hang<<<1, 64, 64>>>();
  if (cudaDeviceSynchronize() == cudaSuccess) return "the kernel ended well";
  std::ostringstream text;
  text << "complete " << report->complete << ", cta " << report->cta << ", warp " << report->warp
       << ", lane " << report->lane << ", " << report->name << "[" << report->index << "], parity "
       << report->parity << ", line " << report->line;
  return text.str();
}

// In a process of its own: the trap ends its context for good.
TEST(BoundedWait, AKernelThatHangsEndsAndNamesItsWaiter) {
  WW_NEEDS_CODE(90);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::cerr << hang_and_report() << "\n";
        std::_Exit(3);
      },
      testing::ExitedWithCode(3),
      "complete 1, cta 0, warp 1, lane 5, full\\[3\\], parity 0, line 27");
}

}  // namespace
}  // namespace warpwright
