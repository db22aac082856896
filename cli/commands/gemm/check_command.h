// `warpwright check gemm` and `check grouped`: the kernel of a product under many schedules of the
// model, or with its synchronisation broken on purpose.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// The arguments beside those of the product.
struct CheckCommandOptions {
  int schedules = 64;
  std::optional<int> jobs;  ///< OS threads; not given: as many as the machine has
  std::string replay;
  bool strict = false;  ///< reads by threads need a proxy fence before asynchronous writes, too
  bool json = false;
  bool mutate = false;
  std::optional<int> mutant;  ///< runs this row of --mutate's table
  bool reduce = false;        ///< with a replay: shrinks the schedule
  /// A second random product behind the first, in one workspace: M, N and K, or groups' tokens.
  std::vector<std::int64_t> behind;
  std::string tokens_behind;
};

/// Runs the command. `product.seed` is that of the tensors and of the first random schedule.
/// Returns the exit status: 0 when nothing was found (with `mutate`: when every mutant that is not
/// equivalent was killed), 1 otherwise, 2 for bad input, with one sentence on `err`.
int check_command(const GemmOptions& product, const CheckCommandOptions& options, std::ostream& out,
                  std::ostream& err);

}  // namespace warpwright::cli
