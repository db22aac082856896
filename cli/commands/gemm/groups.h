// Which rows are whose: the lengths of the groups of a product.
#pragma once

#include <string>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// The rows of every group, from lengths or offsets; for a dense product all its rows. Sets the M
/// of random tensors. Throws InputError.
void read_rows(const GemmOptions& options, GemmJob& job);

/// CTA tiles of the job: of its groups as long as they are.
std::int64_t tiles_of(const GemmJob& job, const Plan& plan);
/// Those of a plan for groups as long as these.
std::int64_t tiles_of(const std::vector<std::int64_t>& lengths, const Plan& plan);

/// How groups and tiles fall: "8 groups (1 empty) of up to 31 tokens, 100 in all: 12 tiles"; for a
/// dense product "12 tiles".
std::string tiles_text(const GemmJob& job, const Plan& plan);

/// Microseconds that the roofs of the plan's device allow for the rows that are computed, 0 without
/// rates.
double roof_us(const GemmJob& job, const Plan& plan);

}  // namespace warpwright::cli
