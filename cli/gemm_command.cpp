#include "cli/gemm_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <utility>

#include "cli/bench.h"
#include "cli/progress.h"
#include "cli/safetensors.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/model.h"

namespace warpwright::cli {
namespace {

model::Mode parse_mode(const std::string& text) {
  if (text.empty() || text == "latest") return model::Mode::latest;
  if (text == "eager") return model::Mode::eager;
  if (text == "random") return model::Mode::random;
  throw InputError("--mode is \"" + text +
                   "\"; it must be eager, latest or random: the default is latest.");
}

void require(const std::optional<Refusal>& refusal) {
  if (refusal) throw InputError(refusal->reason);
}

// Of a packed tensor.
std::int64_t bytes_of(const MatrixView& v) {
  return v.batch * v.rows * v.columns * (numeric::bits(v.dtype) / 8);
}

void run_on_model(const Plan& plan, const GemmOperands& operands, const GemmOptions& options,
                  std::ostream& err) {
  device::ModelOptions how;
  how.mode = parse_mode(options.mode);
  how.seed = options.seed;
  Progress progress(err, "gemm", "tiles", plan.tiles());
  how.on_tile = [&progress](std::int64_t done) { progress.update(done); };
  const Result<model::Report> report = device::launch_on_model(plan, operands, how);
  if (!report) throw InputError(report.reason());
  if (!report->clean()) {
    throw RunError("The model found faults, so D is not to be trusted:\n" + report->text());
  }
}

void run_on_gpu(const Plan& plan, const GemmOperands& operands, int index) {
  require(device::use_cuda_device(index));
  // New memory is filled with 0xff: an element of D that nobody stores shows as NaN.
  std::vector<std::shared_ptr<device::CudaBuffer>> buffers;
  const auto make = [&buffers](std::int64_t bytes, int fill) {
    const auto buffer = device::CudaBuffer::make(bytes, fill);
    if (!buffer) throw InputError(buffer.reason());
    buffers.push_back(*buffer);
    return *buffer;
  };
  GemmOperands there = operands;
  for (MatrixView* view : {&there.a, &there.b, &there.c, &there.scale_a, &there.scale_b,
                           &there.scale_d, &there.bias}) {
    if (view->data == nullptr) continue;
    const auto buffer = make(bytes_of(*view), 0xff);
    require(buffer->from_host(view->data, bytes_of(*view)));
    view->data = buffer->data();
  }
  const auto d = make(bytes_of(there.d), 0xff);
  there.d.data = d->data();
  void* workspace = nullptr;
  if (plan.workspace_bytes > 0) workspace = make(plan.workspace_bytes, 0xff)->data();
  require(device::prepare_workspace_on_cuda(plan, workspace, nullptr));
  require(device::launch_on_cuda(plan, there, workspace, plan.workspace_bytes, nullptr));
  if (const auto failure = device::synchronise_cuda()) throw RunError(failure->reason);
  require(d->to_host(operands.d.data, bytes_of(operands.d)));
}

// Finds out before the work what would keep the result from being written after it.
void check_output(const std::string& spec) {
  if (spec.empty()) return;
  namespace fs = std::filesystem;
  const TensorSpec where = parse_spec(spec);
  const fs::path folder = fs::path(where.path).parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  std::error_code ignored;
  if (!fs::is_directory(name, ignored)) {
    throw InputError("D cannot be written to " + where.path + ": there is no folder " + name + ".");
  }
  if (::access(name.c_str(), W_OK) != 0) {
    throw InputError("D cannot be written to " + where.path + ": the folder " + name +
                     " is not writable.");
  }
  if (fs::exists(where.path, ignored) && !fs::is_regular_file(where.path, ignored)) {
    throw InputError("D cannot be written to " + where.path +
                     ": it exists and is not a regular file.");
  }
  if (where.kind == TensorSpec::Kind::safetensors && fs::exists(where.path, ignored)) {
    static_cast<void>(safetensors_names(where.path));  // throws where it is not one
  }
}

// Prints the verdict and returns whether D is right.
bool check(const GemmJob& job, const HostTensor& d, std::ostream& err) {
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

void run_on_device(const Plan& plan, const GemmOperands& operands, const GemmOptions& options,
                   std::ostream& err) {
  const DeviceChoice where = parse_device(options.device);
  if (where.is_model) {
    run_on_model(plan, operands, options, err);
  } else {
    run_on_gpu(plan, operands, where.index);
  }
}

int gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err,
                 const GemmRunner& run) {
  try {
    const DeviceChoice where = parse_device(options.device);
    if (options.bench && where.is_model) {
      throw InputError(
          "--bench measures a GPU, and the model does not predict time: give --device "
          "cuda too.");
    }
    if (!options.mode.empty() && !where.is_model) {
      throw InputError(
          "--mode is how the model schedules; a GPU has no such choice: leave it out.");
    }
    parse_mode(options.mode);
    GemmJob job = read_job(options);
    check_output(options.out);
    const Plan plan = plan_job(job, facts_of(options), err).plan;
    load(job, options.seed, err);
    HostTensor d = poisoned_result(job);
    const GemmOperands operands = operands_of(job, d);
    const auto start = std::chrono::steady_clock::now();
    run(plan, operands, options, err);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    err << summary(plan, spent.count())
        << (where.is_model ? "" : ", copies to and from the GPU included") << ".\n";
    if (options.check && !check(job, d, err)) {
      if (!options.out.empty()) err << "Nothing was written to " << options.out << ".\n";
      return 1;
    }
    if (options.bench) bench_gemm(plan, operands, where.index, out);
    if (!options.out.empty()) write_tensor(options.out, d);
    return 0;
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  } catch (const RunError& failure) {
    err << failure.what() << (std::string_view(failure.what()).ends_with('\n') ? "" : "\n");
    return 1;
  } catch (const std::bad_alloc&) {
    err << "This machine has not enough memory for these matrices: choose smaller M, N or K.\n";
    return 2;
  }
}

}  // namespace warpwright::cli
