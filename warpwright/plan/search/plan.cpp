// From a problem to plans, whatever the family of kernels.
#include "warpwright/plan/product/plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/plan/cost/prediction_machine.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/search/search.h"

namespace warpwright {
namespace {

// A refusal for want of a kernel, with what other builds have.
Refusal with_other_builds(Refusal refused, const Family& family, const Plan& start,
                          const PlanChoices& choices) {
  if (refused.code != RefusalCode::no_kernel) return refused;
  constexpr const char* how =
      " (the CMake option WARPWRIGHT_KERNELS is all there, or names it; for pip it is "
      "cmake.define.WARPWRIGHT_KERNELS)";
  const auto elsewhere = ways_of(family, Ask(start, choices), Rows::missing);
  if (!elsewhere || elsewhere->empty()) {
    refused.reason += "; no other build has one";
    return refused;
  }
  const auto best =
      std::min_element(elsewhere->begin(), elsewhere->end(),
                       [](const Candidate& x, const Candidate& y) { return x.cost < y.cost; });
  if (choices.kernel) {
    return refuse(RefusalCode::no_kernel, "this build lacks the kernel ", best->kernel->name, "; ",
                  as_rule("another has it", how));
  }
  refused.reason += "; another build has " + best->kernel->name + how;
  return refused;
}

void add_reason(Plan& plan, const std::string& more) {
  plan.reason += (plan.reason.empty() ? "" : "; ") + more;
}

// Do all kernels of the family that serve such a product read A and B by TMA?
bool needs_copy_engine(const Family& family, const GemmProblem& problem) {
  return family.uses_tma() || problem.scaling == Scaling::block_scaled;
}

// How many of the cheapest ways are held against measured times, and up to what of the least floor:
// more of either chose no better (docs/log/prediction.md).
constexpr std::size_t most_corrected = 20;
constexpr double most_over = 1.6;
// What differs by less is not told apart: measured times were repeated to about as much.
constexpr double same_time = 0.01;

// What one more grid in front costs, beside what it moves.
constexpr double copies_launch_seconds = 3e-6;

// Has a plan for the product with copies of A or B be one for the product itself.
void add_copies(Plan& plan, const GemmProblem& problem, const OperandCopies& copies,
                const std::string& why) {
  plan.problem = problem;
  std::string what;
  const auto add = [&](const char* name, const std::optional<OperandCopy>& copy,
                       std::optional<OperandCopy>& its) {
    if (!copy) return;
    its = copy;
    its->at = (plan.workspace_bytes + 255) / 256 * 256;
    plan.workspace_bytes = its->at + copy->bytes;
    what += (what.empty() ? "" : " and ") + std::string(name);
  };
  add("A", copies.a, plan.a_copy);
  add("B", copies.b, plan.b_copy);
  add_reason(plan, what + (copies.a && copies.b ? " are" : " is") +
                       " copied to the workspace first, which takes time, because " + why);
}

double seconds_of(const OperandCopies& copies, const DeviceFacts& device) {
  const std::int64_t bytes = (copies.a ? copies.a->bytes : 0) + (copies.b ? copies.b->bytes : 0);
  const double rate = kernel_memory_rate(prediction_machine(device), device);
  return static_cast<double>(2 * bytes) / rate + copies_launch_seconds;
}

// All ways to a product, in the order of the search until they are sorted.
struct Found {
  Plan start;
  Plan copied;  // the start with copies of what TMA cannot read where it lies
  OperandCopies copies;
  std::string why;     // those copies
  bool lies_anywhere;  // a kernel reads the operands as they lie, though TMA cannot
  const Family* family;
  std::vector<Candidate> ways;

  // In the order of what they take by measured times; first is the best of those with the least
  // floors, as plans take it, and without `all` only these are left. Where several take as long,
  // who keeps no flags and shares no tile along K comes first: its time depends on less.
  void correct(const PlanChoices& choices, bool all) {
    const std::size_t low = bring_low_floors(all);
    correct_costs(choices);
    const auto weight = [](const Candidate& way) {
      const bool is_simple = way.flag_bytes == 0 && way.cluster_k == 1;
      return way.cost * (is_simple ? 1 : 1 + same_time);
    };
    const auto less = [&](const Candidate& x, const Candidate& y) { return weight(x) < weight(y); };
    const auto best =
        std::min_element(ways.begin(), ways.begin() + static_cast<std::ptrdiff_t>(low), less);
    std::rotate(ways.begin(), best, best + 1);
    std::stable_sort(ways.begin() + 1, ways.end(), less);
  }

  // Brings to the front, in order, those that are held against measured times, and says how many;
  // among equal ones what was found first. Without `all` only these are left.
  std::size_t bring_low_floors(bool all) {
    std::vector<std::pair<double, std::size_t>> order;
    order.reserve(ways.size());
    for (std::size_t i = 0; i < ways.size(); ++i) order.emplace_back(ways[i].cost, i);
    const std::size_t count = std::min(most_corrected, ways.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end());
    const double enough = most_over * order.front().first;
    std::size_t low = 1;
    while (low < count && order[low].first <= enough) ++low;
    if (!all) order.resize(low);
    std::vector<Candidate> ordered;
    ordered.reserve(order.size());
    for (const auto& [floor, i] : order) ordered.push_back(ways[i]);
    ways = std::move(ordered);
    return low;
  }

  void correct_costs(const PlanChoices& choices) {
    std::vector<Candidate*> here;
    std::vector<Candidate*> there;
    for (Candidate& way : ways) (way.copied ? there : here).push_back(&way);
    if (!here.empty()) family->correct(Ask(start, choices), here);
    if (there.empty()) return;
    const double more = seconds_of(copies, start.device);
    for (Candidate* way : there) way->cost -= more;
    family->correct(Ask(copied, choices), there);
    for (Candidate* way : there) way->cost += more;
  }

  [[nodiscard]] Plan plan(std::size_t i) const {
    Plan made = plan_of(ways[i].copied ? copied : start, ways[i]);
    if (ways[i].copied) {
      add_copies(made, start.problem, copies, why);
    } else if (lies_anywhere) {
      add_reason(made, "reads rows that begin anywhere, which takes longer, because " + why);
    }
    return made;
  }
};

// What a family has for the product of `start` where A and B lie, and for copies of what TMA cannot
// read there.
Result<Found> of_family(const Family& family, const Plan& start, const PlanChoices& choices) {
  const GemmProblem& problem = start.problem;
  const bool needs_tma = needs_copy_engine(family, problem);
  const auto fault = problem_fault(problem);
  Found found{start, start, {}, fault ? fault->reason : "", false, &family, {}};
  if (fault) found.copies = copies_for(problem);
  found.copied.problem = with_copies(problem, found.copies);
  const bool copies_help =
      (found.copies.a || found.copies.b) && !problem_fault(found.copied.problem, needs_tma);
  const bool as_it_lies = !needs_tma || !fault;
  if (!as_it_lies && !copies_help) return *fault;
  Result<std::vector<Candidate>> all = std::vector<Candidate>{};
  if (as_it_lies) {
    all = search(family, start, choices, Rows::built);
    found.lies_anywhere = copies_help;
    if (all) found.ways = std::move(*all);
  }
  if (copies_help) {
    auto more = search(family, found.copied, choices, Rows::built);
    const double seconds = seconds_of(found.copies, start.device);
    if (more) {
      for (Candidate& each : *more) {
        each.cost += seconds;
        each.copied = true;
        found.ways.push_back(each);
      }
    }
    if (!as_it_lies) all = std::move(more);
  }
  if (found.ways.empty()) {
    return with_other_builds(all.refusal(), family, as_it_lies ? start : found.copied, choices);
  }
  return found;
}

// What a product needs of a device before its kernels are looked at.
std::optional<Refusal> device_fault(const Family* family, const GemmProblem& problem,
                                    const DeviceFacts& device, const PlanChoices& choices) {
  const bool tma = family == nullptr || family->uses_tma();
  if (problem_fault(problem, false)) return problem_fault(problem, tma);
  if (family == nullptr) {
    return refuse(RefusalCode::no_device, "device ", device.name, " has architecture sm_",
                  device.architecture, "; ",
                  as_rule("kernels exist for sm_70 (V100), sm_75 (T4), sm_80 (A100), sm_86, sm_89, "
                          "sm_90 (H100, H200), sm_100 (B200), sm_103 (B300) and sm_120"));
  }
  if (device.sms < 1) return no_sms(device);
  if (!problem.groups && (choices.tile_tokens || choices.search)) {
    return refuse(RefusalCode::bad_choice,
                  "tiles of tokens and searches are of products in groups, and this one has none: ",
                  as_rule("leave them out"));
  }
  return std::nullopt;
}

Result<Found> find(const GemmProblem& given, const DeviceFacts& device,
                   const PlanChoices& choices) {
  if (choices.kernel) {
    if (auto r = unknown_kernel(*choices.kernel)) return *r;
  }
  const Family* family = family_of(device, choices);
  // Types that wgmma and tcgen05 do not multiply.
  const bool instead = family != nullptr && family->uses_tma() && is_of_registers(given.a.dtype) &&
                       registers_family().can_run_on(device.architecture);
  if (instead) family = &registers_family();
  for (const auto rule : {extent_fault, product_fault}) {
    if (auto r = rule(given)) return *r;
  }
  Plan start;
  start.problem = normalised(given);
  if (auto r = device_fault(family, start.problem, device, choices)) return *r;
  start.device = device;
  start.d_path = result_path(start.problem, true);
  start.c_path = result_path(start.problem, false);
  if (start.problem.reads_c() && !family->uses_tma()) {
    start.c_path = EpiloguePath::elements;
  }
  if (instead) {
    start.reason =
        "a kernel of mma.sync, because those of wgmma multiply no " + type_name(given.a.dtype);
  }
  return of_family(*family, start, choices);
}

// The best of them, with why it is.
Plan best_of(const Found& found) {
  Plan best = found.plan(0);
  if (!best.problem.groups) return best;
  std::optional<Plan> next;
  if (found.ways.size() > 1) next = found.plan(1);
  best.reason = group_reason(best, next) + (best.reason.empty() ? "" : "; ") + best.reason;
  return best;
}

void note_invariance(Plan& plan, const PlanChoices& choices) {
  if (!choices.batch_invariant) return;
  add_reason(plan, "batch_invariant: each tile is summed along K by one CTA");
}

}  // namespace

Result<std::vector<Plan>> candidates(const GemmProblem& problem, const DeviceFacts& device,
                                     const PlanChoices& choices) {
  auto found = find(problem, device, choices);
  if (!found) return found.refusal();
  (*found).correct(choices, true);
  std::vector<Plan> all = {best_of(*found)};
  for (std::size_t i = 1; i < found->ways.size(); ++i) all.push_back(found->plan(i));
  for (Plan& each : all) note_invariance(each, choices);
  return all;
}

Result<Plan> plan(const GemmProblem& problem, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto found = find(problem, device, choices);
  if (!found) return found.refusal();
  (*found).correct(choices, false);
  Plan best = best_of(*found);
  note_invariance(best, choices);
  return best;
}

std::optional<Refusal> mismatch(const Plan& plan, const PlanChoices& choices) {
  if (choices == PlanChoices{}) return std::nullopt;
  const std::string leave = "; leave it out, or make the plan with it";
  if (choices.kernel && *choices.kernel != plan.kernel) {
    return refuse(RefusalCode::bad_choice, "kernel is ", *choices.kernel, ", and the plan runs ",
                  plan.kernel, leave);
  }
  if (choices.cluster && !(*choices.cluster == plan.cluster)) {
    return refuse(RefusalCode::bad_choice, "cluster is ", choices.cluster->m, "x",
                  choices.cluster->n, ", and the plan's is ", plan.cluster.m, "x", plan.cluster.n,
                  leave);
  }
  PlanChoices both = choices;
  both.kernel = plan.kernel;
  if (plan.ctas > 0 && !both.ctas) both.ctas = plan.ctas;
  const auto all = candidates(plan.problem, plan.device, both);
  const auto is_plan = [&](const Plan& other) {
    return other.cluster == plan.cluster && other.cluster_k == plan.cluster_k;
  };
  if (all && std::any_of(all->begin(), all->end(), is_plan)) return std::nullopt;
  if (choices.batch_invariant) {
    return refuse(RefusalCode::bad_choice, "batch_invariant is asked for, and the plan, ",
                  plan.name(), ", shares tiles along K", leave);
  }
  return refuse(
      RefusalCode::bad_choice, "the plan, ", plan.name(),
      ", is not what the choices beside it ask for: ",
      as_rule("leave them out, or make the plan with them", all ? "" : " (" + all.reason() + ")"));
}

Result<Plan> plan(const GemmOperands& operands, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto problem = describe(operands);
  if (!problem) return problem.refusal();
  return plan(*problem, device, choices);
}

}  // namespace warpwright
