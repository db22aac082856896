#include "cli/commands/trace_command.h"

#include <array>
#include <cstdio>
#include <optional>
#include <set>

#include "cli/commands/model_time.h"
#include "cli/files/output_file.h"
#include "cli/pictures/grid_svg.h"
#include "cli/pictures/perfetto.h"
#include "cli/pictures/timeline_svg.h"
#include "cli/reports/progress.h"

namespace warpwright::cli {
namespace {

// Finds out before the work what would keep the files from being written after it, and whether one
// of them would be written over another.
void check_outputs(const TraceOptions& o) {
  struct Output {
    const char* option;
    const char* what;
    const std::string& path;
  };
  const std::array<Output, 3> outputs = {{{"--out", "The trace", o.out},
                                          {"--svg", "The picture", o.svg},
                                          {"--grid-svg", "The picture", o.grid_svg}}};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    check_output_file(outputs[i].what, outputs[i].path);
    for (std::size_t j = 0; j < i; ++j) {
      if (outputs[j].path.empty() || !is_same_output(outputs[i].path, outputs[j].path)) continue;
      throw InputError(std::string(outputs[i].option) + " " + outputs[i].path + " is the file of " +
                       outputs[j].option +
                       ", which it would be written over: give each a file of its own.");
    }
  }
}

// What ran; what the model found goes to `findings`.
model::Trace run_on_model(Product& product, const TraceOptions& options, std::ostream& err,
                          std::string& findings) {
  model::Trace trace;
  device::ModelOptions how;
  how.mode = model::Mode::timed;
  how.trace = &trace;
  how.occupied_sm = options.occupy_sm.value_or(-1);
  Progress progress(err, "trace", "tiles", product.tiles());
  how.on_tile = [&progress](std::int64_t done) { progress.update(done); };
  const Result<model::Report> report = product.run_on_model(how);
  if (!report) throw InputError(report.reason());
  findings = report->clean() ? "" : report->text();
  return trace;
}

model::Trace run_on_gpu(Product& product, int index) {
  if (!device::built_with_trace()) {
    throw InputError(
        "This build's kernels record no timeline; configure with -DWARPWRIGHT_CUDA=ON "
        "-DWARPWRIGHT_TRACE=ON, or trace on the model: --device model.");
  }
  require(device::use_cuda_device(index));
  product.run_on_gpu(index);  // unrecorded: caches and clocks warm up
  const auto recording = product.record();
  if (!recording) throw RunError(recording.reason());
  product.run_on_gpu(index);
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

int trace_command(const RunOptions& run, const ProductMaker& make, const TraceOptions& o,
                  std::ostream& out, std::ostream& err) {
  return exit_status(err, [&] {
    if (o.out.empty() && o.svg.empty() && o.grid_svg.empty()) {
      throw InputError("Where to? Give --out FILE.pftrace, --svg FILE.svg, or both.");
    }
    const DeviceChoice where = parse_device(run.device);
    check_outputs(o);
    const std::unique_ptr<Product> product = make(facts_of(run), err);
    check_occupied(o, product->device());
    product->check_memory();
    if (where.is_model) {
      note_duration(err, "trace", product->model_seconds(), "smaller extents are faster");
    }
    product->load(run.seed, err);

    std::string findings;
    const model::Trace trace = where.is_model ? run_on_model(*product, o, err, findings)
                                              : run_on_gpu(*product, where.index);
    if (!o.out.empty()) {
      replace_file(o.out, perfetto_bytes(trace));
      out << printable(o.out) << ": " << size_text(trace)
          << "; open it in https://ui.perfetto.dev\n";
    }
    const std::string plan_on_device = product->plan_name() + " on " + product->device().name;
    if (!o.svg.empty()) {
      TimelineView picture;
      picture.title = product->title() + ", " + plan_on_device;
      picture.ctas = atom::cluster_size(product->cluster()) > 1 ? 2 : 1;
      replace_file(o.svg, timeline_svg(trace, picture));
      out << printable(o.svg) << ": the first tiles as a picture\n";
    }
    if (!o.grid_svg.empty()) {
      GridView picture;
      picture.title = plan_on_device;
      picture.sms = product->device().sms;
      picture.occupied_sm = o.occupy_sm.value_or(-1);
      replace_file(o.grid_svg, grid_svg(trace, picture));
      out << printable(o.grid_svg) << ": which SM worked on which tile, when\n";
    }
    if (!trace.measured) {
      out << "Times are nominal cycles from the model's table of costs, no measurement.\n";
    }
    if (!findings.empty()) {
      throw RunError("The model found faults; the timeline shows the run as far as it went:\n" +
                     findings);
    }
    return 0;
  });
}

}  // namespace warpwright::cli
