// --or-fp8: packed weights that a product takes as fp8 of the same values where that is faster.
#pragma once

#include "cli/commands/gemm/gemm_job.h"
#include "warpwright/plan/search/alternatives.h"

namespace warpwright::cli {

/// The faster of both by its prediction; where that is fp8, the job's weights are it from now on,
/// made of the packed ones when they are loaded. Throws InputError where there is no such choice.
Plan choose_weights(GemmJob& job, const DeviceFacts& facts);

/// B and its scales of the job's packed tensor. Throws InputError where e4m3 has not all values.
void load_fp8(GemmJob& job);

}  // namespace warpwright::cli
