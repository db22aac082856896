// A machine in numbers: what each unit of one device takes for its work, as a value.
//
// The timed model (model/report/timing.h) and whatever predicts times read their costs only here.
// Files of machines/ hold one device each; plan/machines/machines.h reads and writes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/atom/mma.h"

namespace warpwright {

/// A number of clocks that depends on one size: points, and straight lines between them. Below the
/// first point it is the first's, beyond the last it grows in proportion.
struct ClockCurve {
  std::vector<std::pair<int, double>> points;  ///< sizes ascending, and clocks

  [[nodiscard]] double at(int size) const {
    if (points.empty()) return 0;
    if (size <= points.front().first) return points.front().second;
    for (std::size_t i = 1; i < points.size(); ++i) {
      const auto [low, from] = points[i - 1];
      const auto [high, to] = points[i];
      if (size <= high) return from + (to - from) * (size - low) / (high - low);
    }
    return points.back().second * size / points.back().first;
  }
  friend bool operator==(const ClockCurve&, const ClockCurve&) = default;
};

/// What one mma.sync takes of a tensor core: an SM has four, and the warps of a partition share
/// one.
struct MmaClocks {
  int m = 16;
  int n = 8;
  int k = 16;
  bool scaled = false;       ///< with block scales
  std::vector<DType> types;  ///< of A
  std::vector<DType> sums;
  double clocks = 0;   ///< from one to the next, of a partition (m8n8k4: four products of a warp)
  double latency = 0;  ///< from its issue until its sums can be read
  std::string source;

  friend bool operator==(const MmaClocks&, const MmaClocks&) = default;
};

/// One device in numbers. "Clocks" are an SM's; rates with "per_clock" are one SM's; all others are
/// the device's, in seconds. A number that the device has no unit for is 0.
struct MachineNumbers {
  std::string name;       ///< as --as has it: "h200"
  std::string card;       ///< in words: "NVIDIA H200 SXM, 132 SMs"
  int architecture = 90;  ///< compute capability x 10
  int sms = 0;
  /// SMs that stand together in groups, which clusters do not leave; empty where nobody knows.
  std::vector<int> sm_groups;

  // The device.
  double clock_hz = 0;          ///< of an SM, while it may go as fast as it can
  double working_clock_hz = 0;  ///< while it works, where power does not limit it
  double loaded_clock_hz = 0;   ///< while tensor cores work without a pause, at the power limit
  double power_watts = 0;       ///< that limit
  double flops_16bit = 0;       ///< of all tensor cores, 16-bit operands and float32 sums, no zeros
  double memory_bytes = 0;
  double l2_bytes = 0;
  double hbm_bytes_per_second = 0;
  double l2_bytes_per_second = 0;     ///< that all SMs together get of what L2 holds
  double l2_requests_per_second = 0;  ///< of 128 bytes
  double cold_bytes_per_second = 0;   ///< that L2 sends of what it is still fetching
  double l2_kept_share = 0;           ///< of L2's bytes: the rest holds a second time what is there
  double memory_joules_per_byte = 0;
  double copy_share = 0;    ///< of hbm_bytes_per_second, that a launch which moves rows gets
  double tensor_share = 0;  ///< of its clocks, that a tensor core works in a main loop it bounds

  // The way from L2 to an SM and back. Latencies from the instruction to the data.
  double l2_hit_clocks = 0;
  double l2_miss_clocks = 0;  ///< from memory, the time of a hit included
  double read_bytes_per_clock = 0;
  double write_bytes_per_clock = 0;
  double global_issue_clocks = 0;  ///< of a warp, for a load or store of global memory
  double atomic_clocks = 0;        ///< of one thread, until it has the result

  // TMA. `tma_load_clocks` is the latency of a load of what L2 holds, until its barrier is
  // signalled.
  double tma_issue_clocks = 0;        ///< of the thread that hands it a copy
  double tma_copy_clocks = 0;         ///< of the engine for a copy, beside its rows and bytes
  double tma_row_clocks = 0;          ///< of the engine, at least, for a row of a box
  double tma_outside_row_clocks = 0;  ///< for a row outside the matrix, beside that
  double tma_bytes_per_clock = 0;
  double tma_load_clocks = 0;
  double tma_bytes_in_flight = 0;
  double tma_multicast_clocks = 0;   ///< later than a copy for one CTA
  double tma_store_clocks = 0;       ///< from a store's issue until it reads shared memory
  double tma_store_done_clocks = 0;  ///< from its last read until it is complete

  // cp.async, a warp's 32 copies of 16 bytes.
  double cp_async_issue_clocks = 0;
  double cp_async_clocks = 0;  ///< latency of what L2 holds
  double cp_async_bytes_per_clock = 0;

  // Shared memory.
  double shared_bytes_per_clock = 0;
  double shared_clocks = 0;  ///< latency of a load, ldmatrix included
  double shared_issue_clocks = 0;

  // Barriers and clusters.
  double arrive_clocks = 0;         ///< of the thread that arrives at an mbarrier
  double wait_clocks = 0;           ///< of a try_wait that finds the phase complete
  double wake_clocks = 0;           ///< from a phase's completion until a waiter goes on
  double named_barrier_clocks = 0;  ///< of bar.sync, once all have come
  double cluster_barrier_clocks = 0;
  double remote_arrive_clocks = 0;  ///< until an arrival is at another CTA's mbarrier
  double dsmem_clocks = 0;          ///< latency of another CTA's shared memory
  double dsmem_bytes_per_clock = 0;

  // A warp's own instructions.
  double warp_clocks = 0;       ///< of one that its lanes execute together: elect, shuffle
  double warpgroup_clocks = 0;  ///< of wgmma's fence, commit and wait, and of issuing one
  double proxy_fence_clocks = 0;
  double set_registers_clocks = 0;  ///< setmaxnreg
  double element_clocks = 0;  ///< of a warp, to scale, convert and move on one register of sums
  double alu_clocks = 0;      ///< of a partition, for a warp's logical instruction

  // wgmma: clocks of a tensor core for m64nN and 32 bytes of K, by N.
  ClockCurve wgmma_shared_one;     ///< A in shared memory, one warpgroup issues
  ClockCurve wgmma_shared_more;    ///< two or more take turns
  ClockCurve wgmma_registers_one;  ///< A in registers
  ClockCurve wgmma_registers_more;
  double wgmma_clocks = 0;  ///< from a group's commit until it starts, on an idle tensor core

  // tcgen05: clocks for 128 rows of a CTA and 32 bytes of K, by N.
  ClockCurve tcgen05_mma;
  double tcgen05_issue_clocks = 0;
  double tcgen05_clocks = 0;         ///< from the issue until it starts, on an idle tensor core
  double tcgen05_commit_clocks = 0;  ///< from the last MMA's end to the arrival
  double tcgen05_copy_clocks = 0;    ///< of a tcgen05.cp
  double tmem_clocks = 0;            ///< latency of a load or store of tensor memory
  double tmem_register_clocks = 0;   ///< of a warp, for a register of each lane

  std::vector<MmaClocks> mma_sync;

  // Launches.
  double launch_seconds = 0;            ///< of an empty kernel behind another, in a graph
  double dependent_launch_seconds = 0;  ///< the same, launched early
  double start_clocks = 0;              ///< from a CTA's start to its first load
  double cold_start_clocks = 0;         ///< more for a kernel's first CTA: parameters, instructions
  double first_operand_clocks = 0;      ///< from its first load to its first operands, from memory
  double exit_clocks = 0;               ///< from a CTA's last store to the next CTA on its place
  double launch_answer_clocks = 0;      ///< from CLC's try_cancel to its answer

  /// Where each number comes from, by its name: "measured: ...", "data sheet: ...", "paper: ...",
  /// "estimate: ...". Those of mma_sync are beside them.
  std::map<std::string, std::string, std::less<>> sources;

  friend bool operator==(const MachineNumbers&, const MachineNumbers&) = default;
};

/// What a number of a machine may be.
struct NumberRule {
  const char* name;
  double lowest;
  double highest;
  /// Architectures that must have it, from the first to the one before the last; on others it is 0
  /// or a number within bounds.
  int first = 70;
  int last = 1000;
  [[nodiscard]] bool is_asked(int architecture) const {
    return architecture >= first && architecture < last;
  }
};

/// Calls `visit(rule, number)` for every plain number, in the order in which files have them.
/// `Numbers` is MachineNumbers, const or not.
template <class Numbers, class Visit>  // NOLINTNEXTLINE(readability-function-size): a table
void for_each_number(Numbers& m, const Visit& visit) {
  const auto each = [&](const NumberRule& rule, auto& value) { visit(rule, value); };
  each({"clock_hz", 0.2e9, 5e9}, m.clock_hz);
  each({"working_clock_hz", 0.2e9, 5e9}, m.working_clock_hz);
  each({"loaded_clock_hz", 0.2e9, 5e9}, m.loaded_clock_hz);
  each({"power_watts", 20, 5000}, m.power_watts);
  each({"flops_16bit", 1e12, 1e17}, m.flops_16bit);
  each({"memory_bytes", 1e9, 1e13}, m.memory_bytes);
  each({"l2_bytes", 1e6, 1e10}, m.l2_bytes);
  each({"hbm_bytes_per_second", 5e10, 1e14}, m.hbm_bytes_per_second);
  each({"l2_bytes_per_second", 1e11, 1e15}, m.l2_bytes_per_second);
  each({"l2_requests_per_second", 1e9, 1e13}, m.l2_requests_per_second);
  each({"cold_bytes_per_second", 5e10, 1e14}, m.cold_bytes_per_second);
  each({"l2_kept_share", 0.1, 1}, m.l2_kept_share);
  each({"memory_joules_per_byte", 1e-12, 1e-9}, m.memory_joules_per_byte);
  each({"copy_share", 0.1, 1}, m.copy_share);
  each({"tensor_share", 0.5, 1}, m.tensor_share);

  each({"l2_hit_clocks", 50, 2000}, m.l2_hit_clocks);
  each({"l2_miss_clocks", 100, 5000}, m.l2_miss_clocks);
  each({"read_bytes_per_clock", 8, 1024}, m.read_bytes_per_clock);
  each({"write_bytes_per_clock", 8, 1024}, m.write_bytes_per_clock);
  each({"global_issue_clocks", 1, 200}, m.global_issue_clocks);
  each({"atomic_clocks", 50, 5000}, m.atomic_clocks);

  each({"tma_issue_clocks", 1, 500, 90}, m.tma_issue_clocks);
  each({"tma_copy_clocks", 1, 500, 90}, m.tma_copy_clocks);
  each({"tma_row_clocks", 0.1, 100, 90}, m.tma_row_clocks);
  each({"tma_outside_row_clocks", 0.1, 100, 90}, m.tma_outside_row_clocks);
  each({"tma_bytes_per_clock", 8, 1024, 90}, m.tma_bytes_per_clock);
  each({"tma_load_clocks", 100, 5000, 90}, m.tma_load_clocks);
  each({"tma_bytes_in_flight", 1024, 1 << 24, 90}, m.tma_bytes_in_flight);
  each({"tma_multicast_clocks", 1, 5000, 90, 120}, m.tma_multicast_clocks);
  each({"tma_store_clocks", 1, 5000, 90}, m.tma_store_clocks);
  each({"tma_store_done_clocks", 1, 5000, 90}, m.tma_store_done_clocks);

  each({"cp_async_issue_clocks", 1, 500, 80}, m.cp_async_issue_clocks);
  each({"cp_async_clocks", 50, 5000, 80}, m.cp_async_clocks);
  each({"cp_async_bytes_per_clock", 8, 1024, 80}, m.cp_async_bytes_per_clock);

  each({"shared_bytes_per_clock", 32, 1024}, m.shared_bytes_per_clock);
  each({"shared_clocks", 5, 500}, m.shared_clocks);
  each({"shared_issue_clocks", 1, 100}, m.shared_issue_clocks);

  each({"arrive_clocks", 1, 500, 80}, m.arrive_clocks);
  each({"wait_clocks", 1, 500, 80}, m.wait_clocks);
  each({"wake_clocks", 1, 1000, 80}, m.wake_clocks);
  each({"named_barrier_clocks", 1, 1000}, m.named_barrier_clocks);
  each({"cluster_barrier_clocks", 1, 5000, 90}, m.cluster_barrier_clocks);
  each({"remote_arrive_clocks", 1, 5000, 90}, m.remote_arrive_clocks);
  each({"dsmem_clocks", 10, 5000, 90}, m.dsmem_clocks);
  each({"dsmem_bytes_per_clock", 1, 1024, 90}, m.dsmem_bytes_per_clock);

  each({"warp_clocks", 1, 200}, m.warp_clocks);
  each({"warpgroup_clocks", 1, 200, 90, 100}, m.warpgroup_clocks);
  each({"proxy_fence_clocks", 1, 1000, 90}, m.proxy_fence_clocks);
  each({"set_registers_clocks", 1, 1000, 90}, m.set_registers_clocks);
  each({"element_clocks", 0.1, 200}, m.element_clocks);
  each({"alu_clocks", 0.1, 100}, m.alu_clocks);

  each({"wgmma_clocks", 1, 1000, 90, 100}, m.wgmma_clocks);
  each({"tcgen05_issue_clocks", 1, 500, 100, 120}, m.tcgen05_issue_clocks);
  each({"tcgen05_clocks", 1, 2000, 100, 120}, m.tcgen05_clocks);
  each({"tcgen05_commit_clocks", 1, 2000, 100, 120}, m.tcgen05_commit_clocks);
  each({"tcgen05_copy_clocks", 1, 2000, 100, 120}, m.tcgen05_copy_clocks);
  each({"tmem_clocks", 1, 2000, 100, 120}, m.tmem_clocks);
  each({"tmem_register_clocks", 0.1, 100, 100, 120}, m.tmem_register_clocks);

  each({"launch_seconds", 1e-8, 1e-3}, m.launch_seconds);
  each({"dependent_launch_seconds", 1e-8, 1e-3, 90}, m.dependent_launch_seconds);
  each({"start_clocks", 1, 1e5}, m.start_clocks);
  each({"cold_start_clocks", 0, 1e5}, m.cold_start_clocks);
  each({"first_operand_clocks", 100, 1e5}, m.first_operand_clocks);
  each({"exit_clocks", 1, 1e5}, m.exit_clocks);
  each({"launch_answer_clocks", 1, 1e5, 100}, m.launch_answer_clocks);
}

/// The same for every curve.
template <class Numbers, class Visit>
void for_each_curve(Numbers& m, const Visit& visit) {
  const auto each = [&](const NumberRule& rule, auto& curve) { visit(rule, curve); };
  each({"wgmma_shared_one", 1, 10000, 90, 100}, m.wgmma_shared_one);
  each({"wgmma_shared_more", 1, 10000, 90, 100}, m.wgmma_shared_more);
  each({"wgmma_registers_one", 1, 10000, 90, 100}, m.wgmma_registers_one);
  each({"wgmma_registers_more", 1, 10000, 90, 100}, m.wgmma_registers_more);
  each({"tcgen05_mma", 1, 10000, 100, 120}, m.tcgen05_mma);
}

/// The machine's entry for an mma.sync, or null where it has none.
inline const MmaClocks* find_mma(const MachineNumbers& machine, const atom::Mma& mma) {
  for (const MmaClocks& entry : machine.mma_sync) {
    if (entry.m == mma.m && entry.n == mma.n && entry.k == mma.k &&
        entry.scaled == (mma.scale_block > 0) &&
        std::ranges::find(entry.types, mma.a) != entry.types.end() &&
        std::ranges::find(entry.sums, mma.sums) != entry.sums.end())
      return &entry;
  }
  return nullptr;
}

/// Clocks of a tensor core for one wgmma m64nN of 32 bytes of K.
inline double wgmma_clocks(const MachineNumbers& machine, int n, bool a_in_registers,
                           bool several_warpgroups) {
  if (a_in_registers)
    return (several_warpgroups ? machine.wgmma_registers_more : machine.wgmma_registers_one).at(n);
  return (several_warpgroups ? machine.wgmma_shared_more : machine.wgmma_shared_one).at(n);
}

/// Clocks of a tensor core for one tcgen05.mma of `rows` rows in each CTA, N columns and 32 bytes
/// of K. 64 rows take as long as 128.
inline double tcgen05_clocks(const MachineNumbers& machine, int rows, int n) {
  return machine.tcgen05_mma.at(n) * std::max(rows, 128) / 128;
}

}  // namespace warpwright
