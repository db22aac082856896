// What operations cost in Mode::timed: a machine in numbers, as the parts of the model use it.
//
// A thread's own instructions cost clocks of its time. What several share, an SM's units, are
// queues: they take work in the order in which it comes and do one piece at a time. All CTAs of an
// SM share them. docs/trace.md says what is left out.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "warpwright/facts/machine_numbers.h"

namespace warpwright::model {

/// A machine's numbers in whole clocks of a thread, and rates of an SM.
struct Costs {
  explicit Costs(const MachineNumbers& numbers, double cold_share);

  // A thread's own instructions: clocks until it goes on.
  std::int64_t arrive;
  std::int64_t wait;
  std::int64_t wake;           ///< from a phase's completion until its waiter runs
  std::int64_t remote_wake;    ///< the same, where another CTA arrived last
  std::int64_t named_barrier;  ///< once all have come
  std::int64_t cluster_barrier;
  std::int64_t warp;
  std::int64_t warpgroup;
  std::int64_t proxy_fence;
  std::int64_t tma_issue;
  std::int64_t shared_access;  ///< a lane's load or store
  std::int64_t global_access;
  std::int64_t atomic;
  std::int64_t element;  ///< to read, scale and convert a register of sums
  std::int64_t set_registers;
  std::int64_t tensor_fence = 2;  ///< tcgen05.fence
  double far_rate;                ///< of another CTA's shared memory, in bytes a clock
  /// A lane's load of so many bytes from there, where the other lanes of its warp load too.
  [[nodiscard]] std::int64_t far_access(int bytes) const {
    return static_cast<std::int64_t>(32 * bytes / far_rate);
  }

  // Ways to memory and back. Rates in bytes a clock of one SM, of whose device all SMs are at work.
  double read_rate;
  double write_rate;
  double tma_rate;
  double cp_async_rate;
  std::int64_t load_latency;  ///< of a thread's load of global memory
  std::int64_t tma_latency;
  std::int64_t multicast;  ///< more, for several CTAs
  double tma_copy;         ///< of TMA, for a copy, for a row of it, and for one outside the matrix
  double tma_row;
  double tma_outside_row;
  std::int64_t store_latency;
  std::int64_t store_done;
  std::int64_t store_async;  ///< from an st.async to its signal
  double cp_async_issue;     ///< of the path of a warp's 32 copies
  std::int64_t cp_async_latency;
  double shared_rate;

  // Tensor cores.
  std::int64_t wgmma_latency;
  std::int64_t umma_issue;
  std::int64_t umma_latency;
  std::int64_t commit_latency;
  std::int64_t tmem_copy;
  std::int64_t tmem_latency;
  double tmem_register;
  std::int64_t launch_answer;  ///< from a try_cancel to its answer
  std::int64_t next_cta;       ///< from a CTA's end to the start of the next one there

  /// Clocks of a tensor core for one wgmma, or one tcgen05.mma.
  [[nodiscard]] double wgmma(int n, bool a_in_registers, bool in_turns) const;
  [[nodiscard]] double umma(int rows, const atom::UmmaAtom& mma) const;
  /// Of a partition's tensor core for one mma.sync: clocks, and latency.
  [[nodiscard]] std::pair<double, double> mma_sync(const atom::Mma& mma) const;

  const MachineNumbers* numbers;
};

/// The units of one SM, in Mode::timed: when each is free.
struct SmUnits {
  double tma = 0;                    ///< the engine that makes requests of copies
  double read = 0;                   ///< the way from L2
  double write = 0;                  ///< and back
  double lsu = 0;                    ///< the path of cp.async
  double shared = 0;                 ///< shared memory, as far as warps read and write it together
  double tensor = 0;                 ///< of wgmma and tcgen05: all four tensor cores
  const void* multiplies = nullptr;  ///< whose wgmmas it did last
  std::array<double, 4> mma{};       ///< of mma.sync: a partition's tensor core
};

}  // namespace warpwright::model
