#include "warpwright/plan/moe/moe_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/machines.h"
#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/plan/cost/device_facts.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

constexpr std::int64_t multiple_of(std::int64_t x, std::int64_t to) {
  return (x + to - 1) / to * to;
}

// Rows that begin at multiples of 128 bytes.
PlannedMatrix spaced_rows(DType type, std::int64_t rows, std::int64_t columns) {
  PlannedMatrix m = packed_matrix(type, rows, columns);
  m.row_stride = multiple_of(columns, 1024 / numeric::bits(type));
  return m;
}

// The scales of quantised rows; for blocks those of neighbouring rows lie side by side. Those that
// the tensor core multiplies lie by the rows of experts, in tiles.
PlannedMatrix scales_for(const MixtureProblem& p, std::int64_t rows, std::int64_t columns) {
  const Scaling scaling = p.scaling;
  if (scaling == Scaling::none) return {};
  if (p.is_micro()) {
    const DType type = p.micro_scale();
    return packed_matrix(type, block_scales::grouped_rows(p.slots(), p.experts()),
                         block_scales::padded_columns(columns, micro_block(type)));
  }
  if (scaling == Scaling::row_column) return packed_matrix(DType::f32, rows, 1);
  PlannedMatrix m = packed_matrix(DType::f32, rows, (columns + scale_block - 1) / scale_block);
  m.row_stride = 1;
  m.column_stride = multiple_of(rows, 4);
  return m;
}

MixtureParts<PlannedMatrix> mixture_parts(const MixtureProblem& p, FirstWay way) {
  MixtureParts<PlannedMatrix> parts;
  const DType operand = p.token_type();
  const std::int64_t rows = way.by_index ? p.tokens() : p.slots();
  // What is neither gathered nor quantised is x itself.
  parts.tokens = way.by_index && !p.quantises() ? p.x : spaced_rows(operand, rows, p.hidden());
  if (p.quantises()) parts.token_scales = scales_for(p, rows, p.hidden());
  parts.inner = spaced_rows(p.x.dtype, p.slots(), p.inner());
  if (p.quantises()) {
    parts.codes = spaced_rows(operand, p.slots(), p.inner());
    parts.code_scales = scales_for(p, p.slots(), p.inner());
  }
  parts.rows = spaced_rows(p.x.dtype, p.slots(), p.hidden());
  return parts;
}

MixtureLayout layout_of(const MixturePlan& plan) {
  MixtureLayout l;
  const auto take = [&](MixtureBytes& part, std::int64_t bytes) {
    part = {l.bytes, bytes};
    l.bytes = multiple_of(l.bytes + bytes, 256);
  };
  const MixtureProblem& p = plan.problem;
  constexpr std::int64_t word = sizeof(std::int32_t);
  take(l.status, word);
  take(l.offsets, word * (p.experts() + 1));
  take(l.slots, word * p.slots());
  take(l.rows, word * p.slots());
  const bool is_x = plan.way.by_index && !p.quantises();
  take(l.tokens, is_x ? 0 : extent_bytes(plan.parts.tokens));
  take(l.token_scales, extent_bytes(plan.parts.token_scales));
  if (!plan.way.fused) take(l.inner, extent_bytes(plan.parts.inner));
  take(l.codes, extent_bytes(plan.parts.codes));
  take(l.code_scales, extent_bytes(plan.parts.code_scales));
  take(l.results, extent_bytes(plan.parts.rows));
  take(l.first, plan.first.workspace_bytes);
  take(l.second, plan.second.workspace_bytes);
  return l;
}

// The plan of one product. Its tiles are not drawn: no flags in the workspace, which is so of any
// content before every launch.
Result<Plan> plan_of_product(const GemmProblem& problem, const char* which,
                             const DeviceFacts& device, const MixtureChoices& choices,
                             const std::optional<std::string>& kernel) {
  PlanChoices how;
  how.batch_invariant = choices.batch_invariant;
  how.kernel = kernel;
  how.tiles = kernel::TileSource::static_persistent;
  auto made = plan(problem, device, how);
  if (made && (*made).flag_bytes == 0) return made;
  if (made) {
    return refuse(RefusalCode::bad_choice, "the kernel ", (*made).kernel,
                  " keeps flags in its workspace; ",
                  as_rule("the products of a mixture keep none"));
  }
  Refusal why = made.refusal();
  why.reason = std::string("the product with ") + which + ": " + why.reason;
  return why;
}

// What a launch more takes, and what it gains to ask for weights early (1 to 4 us at 1 to 64
// tokens, from a launch to its first operands): an H200's, elsewhere as its description differs.
struct StepTimes {
  double launch = 2.5e-6;
  double early = 3e-6;
};
StepTimes step_times(const DeviceFacts& device) {
  if (device.is_model) return {};
  static const MachineNumbers& fitted = *known_machine("h200");
  StepTimes times;
  const MachineNumbers& n = numbers_of(device);
  times.launch += n.launch_seconds - fitted.launch_seconds;
  const auto start = [](const MachineNumbers& m) {
    const double clocks = m.start_clocks + m.cold_start_clocks + m.first_operand_clocks;
    return m.launch_seconds + clocks / m.clock_hz;
  };
  times.early *= start(n) / start(fitted);
  return times;
}

// Seconds that a step beside the products takes for its bytes.
double seconds_for_bytes(const MixturePlan& plan, MixtureStep step) {
  const double rate = std::max(plan.device.memory_bytes_per_second, 1.0);
  return plan.step_bytes(step) / (rate * numbers_of(plan.device).copy_share);
}

// Up to so many slots the launch that gathers sorts, where that is open. On an H100 it takes 1 to 7
// us less at 8 to 128 slots, as much at 256, and 1 to 3 more at 512.
constexpr std::int64_t most_sorted_with_gather = 128;

// Seconds of what a way of the first product needs beside it: launches, and their bytes.
double seconds_beside(const MixturePlan& plan) {
  const StepTimes times = step_times(plan.device);
  double seconds = plan.asks_early(MixtureStep::first) ? -times.early : 0;
  if (plan.sorts_with_gather) seconds += seconds_for_bytes(plan, MixtureStep::sort);
  for (const MixtureStep step : {MixtureStep::gather, MixtureStep::quantise}) {
    if (plan.takes(step)) seconds += times.launch + seconds_for_bytes(plan, step);
  }
  return seconds;
}

// Seconds that the whole mixture is predicted to take, for a choice among plans. On the model,
// which has no times, only the products.
double cost_of(const MixturePlan& plan) {
  double cost = plan.first.cost + plan.second.cost;
  if (plan.device.is_model) return cost;
  const StepTimes times = step_times(plan.device);
  for (const MixtureStep step : plan.steps()) {
    if (plan.asks_early(step)) cost -= times.early;
    if (step == MixtureStep::first || step == MixtureStep::second) continue;
    cost += times.launch + seconds_for_bytes(plan, step);
  }
  return cost;
}

// Are there kernels that quantise the rows of such a product?
bool can_quantise_rows(const MixtureProblem& p) {
  if (p.is_micro()) return true;
  return p.w13.dtype == DType::e4m3 && p.scaling == Scaling::blockwise;
}

// Why the first product cannot be asked for so, or nothing.
std::optional<Refusal> way_fault(const MixtureProblem& p, const MixtureChoices& choices) {
  if (!choices.quantises_in_epilogue.value_or(false)) return std::nullopt;
  if (can_quantise_rows(p)) return std::nullopt;
  return refuse(RefusalCode::bad_choice, "quantises_in_epilogue is asked for; ",
                as_rule("e4m3 weights with scales of blocks have it, and block-scaled ones"),
                ": the nearest is ", as_nearest("false"));
}

// Why the sort cannot be asked for so, or nothing.
std::optional<Refusal> sort_fault(const MixtureProblem& p, const MixtureChoices& choices) {
  using kernel::SortGatherKernel;
  if (choices.sort_parts &&
      !kernel::SortSlotsShape::serves_parts(p.slots(), p.experts(), *choices.sort_parts)) {
    return refuse(RefusalCode::bad_choice, "sort_parts is ", *choices.sort_parts, " of ", p.slots(),
                  " slots and ", p.experts(), " experts; ",
                  as_rule("there are 2 to ", kernel::SortSlotsShape::max_parts,
                          " parts, each with more slots than there are experts"),
                  ": the nearest is to leave it out");
  }
  if (!choices.sort_with_gather.value_or(false)) return std::nullopt;
  const auto refused = [](const auto&... why) {
    return refuse(RefusalCode::bad_choice, "sort_with_gather is asked for", why...,
                  ": the nearest is ", as_nearest("false"));
  };
  if (choices.by_index.value_or(false) && !p.is_micro()) {
    return refused(", and by_index; ", as_rule("tokens that are read by number are not gathered"));
  }
  if (p.slots() > SortGatherKernel::max_slots) {
    return refused(" of ", p.slots(), " slots; ",
                   as_rule("one launch sorts and gathers up to ", SortGatherKernel::max_slots));
  }
  if (SortGatherKernel::serves(p.slots(), p.experts(), p.is_micro())) return std::nullopt;
  return refused(" of ", p.slots(), " slots and ", p.experts(), " experts; ",
                 as_rule("one launch sorts and gathers with scales in tiles where their product is "
                         "up to ",
                         SortGatherKernel::max_pairs));
}

// Does one launch sort and gather for such a plan? Asked for, it does or there is no such plan.
bool sorts_with_gather(const MixturePlan& plan, const MixtureChoices& choices) {
  const MixtureProblem& p = plan.problem;
  const bool few = p.tokens() > 0 && p.slots() <= most_sorted_with_gather;
  const bool wanted = choices.sort_with_gather.value_or(few && !choices.sort_parts);
  return wanted && plan.gathers() &&
         kernel::SortGatherKernel::serves(p.slots(), p.experts(), p.is_micro());
}

// The first product in the way that takes least, of those that are left open; on the model, which
// has no times, the one with the fewest launches.
std::optional<Refusal> choose_first(MixturePlan& plan, const MixtureChoices& choices) {
  const MixtureProblem& p = plan.problem;
  if (auto r = way_fault(p, choices)) return r;
  if (auto r = sort_fault(p, choices)) return r;
  // Rows keep their bits where the way does not depend on the number of tokens: without that
  // epilogue they are rounded to bf16 before they are quantised.
  const bool is_open = !choices.batch_invariant || choices.quantises_in_epilogue.value_or(false);
  const bool can_fuse = can_quantise_rows(p) && is_open;
  std::optional<Refusal> why;
  std::optional<MixturePlan> best;
  double least = 0;
  for (const bool by_index : {true, false}) {
    if (choices.by_index.value_or(by_index) != by_index) continue;
    for (const bool fused : {true, false}) {
      if (choices.quantises_in_epilogue.value_or(fused) != fused || (fused && !can_fuse)) continue;
      MixturePlan tried = plan;
      tried.way = {by_index, fused};
      tried.sorts_with_gather = sorts_with_gather(tried, choices);
      if (choices.sort_with_gather.value_or(false) && !tried.sorts_with_gather) continue;
      tried.parts = mixture_parts(p, tried.way);
      auto made = plan_of_product(first_product(p, tried.parts, tried.way, nullptr), "w13",
                                  plan.device, choices, choices.first_kernel);
      if (!made) {
        why = made.refusal();  // the last is the plainest way
        continue;
      }
      tried.first = *std::move(made);
      const double seconds =
          plan.device.is_model ? tried.launches() : tried.first.cost + seconds_beside(tried);
      if (best && seconds >= least) continue;
      least = seconds;
      best = std::move(tried);
    }
  }
  if (!best) return why;
  plan = *std::move(best);
  return std::nullopt;
}

}  // namespace

Result<MixturePlan> plan_moe(const MixtureProblem& problem, const DeviceFacts& device,
                             const MixtureChoices& choices) {
  if (auto r = mixture_fault(problem)) return *r;
  if (device.architecture < 90) {
    return refuse(RefusalCode::no_device, "device ", device.name, " is sm_", device.architecture,
                  "; ", as_rule("slots are sorted on sm_90 and newer"), ": the nearest is ",
                  as_nearest("h200"));
  }
  MixturePlan plan;
  plan.problem = problem;
  plan.problem.gate.reset();
  plan.device = device;
  plan.early_weights = choices.early_weights.value_or(true);
  plan.sort_parts = choices.sort_parts.value_or(0);
  if (auto r = choose_first(plan, choices)) return *r;
  auto second = plan_of_product(second_product(plan.problem, plan.parts, nullptr), "w2", device,
                                choices, choices.second_kernel);
  if (!second) return second.refusal();
  plan.second = *std::move(second);
  plan.layout = layout_of(plan);
  plan.cost = cost_of(plan);
  return plan;
}

Result<MixturePlan> plan_moe(const MixtureOperands& operands, const DeviceFacts& device,
                             const MixtureChoices& choices) {
  const auto problem = describe(operands);
  if (!problem) return problem.refusal();
  return plan_moe(*problem, device, choices);
}

std::string MixturePlan::name() const {
  return "moe by " + first.name() + " and " + second.name();
}

bool MixturePlan::gathers() const {
  // Only the sort knows where a token's scales lie.
  return !way.by_index || problem.is_micro();
}

bool MixturePlan::takes(MixtureStep step) const {
  if (problem.tokens() == 0) return false;
  if (step == MixtureStep::gather) return gathers() && !sorts_with_gather;
  return step != MixtureStep::quantise || (problem.quantises() && !way.fused);
}

std::vector<MixtureStep> MixturePlan::steps() const {
  using enum MixtureStep;
  if (problem.tokens() == 0) return {};
  std::vector<MixtureStep> all;
  for (const MixtureStep step : {sort, gather, first, quantise, second, sum}) {
    if (takes(step)) all.push_back(step);
  }
  return all;
}

}  // namespace warpwright
