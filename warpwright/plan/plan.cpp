// From a problem to plans, whatever the family of kernels.
#include "warpwright/plan/plan.h"

#include <algorithm>

#include "warpwright/plan/explain_text.h"
#include "warpwright/plan/kernel_list.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

// A refusal for want of a kernel, with what other builds have.
Refusal with_other_builds(Refusal refused, const Family& family, const Plan& start,
                          const PlanChoices& choices) {
  if (refused.code != RefusalCode::no_kernel) return refused;
  constexpr const char* how =
      " (the CMake option WARPWRIGHT_KERNELS is all there, or names it; for pip it is "
      "cmake.define.WARPWRIGHT_KERNELS)";
  const auto elsewhere = family.candidates(start, choices, Rows::missing);
  if (!elsewhere || elsewhere->empty()) {
    refused.reason += "; no other build has one";
    return refused;
  }
  const auto best = std::min_element(elsewhere->begin(), elsewhere->end(),
                                     [](const Plan& x, const Plan& y) { return x.cost < y.cost; });
  if (choices.kernel) {
    return refuse(RefusalCode::no_kernel, "this build lacks the kernel ", best->kernel,
                  "; another has it", how);
  }
  refused.reason += "; another build has " + best->kernel + how;
  return refused;
}

// May a product that TMA cannot read go to kernels of mma.sync, which take any alignment? Not where
// the bits of a row are to be the same for every M: a single row has no pitch, and goes by TMA.
bool may_do_without_copies(const GemmProblem& p, const PlanChoices& choices) {
  if (choices.kernel) return false;
  if (!choices.batch_invariant) return true;
  GemmProblem by_b = p;
  by_b.a_row_stride = by_b.k + 15 - (by_b.k + 15) % 16;
  by_b.a_batch_stride = 0;
  by_b.a_alignment = 16;
  return problem_fault(by_b).has_value();
}

// Plans by kernels of mma.sync for a product whose A or B TMA cannot read, for which `refused` is
// why; or that refusal.
Result<std::vector<Plan>> without_copies(const Plan& start, const PlanChoices& choices,
                                         const Refusal& refused) {
  const Family& family = registers_family();
  if (!family.can_run_on(start.device.architecture) || problem_fault(start.problem, false) ||
      !may_do_without_copies(start.problem, choices)) {
    return refused;
  }
  Plan begun = start;
  if (start.problem.reads_c) begun.c_path = EpiloguePath::elements;
  auto all = family.candidates(begun, choices, Rows::built);
  const bool is_theirs = is_of_registers(start.problem.a);
  if (!all && is_theirs) return with_other_builds(all.refusal(), family, begun, choices);
  if (!all) return refused;
  for (Plan& each : *all) {
    each.reason =
        is_theirs ? "a kernel of mma.sync, because those of wgmma multiply no " +
                        type_name(start.problem.a)
                  : "a slower kernel, which loads A and B without TMA, because " + refused.reason;
  }
  return all;
}

}  // namespace

Result<std::vector<Plan>> candidates(const GemmProblem& problem, const DeviceFacts& device,
                                     const PlanChoices& choices) {
  if (choices.kernel) {
    if (auto r = unknown_kernel(*choices.kernel)) return *r;
  }
  const Family* const family = family_of(device, choices);
  const bool micro = problem.scaling == Scaling::micro;  // all its kernels have producers
  const bool copy_engine = family == nullptr || family->uses_copy_engine();
  const auto copies_refused = problem_fault(problem, copy_engine || micro);
  if (copies_refused && (!copy_engine || micro || family == nullptr)) return *copies_refused;
  if (family == nullptr) {
    return refuse(RefusalCode::no_device, "device ", device.name, " has architecture sm_",
                  device.architecture,
                  "; kernels exist for sm_70 (V100), sm_75 (T4), sm_80 (A100), sm_86, sm_89, sm_90 "
                  "(H100, H200), "
                  "sm_100 (B200), sm_103 (B300) and sm_120");
  }
  if (micro && copy_engine) {
    return refuse(RefusalCode::unsupported, "scaling is micro, and no kernel for ", device.name,
                  " (sm_", device.architecture,
                  ") has scales that the tensor core multiplies, which those for sm_120 have: the "
                  "nearest is row-column scaling of e4m3");
  }
  if (device.sms < 1) return no_sms(device);
  if (problem.groups == 0 && (choices.tile_tokens || choices.search || choices.group_maps)) {
    return refuse(RefusalCode::bad_choice,
                  "tiles of tokens, searches and maps a group are of products in groups, and this "
                  "one has none: leave them out");
  }
  Plan start;
  start.problem = problem;
  if (problem.scaling == Scaling::block) start.problem.accumulation = Accumulation::promoted;
  start.device = device;
  start.d_path = result_path(problem, true);
  start.c_path = result_path(problem, false);
  if (problem.reads_c && !copy_engine) start.c_path = EpiloguePath::elements;
  auto all = copies_refused ? without_copies(start, choices, *copies_refused)
                            : family->candidates(start, choices, Rows::built);
  if (!all && copies_refused) return all;
  if (!all) return with_other_builds(all.refusal(), *family, start, choices);
  std::stable_sort((*all).begin(), (*all).end(),
                   [](const Plan& x, const Plan& y) { return x.cost < y.cost; });
  if (problem.groups > 0) (*all).front().reason = group_reason(*all);
  if (choices.batch_invariant) {
    for (Plan& each : *all) {
      each.reason += std::string(each.reason.empty() ? "" : "; ") +
                     "batch_invariant: each tile is summed along K by one CTA";
    }
  }
  return all;
}

Result<Plan> plan(const GemmProblem& problem, const DeviceFacts& device,
                  const PlanChoices& choices) {
  // A map a group only for who asks for it.
  PlanChoices wanted = choices;
  if (problem.groups > 0 && !choices.kernel && !choices.group_maps) wanted.group_maps = false;
  auto all = candidates(problem, device, wanted);
  if (!all) return all.refusal();
  return all->front();
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
  return refuse(RefusalCode::bad_choice, "the plan, ", plan.name(),
                ", is not what the choices beside it ask for: leave them out, or make the plan "
                "with them",
                all ? "" : " (" + all.reason() + ")");
}

Result<Plan> plan(const GemmOperands& operands, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto problem = describe(operands);
  if (!problem) return problem.refusal();
  return plan(*problem, device, choices);
}

}  // namespace warpwright
