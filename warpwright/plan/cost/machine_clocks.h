// Clocks of kernels on one machine, by the counts that are kept of them: what the costs of plans
// are made of where no fit is. Internal to plan/.
#pragma once

#include <optional>

#include "warpwright/facts/kernel.h"
#include "warpwright/plan/cost/kernel_work.h"
#include "warpwright/plan/cost/prediction_machine.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// A kernel's clocks on a machine.
struct KernelClocks {
  double k_tile = 0;   ///< of a CTA by itself
  double units = 0;    ///< of it what the SM's busiest unit works, which CTAs share
  double shallow = 0;  ///< a tile of shallow_k k_tiles
  double slope = 0;    ///< and of each more, up to deep_k
  double shallow_k = 0;
  double deep_k = 0;
  double first = 0;       ///< start and end of a run
  double tile_units = 0;  ///< of a tile beside its k_tiles, the busiest unit

  bool are_kept = false;  ///< counts of the kernel

  /// A tile beside its k_tiles, where it has so many.
  [[nodiscard]] double between(double k_tiles) const;
  /// As `phases_of` says it of tiles of so many k_tiles.
  [[nodiscard]] TilePhases phases(double k_tiles) const {
    return {first, k_tile, between(k_tiles)};
  }
  /// One round of tiles of so many k_tiles on an SM, by as many CTAs as share it.
  [[nodiscard]] double round(double k_tiles, double ctas) const;
};

/// Clocks of all kernels on one machine, each found when it is first asked for. For any thread.
class MachineClocks {
 public:
  virtual ~MachineClocks() = default;
  /// Where nothing is kept of a kernel, by what its tile loads and stores.
  [[nodiscard]] virtual const KernelClocks& of(const KernelFacts& kernel) const = 0;
  /// What a prediction takes of the machine.
  PredictionMachine machine;
};

/// Those of a machine with these numbers, which are remembered.
const MachineClocks& machine_clocks(const MachineNumbers& numbers);

/// What an SM takes by the counts of the plan's kernel; nothing where none are kept.
std::optional<TilePhases> counted_phases(const Plan& plan, const MachineClocks& clocks);

}  // namespace warpwright
