// What a prediction takes of a device's description.
#include <algorithm>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/cost/prediction_machine.h"

namespace warpwright {

double working_clock(const PredictionMachine& machine) {
  return std::max(machine.working_clock_hz, machine.loaded_clock_hz);
}

double kernel_memory_rate(const PredictionMachine& machine, const DeviceFacts& device) {
  const double known = device.memory_bytes_per_second;
  return machine.fitted.memory_share * (known > 0 ? known : machine.memory_bytes_per_second);
}

double exchange_clocks(const PredictionMachine& machine, double bytes) {
  return machine.exchange_clocks +
         bytes / (machine.fitted.sums_rate * machine.port_bytes_per_clock);
}

PredictionMachine prediction_machine(const MachineNumbers& numbers) {
  PredictionMachine m;
  m.launch_seconds = numbers.launch_seconds;
  // What the sample has of all that: its start, and first operands that come from L2.
  constexpr double kSampled = 750;
  m.start_clocks =
      numbers.start_clocks + numbers.cold_start_clocks + numbers.first_operand_clocks - kSampled;
  m.l2_kept = numbers.l2_kept_share;
  m.memory_joules_per_byte = numbers.memory_joules_per_byte;
  m.tensor_share = numbers.tensor_share;
  m.clock_hz = numbers.clock_hz;
  m.working_clock_hz = numbers.working_clock_hz;
  m.loaded_clock_hz = numbers.loaded_clock_hz;
  m.loaded_watts = m.limit_watts = numbers.power_watts;
  m.memory_bytes_per_second = numbers.hbm_bytes_per_second;
  m.shared_bytes_per_clock = numbers.shared_bytes_per_clock;
  m.port_bytes_per_clock =
      numbers.tma_bytes_per_clock > 0 ? numbers.tma_bytes_per_clock : numbers.read_bytes_per_clock;
  m.row_clocks = numbers.tma_row_clocks;
  m.outside_row_clocks = numbers.tma_outside_row_clocks;
  m.wgmma_one = numbers.wgmma_shared_one;
  m.wgmma_more = numbers.wgmma_shared_more;
  // For one warpgroup each wait was for a group of 8 wgmmas.
  m.drain_clocks = 8 * std::max(0.0, m.wgmma_one.at(64) - m.wgmma_more.at(64));
  m.l2_lines_per_second = numbers.l2_requests_per_second;
  m.load_clocks = numbers.shared_clocks;
  m.alu_clocks = numbers.alu_clocks;
  // Written for all to see, told, asked, answered, and read.
  m.exchange_clocks = 4 * numbers.atomic_clocks + numbers.l2_hit_clocks;
  return m;
}

PredictionMachine prediction_machine(const DeviceFacts& device) {
  PredictionMachine m = prediction_machine(numbers_of(device));
  if (device.clock_hz > 0) {
    m.working_clock_hz *= device.clock_hz / m.clock_hz;
    m.clock_hz = device.clock_hz;
  }
  if (device.memory_bytes_per_second > 0) {
    m.memory_bytes_per_second = device.memory_bytes_per_second;
  }
  return m;
}

}  // namespace warpwright
