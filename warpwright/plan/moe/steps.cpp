#include "warpwright/plan/moe/steps.h"

#include <algorithm>
#include <iterator>

#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/moe/sort_shape.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/moe/moe_grids.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/slot_ids.h"

namespace warpwright {
namespace {

// Only the sort knows where a token's scales in tiles lie.
bool orders_tokens(const MixturePlan& p) {
  return !p.way.by_index || p.problem.is_micro();
}
bool makes_beside_sort(const MixturePlan& p) {
  return !orders_tokens(p) && p.problem.makes_tokens();
}
bool quantises_beside_sort(const MixturePlan& p) {
  return makes_beside_sort(p) && p.problem.quantises();
}

constexpr StepProduct by_w13 = {{&MixturePlan::first, &MixtureChoices::first_kernel, "w13"},
                                &first_product<PlannedMatrix>,
                                &first_product<MatrixView>};
constexpr StepProduct by_w2 = {{&MixturePlan::second, &MixtureChoices::second_kernel, "w2"},
                               &second_product<PlannedMatrix>,
                               &second_product<MatrixView>};

int sort_launches(const MixturePlan& p) {
  kernel::SortSlotsParams sort;
  sort.tokens = static_cast<int>(p.problem.tokens());
  sort.top_k = static_cast<int>(p.problem.top_k());
  kernel::SortSlotsShape::shape(sort, p.way.sort_parts);
  return kernel::SortSlotsShape::launches(sort);
}

// The rows, in a scope that has the names of steps and parts.
struct StepTable {
  using P = MixturePlan;
  using enum MixtureStep;
  using enum MixturePart;
  static constexpr PartSet sorted = {status, offsets, slots, rows};

  // A kernel that does all of a layer.
  template <int number>
  static constexpr StepRow layer_row = {
      .step = layer,
      .name = "layer",
      .kernel = kernel::hopper::layer_rows[number].name,
      .there = [](const P& p) { return p.way.layer == number; },
      .reads = {x, topk_ids, topk_weights, shared_output},
      .writes = kernel::by_warps(kernel::hopper::layer_rows[number].config)
                    ? PartSet{flags, status, inner, d}
                    : PartSet{flags, status, inner, partials, d},
      .bind = bind_layer,
      .whole = true,
      .says = kernel::by_warps(kernel::hopper::layer_rows[number].config)
                  ? "one launch does all of it: each CTA sorts the slots for itself, and draws "
                    "blocks of either product; its warps multiply by themselves, and add up the "
                    "columns of the second"
                  : "one launch does all of it: each CTA sorts the slots for itself, and draws "
                    "tiles of either product; who completes a token's columns adds them up",
      .code = {kernel::hopper::layer_rows[number].name.data(), "SlotTiles", "TicketScheduler"}};
  // clang-format off
  static constexpr StepRow table[] = {
      {.step = sort, .name = "sort", .kernel = sort_slots_kernel,
       .there = [](const P& p) { return !p.way.sorts_rows && !makes_beside_sort(p); },
       .reads = {topk_ids}, .writes = sorted,
       .bind = bind_sort, .grids = sort_launches, .trips = 4, .routes = true,
       .code = {"SortSlotsKernel", "SortCounts"}},

      {.step = sort, .name = "sort", .kernel = sort_slots_kernel,
       .there = quantises_beside_sort,
       .reads = {topk_ids, x, input_weights}, .writes = sorted | PartSet{tokens, token_scales},
       .bind = bind_sort, .grids = sort_launches, .trips = 4, .routes = true,
       .says = "the launch of the sort quantises tokens beside it",
       .code = {"SortSlotsKernel", "SortCounts"}},

      {.step = sort, .name = "sort", .kernel = sort_slots_kernel,
       .there = [](const P& p) { return makes_beside_sort(p) && !p.problem.quantises(); },
       .reads = {topk_ids, x, input_weights}, .writes = sorted | PartSet{tokens},
       .bind = bind_sort, .grids = sort_launches, .trips = 4, .routes = true,
       .says = "the launch of the sort multiplies tokens by router weights beside it",
       .code = {"SortSlotsKernel", "SortCounts"}},

      {.step = sort, .name = "sort", .kernel = sort_gather_kernel,
       .there = [](const P& p) { return p.way.sorts_rows; },
       .reads = {topk_ids, x, input_weights, factor_x, scale_x},
       .writes = sorted | PartSet{tokens, token_scales},
       .bind = bind_sort_gather, .routes = true, .only_here = true,
       .says = "the launch of the sort moves tokens too",
       .says_in_tiles = "tokens become codes there, where it is known where their scales lie",
       .code = {"SortGatherKernel"}},

      {.step = gather, .name = "gather", .kernel = gather_rows_kernel,
       .there = [](const P& p) { return orders_tokens(p) && !p.way.sorts_rows; },
       .reads = {x, input_weights, factor_x, scale_x, offsets, rows},
       .writes = {tokens, token_scales},
       .bind = bind_gather, .routes = true, .only_here = true,
       .says_in_tiles = "tokens become codes behind the sort, which knows where their scales lie",
       .code = {"GatherRowsKernel", "TokenRowsMover", "MicroRowsMover"}},

      {.step = gather, .name = "gather", .kernel = gather_rows_kernel,
       .there = [](const P& p) { return !p.problem.is_routed() && p.problem.makes_tokens(); },
       .reads = {x}, .writes = {tokens, token_scales},
       .bind = bind_gather,
       .says = "tokens are quantised by a launch of their own",
       .code = {"GatherRowsKernel", "TokenRowsMover"}},

      {.step = first, .name = "first", .product = &by_w13,
       .there = [](const P& p) { return !p.way.fused && !p.way.gates_behind; },
       .reads = {tokens, token_scales, offsets, slots}, .writes = {inner}},

      {.step = first, .name = "first", .product = &by_w13,
       .there = [](const P& p) { return p.way.gates_behind; },
       .reads = {tokens, token_scales, offsets, slots}, .writes = {gate_up}},

      {.step = first, .name = "first", .product = &by_w13,
       .there = [](const P& p) { return p.way.fused; },
       .reads = {tokens, token_scales, offsets, slots}, .writes = {codes, code_scales},
       .says = "the first product writes % codes and their scales itself"},

      {.step = gate, .name = "gate", .kernel = gate_rows_kernel,
       .there = [](const P& p) { return p.way.gates_behind && !p.problem.quantises(); },
       .reads = {gate_up}, .writes = {inner},
       .bind = bind_gate,
       .says = "rows between the products are gated by a launch of their own",
       .code = {"GateRowsKernel", "TokenRowsMover"}},

      {.step = gate, .name = "gate", .kernel = gate_rows_kernel,
       .there = [](const P& p) { return p.way.gates_behind && p.problem.quantises(); },
       .reads = {gate_up}, .writes = {codes, code_scales},
       .bind = bind_gate,
       .says = "rows between the products are gated and quantised by a launch of their own",
       .code = {"GateRowsKernel", "TokenRowsMover"}},

      {.step = quantise, .name = "quantise", .kernel = gather_rows_kernel,
       .there = [](const P& p) {
         return !p.way.fused && !p.way.gates_behind && p.problem.quantises();
       },
       .reads = {inner, factor_inner, offsets}, .writes = {codes, code_scales},
       .bind = bind_quantise,
       .says = "rows between the products are quantised by a launch of their own",
       .code = {"GatherRowsKernel", "TokenRowsMover", "MicroRowsMover"}},

      {.step = second, .name = "second", .product = &by_w2,
       .there = [](const P& p) { return p.problem.is_routed(); },
       .reads = {inner, codes, code_scales, offsets}, .writes = {results}},

      {.step = second, .name = "second", .product = &by_w2,
       .there = [](const P& p) { return !p.problem.is_routed(); },
       .reads = {inner, codes, code_scales}, .writes = {d}},

      {.step = sum, .name = "sum", .kernel = sum_slots_kernel,
       .there = [](const P&) { return true; },
       .reads = {results, topk_weights, shared_output, rows}, .writes = {d},
       .bind = bind_sum, .routes = true, .only_here = true,
       .code = {"SumSlotsKernel", "SlotAdder"}},

      layer_row<0>, layer_row<1>, layer_row<2>, layer_row<3>, layer_row<4>, layer_row<5>,
      layer_row<6>, layer_row<7>, layer_row<8>,
  };
  // clang-format on
  static_assert(kernel::layer_count == 9);
};

}  // namespace

std::span<const StepRow> step_rows() {
  return StepTable::table;
}

namespace {

const StepRow* row_of(const MixturePlan& plan, MixtureStep step) {
  for (const StepRow& row : rows_of(plan)) {
    if (row.step == step) return &row;
  }
  return nullptr;
}

// A product's own grids: its kernel, and that of copies before it.
int grids_of(const Plan& product) {
  return 1 + (product.a_copy || product.b_copy ? 1 : 0);
}

int launches_of(const MixturePlan& plan, const StepRow& row) {
  if (row.product != nullptr) return grids_of(plan.*row.product->plan);
  return row.grids != nullptr ? row.grids(plan) : 1;
}

double share_here(const MixtureProblem& p) {
  return static_cast<double>(p.experts()) / static_cast<double>(p.total());
}

// The numbers that the sort makes are moved by it; steps behind it find the few bytes in L2.
bool is_number(MixturePart part) {
  return part >= MixturePart::status && part <= MixturePart::rows;
}

// The elements of a part.
double size_of(const MixturePlan& plan, MixturePart part) {
  const PlannedMatrix& m = plan.parts[part];
  const double size =
      static_cast<double>(m.rows * m.columns * m.batch) * numeric::bits(m.dtype) / 8;
  return part == MixturePart::topk_ids ? size * offset_bytes(plan.problem.id_type) / 4 : size;
}

// What a layer in one launch moves: rows between the products and of slots stay in L2.
double whole_bytes(const MixturePlan& plan) {
  double bytes = size_of(plan, MixturePart::d) + size_of(plan, MixturePart::shared_output);
  for (const MixtureProduct& each : mixture_products) {
    bytes += moved_bytes((plan.*each.plan).problem);
  }
  return bytes;
}

// Is its kernel one that asks for weights early, and reads them where they are?
bool can_ask_early(const Plan& product) {
  return product.ctas > 0 && product.facts().asks_early && grids_of(product) == 1;
}

PlannedStep planned_step(const MixturePlan& plan, const StepRow& row) {
  PlannedStep step{.step = row.step, .name = row.name, .kernel = std::string(row.kernel)};
  if (row.product != nullptr) {
    const Plan& product = plan.*row.product->plan;
    step.kernel = product.name();
    step.operations = share_here(plan.problem) * operations(product.problem);
  }
  step.launches = launches_of(plan, row);
  if (row.whole) {
    step.operations = share_here(plan.problem) *
                      (operations(plan.first.problem) + operations(plan.second.problem));
  }
  step.bytes = bytes_of(plan, row);
  step.asks_early = asks_early(plan, row);
  const DeviceFacts& device = plan.device;
  if (device.memory_bytes_per_second > 0) {
    const double rate = tensor_rate(device, plan.problem.token_type());
    step.floor = std::max(step.bytes / device.memory_bytes_per_second,
                          rate > 0 ? step.operations / rate : 0);
  }
  return step;
}

}  // namespace

double bytes_of(const MixturePlan& plan, const StepRow& row) {
  if (row.product != nullptr) return moved_bytes((plan.*row.product->plan).problem);
  if (row.whole) return whole_bytes(plan);
  double bytes = 0;
  for (int i = 0; i < mixture_parts; ++i) {
    const auto part = static_cast<MixturePart>(i);
    const bool is_written = row.writes.has(part);
    if (!is_written && (!row.reads.has(part) || is_number(part))) continue;
    const bool of_slots = part >= MixturePart::tokens;
    bytes += (row.only_here && of_slots ? share_here(plan.problem) : 1) * size_of(plan, part);
  }
  return bytes;
}

bool is_there(const StepRow& row, const MixturePlan& plan) {
  if (row.whole != plan.way.one_launch() || (row.routes && !plan.problem.is_routed())) return false;
  return row.there(plan);
}

std::vector<std::reference_wrapper<const StepRow>> rows_of(const MixturePlan& plan) {
  std::vector<std::reference_wrapper<const StepRow>> rows;
  if (plan.problem.tokens() == 0) return rows;
  std::ranges::copy_if(step_rows(), std::back_inserter(rows),
                       [&](const StepRow& row) { return is_there(row, plan); });
  return rows;
}

bool asks_early(const MixturePlan& plan, const StepRow& row) {
  if (!plan.way.early || row.product == nullptr) return false;
  const StepRow* before = nullptr;
  for (const StepRow& each : step_rows()) {
    if (&each == &row) break;
    if (is_there(each, plan)) before = &each;
  }
  const bool knows_tiles =
      before == nullptr || !before->writes.has(MixturePart::offsets) || plan.counts_slots();
  return knows_tiles && can_ask_early(plan.*row.product->plan);
}

MixtureLayout layout_of(const MixturePlan& plan) {
  MixtureLayout layout;
  const auto rows = rows_of(plan);
  const auto take = [&layout](MixtureBytes& part, std::int64_t bytes) {
    part = {layout.bytes, bytes};
    layout.bytes = (layout.bytes + bytes + 255) / 256 * 256;
  };
  for (int i = first_own_part; i < mixture_parts; ++i) {
    const auto part = static_cast<MixturePart>(i);
    const auto writes = [&](const StepRow& row) { return row.writes.has(part); };
    if (std::ranges::any_of(rows, writes)) take(layout[part], extent_bytes(plan.parts[part]));
  }
  for (const StepRow& row : rows) {
    if (row.product == nullptr) continue;
    take(layout.products[static_cast<std::size_t>(row.step)],
         (plan.*row.product->plan).workspace_bytes);
  }
  return layout;
}

const char* name(MixtureStep step) {
  const auto rows = step_rows();
  return std::ranges::find(rows, step, &StepRow::step)->name;
}

std::vector<PlannedStep> MixturePlan::steps() const {
  std::vector<PlannedStep> all;
  for (const StepRow& row : rows_of(*this)) all.push_back(planned_step(*this, row));
  return all;
}

bool MixturePlan::takes(MixtureStep step) const {
  return row_of(*this, step) != nullptr;
}

int MixturePlan::launches() const {
  int all = 0;
  for (const StepRow& row : rows_of(*this)) all += launches_of(*this, row);
  return all;
}

bool MixturePlan::asks_early(MixtureStep step) const {
  const StepRow* const row = row_of(*this, step);
  return row != nullptr && warpwright::asks_early(*this, *row);
}

bool MixturePlan::counts_slots() const {
  return way.sorts_rows && tile::OffsetsAhead::serve(problem.slots(), problem.experts());
}

}  // namespace warpwright
