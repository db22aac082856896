// Companions of a product: others by the same kernel that run what the product leaves out.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/gemm/gemm_job.h"
#include "warpwright/facts/kernel.h"

namespace warpwright::cli {

/// A product of random tensors by a kernel that is named, and what it is there for.
struct Companion {
  std::string what;  ///< "ragged M, N and K"
  /// The arguments to try, the first that the kernel takes; none may fit.
  std::vector<GemmOptions> options;
};

/// Products by `plan`'s kernel beside the one of `given`, small ones: ragged extents, K of one
/// k_tile, below the ring and odd, several tiles a CTA and fewer tiles than CTAs, C, biases, scales
/// of every kind, a batch, rows at loose alignments, clusters of 1, 2, 4 and the widest, several
/// numbers of CTAs that share a tile; for groups empty, short and many ones. The types, what the
/// weights are, the layout and the gate stay.
std::vector<Companion> companions_of(const GemmOptions& given, const Plan& plan);

/// Arguments of a small product that this kernel takes by its name. Throws InputError where it is
/// not among those of this build, or takes none that the command line can say.
GemmOptions product_for(const KernelFacts& kernel);

}  // namespace warpwright::cli
