// A kernel's work in counts, from its own source on the model.
#pragma once

#include <utility>

#include "cli/commands/gemm/gemm_job.h"
#include "warpwright/plan/cost/kernel_work.h"

namespace warpwright::cli {

/// A small product by a kernel in its smallest cluster, and its plan for a model. Throws InputError
/// where no command line asks for the kernel.
std::pair<GemmOptions, Plan> sampled_product(const KernelFacts& kernel);

/// The work of that product: on the known machine that stands for the kernel's architecture, and on
/// others of which one part each is slow. Ways that are never the longest by more than two percent,
/// on many drawn machines, are left out.
KernelWork sample_work(const KernelFacts& kernel);

}  // namespace warpwright::cli
