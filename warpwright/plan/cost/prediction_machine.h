// What a prediction needs to know of a device: its description, and the few numbers that are
// fitted.
#pragma once

#include <cstdint>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/product/device_facts.h"

namespace warpwright {

/// What is fitted: to rows of an H200, the same for every device. All else is of a description, or
/// follows from it.
struct FittedNumbers {
  /// The part of memory's rate for bare reads that a kernel with a ring reaches: rows, pages and
  /// banks of DRAM are not modelled.
  double memory_share = 0.93;
  /// Reads of wgmma come faster from shared memory than its rate and counted bytes say: which of
  /// them hit a row that is open for another is not known.
  double shared_overlap = 1.15;
  /// The part of lines SMs of a group ask for together that L2 sends once: how far these SMs
  /// run apart is not modelled.
  double merged = 0.6;
  /// A k_tile of a kernel whose warps add sums up themselves, over its multiplications: the model
  /// counts each addition as a conversion on its way to memory, which is too much by far.
  double sums_share = 1.1;
  /// The part of an SM's port to L2 that sums of shared tiles get that go through the workspace by
  /// plain stores and loads: how many of these are on their way is not modelled.
  double sums_rate = 0.22;
};

/// A device in numbers, as far as a prediction needs them. Clocks are an SM's.
struct PredictionMachine {
  FittedNumbers fitted;
  double launch_seconds = 0;  ///< an empty kernel in a graph
  /// From entry to the first operands beyond what the model counts.
  double start_clocks = 0;
  double clock_hz = 0;          ///< the highest
  double working_clock_hz = 0;  ///< at work, where power does not limit it
  double loaded_clock_hz = 0;   ///< of tensor cores without a pause, at the power limit
  double loaded_watts = 0;      ///< that limit, at which tensor cores take all but memory's part
  double limit_watts = 0;       ///< the limit now
  double memory_joules_per_byte = 0;
  double memory_bytes_per_second = 0;  ///< reading
  ClockCurve wgmma_one;                ///< m64nN by 32 bytes of K: one warpgroup by itself
  ClockCurve wgmma_more;               ///< several in turn
  double l2_lines_per_second = 0;      ///< of 128 bytes, of all slices
  double l2_kept = 0;                  ///< of L2, which keeps some in both of its halves
  double port_bytes_per_clock = 0;     ///< that L2 sends to one SM, by TMA where it has that
  double row_clocks = 0;               ///< of TMA, for a row of a box
  double outside_row_clocks = 0;       ///< and beside that for one outside its matrix
  double shared_bytes_per_clock = 0;
  double tensor_share = 1;  ///< busy in a main loop
  double drain_clocks = 0;  ///< a wait for a group of wgmmas, where nothing runs beside it
  /// Sums of a shared tile through the workspace: what they wait for.
  double exchange_clocks = 0;
  double load_clocks = 0;  ///< latency of a load of shared memory
  double alu_clocks = 0;   ///< of a partition, for a warp's instruction
};

/// Requests to L2 for a row of a box, 128 bytes, against those where rows begin at lines: counted
/// by ncu are 1.76 where they lie across lines, and 3.9, which do not take as long, across sectors
/// too.
inline double lines_asked(std::int64_t pitch) {
  return pitch % 128 == 0 ? 1 : (pitch % 32 == 0 ? 1.72 : 2.01);
}

/// The clock of a card at work, as long as power does not limit it.
double working_clock(const PredictionMachine& machine);
/// Bytes a second that memory sends to kernels on that device: its own rate, where it is known.
double kernel_memory_rate(const PredictionMachine& machine, const DeviceFacts& device);
/// Clocks in which CTAs exchange sums of a tile through the workspace, so many bytes each way.
double exchange_clocks(const PredictionMachine& machine, double bytes);

/// By a machine's description.
PredictionMachine prediction_machine(const MachineNumbers& numbers);
/// By the description of the known device of that name, or of its architecture, with the rates of
/// the device's own facts.
PredictionMachine prediction_machine(const DeviceFacts& device);

}  // namespace warpwright
