// The least that a way to run a product takes, from first principles: what it asks of each unit, by
// the facts of its kernel and the description of the machine.
#pragma once

#include <array>
#include <optional>

#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// Seconds that each unit needs by itself, all tiles of the busiest SM together.
struct Floor {
  double start = 0;     ///< the launch, and until the first operands are there
  double tensor = 0;    ///< the tensor cores of one SM
  double shared = 0;    ///< its shared memory: operands in, and out to the tensor cores
  double port = 0;      ///< its port to L2
  double requests = 0;  ///< L2: lines that all SMs ask for
  double memory = 0;    ///< HBM: each byte once
  /// L2, for operands that are still on their way from HBM; not in `seconds`, as how many CTAs get
  /// them together is only known of neighbours.
  double cold = 0;
  double ring = 0;      ///< latency: a CTA has no more bytes in flight than its ring of stages
  double stores = 0;    ///< epilogues that nothing hides
  double exchange = 0;  ///< of sums that CTAs share
  double seconds = 0;   ///< all together

  /// What the correction of a floor (cost/correction.h) goes by.
  static constexpr std::size_t kFeatures = 36;
  std::array<double, kFeatures> features{};
};

/// Their names, in their order.
extern const std::array<const char*, Floor::kFeatures> floor_features;

/// The floor of a dense product on Hopper; nothing for others, and for gated products and those
/// whose D is quantised.
std::optional<Floor> floor_of(const Plan& plan);

}  // namespace warpwright
