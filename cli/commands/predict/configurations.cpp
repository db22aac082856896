#include "cli/commands/predict/configurations.h"

#include <utility>

#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/search/alternatives.h"

namespace warpwright::cli {

Result<std::vector<Plan>> bench_plans(const GemmProblem& problem, const DeviceFacts& facts,
                                      PlanChoices choices, std::optional<int> limit) {
  const bool invariant = std::exchange(choices.batch_invariant, false);
  auto plans = candidates(problem, facts, choices);
  if (plans && limit && plans->size() > static_cast<std::size_t>(*limit)) {
    (*plans).erase((*plans).begin() + *limit, (*plans).end());
  }
  if (plans && invariant) {
    choices.batch_invariant = true;
    const auto contract = plan(problem, facts, choices);
    if (!contract) return contract.refusal();
    (*plans).insert((*plans).begin(), *contract);
  }
  return plans;
}

std::optional<int> parse_configs(const std::string& text) {
  if (text == "all") return std::nullopt;
  const auto count = as_number<int>(text);
  if (count && *count >= 1) return count;
  throw InputError("--configs is \"" + text + "\"; " +
                   as_rule("it must be a number from 1, or all") + ".");
}

}  // namespace warpwright::cli
