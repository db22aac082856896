// What a clean check does not say: which synchronising statements of a plan's kernels never ran,
// and which of their ways the product does not take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/model/mutation.h"
#include "warpwright/model/report/compiled_sites.h"
#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::device {

/// For the synchronising statements that the compiler has put into the kernels of a plan's launch:
/// how many there are, and those that never ran. Statements of one line are one here.
struct Coverage {
  bool known = false;  ///< the program has the list (model::lists_sites)
  int statements = 0;
  std::vector<model::CompiledSite> untried;  ///< sorted by place
};

/// Compares what ran, of one run of `plan` or of several, with what is compiled. Statements of
/// functions that name no kernel belong to the plan where another one of their file ran.
Coverage coverage(const Plan& plan, const std::vector<model::SyncSite>& ran);

/// For all launches of a mixture, those that this plan does not take among them.
Coverage coverage(const MixturePlan& plan, const std::vector<model::SyncSite>& ran);

/// For functions that have one of these words in their names.
Coverage coverage(const std::vector<std::string>& words, const std::vector<model::SyncSite>& ran);

/// What else a mixture of these types does, of whose slots `rows` are of experts that are here.
std::vector<std::string> untried_ways(const MixturePlan& plan, const MixtureOperands& operands,
                                      std::int64_t rows);

/// What else the plan's kernel does and this product does not ask of it, in a few words each: "no
/// C", "no cluster beyond 2x1". Asks the planner which other products the kernel would take.
/// `tiles` are the CTA tiles of the product; for groups, as long as they are.
std::vector<std::string> untried_ways(const Plan& plan, std::int64_t tiles);

}  // namespace warpwright::device
