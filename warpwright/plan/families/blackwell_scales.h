// The Blackwell family's products whose scales the tensor core multiplies, and what `explain` says
// of its tensor memory. Internal to plan/.
#pragma once

#include <string>

#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/plan/families/tensor_memory.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// Does the kernel multiply such operands, and the scales that they have?
bool blackwell_multiplies(const kernel::BlackwellConfig& config, const GemmProblem& problem);

/// The configuration with the scales that the problem has: what a launch multiplies.
kernel::BlackwellConfig launched(const kernel::BlackwellConfig& config, const GemmProblem& problem);

/// Does it make such codes and scales of D, or none where none are asked for?
bool blackwell_quantises(const kernel::BlackwellConfig& config, QuantiseD way);

/// That MMAs are of K 96, and what K counts as; "" where they are not.
std::string long_k_text(const kernel::BlackwellConfig& config);

/// A stage's bytes of shared memory, for `explain`.
std::string stages_text(const kernel::BlackwellConfig& config);
/// What the kernel keeps in tensor memory, where a launch is `launched` of it.
TmemMap tensor_memory_of(const kernel::BlackwellConfig& config,
                         const kernel::BlackwellConfig& launched);
/// Which columns of tensor memory hold what.
std::string tmem_table(const kernel::BlackwellConfig& config,
                       const kernel::BlackwellConfig& launched);
/// The scales that each k_block of a k_tile takes; "" where there are none.
std::string scale_table(const kernel::BlackwellConfig& config,
                        const kernel::BlackwellConfig& launched);

}  // namespace warpwright
