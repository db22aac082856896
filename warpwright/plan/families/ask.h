// What a family's kernels are held against, and one way to run one of them. Internal to plan/.
#pragma once

#include <string>

#include "warpwright/atom/descriptor.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

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
  FloorBasis basis;
};

/// `start` run in this way.
Plan plan_of(const Plan& start, const Candidate& way);
/// The way that `plan` runs `kernel`.
Candidate candidate_of(const Plan& plan, const KernelFacts& kernel);

/// The line of the cluster: `more` follows its shape, and B goes to `sharing_b` CTAs.
std::string cluster_line(const Plan& plan, int sharing_b, const std::string& more);

/// How many CTAs of a cluster may share a tile along K.
inline constexpr int ctas_along_k[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};

}  // namespace warpwright
