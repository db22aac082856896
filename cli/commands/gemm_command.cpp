#include "cli/commands/gemm_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/bench.h"
#include "cli/commands/gemm_arguments.h"
#include "cli/commands/gemm_product.h"
#include "cli/commands/model_time.h"
#include "cli/reports/bench_words.h"
#include "cli/reports/progress.h"
#include "cli/reports/report_json.h"
#include "warpwright/plan/rules.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

CheckResult check_result(const GemmJob& job, const HostTensor& d, std::ostream& err) {
  GemmCheck problem = check_of(job, d.dtype, d.bytes.data());
  Progress progress(err, "check");
  problem.progress = [&progress](double share) { progress.share(share); };
  return check_gemm(problem);
}

// All that is told of one run.
struct GemmOutcome {
  const GemmJob& job;
  const Plan& plan;
  double seconds = 0;  // of the run, as the caller saw it
  model::Report report;
  std::optional<CheckResult> check;
  std::optional<bench::GemmTimes> times;
};

ordered_json to_json(const GemmOutcome& o) {
  const GemmProblem& p = o.plan.problem;
  const auto type = [](DType t) { return std::string(numeric::name(t)); };
  ordered_json json;
  json["plan"] = o.plan.name();
  json["device"] = o.plan.device.name;
  json["batch"] = p.batch;
  json["m"] = p.m;
  json["n"] = p.n;
  json["k"] = o.job.k;
  json["dtype"] = {type(p.a), type(p.b)};
  json["d_dtype"] = type(p.d);
  json["scaling"] = scaling_name(p.scaling);
  json["accumulation"] = accumulation_name(p.accumulation);
  json["layout"] = layout_name(o.job.a_transposed, o.job.b_transposed);
  json["bias"] = bias_name(p.epilogue.bias);
  json["activation"] = activation_name(p.epilogue.activation);
  json["gated"] = p.epilogue.gated;
  json["tile_m"] = o.plan.tile().m;
  json["tile_n"] = o.plan.tile().n;
  json["swapped"] = o.plan.config.swapped;
  json["cluster"] = {o.plan.cluster.m, o.plan.cluster.n};
  json["cluster_k"] = o.plan.cluster_k;
  json["ctas"] = o.plan.ctas;
  json["tiles"] = o.plan.tiles();
  json["seconds"] = o.seconds;
  json["findings"] = ordered_json::array();
  for (const model::Finding& f : o.report.findings) json["findings"].push_back(finding_json(f));
  if (o.check) json["check"] = check_json(*o.check);
  if (o.times) {
    json["time"] = {{"ours", timing_json(o.times->ours)},
                    {"cublaslt_first", timing_json(o.times->first)},
                    {"cublaslt_best", timing_json(o.times->best)},
                    {"roof_us", o.times->roof_us}};
  }
  return json;
}

// Of the model and of the check, roughly.
double cpu_seconds(const Plan& plan, const GemmOptions& options) {
  const GemmProblem& p = plan.problem;
  const double products = p.reads_ab ? static_cast<double>(p.m) * static_cast<double>(p.n) *
                                           static_cast<double>(p.k) * static_cast<double>(p.batch)
                                     : 0;
  return (plan.device.is_model ? model_seconds(plan) : 0) +
         (options.check ? check_seconds(products) : 0);
}

std::string summary(const Plan& plan, double seconds) {
  const GemmProblem& p = plan.problem;
  const std::string operands =
      std::string(numeric::name(p.a)) + (p.a == p.b ? "" : "," + std::string(numeric::name(p.b)));
  const std::string batch = p.batch > 1 ? std::to_string(p.batch) + " times " : "";
  char text[320];
  std::snprintf(text, sizeof(text),
                "gemm: %sD[%lld,%lld] with K = %lld, %s to %s, on %s: %lld %s of %dx%d in %.3g s",
                batch.c_str(), static_cast<long long>(p.m),
                static_cast<long long>(result_columns(p)), static_cast<long long>(p.k),
                operands.c_str(), std::string(numeric::name(p.d)).c_str(), plan.device.name.c_str(),
                static_cast<long long>(plan.tiles()), plan.tiles() == 1 ? "tile" : "tiles",
                plan.tile().m, plan.tile().n, seconds);
  return text;
}

}  // namespace

model::Report run_on_device(const Plan& plan, const GemmOperands& operands,
                            const GemmOptions& options, std::ostream& err) {
  const DeviceChoice where = parse_device(options.device);
  if (!where.is_model) {
    run_on_gpu(plan, operands, where.index);
    return {};
  }
  const auto launch = [&](const device::ModelOptions& how) {
    return device::launch_on_model(plan, operands, how);
  };
  return run_on_model(options, "gemm", plan.tiles(), err, launch);
}

int gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err,
                 const GemmRunner& run) {
  return exit_status(err, [&] {
    const DeviceChoice where = parse_device(options.device);
    if (options.bench && where.is_model) {
      throw InputError(
          "--bench measures a GPU, and the model does not predict time: give --device "
          "cuda too.");
    }
    check_mode(options);
    GemmJob job = read_job(options);
    check_output(options.out, "D");
    const Plan plan = plan_job(job, facts_of(options, options.bench), err).plan;
    check_memory(job);
    note_duration(err, "gemm", cpu_seconds(plan, options), "smaller extents are faster");
    load(job, options.seed, err);
    HostTensor d = poisoned_result(job);
    const GemmOperands operands = operands_of(job, d);
    GemmOutcome outcome{.job = job, .plan = plan, .report = {}, .check = {}, .times = {}};
    const auto start = std::chrono::steady_clock::now();
    outcome.report = run(plan, operands, options, err);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    outcome.seconds = spent.count();
    // What a faulty run left is not worth a check.
    const bool is_clean = outcome.report.clean();
    if (is_clean && options.check) outcome.check = check_result(job, d, err);
    const bool is_right = !outcome.check || outcome.check->passed;
    if (is_clean && is_right && options.bench) {
      outcome.times = bench_gemm(plan, operands, where.index);
      if (!options.json) out << bench_line(*outcome.times) << "\n";
    }
    if (options.json) out << to_json(outcome).dump(2) << "\n";
    require_clean(outcome.report, "D");
    err << summary(plan, outcome.seconds)
        << (where.is_model ? "" : ", copies to and from the GPU included") << ".\n";
    if (outcome.check) {
      err << (is_right ? "check: PASS. " : "check: FAIL. ") << describe(*outcome.check) << "\n";
    }
    if (!is_right) {
      if (!options.out.empty()) err << "Nothing was written to " << printable(options.out) << ".\n";
      return 1;
    }
    if (!options.out.empty()) write_tensor(options.out, d);
    return 0;
  });
}

}  // namespace warpwright::cli
