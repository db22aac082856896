// What a product takes on a device, from first principles: what one SM does with a tile (phases,
// from the model's timed mode), times the tiles that the true raster gives each wave, beside what
// L2 and memory send meanwhile, at the clock that the power allows.
#pragma once

#include <string>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/search/plan.h"

namespace warpwright {

/// A device in numbers, as far as a prediction needs them. Clocks are an SM's.
struct PredictionMachine {
  double launch_seconds = 0.64e-6;  ///< an empty kernel in a graph (docs/log/performance.md)
  /// From entry to the first operands beyond what the model counts: stamps say 1,100 clocks until
  /// the first load and 3,000 until its data; the model's start is some 750 of these.
  double start_clocks = 2250;
  double clock_hz = 1.98e9;   ///< the highest
  double load_clock = 0.886;  ///< of it, that a card at work has: 1.755 GHz of an H200
  /// Watts: those that do not move with the clock, of the tensor cores of all SMs when always busy
  /// at `power_clock_hz`, of 1e12 bytes a second from memory, and the limit.
  double idle_watts = 200;
  double tensor_watts = 435;
  double memory_watts = 30;
  double power_clock_hz = 1.5e9;
  double limit_watts = 700;
  double memory_bytes_per_second = 4.4e12;  ///< reading
  double memory_share = 0.93;               ///< of it, that a kernel with a ring of copies reaches
  ClockCurve wgmma_one;                     ///< m64nN by 32 bytes of K: one warpgroup alone
  ClockCurve wgmma_more;                    ///< several in turn
  double l2_lines_per_clock = 48;           ///< of 128 bytes, of all slices
  double l2_kept = 0.5;                     ///< of L2, that holds what was read before
  double port_bytes_per_clock = 82;         ///< that L2 sends to one SM
  double shared_bytes_per_clock = 128;
  double shared_overlap = 1.15;         ///< reads of wgmma come faster than that, as counted
  double store_bytes_per_clock = 16.5;  ///< of an epilogue that nothing hides, all SMs at once
  double tensor_share = 0.96;           ///< busy in a main loop, as ncu counts it
  /// Of what SMs of a group ask for together: fetched once, in the first wave and later.
  double merged_at_first = 0.78;
  double merged_later = 0.49;
  /// A k_tile of a kernel whose warps add scaled sums up themselves, over its multiplications.
  double promoted_share = 1.04;
  double scaled_share = 1.15;
  double drain_clocks = 120;  ///< from a wgmma's issue to its sums, where nothing runs beside it
  double exchange_seconds = 3.5e-6;  ///< sums of a shared tile through the workspace
};

/// By a machine's description; what that does not say is an H200's.
PredictionMachine prediction_machine(const MachineNumbers& numbers);
/// By the description of the known device of that name, or of its architecture, with the rates of
/// the device's own facts.
PredictionMachine prediction_machine(const DeviceFacts& device);

/// What one SM takes, in clocks: a run of t tiles (a CTA) of k k_tiles takes
/// first + t * (between + k * k_tile).
struct TilePhases {
  double first = 0;    ///< until the first multiplication, and from the last one to the end
  double k_tile = 0;   ///< in the steady state
  double between = 0;  ///< a tile beside its k_tiles: its epilogue, as far as nothing hides it
};

/// What bounds a wave, or a product.
enum class Limit : std::uint8_t { start, tensor_cores, l2, memory, epilogue };
const char* limit_name(Limit limit);

/// A product's time and its parts, seconds.
struct Prediction {
  double seconds = 0;
  double start = 0;         ///< launch, and until the first operands are there
  double multiply = 0;      ///< k_tiles at the SM's own pace
  double loads = 0;         ///< what waiting for L2 or memory adds
  double epilogue = 0;      ///< that nothing hides
  double tail = 0;          ///< of `multiply`: SMs without work in the last wave, on average
  double exchange = 0;      ///< of sums
  double clock_hz = 0;      ///< that the power allows
  double memory_bytes = 0;  ///< that memory sends or takes
  double l2_lines = 0;
  double waves = 0;
  Limit limit = Limit::start;
  double within = 0;  ///< the mean error of measured products that are bounded alike
};

/// Composes. `lengths` are the rows of each group; one entry, M, of a product without groups.
Prediction predict(const Plan& plan, const TilePhases& phases, const PredictionMachine& machine,
                   const std::vector<std::int64_t>& lengths);

}  // namespace warpwright
