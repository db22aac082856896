#include "warpwright/device/model.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "warpwright/device/launch_parts.h"
#include "warpwright/device/model_kernels.h"
#include "warpwright/device/model_parts.h"

namespace warpwright::device {
namespace {

constexpr std::align_val_t workspace_alignment{256};

// Memory that ends with its owner.
std::shared_ptr<void> host_memory(std::int64_t bytes) {
  const std::size_t size = static_cast<std::size_t>(bytes) + 1;
  std::shared_ptr<void> memory(::operator new(size, workspace_alignment),
                               [](void* p) { ::operator delete(p, workspace_alignment); });
  std::fill_n(static_cast<std::byte*>(memory.get()), size, std::byte{0xff});
  return memory;
}

// How a grid is run that only prepares the product. The timeline and the decisions that a reduction
// counts are those of the product; this one keeps its schedule, which the seed gives.
ModelOptions beside(const ModelOptions& options) {
  ModelOptions how = options;
  how.only.reset();
  how.record_decisions = false;
  how.on_tile = nullptr;
  how.trace = nullptr;
  return how;
}

// The report of two grids, one after the other.
model::Report join(model::Report first, model::Report second) {
  second.findings.insert(second.findings.begin(), first.findings.begin(), first.findings.end());
  second.sites.insert(second.sites.begin(), first.sites.begin(), first.sites.end());
  second.order_hash += first.order_hash * 0x9e3779b97f4a7c15;
  model::Statistics& s = second.statistics;
  s.fiber_switches += first.statistics.fiber_switches;
  s.decisions += first.statistics.decisions;
  return second;
}

// The grids of a launch of operands that are those of the plan.
Result<model::Report> run(const Plan& plan, const GemmOperands& operands, std::byte* workspace,
                          const ModelOptions& options, bool check_offsets) {
  LaunchGrids grids;
  family_of(plan).bind(plan, operands, {workspace, check_offsets}, encode_for_model, grids);
  model::Report report;
  for (int i = 0; i < grids.count; ++i) {
    const Grid& grid = grids.grids[static_cast<std::size_t>(i)];
    const ModelKernel* const kernel = model_kernel(grid.kernel);
    if (kernel == nullptr) {
      return refuse(RefusalCode::no_kernel, "the plan's kernel is not among those of this build");
    }
    model::Report of_grid = run_on_model(
        grid, plan.device, grid.multiplies ? options : beside(options),
        allocations_of(plan, operands, grid, workspace), [&] { kernel->run(grid.params.data()); });
    report = i == 0 ? std::move(of_grid) : join(std::move(report), std::move(of_grid));
    if (!report.clean()) break;
  }
  return report;
}

std::optional<Refusal> fault(const Plan& plan, const GemmOperands& operands) {
  if (auto refusal = mismatch(plan, operands)) return refusal;
  if (plan.device.is_model) return std::nullopt;
  return refuse(RefusalCode::wrong_device, "the plan was made for device ", plan.device.name,
                "; plan for the model to run on it");
}

void clear(void* memory, std::int64_t bytes) {
  std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte{0});
}

std::optional<Refusal> launch_here(const Plan& plan, const GemmOperands& operands,
                                   Workspace& workspace, void* /*stream*/,
                                   const LaunchOptions& options) {
  auto* const memory = static_cast<std::byte*>(workspace.data());
  if (options.check_offsets) clear(memory + plan.flag_bytes, sizeof(std::uint32_t));
  if (plan.ctas == 0) return std::nullopt;
  if (workspace.note_launch(plan, false, options.check_offsets) == Workspace::Flags::clear_first) {
    clear(memory, plan.flag_bytes);
  }
  const auto report = run(plan, operands, memory, {}, options.check_offsets);
  if (report && report->clean()) return std::nullopt;
  workspace.forget();
  if (!report) return report.refusal();
  return refuse(RefusalCode::model_findings, "the model found faults:\n", report->text());
}

std::optional<Refusal> prepare_here(const Plan& plan, Workspace& workspace, void* /*stream*/) {
  if (plan.flag_bytes == 0 || workspace.data() == nullptr) return std::nullopt;
  clear(workspace.data(), plan.flag_bytes);
  workspace.note_cleared(plan);
  return std::nullopt;
}

Result<std::shared_ptr<void>> allocate_here(std::int64_t bytes) {
  return host_memory(bytes);
}

}  // namespace

bool use_model() {
  static const Backend backend = {launch_here, prepare_here, allocate_here};
  model_backend() = &backend;
  return true;
}

Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  if (auto r = fault(plan, operands)) return *r;
  std::uint32_t* const status = options.offsets_status;
  if (status != nullptr && plan.problem.groups == 0) {
    return refuse(RefusalCode::bad_value,
                  "offsets_status is given, and the product has no groups: leave it out");
  }
  if (status != nullptr) *status = 0;
  if (plan.ctas == 0) return model::Report{};
  // Fresh in every launch: nothing is left from another one. Flags are 0, all else is poisoned.
  const std::shared_ptr<void> memory = host_memory(plan.workspace_bytes);
  auto* const workspace = static_cast<std::byte*>(memory.get());
  clear(workspace, plan.flag_bytes);
  std::byte* const status_at = workspace + plan.flag_bytes;
  if (status != nullptr) clear(status_at, sizeof *status);
  auto report = run(plan, operands, workspace, options, status != nullptr);
  if (status != nullptr)
    std::copy_n(status_at, sizeof *status, reinterpret_cast<std::byte*>(status));
  return report;
}

}  // namespace warpwright::device
