#include "warpwright/simulation/moe.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "warpwright/device/launch_parts.h"
#include "warpwright/plan/moe/moe_grids.h"
#include "warpwright/simulation/model_kernels.h"
#include "warpwright/simulation/model_parts.h"

namespace warpwright::device {
namespace {

// The names of parts in findings.
constexpr std::array names = {"x",
                              "topk_ids",
                              "topk_weights",
                              "topk_weights",
                              "the scale of x",
                              "the scale of inner rows",
                              "scale_x",
                              "shared_output",
                              "d",
                              "flags",
                              "status",
                              "offsets",
                              "slots",
                              "rows",
                              "tokens",
                              "token scales",
                              "gates and ups",
                              "inner rows",
                              "codes",
                              "code scales",
                              "results",
                              "partial sums"};
static_assert(names.size() == mixture_parts);

// What a step says that it reads and writes; a product's operands are those of its plan.
Allocations touched_by(const MixtureOperands& operands, const MixtureGrids& mixture,
                       const MixtureStepGrids& step, const Grid& grid) {
  const OffsetType ids = operands.id_type;
  const StepRow& row = *step.row;
  Allocations all;
  if (row.product != nullptr) {
    all = allocations_of(*step.product, grid.copies ? step.operands : step.grids.operands, grid,
                         step.workspace);
  }
  if (row.whole) {
    for (const auto& [w, name] : {std::pair{&operands.w13, "w13"},
                                  {&operands.w2, "w2"},
                                  {&operands.scale_w13, "scale_w13"},
                                  {&operands.scale_w2, "scale_w2"},
                                  {&operands.bias13, "bias13"},
                                  {&operands.bias2, "bias2"}}) {
      all.add(stored(operands, *w), name);
    }
  }
  for (int i = 0; i < mixture_parts; ++i) {
    const auto part = static_cast<MixturePart>(i);
    const bool is_ids = part == MixturePart::topk_ids;
    const bool writes = row.writes.has(part);
    if (row.product != nullptr ? !(is_ids && step.counts) : !(writes || row.reads.has(part))) {
      continue;
    }
    MatrixView v = mixture.parts[part];
    // In one launch d may be the x that it reads.
    if (row.whole && part == MixturePart::x && v.data == operands.d.data) continue;
    if (is_ids && ids == OffsetType::int64) {  // as words of 4 bytes
      v.columns *= 2;
      v.row_stride *= 2;
    }
    all.add(v, names[static_cast<std::size_t>(i)], writes);
  }
  return all;
}

}  // namespace

Result<model::Report> launch_on_model(const MixturePlan& plan, const MixtureOperands& operands,
                                      const ModelOptions& options, void* workspace,
                                      const GridBody& body) {
  if (auto r = mismatch(plan, operands)) return *r;
  if (!plan.device.is_model) {
    return refuse(RefusalCode::wrong_device, "the plan was made for device ", plan.device.name,
                  "; ", as_rule("plan for the model to run on it"));
  }
  if (plan.problem.tokens() == 0) return model::Report{};
  auto own = Workspace();
  if (workspace == nullptr) {
    auto made = make_workspace(plan);
    if (!made) return made.refusal();
    own = *std::move(made);
    workspace = own.data();
    std::memset(workspace, 0, static_cast<std::size_t>(plan.flag_bytes()));
  }
  const auto all = std::make_unique<MixtureGrids>();
  bind_mixture(plan, operands, workspace, encode_for_model, *all);
  std::vector<model::GridLaunch> launches;
  std::deque<std::vector<model::Allocation>> touched;
  for (int times = 0; times < options.launches; ++times) {
    for (int i = 0; i < all->count; ++i) {
      const MixtureStepGrids& step = all->steps[static_cast<std::size_t>(i)];
      for (int j = 0; j < step.grids.count; ++j) {
        const Grid& grid = step.grids.grids[static_cast<std::size_t>(j)];
        const ModelKernel* const kernel = model_kernel(grid.kernel);
        if (kernel == nullptr) {
          return refuse(RefusalCode::no_kernel,
                        "the plan's kernel is not among those of this build");
        }
        const Allocations memory = touched_by(operands, *all, step, grid);
        touched.push_back(memory.all());
        auto runs = body ? body(grid, touched.back()) : nullptr;
        if (!runs) runs = [kernel, &grid] { kernel->run(grid.params.data()); };
        launches.push_back(grid_launch(grid, memory, std::move(runs)));
        if (!step.row->writes.has(MixturePart::flags)) continue;
        launches.back().ended = [workspace, &plan] {
          return flags_left(static_cast<const std::byte*>(workspace), plan.flag_bytes());
        };
      }
    }
  }
  return run_on_model(launches, plan.device, options);
}

}  // namespace warpwright::device
