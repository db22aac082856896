// A grouped product for the commands that run its kernel.
#pragma once

#include "cli/commands/grouped_job.h"
#include "cli/commands/product.h"

namespace warpwright::cli {

/// Plans the grouped product that `options` describe.
ProductMaker grouped_product(const GroupedOptions& options);

/// How groups and tiles fall: "8 groups (1 empty) of up to 31 tokens, 100 in all: 12 tiles".
std::string groups_text(const GroupedJob& job, const GroupedPlan& plan);

/// What a run left beside Y.
struct GroupedOutput {
  model::Report report;       ///< of the model
  std::uint32_t status = 0;   ///< see offsets_fault; 0 where the offsets were not checked
  double launch_seconds = 0;  ///< of one of the timed launches on a GPU
};

/// How a run on a GPU is made.
struct GroupedRunOptions {
  bool check_offsets = false;
  int repeat = 0;  ///< launches that are timed after the first one, back to back
};

/// Carries out a plan through the memory of CUDA device `index`: packed operands in host memory, Y
/// (which becomes NaN where nobody stores) and the offsets among them. Throws InputError or
/// RunError.
GroupedOutput run_on_gpu(const GroupedPlan& plan, const GroupedOperands& operands, int index,
                         const GroupedRunOptions& options = {});

}  // namespace warpwright::cli
