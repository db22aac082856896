#include "cli/commands/gemm_product.h"

#include <utility>

#include "cli/commands/model_time.h"

namespace warpwright::cli {
namespace {

class GemmProduct final : public PlannedProduct<Plan, GemmOperands> {
 public:
  GemmProduct(GemmJob job, PlanWithOrigin made)
      : PlannedProduct(std::move(made.plan)),
        job_(std::move(job)),
        origin_(std::move(made.origin)) {}

  [[nodiscard]] std::string explain() const override { return plan_.explain() + origin_; }
  [[nodiscard]] std::int64_t tiles() const override { return plan_.tiles(); }
  [[nodiscard]] double model_seconds() const override { return cli::model_seconds(plan_); }
  [[nodiscard]] std::string title() const override {
    return "D[" + std::to_string(job_.m) + "," + std::to_string(job_.n) +
           "], K = " + std::to_string(job_.k);
  }

  void check_memory() const override { cli::check_memory(job_); }
  void load(std::uint64_t seed, std::ostream& err) override {
    cli::load(job_, seed, err);
    d_ = poisoned_result(job_);
    operands_ = operands_of(job_, d_);
  }

  [[nodiscard]] bool is_right(const MatrixView& result) const override {
    return check_gemm(check_of(job_, result.dtype, result.data)).passed;
  }
  Result<model::Report> run_on_model(const device::ModelOptions& options) override {
    return device::launch_on_model(plan_, operands_, options);
  }
  void run_on_gpu(int index) override { cli::run_on_gpu(plan_, operands_, index); }

 private:
  GemmJob job_;
  std::string origin_;  // of the plan
  HostTensor d_;
};

}  // namespace

double model_seconds(const Plan& plan) {
  const std::int64_t k = plan.problem.reads_ab ? plan.problem.k : 0;
  return model_seconds(plan.tiles(), plan.tile().m, plan.tile().n, k);
}

ProductMaker gemm_product(const GemmOptions& options) {
  return [options](const DeviceFacts& facts, std::ostream& err) -> std::unique_ptr<Product> {
    GemmJob job = read_job(options);
    PlanWithOrigin made = plan_job(job, facts, err);
    return std::make_unique<GemmProduct>(std::move(job), std::move(made));
  };
}

void run_on_gpu(const Plan& plan, const GemmOperands& operands, int index) {
  CudaMemory memory(index);
  GemmOperands there = operands;
  for (MatrixView* view : {&there.a, &there.b, &there.c, &there.scale_a, &there.scale_b,
                           &there.scale_d, &there.bias}) {
    memory.move(*view);
  }
  const device::CudaBuffer& d = memory.make(bytes_of(there.d));
  there.d.data = d.data();
  void* workspace = nullptr;
  if (plan.workspace_bytes > 0) workspace = memory.make(plan.workspace_bytes).data();
  require(device::prepare_workspace_on_cuda(plan, workspace, nullptr));
  require(device::launch_on_cuda(plan, there, workspace, plan.workspace_bytes, nullptr));
  if (const auto failure = device::synchronise_cuda()) throw RunError(failure->reason);
  require(d.to_host(operands.d.data, bytes_of(operands.d)));
}

}  // namespace warpwright::cli
