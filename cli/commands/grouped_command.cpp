#include "cli/commands/grouped_command.h"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands/model_time.h"
#include "cli/reports/progress.h"
#include "cli/reports/report_json.h"
#include "warpwright/device/grouped.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// Refuses before the work what does not go together.
void check_options(const GroupedOptions& o) {
  const bool is_model = parse_device(o.device).is_model;
  if (o.repeat < 0) {
    throw InputError("--repeat is " + std::to_string(o.repeat) +
                     "; the nearest legal value is 0: no launch is timed.");
  }
  if (o.repeat > 0 && is_model) {
    throw InputError(
        "--repeat measures a GPU, and the model does not predict time: give --device cuda too.");
  }
  check_mode(o);
}

// All that is told of one run.
struct GroupedOutcome {
  const GroupedJob& job;
  const GroupedPlan& plan;
  double seconds = 0;  // of the run, as the caller saw it
  GroupedOutput run;
  std::optional<GroupedCheck> check;

  [[nodiscard]] bool is_good() const {
    return run.report.clean() && run.status == 0 && (!check || check->passed());
  }
};

std::string type_text(DType t) {
  return std::string(numeric::name(t));
}

std::string summary(const GroupedOutcome& o) {
  const GroupedProblem& p = o.plan.problem;
  const std::string operands = type_text(p.x) + (p.x == p.w ? "" : "," + type_text(p.w));
  char text[512];
  std::snprintf(
      text, sizeof text,
      "grouped: Y[%lld,%lld] with K = %lld, %s to %s, on %s by %s: %s of %dx%d in %.3g s",
      static_cast<long long>(p.total), static_cast<long long>(p.n), static_cast<long long>(o.job.k),
      operands.c_str(), type_text(p.y).c_str(), o.plan.device.name.c_str(), o.plan.name().c_str(),
      groups_text(o.job, o.plan).c_str(), o.plan.tile_tokens(), o.plan.tile_weights(), o.seconds);
  return std::string(text) +
         (o.plan.device.is_model ? ".\n" : ", copies to and from the GPU included.\n");
}

std::string check_text(const GroupedJob& job, const GroupedCheck& check) {
  std::string text = check.passed() ? "check: PASS. " : "check: FAIL. ";
  text += describe(check.elements, "Y");
  if (job.rest.count() > 0) {
    text += " Of " + std::to_string(job.rest.count()) + " rows in no group " +
            (check.touched == 0 ? "none was" : std::to_string(check.touched) + " were") +
            " written.";
  }
  return text + "\n";
}

std::string time_text(const GroupedOutcome& o, int repeat) {
  char text[256];
  std::snprintf(text, sizeof text,
                "%s: %.2f us a launch (%d back to back, operands as L2 has them)",
                o.plan.name().c_str(), o.run.launch_seconds * 1e6, repeat);
  std::string all = text;
  if (const double roof = roof_seconds(o.job, o.plan.device); roof > 0) {
    std::snprintf(text, sizeof text, ", %.0f%% of the roof of %.2f us",
                  100 * roof / o.run.launch_seconds, roof * 1e6);
    all += text;
  }
  return all + "\n";
}

ordered_json check_json(const GroupedJob& job, const GroupedCheck& check) {
  ordered_json json = check_json(check.elements);
  json["passed"] = check.passed();
  json["rows_in_no_group"] = job.rest.count();
  json["rows_touched"] = check.touched;
  return json;
}

ordered_json to_json(const GroupedOutcome& o, const GroupedOptions& options) {
  const GroupedProblem& p = o.plan.problem;
  ordered_json json;
  json["plan"] = o.plan.name();
  json["device"] = o.plan.device.name;
  json["groups"] = p.groups;
  json["tokens"] = ordered_json::array();
  for (const TokenRows& r : o.job.rows) json["tokens"].push_back(r.count());
  json["total"] = p.total;
  json["n"] = p.n;
  json["k"] = o.job.k;
  json["dtype"] = {type_text(p.x), type_text(p.w)};
  json["d_dtype"] = type_text(p.y);
  json["scaling"] = scaling_name(p.scaling);
  json["accumulation"] = p.accumulation == Accumulation::fast ? "fast" : "promoted";
  json["offsets"] = p.offsets == OffsetType::int64 ? "int64" : "int32";
  json["tile_tokens"] = o.plan.tile_tokens();
  json["tile_weights"] = o.plan.tile_weights();
  json["swapped"] = o.plan.config.swapped;
  json["search"] = search_name(o.plan.config.grouped);
  json["cluster"] = {o.plan.cluster.m, o.plan.cluster.n};
  json["ctas"] = o.plan.ctas;
  json["tiles"] = tiles_of(o.job, o.plan);
  json["seconds"] = o.seconds;
  json["findings"] = ordered_json::array();
  for (const model::Finding& f : o.run.report.findings) {
    json["findings"].push_back(finding_json(f));
  }
  if (options.check_offsets) {
    const std::optional<std::string> fault = offsets_fault(o.run.status);
    json["offsets_fault"] = fault ? ordered_json(*fault) : ordered_json();
  }
  if (o.check) json["check"] = check_json(o.job, *o.check);
  if (options.repeat > 0) {
    json["time"] = {{"launch_us", o.run.launch_seconds * 1e6},
                    {"launches", options.repeat},
                    {"roof_us", roof_seconds(o.job, o.plan.device) * 1e6}};
  }
  return json;
}

GroupedCheck check_result(const GroupedJob& job, const HostTensor& y, std::ostream& err) {
  Progress progress(err, "check");
  return check_grouped(job, y.dtype, y.bytes.data(),
                       [&progress](double share) { progress.share(share); });
}

}  // namespace

GroupedOutput run_grouped_on_device(const GroupedJob& job, const GroupedPlan& plan,
                                    const GroupedOperands& operands, const GroupedOptions& options,
                                    std::ostream& err) {
  const DeviceChoice where = parse_device(options.device);
  if (!where.is_model) {
    return run_on_gpu(plan, operands, where.index,
                      {.check_offsets = options.check_offsets, .repeat = options.repeat});
  }
  GroupedOutput run;
  const auto launch = [&](const device::ModelOptions& how) {
    return device::launch_grouped_on_model(plan, operands, how,
                                           options.check_offsets ? &run.status : nullptr);
  };
  run.report = run_on_model(options, "grouped", tiles_of(job, plan), err, launch);
  return run;
}

int grouped_command(const GroupedOptions& options, std::ostream& out, std::ostream& err,
                    const GroupedRunner& run) {
  return exit_status(err, [&] {
    check_options(options);
    GroupedJob job = read_grouped_job(options);
    check_output(options.out, "Y");
    const GroupedPlan plan = plan_job(job, facts_of(options, options.repeat > 0));
    check_memory(job);
    const double cpu = (plan.device.is_model ? model_seconds(job, plan) : 0) +
                       (options.check ? check_seconds(products_of(job)) : 0);
    note_duration(err, "grouped", cpu, "fewer tokens or a smaller N or K are faster");
    load(job, options.seed, err);
    HostTensor y = poisoned_result(job);
    const GroupedOperands operands = operands_of(job, y);
    GroupedOutcome outcome{.job = job, .plan = plan, .run = {}, .check = {}};
    const auto start = std::chrono::steady_clock::now();
    outcome.run = run(job, plan, operands, options, err);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    outcome.seconds = spent.count();
    // What a faulty run left is not worth a check.
    const bool is_clean = outcome.run.report.clean();
    if (is_clean && options.check) outcome.check = check_result(job, y, err);
    if (options.json) out << to_json(outcome, options).dump(2) << "\n";
    require_clean(outcome.run.report, "Y");
    err << summary(outcome);
    if (options.check_offsets) {
      const std::optional<std::string> fault = offsets_fault(outcome.run.status);
      err << "offsets: " << fault.value_or("in order") << ".\n";
    }
    if (outcome.check) err << check_text(job, *outcome.check);
    if (options.repeat > 0 && !options.json) out << time_text(outcome, options.repeat);
    if (!outcome.is_good()) {
      if (!options.out.empty()) err << "Nothing was written to " << options.out << ".\n";
      return 1;
    }
    if (!options.out.empty()) write_result(job, std::move(y), options.out, err);
    return 0;
  });
}

}  // namespace warpwright::cli
