// One search for all families: which kernels serve a product, in which clusters and grids, and what
// each of these ways costs. Internal to plan/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpwright/atom/descriptor.h"
#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/cost/machine_clocks.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/search/plan.h"

namespace warpwright {

class Family;

/// One way to run a kernel: what a plan has beside its product and device.
struct Candidate {
  const KernelFacts* kernel = nullptr;
  atom::ClusterShape cluster;
  int cluster_k = 1;
  tile::Raster raster;
  int ctas = 0;
  kernel::TileSource tile_source = kernel::TileSource::static_persistent;
  EpiloguePath c_path = EpiloguePath::none;
  std::int64_t workspace_bytes = 0;
  std::int64_t flag_bytes = 0;
  double cost = 0;
  bool copied = false;  ///< with copies of A or B
};

/// A product on a device with what is asked of a plan, as the kernels of a family are held against
/// it. What all of them ask is found once.
struct Ask {
  Ask(const Plan& start, const PlanChoices& choices);

  const Plan& start;
  const PlanChoices& choices;
  const GemmProblem& problem;
  atom::Major a = atom::Major::k;  ///< where anything is multiplied
  atom::Major b = atom::Major::k;
  bool aligned = true;    ///< rows of A and B begin at multiples of 16 bytes
  bool by_copies = true;  ///< TMA reads A and B
  GroupLengths lengths;   ///< of a product in groups, as they are expected
  /// For the device: found when they are first asked for.
  [[nodiscard]] const MachineClocks& clocks() const;

 private:
  mutable const MachineClocks* clocks_ = nullptr;
};

/// `start` run in this way.
Plan plan_of(const Plan& start, const Candidate& way);
/// The way that `plan` runs `kernel`.
Candidate candidate_of(const Plan& plan, const KernelFacts& kernel);

/// Every way by kernels of `rows` that `choices` leave, in the order of the table; refuses, where
/// there is none, with what would be legal. The product and the device of `start` are legal.
Result<std::vector<Candidate>> search(const Family& family, const Plan& start,
                                      const PlanChoices& choices, Rows rows);

/// The same, which may be none; for choices that the family knows.
Result<std::vector<Candidate>> ways_of(const Family& family, const Ask& ask, Rows rows);

/// Why none was found, of kernels of this build.
Refusal none_found(const Family& family, const Ask& ask);

/// Why these choices are none of the family's on that device, or nothing.
std::optional<Refusal> choices_fault(const Family& family, const Plan& start,
                                     const PlanChoices& choices);

/// How many CTAs of a cluster may share a tile along K.
inline constexpr int ctas_along_k[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};

}  // namespace warpwright
