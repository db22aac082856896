// What hardware counters say of products: this program runs itself under Nsight Compute's ncu, and
// the process in there (--under-ncu) launches each product once in the profiler's range.
#pragma once

#include <string>
#include <vector>

#include "cli/files/ncu_log.h"

namespace warpwright::cli {

/// Runs `program` with `arguments` under the ncu of PATH, else under that of /usr/local/cuda, and
/// reads its log. What is in the way is the log's `error`.
NcuLog run_under_ncu(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace warpwright::cli
