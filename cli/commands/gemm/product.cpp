#include "cli/commands/gemm/product.h"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/gemm/cuda_memory.h"
#include "cli/commands/gemm/fp8_weights.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/micro_files.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/reports/progress.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/tuning/tuning.h"

namespace warpwright::cli {

Product::Product(const GemmOptions& options, const DeviceFacts& facts, std::ostream& err)
    : job(read_job(options)) {
  note_scales_beside(options, job, err);
  if (options.or_fp8) {
    plan = choose_weights(job, facts);
    origin = "not used: weights are chosen by predictions";
    return;
  }
  const GemmProblem problem = problem_of(job.product);
  const bool tuned = job.uses_tuning && !facts.is_model;
  const TuningCache cache(tuned ? TuningCache::default_path() : "");
  if (cache.warning()) err << printable(*cache.warning()) << "\n";
  Result<TunedPlan> made = tuned_plan(problem, facts, cache, job.choices);
  if (!made && job.d_for_npy) {
    take_natural_result(job);
    auto natural = tuned_plan(problem_of(job.product), facts, cache, job.choices);
    if (natural) made = std::move(natural);
  }
  if (!made) throw InputError(made.refusal());
  plan = made->plan;
  if (!tuned) {
    origin = facts.is_model ? "not used: it is measured on GPUs, and this is the machine model"
                            : "not used";
    return;
  }
  origin = "no measurement decided: by rule (see warpwright tune)";
  if (made->entry) {
    origin =
        format("measured, %.2f us: from ", made->entry->microseconds) + printable(cache.path());
  }
}

void Product::load(std::uint64_t seed, std::ostream& err, Draw draw) {
  cli::load(job, seed, err, draw);
  d = poisoned_result(job);
  operands = operands_of(job, d);
}

std::string Product::explain() const {
  return plan.explain() +
         (job.product.is_grouped() ? "lengths    " + tiles_text(job, plan) + "\n" : "") +
         "tuning     " + origin + "\n";
}

std::string Product::title() const {
  return "D[" + std::to_string(job.product.m()) + "," + std::to_string(job.result_columns()) + "]" +
         (job.product.is_grouped() ? " of " + std::to_string(job.product.group_count()) +
                                         (job.product.group_count() == 1 ? " group" : " groups")
                                   : "") +
         ", K = " + std::to_string(job.product.k());
}

double Product::products() const {
  if (!plan.problem.reads_ab()) return 0;
  return static_cast<double>(job.product.batch()) * static_cast<double>(job.tokens()) *
         static_cast<double>(job.product.n()) * static_cast<double>(job.product.k());
}

double Product::model_seconds() const {
  return cli::model_seconds(tiles_of(job, plan), plan.tile().m, plan.tile().n,
                            plan.problem.reads_ab() ? job.product.k() : 0);
}

model::Report run_with_checks(const Product& product, device::ModelOptions how, const char* label,
                              std::ostream& err) {
  Progress progress(err, label, "tiles", tiles_of(product.job, product.plan));
  how.on_tile = [&progress](std::int64_t done) { progress.update(done); };
  return taken(device::launch_on_model(product.plan, product.operands, how));
}

RunOutput run_on_gpu(const Product& product, int index, bool check_offsets, int repeat) {
  require(device::use_cuda_device(index));
  CudaMemory memory;
  GemmOperands there = product.operands;
  if (there.b.data != nullptr) {
    there.b.data = memory.copy(there.b.data, extent_bytes(stored_b(there)));
  }
  const auto copy = [&memory](std::string_view name, MatrixView& view) {
    if (view.data == nullptr || name == "d_scales") return;
    view.data = memory.copy(view.data, extent_bytes(view));
  };
  copy("a", there.a);
  for_each_side_of(copy, there);
  const std::vector<std::byte>& offsets = product.job.offset_bytes;
  if (there.groups) {
    there.groups->offsets = memory.copy(offsets.data(), static_cast<std::int64_t>(offsets.size()));
    if (there.is_by_index()) {
      const void* const rows = memory.copy(there.groups->rows, 4 * there.m());
      there.groups->rows = static_cast<const std::int32_t*>(rows);
    }
  }
  device::CudaBuffer& d = memory.make(extent_bytes(there.d));
  there.d.data = d.data();
  if (product.job.in_place) {
    require(d.from_host(there.c.data, extent_bytes(there.c)));
    there.c.data = d.data();
  } else if (there.c.data != nullptr) {
    there.c.data = memory.copy(there.c.data, extent_bytes(there.c));
  }
  device::CudaBuffer& scales = memory.make(extent_bytes(there.d_scales));
  if (there.is_quantised()) there.d_scales.data = scales.data();
  const Plan& plan = product.plan;
  const device::CudaBuffer& room = memory.make(plan.workspace_bytes);
  Workspace workspace(room.data(), plan.workspace_bytes);
  warpwright::RunOptions how{.device = index, .workspace = &workspace};
  const auto start_one = [&] { require(run(plan, there, how)); };
  start_one();
  wait_for_device();
  RunOutput left;
  if (repeat > 0) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeat; ++i) start_one();
    wait_for_device();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    left.launch_seconds = spent.count() / repeat;
  }
  if (check_offsets) {
    // This one waits. The operands are legal by now, so that a bad value is one of the offsets.
    how.launch.check_offsets = true;
    if (const auto refused = run(plan, there, how)) {
      if (refused->code != RefusalCode::bad_value) throw RunError(*refused);
      left.offsets = refused->reason;
    }
  }
  require(d.to_host(product.operands.d.data, extent_bytes(product.operands.d)));
  if (there.is_quantised()) {
    require(scales.to_host(product.operands.d_scales.data, extent_bytes(there.d_scales)));
  }
  return left;
}

}  // namespace warpwright::cli
