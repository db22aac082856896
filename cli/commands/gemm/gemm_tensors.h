// The tensors of a product: where they come from, and their shapes.
#pragma once

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// A, B and C of the arguments, and the lengths of groups: reads those in files, and gives random
/// ones their shapes. Sets the job's extents. Throws InputError.
void read_matrices(const GemmOptions& options, GemmJob& job);

/// The same for scales and bias, once the extents are known. Throws InputError.
void read_vectors(const GemmOptions& options, GemmJob& job);

}  // namespace warpwright::cli
