#include "cli/commands/gemm/trace_command.h"

#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/gemm/outputs.h"
#include "cli/commands/gemm/recorded_product.h"
#include "cli/files/output_file.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machine_numbers.h"
#include "warpwright/pictures/grid_svg.h"
#include "warpwright/pictures/perfetto.h"
#include "warpwright/pictures/timeline_svg.h"

namespace warpwright::cli {
namespace {

std::size_t cta_count(const model::Trace& trace) {
  std::set<std::pair<int, int>> ctas;
  for (const model::TraceTrack& t : trace.tracks) ctas.emplace(t.grid, t.cta);
  return ctas.size();
}

std::string size_text(const model::Trace& trace) {
  std::string all =
      format("%zu CTAs, %zu tracks, %lld events, %.1f %s", cta_count(trace), trace.tracks.size(),
             static_cast<long long>(trace.event_count()), static_cast<double>(trace.end()) / 1000,
             trace.measured ? "microseconds" : "nominal kilocycles");
  if (trace.dropped() > 0) all += ", " + std::to_string(trace.dropped()) + " oldest events dropped";
  return all;
}

nlohmann::ordered_json to_json(const Product& product, const TraceOptions& o,
                               const model::Trace& trace, const model::Report& report,
                               const MachineNumbers& machine) {
  const auto file = [](const std::string& path) {
    return path.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(path);
  };
  nlohmann::ordered_json json;
  json["plan"] = product.plan.name();
  json["device"] = product.plan.device.name;
  json["machine"] =
      trace.measured ? nlohmann::ordered_json() : nlohmann::ordered_json(machine.name);
  json["out"] = file(o.out);
  json["svg"] = file(o.svg);
  json["grid_svg"] = file(o.grid_svg);
  json["ctas"] = cta_count(trace);
  json["tracks"] = trace.tracks.size();
  json["events"] = trace.event_count();
  json["dropped_events"] = trace.dropped();
  json["end"] = trace.end();
  json["unit"] = trace.measured ? "nanoseconds" : "nominal cycles";
  json["findings"] = nlohmann::ordered_json::array();
  for (const model::Finding& f : report.findings) json["findings"].push_back(finding_json(f));
  return json;
}

}  // namespace

int trace_command(const GemmOptions& run, const TraceOptions& o, std::ostream& out,
                  std::ostream& err) {
  return exit_status(out, err, run.json, [&] {
    if (o.out.empty() && o.svg.empty() && o.grid_svg.empty()) {
      throw InputError("Where to? Give --out FILE.pftrace, --svg FILE.svg, or both.");
    }
    check_outputs({{"--out", "The trace", o.out, {".pftrace", ".perfetto-trace"}},
                   {"--svg", "The picture", o.svg, {".svg"}},
                   {"--grid-svg", "The picture", o.grid_svg, {".svg"}}},
                  &run);
    RecordHow how;
    how.occupy_sm = o.occupy_sm;
    const RecordedProduct recorded = record_product(run, how, "trace", err);
    const Product& product = *recorded.product;
    const DeviceFacts& device = product.plan.device;
    const model::Trace& trace = recorded.trace;
    const model::Report& report = recorded.report;
    const auto say = [&](const std::string& path, const std::string& what) {
      if (!run.json) out << printable(path) << ": " << what << "\n";
    };
    if (!o.out.empty()) {
      replace_file(o.out, pictures::perfetto_bytes(trace));
      say(o.out, size_text(trace) + "; open it in https://ui.perfetto.dev");
    }
    if (!o.svg.empty()) {
      pictures::TimelineView picture;
      picture.title = product.title() + ", " + recorded.plan_on_device();
      picture.ctas = atom::cluster_size(product.plan.cluster) > 1 ? 2 : 1;
      replace_file(o.svg, pictures::timeline_svg(trace, picture));
      say(o.svg, "the first tiles as a picture");
    }
    if (!o.grid_svg.empty()) {
      pictures::GridView picture;
      picture.title = recorded.plan_on_device();
      picture.sms = device.sms;
      picture.occupied_sm = o.occupy_sm.value_or(-1);
      picture.ctas_per_sm = product.plan.facts().ctas_per_sm;
      replace_file(o.grid_svg, pictures::grid_svg(trace, picture));
      say(o.grid_svg, "which SM worked on which tile, when");
    }
    if (run.json) {
      out << json_text(to_json(product, o, trace, report, recorded.machine));
    } else if (!trace.measured) {
      out << "Times are nominal cycles, from " << printable(recorded.machine.card)
          << " in numbers; no measurement.\n";
    }
    if (report.clean()) return 0;
    err << "The model found faults; the timeline shows the run as far as it went:\n"
        << report.text();
    return 1;
  });
}

}  // namespace warpwright::cli
