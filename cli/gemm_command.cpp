#include "cli/gemm_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/bench.h"
#include "cli/gemm_product.h"
#include "cli/progress.h"

namespace warpwright::cli {
namespace {

// Prints the verdict and returns whether D is right.
bool check_result(const GemmJob& job, const HostTensor& d, std::ostream& err) {
  GemmCheck problem = check_of(job, d.dtype, d.bytes.data());
  CheckResult result;
  {
    Progress progress(err, "check", "percent", 100);
    problem.progress = [&progress](double share) {
      progress.update(static_cast<std::int64_t>(100 * share));
    };
    result = check_gemm(problem);
  }
  err << (result.passed ? "check: PASS. " : "check: FAIL. ") << describe(result) << "\n";
  return result.passed;
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

void check_output(const std::string& spec, const std::string& name) {
  if (spec.empty()) return;
  namespace fs = std::filesystem;
  const TensorSpec where = parse_spec(spec);
  const fs::path folder = fs::path(where.path).parent_path();
  const std::string parent = folder.empty() ? "." : folder.string();
  std::error_code ignored;
  if (!fs::is_directory(parent, ignored)) {
    throw InputError(name + " cannot be written to " + where.path + ": there is no folder " +
                     parent + ".");
  }
  if (::access(parent.c_str(), W_OK) != 0) {
    throw InputError(name + " cannot be written to " + where.path + ": the folder " + parent +
                     " is not writable.");
  }
  if (fs::exists(where.path, ignored) && !fs::is_regular_file(where.path, ignored)) {
    throw InputError(name + " cannot be written to " + where.path +
                     ": it exists and is not a regular file.");
  }
  if (where.kind == TensorSpec::Kind::safetensors && fs::exists(where.path, ignored)) {
    static_cast<void>(safetensors_names(where.path));  // throws where it is not one
  }
}

void run_on_device(const Plan& plan, const GemmOperands& operands, const GemmOptions& options,
                   std::ostream& err) {
  const DeviceChoice where = parse_device(options.device);
  if (where.is_model) {
    const auto launch = [&](const device::ModelOptions& how) {
      return device::launch_on_model(plan, operands, how);
    };
    require_clean(run_on_model(options, "gemm", plan.tiles(), err, launch), "D");
  } else {
    run_on_gpu(plan, operands, where.index);
  }
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
    const Plan plan = plan_job(job, facts_of(options), err).plan;
    load(job, options.seed, err);
    HostTensor d = poisoned_result(job);
    const GemmOperands operands = operands_of(job, d);
    const auto start = std::chrono::steady_clock::now();
    run(plan, operands, options, err);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    err << summary(plan, spent.count())
        << (where.is_model ? "" : ", copies to and from the GPU included") << ".\n";
    if (options.check && !check_result(job, d, err)) {
      if (!options.out.empty()) err << "Nothing was written to " << printable(options.out) << ".\n";
      return 1;
    }
    if (options.bench) bench_gemm(plan, operands, where.index, out);
    if (!options.out.empty()) write_tensor(options.out, d);
    return 0;
  });
}

}  // namespace warpwright::cli
