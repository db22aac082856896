#include "warpwright/plan/cost/machine.h"

#include <algorithm>

#include "warpwright/facts/machines.h"

namespace warpwright {
namespace {

// Bytes a clock that an SM stores while all of them do.
double store_rate(const MachineNumbers& n) {
  return std::min(n.write_bytes_per_clock, n.l2_bytes_per_second / n.sms / n.clock_hz);
}

}  // namespace

Machine machine_of(bool groups_or_packed, const DeviceFacts& device) {
  static const MachineNumbers& fitted = *known_machine("h200");
  Machine m = fitted_machine(groups_or_packed);
  const MachineNumbers& n = numbers_of(device);
  if (&n == &fitted || n.architecture / 10 != 9) return m;
  const auto more = [&](double MachineNumbers::*number) { return n.*number / (fitted.*number); };
  using N = MachineNumbers;
  m.clock_hz = std::min(m.clock_hz * more(&N::loaded_clock_hz), n.clock_hz);
  m.l2_bytes_per_second *= more(&N::l2_bytes_per_second);
  m.l2_requests_per_second *= more(&N::l2_requests_per_second);
  m.cold_bytes_per_second *= more(&N::cold_bytes_per_second);
  m.hbm_bytes_per_second *= more(&N::hbm_bytes_per_second);
  m.shared_bytes_per_clock *= more(&N::shared_bytes_per_clock);
  m.sm_bytes_per_clock *= more(&N::tma_bytes_per_clock);
  m.outside_clocks *= more(&N::tma_outside_row_clocks);
  m.tensor = {&n.wgmma_shared_more, &fitted.wgmma_shared_more};
  // Times of an SM's own work go with its clock, that of a kernel's start beside its launch too.
  const double slower = 1 / more(&N::clock_hz);
  m.fixed = (m.fixed - 1e6 * fitted.launch_seconds) * slower + 1e6 * n.launch_seconds;
  for (double Machine::*time :
       {&Machine::pair_start, &Machine::between_tiles, &Machine::cluster_exchange,
        &Machine::cluster_exchange_tile, &Machine::cluster_exchange_each,
        &Machine::workspace_exchange, &Machine::split_start, &Machine::slice_exchange,
        &Machine::slice_exchange_tile, &Machine::ring_latency, &Machine::cluster_wave,
        &Machine::search_linear_scan, &Machine::search_linear_scan_each, &Machine::search_warp_scan,
        &Machine::search_warp_scan_each, &Machine::search_binary_search,
        &Machine::search_binary_search_each}) {
    m.*time *= slower;
  }
  m.epilogue_time *= slower * store_rate(fitted) / store_rate(n);
  // One SM's share of L2.
  m.workspace_bytes *= more(&N::l2_bytes_per_second) * fitted.sms / n.sms;
  return m;
}

}  // namespace warpwright
