#include "cli/trace_command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <string_view>

#include "cli/gemm_command.h"
#include "cli/grid_svg.h"
#include "cli/perfetto.h"
#include "cli/progress.h"
#include "cli/timeline_svg.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/model.h"
#include "warpwright/device/trace_cuda.h"

namespace warpwright::cli {
namespace {

// Finds out before the work whether the file can be written after it.
void check_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(name, ignored)) {
    throw InputError("The trace cannot be written to " + path + ": there is no folder " + name +
                     ".");
  }
  if (::access(name.c_str(), W_OK) != 0) {
    throw InputError("The trace cannot be written to " + path + ": the folder " + name +
                     " is not writable.");
  }
}

void write_file(const std::string& path, const std::string& content) {
  const std::span<const std::byte> chunk(reinterpret_cast<const std::byte*>(content.data()),
                                         content.size());
  replace_file(path, std::span(&chunk, 1));
}

// What ran; what the model found goes to `findings`.
model::Trace run_on_model(const Plan& plan, const GemmOperands& operands,
                          const TraceOptions& options, std::ostream& err, std::string& findings) {
  model::Trace trace;
  device::ModelOptions how;
  how.mode = model::Mode::timed;
  how.trace = &trace;
  how.occupied_sm = options.occupy_sm.value_or(-1);
  Progress progress(err, "trace", "tiles", plan.tiles());
  how.on_tile = [&progress](std::int64_t done) { progress.update(done); };
  const Result<model::Report> report = device::launch_on_model(plan, operands, how);
  if (!report) throw InputError(report.reason());
  findings = report->clean() ? "" : report->text();
  return trace;
}

model::Trace run_on_gpu(const Plan& plan, const GemmOperands& operands, const GemmOptions& options,
                        int index, std::ostream& err) {
  if (!device::built_with_trace()) {
    throw InputError(
        "This build's kernels record no timeline; configure with -DWARPWRIGHT_CUDA=ON "
        "-DWARPWRIGHT_TRACE=ON, or trace on the model: --device model.");
  }
  if (const auto refusal = device::use_cuda_device(index)) throw InputError(refusal->reason);
  run_on_device(plan, operands, options, err);  // unrecorded: caches and clocks warm up
  const auto recording = device::CudaTrace::start(plan);
  if (!recording) throw RunError(recording.reason());
  run_on_device(plan, operands, options, err);
  const Result<model::Trace> trace = (*recording)->finish();
  if (!trace) throw RunError(trace.reason());
  return *trace;
}

// The SM that another grid holds must be one of the model's, and not the last that is left.
void check_occupied(const TraceOptions& how, const Plan& plan) {
  if (!how.occupy_sm) return;
  const std::string what = "--occupy-sm is " + std::to_string(*how.occupy_sm);
  if (!plan.device.is_model) {
    throw InputError(what +
                     "; only the model's SMs can be held: leave it out, or give --device "
                     "model.");
  }
  if (*how.occupy_sm < 0 || *how.occupy_sm >= plan.device.sms) {
    throw InputError(what + "; the model has SMs 0 to " + std::to_string(plan.device.sms - 1) +
                     ": the nearest legal value is " +
                     std::to_string(*how.occupy_sm < 0 ? 0 : plan.device.sms - 1) + ".");
  }
}

std::string size_text(const model::Trace& trace) {
  std::set<int> ctas;
  for (const model::TraceTrack& t : trace.tracks) ctas.insert(t.cta);
  char text[192];
  std::snprintf(text, sizeof text, "%zu CTAs, %zu tracks, %lld events, %.1f %s", ctas.size(),
                trace.tracks.size(), static_cast<long long>(trace.event_count()),
                static_cast<double>(trace.end()) / 1000,
                trace.measured ? "microseconds" : "nominal kilocycles");
  std::string all = text;
  if (trace.dropped() > 0) all += ", " + std::to_string(trace.dropped()) + " oldest events dropped";
  return all;
}

}  // namespace

int trace_gemm_command(const GemmOptions& options, const TraceOptions& how, std::ostream& out,
                       std::ostream& err) {
  try {
    if (options.out.empty() && how.svg.empty() && how.grid_svg.empty()) {
      throw InputError("Where to? Give --out FILE.pftrace, --svg FILE.svg, or both.");
    }
    const DeviceChoice where = parse_device(options.device);
    GemmOptions product = options;
    product.out.clear();  // here it is the trace's file, not D's
    GemmJob job = read_job(product);
    for (const std::string& path : {options.out, how.svg, how.grid_svg}) {
      if (!path.empty()) check_folder(path);
    }
    const Plan plan = plan_job(job, facts_of(options), err).plan;
    check_occupied(how, plan);
    load(job, options.seed, err);
    HostTensor d = poisoned_result(job);
    const GemmOperands operands = operands_of(job, d);

    std::string findings;
    const model::Trace trace = where.is_model
                                   ? run_on_model(plan, operands, how, err, findings)
                                   : run_on_gpu(plan, operands, product, where.index, err);
    if (!options.out.empty()) {
      write_file(options.out, perfetto_bytes(trace));
      out << options.out << ": " << size_text(trace) << "; open it in https://ui.perfetto.dev\n";
    }
    if (!how.svg.empty()) {
      TimelineView picture;
      picture.title = "D[" + std::to_string(job.m) + "," + std::to_string(job.n) +
                      "], K = " + std::to_string(job.k) + ", " + plan.name() + " on " +
                      plan.device.name;
      picture.ctas = atom::cluster_size(plan.cluster) > 1 ? 2 : 1;
      write_file(how.svg, timeline_svg(trace, picture));
      out << how.svg << ": the first tiles as a picture\n";
    }
    if (!how.grid_svg.empty()) {
      GridView picture;
      picture.title = plan.name() + " on " + plan.device.name;
      picture.sms = plan.device.sms;
      picture.occupied_sm = how.occupy_sm.value_or(-1);
      write_file(how.grid_svg, grid_svg(trace, picture));
      out << how.grid_svg << ": which SM worked on which tile, when\n";
    }
    if (!trace.measured) {
      out << "Times are nominal cycles from the model's table of costs, no measurement.\n";
    }
    if (!findings.empty()) {
      throw RunError("The model found faults; the timeline shows the run as far as it went:\n" +
                     findings);
    }
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
