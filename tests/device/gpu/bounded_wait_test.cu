// The bounded waits of a debug build: a kernel that waits for what never comes ends and says so.
#define WARPWRIGHT_DEBUG_WAITS 1
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright {
namespace {

// Warp 1 waits for a barrier on which nobody arrives.
__global__ void hang() {
  const isa::SharedAddress barrier = isa::shared_base();
  if (isa::thread_index() == 0) isa::mbarrier_init(barrier, 1, {"full", 3});
  __syncthreads();
  if (isa::thread_index() == 37) {
    isa::mbarrier_wait<isa::Scope::cta>(barrier, 0, {"full", 3});
  }
}

TEST(BoundedWait, AKernelThatHangsEndsAndNamesItsWaiter) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    GTEST_SKIP() << "did not run: no CUDA device here";
  }
  isa::WaitReport* report = nullptr;
  ASSERT_EQ(cudaHostAlloc(&report, sizeof *report, cudaHostAllocMapped), cudaSuccess);
  std::memset(report, 0, sizeof *report);
  ASSERT_EQ(cudaMemcpyToSymbol(isa::wait_report, &report, sizeof report), cudaSuccess);
  hang<<<1, 64, 64>>>();
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(report->complete, 1);
  EXPECT_EQ(report->cta, 0);
  EXPECT_EQ(report->warp, 1);
  EXPECT_EQ(report->lane, 5);
  EXPECT_EQ(std::string(report->name), "full");
  EXPECT_EQ(report->index, 3);
  EXPECT_EQ(report->parity, 0);
  EXPECT_EQ(report->line, 22);
  // The trap has ended the process's context; the tests after this one need a new one.
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

}  // namespace
}  // namespace warpwright
