#include "warpwright/simulation/model.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "warpwright/device/launch_parts.h"
#include "warpwright/simulation/model_kernels.h"
#include "warpwright/simulation/model_parts.h"

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

// What a launch leaves of its flags, which the next one relies on.
std::optional<model::Finding> flags_left(const Plan& plan, const std::byte* workspace) {
  const auto* const end = workspace + plan.flag_bytes;
  const auto* const set =
      std::find_if(workspace, end, [](std::byte b) { return b != std::byte{0}; });
  if (set == end) return std::nullopt;
  return model::Finding{
      .check = model::Check::left_behind,
      .sentence = "the launch ends, and the flag at byte " +
                  std::to_string((set - workspace) / 4 * 4) +
                  " of the workspace is not 0: the next launch takes it for its own. Mend: "
                  "flag_clear() by its waiter, after the last wait for it",
      .site = {}};
}

// Launches, one after the other, of operands that are those of the plan. Each grid may start while
// the one before still runs, and each launch leaves its workspace to the next.
Result<model::Report> run(const Plan& plan, const GemmOperands& operands, std::byte* workspace,
                          const ModelOptions& options, bool check_offsets) {
  LaunchGrids grids;
  bind_launch(plan, operands, {workspace, check_offsets, options.zero_rest}, encode_for_model,
              grids);
  std::vector<model::GridLaunch> launches;
  for (int i = 0; i < options.launches * grids.count; ++i) {
    const Grid& grid = grids.grids[static_cast<std::size_t>(i % grids.count)];
    const ModelKernel* const kernel = model_kernel(grid.kernel);
    if (kernel == nullptr) {
      return refuse(RefusalCode::no_kernel, "the plan's kernel is not among those of this build");
    }
    launches.push_back(grid_launch(
        grid, allocations_of(plan, grid.copies ? operands : grids.operands, grid, workspace),
        [kernel, &grid] { kernel->run(grid.params.data()); }));
    if (!grid.multiplies || workspace == nullptr) continue;
    launches.back().ended = [&plan, workspace] { return flags_left(plan, workspace); };
  }
  return run_on_model(launches, plan.device, options);
}

Result<std::uint32_t> read_word_here(const void* word, void* /*stream*/) {
  std::uint32_t read = 0;
  std::memcpy(&read, word, sizeof read);
  return read;
}

std::optional<Refusal> fault(const Plan& plan, const GemmOperands& operands) {
  if (auto refusal = mismatch(plan, operands)) return refusal;
  if (plan.device.is_model) return std::nullopt;
  return refuse(RefusalCode::wrong_device, "the plan was made for device ", plan.device.name, "; ",
                as_rule("plan for the model to run on it"));
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
  ModelOptions how;
  how.zero_rest = options.zero_rest;
  const auto report = [&] {
    try {
      return run(plan, operands, memory, how, options.check_offsets);
    } catch (...) {  // an interrupted run leaves flags set
      workspace.forget();
      throw;
    }
  }();
  if (report && report->clean()) return std::nullopt;
  workspace.forget();
  if (!report) return report.refusal();
  if (auto r = disorder(operands)) return r;
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
  static const Backend backend = {launch_here, prepare_here, allocate_here, read_word_here};
  model_backend() = &backend;
  return true;
}

std::optional<Refusal> disorder(const GemmOperands& operands) {
  if (!operands.groups) return std::nullopt;
  const auto offset = [&groups = *operands.groups](std::int64_t i) -> std::int64_t {
    if (groups.type == OffsetType::int64) {
      return static_cast<const std::int64_t*>(groups.offsets)[i];
    }
    return static_cast<const std::int32_t*>(groups.offsets)[i];
  };
  const auto total = static_cast<int>(operands.a.rows);
  for (std::int64_t g = 0; g < operands.b.batch; ++g) {
    if (tile::in_order(offset(g), offset(g + 1), total)) continue;
    return refuse(
        RefusalCode::bad_value, *offsets_fault(static_cast<std::uint32_t>(g + 1)), "; ",
        as_rule("groups that overlap write the same rows of D, and which of them wins is open"));
  }
  return std::nullopt;
}

Result<model::Report> report_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  if (auto r = fault(plan, operands)) return *r;
  std::uint32_t* const status = options.offsets_status;
  if (status != nullptr && !plan.problem.groups) {
    return refuse(
        RefusalCode::bad_value,
        "offsets_status is given, and the product has no groups: ", as_rule("leave it out"));
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

Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  auto report = report_on_model(plan, operands, options);
  if (!report || report->clean() || options.mutation) return report;
  if (auto r = disorder(operands)) return *r;
  return report;
}

}  // namespace warpwright::device
