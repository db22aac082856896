// A family that is checked: members that run the same kernels in other ways, each under many
// schedules, until every synchronising statement has run.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "warpwright/simulation/check.h"
#include "warpwright/simulation/coverage.h"

namespace warpwright::cli {

/// A member with its tensors, which it keeps.
struct Member {
  std::string what;       ///< "ragged M, N and K"
  std::string command;    ///< of `check`: "gemm", "grouped" or "moe"
  std::string arguments;  ///< behind that
  std::string plan;
  double seconds = 0;  ///< that a run takes, roughly
  std::shared_ptr<void> job;
  std::unique_ptr<device::Subject> subject;
};

struct Family {
  std::string name;  ///< of what is checked
  const char* noun;  ///< "product"
  std::vector<Member> members;
  std::vector<std::string> refused;  ///< what of is none of its members
  std::function<device::Coverage(const std::vector<model::SyncSite>& ran)> coverage;
};

/// Checks all members, and says which statements never ran. Stops at the first with a finding. With
/// `mutate` breaks every statement in every member that executes it until one of them shows it.
/// Returns the exit status: 0 when nothing was found and, with `mutate`, no mutant survived. Throws
/// InputError.
int check_members(const Family& family, const device::CheckOptions& options, bool mutate, bool json,
                  std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
