#include "warpwright/simulation/model.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "warpwright/device/launch_parts.h"
#include "warpwright/simulation/model_kernels.h"
#include "warpwright/simulation/model_parts.h"
#include "warpwright/simulation/moe.h"

namespace warpwright::device {
namespace {

void clear(void* memory, std::int64_t bytes) {
  std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte{0});
}

}  // namespace

std::optional<model::Finding> flags_left(const std::byte* workspace, std::int64_t flag_bytes) {
  const auto* const end = workspace + flag_bytes;
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

namespace {

// Launches of operands that are those of a plan, in one workspace.
class Launches {
 public:
  Launches(const Plan& plan, const GemmOperands& operands, std::byte* workspace, bool check_offsets,
           bool zero_rest)
      : plan_(plan), operands_(operands), workspace_(workspace) {
    if (plan.ctas == 0) return;
    bind_launch(plan, operands, {workspace, check_offsets, zero_rest}, encode_for_model, grids_);
  }
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  /// Appends the grids of `times` launches, which refer to this.
  std::optional<Refusal> add_to(std::vector<model::GridLaunch>& all, int times) const {
    if (plan_.ctas == 0) return std::nullopt;
    for (int i = 0; i < times * grids_.count; ++i) {
      const Grid& grid = grids_.grids[static_cast<std::size_t>(i % grids_.count)];
      const ModelKernel* const kernel = model_kernel(grid.kernel);
      if (kernel == nullptr) {
        return refuse(RefusalCode::no_kernel, "the plan's kernel is not among those of this build");
      }
      all.push_back(grid_launch(
          grid, allocations_of(plan_, grid.copies ? operands_ : grids_.operands, grid, workspace_),
          [kernel, &grid] { kernel->run(grid.params.data()); }));
      if (grid.multiplies) all.back().shape.ctas_per_sm = plan_.facts().ctas_per_sm;
      if (!grid.multiplies || workspace_ == nullptr) continue;
      all.back().ended = [this] { return flags_left(workspace_, plan_.flag_bytes); };
    }
    return std::nullopt;
  }

 private:
  const Plan& plan_;
  const GemmOperands& operands_;
  std::byte* workspace_;
  LaunchGrids grids_;
};

// Adds what a run found to what the one before it found.
void merge(model::Report& all, model::Report&& more) {
  all.findings.insert(all.findings.end(), more.findings.begin(), more.findings.end());
  all.order_hash = all.order_hash * 0x9e3779b97f4a7c15U + more.order_hash;
  all.decisions.insert(all.decisions.end(), more.decisions.begin(), more.decisions.end());
  all.decided.insert(all.decided.end(), more.decided.begin(), more.decided.end());
  all.statistics.decisions += more.statistics.decisions;
  all.statistics.tiles += more.statistics.tiles;
  for (model::SyncSite& site : more.sites) {
    const bool known = std::any_of(all.sites.begin(), all.sites.end(), [&](const auto& s) {
      return s.kind == site.kind && s.line == site.line && s.file == site.file &&
             s.barrier == site.barrier;
    });
    if (!known) all.sites.push_back(std::move(site));
  }
}

// Launches, one after the other. Each grid may start while the one before still runs, and each
// launch leaves its workspace to the next. `workspace` has its flags cleared for the first.
Result<model::Report> run(const Plan& plan, const GemmOperands& operands, std::byte* workspace,
                          std::int64_t bytes, const ModelOptions& options, bool check_offsets) {
  const Launches first(plan, operands, workspace, check_offsets, options.zero_rest);
  std::vector<model::GridLaunch> launches;
  if (auto r = first.add_to(launches, options.launches)) return *r;
  if (!options.second) return run_on_model(launches, plan.device, options);

  const Plan& next = *options.second->plan;
  const Launches second(next, *options.second->operands, workspace, false, options.zero_rest);
  Workspace shared(workspace, bytes);
  shared.note_cleared(plan.flag_bytes);
  static_cast<void>(shared.note_launch(plan, false, check_offsets));
  model::Report report;
  if (shared.note_launch(next, false) == Workspace::Flags::clear_first) {
    // The stream clears them between the two, which so follow each other.
    if (!launches.empty()) report = run_on_model(launches, plan.device, options);
    launches.clear();
    clear(workspace, next.flag_bytes);
  }
  if (auto r = second.add_to(launches, 1)) return *r;
  if (!launches.empty()) merge(report, run_on_model(launches, plan.device, options));
  return report;
}

std::int64_t offset(const Groups& groups, std::int64_t i) {
  if (groups.type == OffsetType::int64) return static_cast<const std::int64_t*>(groups.offsets)[i];
  return static_cast<const std::int32_t*>(groups.offsets)[i];
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

std::optional<Refusal> launch_here(const Plan& plan, const GemmOperands& operands,
                                   Workspace& workspace, void* /*stream*/,
                                   const LaunchOptions& options) {
  auto* const memory = static_cast<std::byte*>(workspace.data());
  if (options.check_offsets) clear(memory + plan.flag_bytes, status_bytes);
  if (plan.ctas == 0) return std::nullopt;
  if (workspace.note_launch(plan, false, options.check_offsets) == Workspace::Flags::clear_first) {
    clear(memory, plan.flag_bytes);
  }
  ModelOptions how;
  how.zero_rest = options.zero_rest;
  const auto report = [&] {
    try {
      return run(plan, operands, memory, workspace.bytes(), how, options.check_offsets);
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
  workspace.note_cleared(plan.flag_bytes);
  return std::nullopt;
}

Result<std::shared_ptr<void>> allocate_here(std::int64_t bytes) {
  return std::shared_ptr<void>(host_memory(bytes));
}

std::optional<Refusal> launch_mixture_here(const MixturePlan& plan, const MixtureOperands& operands,
                                           void* workspace, bool clears, void* /*stream*/,
                                           const MixtureLaunchOptions& /*options*/) {
  if (clears) clear(workspace, plan.flag_bytes());
  const auto report = launch_on_model(plan, operands, {}, workspace);
  if (!report) return report.refusal();
  if (report->clean()) return std::nullopt;
  return refuse(RefusalCode::model_findings, "the model found faults:\n", report->text());
}

std::optional<Refusal> prepare_mixture_here(const MixturePlan& /*plan*/) {
  return std::nullopt;
}

std::optional<Refusal> clear_here(void* memory, std::int64_t bytes, void* /*stream*/) {
  clear(memory, bytes);
  return std::nullopt;
}

}  // namespace

std::shared_ptr<std::byte> host_memory(std::int64_t bytes) {
  constexpr std::align_val_t alignment{256};
  const std::size_t size = static_cast<std::size_t>(bytes) + 1;
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new(size, alignment)),
                                    [](std::byte* p) { ::operator delete(p, alignment); });
  std::fill_n(memory.get(), size, std::byte{0xff});
  return memory;
}

bool use_model() {
  static const Backend backend = {launch_here,    prepare_here,        allocate_here,
                                  read_word_here, launch_mixture_here, prepare_mixture_here,
                                  clear_here};
  model_backend() = &backend;
  return true;
}

std::uint32_t disorder_status(const GemmOperands& operands) {
  if (!operands.groups) return 0;
  const Groups& groups = *operands.groups;
  const auto total = static_cast<int>(operands.m());
  for (std::int64_t g = 0; g < operands.b.batch; ++g) {
    if (!tile::in_order(offset(groups, g), offset(groups, g + 1), total)) {
      return static_cast<std::uint32_t>(g + 1);
    }
  }
  return 0;
}

std::uint64_t stray_status(const GemmOperands& operands) {
  if (!operands.is_by_index()) return 0;
  const Groups& groups = *operands.groups;
  const std::int64_t end = std::min(offset(groups, operands.b.batch), operands.m());
  for (std::int64_t row = std::max<std::int64_t>(offset(groups, 0), 0); row < end; ++row) {
    const std::int32_t index = groups.rows[row];
    if (index >= 0 && index < operands.a.rows * groups.rows_divisor) continue;
    return std::uint64_t{static_cast<std::uint32_t>(index)} << 32 |
           static_cast<std::uint64_t>(row + 1);
  }
  return 0;
}

std::optional<Refusal> disorder(const GemmOperands& operands) {
  const auto fault = offsets_fault(disorder_status(operands));
  if (!fault) return std::nullopt;
  return refuse(
      RefusalCode::bad_value, *fault, "; ",
      as_rule("groups that overlap write the same rows of D, and which of them wins is open"));
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
  if (options.rows_status != nullptr) *options.rows_status = 0;
  if (options.second) {
    if (auto r = fault(*options.second->plan, *options.second->operands)) return *r;
  }
  if (plan.ctas == 0 && !options.second) return model::Report{};
  // Fresh in every launch: nothing is left from another one. Flags are 0, all else is poisoned.
  const std::int64_t bytes =
      std::max(plan.workspace_bytes, options.second ? options.second->plan->workspace_bytes : 0);
  const std::shared_ptr<std::byte> memory = host_memory(bytes);
  std::byte* const workspace = memory.get();
  clear(workspace, plan.flag_bytes);
  std::byte* const status_at = workspace + plan.flag_bytes;
  if (status != nullptr) clear(status_at, status_bytes);
  auto report = run(plan, operands, workspace, bytes, options, status != nullptr);
  if (status != nullptr)
    std::copy_n(status_at, sizeof *status, reinterpret_cast<std::byte*>(status));
  if (status != nullptr && options.rows_status != nullptr) {
    std::memcpy(options.rows_status, status_at + sizeof *status, sizeof *options.rows_status);
  }
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
