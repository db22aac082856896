#include "cli/commands/trace_command.h"

#include <cstdio>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/commands/gemm_arguments.h"
#include "cli/commands/model_time.h"
#include "cli/commands/operand_files.h"
#include "cli/commands/product.h"
#include "cli/files/output_file.h"
#include "cli/pictures/grid_svg.h"
#include "cli/pictures/perfetto.h"
#include "cli/pictures/timeline_svg.h"
#include "warpwright/device/trace_cuda.h"

namespace warpwright::cli {
namespace {

// Finds out before the work what would keep the files from being written after it, and whether one
// of them would be written over another, or over a tensor that is read.
void check_outputs(const GemmOptions& run, const TraceOptions& o) {
  struct File {
    const char* option;
    std::string path;
  };
  std::vector<File> others;
  for (const auto& [option, spec] : {std::pair{"--a", run.a},
                                     {"--b", run.b},
                                     {"--c", run.c},
                                     {"--scale-a", run.scale_a},
                                     {"--scale-b", run.scale_b},
                                     {"--scale-d", run.scale_d},
                                     {"--tokens", run.tokens},
                                     {"--offsets", run.offsets},
                                     {"--bias", parse_bias(run.bias).second}}) {
    if (names_file(spec)) others.push_back({option, parse_spec(spec).path});
  }
  for (const auto& [option, what, path] : {std::tuple{"--out", "The trace", o.out},
                                           {"--svg", "The picture", o.svg},
                                           {"--grid-svg", "The picture", o.grid_svg}}) {
    if (path.empty()) continue;
    check_output_file(what, path);
    for (const File& other : others) {
      if (!is_same_output(path, other.path)) continue;
      throw InputError(std::string(option) + " " + path + " is the file of " + other.option +
                       ", which it would be written over: give each a file of its own.");
    }
    others.push_back({option, path});
  }
}

model::Trace trace_on_gpu(const Product& product, int index) {
  if (!device::built_with_trace()) {
    throw InputError(
        "This build's kernels record no timeline; configure with -DWARPWRIGHT_CUDA=ON "
        "-DWARPWRIGHT_TRACE=ON, or trace on the model: --device model.");
  }
  run_on_gpu(product, index);  // unrecorded: caches and clocks warm up
  const auto recording = device::CudaTrace::start(product.plan);
  if (!recording) throw RunError(recording.reason());
  run_on_gpu(product, index);
  const Result<model::Trace> trace = (*recording)->finish();
  if (!trace) throw RunError(trace.reason());
  return *trace;
}

// The SM that another grid holds must be one of the model's, and not the last that is left.
void check_occupied(const TraceOptions& how, const DeviceFacts& device) {
  if (!how.occupy_sm) return;
  const std::string what = "--occupy-sm is " + std::to_string(*how.occupy_sm);
  if (!device.is_model) {
    throw InputError(what +
                     "; only the model's SMs can be held: leave it out, or give --device "
                     "model.");
  }
  if (*how.occupy_sm < 0 || *how.occupy_sm >= device.sms) {
    throw InputError(what + "; the model has SMs 0 to " + std::to_string(device.sms - 1) +
                     ": the nearest legal value is " +
                     std::to_string(*how.occupy_sm < 0 ? 0 : device.sms - 1) + ".");
  }
}

std::string size_text(const model::Trace& trace) {
  std::set<std::pair<int, int>> ctas;
  for (const model::TraceTrack& t : trace.tracks) ctas.emplace(t.grid, t.cta);
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

int trace_command(const GemmOptions& run, const TraceOptions& o, std::ostream& out,
                  std::ostream& err) {
  return exit_status(err, [&] {
    if (o.out.empty() && o.svg.empty() && o.grid_svg.empty()) {
      throw InputError("Where to? Give --out FILE.pftrace, --svg FILE.svg, or both.");
    }
    const DeviceChoice where = parse_device(run.device);
    check_outputs(run, o);
    Product product(run, facts_of(run), err);
    const DeviceFacts& device = product.plan.device;
    check_occupied(o, device);
    check_memory(product.job);
    if (where.is_model) {
      note_duration(err, "trace", product.model_seconds(), "smaller extents are faster");
    }
    product.load(run.seed, err);

    model::Trace trace;
    model::Report report;
    if (where.is_model) {
      device::ModelOptions how;
      how.mode = model::Mode::timed;
      how.trace = &trace;
      how.occupied_sm = o.occupy_sm.value_or(-1);
      report = run_on_model(product, how, "trace", err);
    } else {
      trace = trace_on_gpu(product, where.index);
    }
    if (!o.out.empty()) {
      replace_file(o.out, perfetto_bytes(trace));
      out << printable(o.out) << ": " << size_text(trace)
          << "; open it in https://ui.perfetto.dev\n";
    }
    const std::string plan_on_device = product.plan.name() + " on " + device.name;
    if (!o.svg.empty()) {
      TimelineView picture;
      picture.title = product.title() + ", " + plan_on_device;
      picture.ctas = atom::cluster_size(product.plan.cluster) > 1 ? 2 : 1;
      replace_file(o.svg, timeline_svg(trace, picture));
      out << printable(o.svg) << ": the first tiles as a picture\n";
    }
    if (!o.grid_svg.empty()) {
      GridView picture;
      picture.title = plan_on_device;
      picture.sms = device.sms;
      picture.occupied_sm = o.occupy_sm.value_or(-1);
      picture.ctas_per_sm = product.plan.facts().ctas_per_sm;
      replace_file(o.grid_svg, grid_svg(trace, picture));
      out << printable(o.grid_svg) << ": which SM worked on which tile, when\n";
    }
    if (!trace.measured) {
      out << "Times are nominal cycles from the model's table of costs, no measurement.\n";
    }
    if (!report.clean()) {
      throw RunError("The model found faults; the timeline shows the run as far as it went:\n" +
                     report.text());
    }
    return 0;
  });
}

}  // namespace warpwright::cli
