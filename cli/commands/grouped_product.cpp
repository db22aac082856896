#include "cli/commands/grouped_product.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "warpwright/device/grouped.h"

namespace warpwright::cli {
namespace {

class GroupedProduct final : public PlannedProduct<GroupedPlan, GroupedOperands> {
 public:
  GroupedProduct(GroupedJob job, GroupedPlan plan)
      : PlannedProduct(std::move(plan)), job_(std::move(job)) {}

  [[nodiscard]] std::string explain() const override {
    return plan_.explain() + "lengths    " + groups_text(job_, plan_) + "\n";
  }
  [[nodiscard]] std::int64_t tiles() const override { return tiles_of(job_, plan_); }
  [[nodiscard]] double model_seconds() const override { return cli::model_seconds(job_, plan_); }
  [[nodiscard]] std::string title() const override {
    return "Y[" + std::to_string(job_.total) + "," + std::to_string(job_.n) + "] of " +
           std::to_string(job_.groups) + (job_.groups == 1 ? " group" : " groups") +
           ", K = " + std::to_string(job_.k);
  }

  void check_memory() const override { cli::check_memory(job_); }
  void load(std::uint64_t seed, std::ostream& err) override {
    cli::load(job_, seed, err);
    y_ = poisoned_result(job_);
    operands_ = operands_of(job_, y_);
  }

  [[nodiscard]] bool is_right(const MatrixView& result) const override {
    return check_grouped(job_, result.dtype, result.data).passed();
  }
  Result<model::Report> run_on_model(const device::ModelOptions& options) override {
    return device::launch_grouped_on_model(plan_, operands_, options);
  }
  void run_on_gpu(int index) override { cli::run_on_gpu(plan_, operands_, index); }

 private:
  GroupedJob job_;
  HostTensor y_;
};

// Waits for the device; a kernel that failed is a RunError.
void wait() {
  if (const auto failure = device::synchronise_cuda()) throw RunError(failure->reason);
}

}  // namespace

ProductMaker grouped_product(const GroupedOptions& options) {
  return [options](const DeviceFacts& facts, std::ostream& /*err*/) -> std::unique_ptr<Product> {
    GroupedJob job = read_grouped_job(options);
    GroupedPlan plan = plan_job(job, facts);
    return std::make_unique<GroupedProduct>(std::move(job), std::move(plan));
  };
}

std::string groups_text(const GroupedJob& job, const GroupedPlan& plan) {
  const auto counted = [](std::int64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  std::int64_t longest = 0;
  for (const TokenRows& r : job.rows) longest = std::max(longest, r.count());
  const std::int64_t empty = job.groups - job.busy_groups();
  return counted(job.groups, "group") +
         (empty > 0 ? " (" + std::to_string(empty) + " empty)" : std::string()) + " of up to " +
         counted(longest, "token") + ", " + std::to_string(job.tokens()) + " in all" +
         (job.rest.count() > 0 ? " and " + counted(job.rest.count(), "row") + " in no group"
                               : std::string()) +
         ": " + counted(tiles_of(job, plan), "tile");
}

GroupedOutput run_on_gpu(const GroupedPlan& plan, const GroupedOperands& operands, int index,
                         const GroupedRunOptions& options) {
  CudaMemory memory(index);
  GroupedOperands there = operands;
  for (MatrixView* view : {&there.x, &there.w, &there.scale_x, &there.scale_w}) memory.move(*view);
  const std::int64_t width = operands.offset_type == OffsetType::int64 ? 8 : 4;
  there.offsets = memory.copy(operands.offsets, (plan.problem.groups + 1) * width);
  const device::CudaBuffer& y = memory.make(bytes_of(there.y));
  there.y.data = y.data();
  device::CudaBuffer& workspace = memory.make(plan.workspace_bytes);
  const device::GroupedLaunchOptions how{.check_offsets = options.check_offsets};
  const auto launch = [&] {
    require(device::launch_grouped_on_cuda(plan, there, workspace.data(), plan.workspace_bytes,
                                           nullptr, how));
  };
  require(device::prepare_grouped_on_cuda(plan));
  launch();
  wait();
  GroupedOutput run;
  if (options.repeat > 0) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < options.repeat; ++i) launch();
    wait();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    run.launch_seconds = spent.count() / options.repeat;
  }
  if (options.check_offsets) require(workspace.to_host(&run.status, sizeof run.status));
  require(y.to_host(operands.y.data, bytes_of(operands.y)));
  return run;
}

}  // namespace warpwright::cli
