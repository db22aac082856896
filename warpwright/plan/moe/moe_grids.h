// The grids of a mixture's launch, with addresses bound. Internal to plan/ and those above.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "warpwright/plan/families/family.h"
#include "warpwright/plan/moe/steps.h"

namespace warpwright {

/// The grids of one step.
struct MixtureStepGrids {
  const StepRow* row = nullptr;
  LaunchGrids grids;
  const Plan* product = nullptr;   ///< of a step that multiplies
  GemmOperands operands;           ///< its operands, as they are before copies
  std::byte* workspace = nullptr;  ///< its own part
  bool counts = false;             ///< this product reads the ids
};

/// All of a launch, in their order; each grid depends on the one before.
struct MixtureGrids {
  std::array<MixtureStepGrids, mixture_steps> steps;
  MixtureParts<MatrixView> parts;
  int count = 0;
};

/// Fills `out` for a plan with tokens. `alone`: its steps are launched by themselves, behind what
/// nobody knows, so that none asks for weights early.
void bind_mixture(const MixturePlan& plan, const MixtureOperands& operands, void* workspace,
                  Encode encode, MixtureGrids& out, bool alone = false);

/// What binds the grids of steps that do not multiply: see steps.cpp.
void bind_sort(const MixtureBinding& binding, MixtureStepGrids& out);
void bind_sort_gather(const MixtureBinding& binding, MixtureStepGrids& out);
void bind_gather(const MixtureBinding& binding, MixtureStepGrids& out);
void bind_gate(const MixtureBinding& binding, MixtureStepGrids& out);
void bind_quantise(const MixtureBinding& binding, MixtureStepGrids& out);
void bind_sum(const MixtureBinding& binding, MixtureStepGrids& out);
void bind_layer(const MixtureBinding& binding, MixtureStepGrids& out);

}  // namespace warpwright
