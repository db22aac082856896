// What operations cost in Mode::timed: one table of nominal cycles of an SM.
//
// The numbers are round figures near what is published or was measured for an H100 or H200. They
// make pictures in which loads, tensor core and epilogue have about the right proportions. They are
// no measurement and predict no speed: caches, other SMs and bank conflicts do not exist here.
#pragma once

#include <cstdint>

namespace warpwright::model::nominal {

// --- a thread's own instructions: cycles until it goes on ----------------------------------------
inline constexpr int arrive = 10;         ///< mbarrier.arrive, arrive.expect_tx
inline constexpr int wait = 20;           ///< mbarrier.try_wait that finds the phase complete
inline constexpr int wake = 20;           ///< from a phase's completion until its waiter runs
inline constexpr int named_barrier = 20;  ///< bar.sync once all have come
inline constexpr int cluster_barrier = 150;
inline constexpr int warp_collective = 10;  ///< elect, shuffle, syncwarp, and before ld/stmatrix
inline constexpr int warpgroup_collective = 6;  ///< wgmma and its fence, commit and wait
inline constexpr int proxy_fence = 20;
inline constexpr int tensor_copy_issue = 30;  ///< one thread hands a copy to TMA
inline constexpr int shared_access = 1;  ///< a 16-byte row of ld/stmatrix, a lane's ld/st.shared
inline constexpr int global_access = 20;
inline constexpr int atomic = 600;  ///< one thread's, on global memory, until it has the result
inline constexpr int fragment_register = 6;  ///< read, scale and convert one accumulator register
inline constexpr int set_registers = 20;     ///< setmaxnreg

// --- TMA of an SM -------------------------------------------------------------------
inline constexpr int load_latency = 600;   ///< from the issue of a load to its first byte (L2 hit)
inline constexpr int store_latency = 100;  ///< from the issue of a store to its first read
inline constexpr int store_to_global = 600;  ///< from its last read to its completion
inline constexpr int store_async =
    200;  ///< from an st.async to its signal, in any CTA of a cluster
inline constexpr int copy_bytes_per_cycle = 64;  ///< width of an SM's port to L2, each direction

// --- the tensor core of an SM -------------------------------------------------------------------
inline constexpr int wgmma_latency = 32;  ///< from the commit of a group to its start

/// Cycles of one wgmma m64nNk(32 bytes of a row): 64 x N x 16 multiply-adds of 16-bit elements at
/// the dense rate, 2048 a cycle and SM. An 8-bit row holds twice as many and they go twice as fast.
constexpr std::int64_t wgmma(int n) {
  return n / 2;
}

// --- tcgen05 and CLC (an SM of sm_100) -----------------------------------------------
inline constexpr int umma_issue = 10;    ///< one thread hands an MMA or a commit to the tensor core
inline constexpr int tmem_copy = 32;     ///< a tcgen05.cp, from its issue to its end
inline constexpr int umma_latency = 32;  ///< from the issue of an MMA to its start
inline constexpr int commit_latency = 20;  ///< from the last MMA's end to the arrival
inline constexpr int tensor_fence = 2;     ///< tcgen05.fence
inline constexpr int tmem_latency = 20;    ///< of a load or store of tensor memory
inline constexpr int tmem_register = 1;    ///< one register of each lane of a warp
inline constexpr int launch_answer = 600;  ///< from a try_cancel to its answer

/// Cycles of one tcgen05.mma with `rows` rows in each CTA and N columns, K of 32 bytes: 4096
/// multiply-adds of 16-bit elements a cycle and SM. A pair works side by side.
constexpr std::int64_t umma(int rows, int n) {
  return static_cast<std::int64_t>(rows) * n / 256;
}

}  // namespace warpwright::model::nominal
