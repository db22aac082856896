#include "warpwright/plan/moe/moe_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/plan/moe/layers.h"
#include "warpwright/plan/moe/moe_prediction.h"
#include "warpwright/plan/moe/steps.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

// The row that has one of the products, or would have it in steps.
const StepRow& product_row(const MixturePlan& plan, Plan MixturePlan::*product) {
  const auto rows = step_rows();
  return *std::ranges::find_if(rows, [&](const StepRow& row) {
    return row.product != nullptr && row.product->plan == product && row.there(plan);
  });
}

// Plans the product of a row. Its tiles are not drawn: no flags in the workspace, which is so of
// any content before every launch.
std::optional<Refusal> plan_product(MixturePlan& plan, const StepRow& row,
                                    const MixtureChoices& choices) {
  PlanChoices how;
  how.batch_invariant = choices.batch_invariant;
  how.kernel = choices.*row.product->kernel;
  how.tiles = kernel::TileSource::static_persistent;
  if (plan.way.one_launch()) how.cluster = atom::ClusterShape{1, 1};
  auto made =
      warpwright::plan(row.product->problem(plan.problem, plan.parts, plan.way), plan.device, how);
  if (!made) {
    Refusal why = made.refusal();
    why.reason = std::string("the product with ") + row.product->weights + ": " + why.reason;
    return why;
  }
  if ((*made).flag_bytes > 0) {
    return refuse(RefusalCode::bad_choice, "the kernel ", (*made).kernel,
                  " keeps flags in its workspace; ",
                  as_rule("the products of a mixture keep none"));
  }
  if (plan.way.one_launch() && ((*made).a_copy || (*made).b_copy)) {
    return refuse(RefusalCode::bad_choice, "one_launch is asked for, and rows of x or of ",
                  row.product->weights, " do not begin at multiples of 16 bytes; ",
                  as_rule("one launch reads them as they lie: copies are launches of their own"),
                  ": the nearest is ", as_nearest("false"));
  }
  plan.*row.product->plan = *std::move(made);
  return std::nullopt;
}

// Up to so many slots the launch that gathers sorts, where that is open (docs/log/moe.md, "Who
// sorts").
std::int64_t most_sorted_with_gather(const MixtureProblem& p) {
  return p.is_packed() ? 1024 : 256;
}

// Seconds that the whole mixture is predicted to take. On the model, which has no times, plans are
// compared by their products, and ways (`to_choose`) by their launches.
double cost_of(const MixturePlan& plan, bool to_choose) {
  if (!plan.device.is_model) {
    return step_times(plan, [](const Plan& product) { return ProductTime{product.cost}; }).seconds;
  }
  if (to_choose) return plan.launches();
  return plan.first.cost + plan.second.cost;
}

// Are there kernels that quantise the rows of such a product?
bool can_quantise_rows(const MixtureProblem& p) {
  if (p.is_micro()) return true;
  return p.w13.dtype == DType::e4m3 && p.scaling == Scaling::blockwise && !p.has_small_blocks();
}

// Why the first product cannot be asked for so, or nothing.
std::optional<Refusal> way_fault(const MixtureProblem& p, const MixtureChoices& choices) {
  if (!choices.quantises_in_epilogue.value_or(false)) return std::nullopt;
  if (can_quantise_rows(p)) return std::nullopt;
  return refuse(RefusalCode::bad_choice, "quantises_in_epilogue is asked for; ",
                as_rule("e4m3 weights with scales of blocks of 128 x 128 have it, and block-scaled "
                        "ones"),
                ": the nearest is ", as_nearest("false"));
}

// Why tokens cannot be read by number, or nothing.
std::optional<Refusal> index_fault(const MixtureProblem& p, const MixtureChoices& choices) {
  if (!choices.by_index.value_or(false) || !p.has_small_blocks()) return std::nullopt;
  return refuse(RefusalCode::bad_choice, "by_index is asked for, and scales are of ",
                shape_of(p.scale_block(), p.scale_block()), "; ",
                as_rule("tokens with such scales are put into the order of the experts"),
                ": the nearest is ", as_nearest("false"));
}

// Can a launch of its own gate the rows of such a product? Scales in tiles are a gated product's.
bool can_gate_behind(const MixtureProblem& p) {
  return p.is_gated && !p.is_micro();
}

// Must a launch gate them?
bool must_gate_behind(const MixtureProblem& p) {
  return p.is_gated && (gates_behind(p.activation) || p.has_small_blocks());
}

// Why the gate cannot be asked for so, or nothing.
std::optional<Refusal> gate_fault(const MixtureProblem& p, const MixtureChoices& choices) {
  for (const auto& [asked, word] : {std::pair{choices.gates_in_epilogue, "gates_in_epilogue"},
                                    {choices.quantises_in_epilogue, "quantises_in_epilogue"}}) {
    if (!asked.value_or(false) || !must_gate_behind(p)) continue;
    return refuse(RefusalCode::bad_choice, word, " is asked for, and ",
                  p.has_small_blocks()
                      ? "scales are of " + shape_of(p.scale_block(), p.scale_block())
                      : std::string("activation is ") + name(p.activation),
                  "; ", as_rule("such rows are gated by a launch of their own"),
                  ": the nearest is ", as_nearest("false"));
  }
  if (choices.gates_in_epilogue.value_or(true)) return std::nullopt;
  if (choices.quantises_in_epilogue.value_or(false)) {
    return refuse(RefusalCode::bad_choice,
                  "gates_in_epilogue is false, and quantises_in_epilogue is asked for; ",
                  as_rule("rows that are quantised there are gated there"), ": the nearest is ",
                  as_nearest("true"));
  }
  if (can_gate_behind(p)) return std::nullopt;
  return refuse(RefusalCode::bad_choice, "gates_in_epilogue is false; ",
                as_rule("rows are gated by a launch where there is a gate, and scales lie in no "
                        "tiles"),
                ": the nearest is ", as_nearest("true"));
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

// Why what only a layer with a router has cannot be asked for, or nothing.
std::optional<Refusal> unrouted_fault(const MixtureProblem& p, const MixtureChoices& choices) {
  if (p.is_routed()) return std::nullopt;
  for (const auto& [is_asked, word] :
       {std::pair{choices.sort_with_gather.value_or(false), "sort_with_gather"},
        {choices.sort_parts.has_value(), "sort_parts"},
        {!choices.by_index.value_or(true), "by_index"}}) {
    if (!is_asked) continue;
    return refuse(RefusalCode::bad_choice, word, " is given, and there is no router; ",
                  as_rule("tokens are multiplied in their own order: leave it out"));
  }
  return std::nullopt;
}

// Does one launch sort and gather, of a plan in this way, where that is open or asked for?
bool sorts_rows(const MixtureProblem& p, const MixtureWay& way, const MixtureChoices& choices) {
  const bool few = p.tokens() > 0 && p.slots() <= most_sorted_with_gather(p);
  if (!p.is_routed()) return false;
  const bool wanted = choices.sort_with_gather.value_or(few && !choices.sort_parts);
  return wanted && (!way.by_index || p.is_micro()) &&
         kernel::SortGatherKernel::serves(p.slots(), p.experts(), p.is_micro());
}

// Weights that are not packed have gated tiles for few tokens. From so many rows an expert on,
// tiles of several widths may gain what a launch more takes (docs/log/moe.md).
constexpr std::int64_t rows_gated_behind = 64;

// What may become of rows between the products; the rest of these ways is open. Choices that there
// is no such way for are refused before.
std::vector<MixtureWay> open_between(const MixtureProblem& p, const MixtureChoices& choices) {
  // Rows keep their bits where the way does not depend on the number of tokens. Without that
  // epilogue they are rounded to bf16 before they are quantised, and before they are gated.
  const bool any = !choices.batch_invariant;
  const bool fuses = choices.quantises_in_epilogue.value_or(any && can_quantise_rows(p));
  if (must_gate_behind(p)) return {{.gates_behind = true}};
  // Few dense kernels are gated: the others' products are gated behind, for any number of tokens.
  const bool is_narrow = p.quantises() || p.is_packed();
  if (!any && !p.is_routed() && is_narrow && can_gate_behind(p) && !choices.gates_in_epilogue) {
    return {{.gates_behind = true}};
  }
  const bool helps = can_gate_behind(p) && (p.is_packed() || !p.is_routed() ||
                                            p.slots() >= rows_gated_behind * p.total());
  const bool behind = !choices.gates_in_epilogue.value_or(!(any && helps));
  std::vector<MixtureWay> all;
  const bool by_product = choices.gates_in_epilogue.value_or(true);
  const bool by_launch = !choices.quantises_in_epilogue.value_or(false);
  if (by_product && fuses) all.push_back({.fused = true});
  if (by_product && by_launch) all.push_back({});
  if (behind && by_launch) all.push_back({.gates_behind = true});
  return all;
}

// The ways that the choices leave open. The first of two that take as long is taken. `layer` is the
// kernel of one launch, where that is asked for.
std::vector<MixtureWay> open_ways(const MixtureProblem& p, const DeviceFacts& device,
                                  const MixtureChoices& choices, int layer) {
  if (layer >= 0) {
    return {layer_way(p, device, choices, layer)};
  }
  std::vector<MixtureWay> ways;
  for (const bool by_index : {true, false}) {
    if (!p.is_routed() && !by_index) continue;
    if (choices.by_index.value_or(by_index) != by_index) continue;
    if (by_index && p.has_small_blocks() && p.is_routed()) continue;
    for (MixtureWay way : open_between(p, choices)) {
      way.by_index = by_index;
      way.early = choices.early_weights.value_or(true);
      way.sort_parts = choices.sort_parts.value_or(0);
      way.sorts_rows = sorts_rows(p, way, choices);
      if (choices.sort_with_gather.value_or(false) && !way.sorts_rows) continue;
      ways.push_back(way);
    }
  }
  return ways;
}

// The plan by one launch of the kernel `layer`, or, where that is negative, by steps.
Result<MixturePlan> plan_by(const MixtureProblem& problem, const DeviceFacts& device,
                            const MixtureChoices& choices, int layer) {
  // The way that takes least with its first product; on the model, which has no times, the one with
  // the fewest launches. What the second product is does not depend on it.
  std::optional<MixturePlan> best;
  std::optional<Refusal> why;
  double least = 0;
  for (const MixtureWay& way : open_ways(problem, device, choices, layer)) {
    MixturePlan tried;
    tried.problem = problem;
    tried.problem.gate.reset();
    tried.problem.routed_scaling_factor = 1;
    tried.device = device;
    tried.way = way;
    tried.parts = planned_parts(tried.problem, way);
    why = plan_product(tried, product_row(tried, &MixturePlan::first), choices);
    if (why) continue;
    const double seconds = cost_of(tried, true);
    if (best && seconds >= least) continue;
    least = seconds;
    best = std::move(tried);
  }
  if (!best) return *why;
  MixturePlan plan = *std::move(best);
  if (auto r = plan_product(plan, product_row(plan, &MixturePlan::second), choices)) return *r;
  plan.layout = layout_of(plan);
  plan.cost = cost_of(plan, false);
  return plan;
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
  if (auto r = way_fault(problem, choices)) return *r;
  if (auto r = gate_fault(problem, choices)) return *r;
  if (auto r = index_fault(problem, choices)) return *r;
  if (auto r = unrouted_fault(problem, choices)) return *r;
  if (auto r = sort_fault(problem, choices)) return *r;
  if (choices.one_launch.value_or(pays_in_one_launch(problem, device, choices))) {
    const auto layer = layer_of(problem, device, choices);
    auto plan =
        layer ? plan_by(problem, device, choices, *layer) : Result<MixturePlan>(layer.refusal());
    if (plan || choices.one_launch) return plan;
  }
  return plan_by(problem, device, choices, -1);
}

Result<MixturePlan> plan_moe(const MixtureOperands& operands, const DeviceFacts& device,
                             const MixtureChoices& choices) {
  const auto problem = describe(operands);
  if (!problem) return problem.refusal();
  return plan_moe(*problem, device, choices);
}

std::string MixturePlan::name() const {
  for (const StepRow& row : rows_of(*this)) {
    if (row.whole) return "moe by " + std::string(row.kernel);
  }
  return "moe by " + first.name() + " and " + second.name();
}

}  // namespace warpwright
