#include "cli/commands/moe/moe_command.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/gemm/model_time.h"
#include "cli/commands/moe/moe_family.h"
#include "cli/reports/moe_report.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"
#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

void check_options(const MoeOptions& o) {
  const bool is_model = parse_device(o.device) == run_on_model;
  if (!is_model && !o.mode.empty()) {
    throw InputError("--mode is how the model schedules; " +
                     as_rule("a GPU has no such choice: leave it out") + ".");
  }
  static_cast<void>(parse_mode(o.mode));
}

// All that is told of one run.
struct MoeOutcome {
  const MoeJob& job;
  double seconds = 0;  // of the run, as the caller saw it
  model::Report report;
  std::optional<CheckResult> check;

  [[nodiscard]] bool is_good() const { return report.clean() && (!check || check->passed); }
};

std::int64_t experts_hit(const MoeJob& job) {
  const std::vector<std::int64_t> lengths = job.lengths();
  return std::count_if(lengths.begin(), lengths.end(), [](std::int64_t n) { return n > 0; });
}

ordered_json to_json(const MoeOutcome& o) {
  ordered_json json = mixture_json(o.job.plan);
  json["lengths"] = o.job.lengths();
  json["seconds"] = o.seconds;
  json["findings"] = ordered_json::array();
  for (const model::Finding& f : o.report.findings) json["findings"].push_back(finding_json(f));
  if (o.check) json["check"] = check_json(*o.check);
  return json;
}

std::string summary(const MoeOutcome& o) {
  const MixturePlan& plan = o.job.plan;
  return "moe: " + mixture_words(plan.problem) + ", on " + plan.device.name +
         format(" (%lld hit): %d launches in %.3g s%s.\n",
                static_cast<long long>(experts_hit(o.job)), plan.launches(), o.seconds,
                plan.device.is_model ? "" : ", copies to and from the GPU included");
}

}  // namespace

model::Report run_moe_on_device(const MoeJob& job, const MoeOptions& options, std::ostream& err) {
  const int index = parse_device(options.device);
  if (index != run_on_model) {
    run_on_gpu(job, index);
    return {};
  }
  device::ModelOptions how;
  how.mode = parse_mode(options.mode).value_or(how.mode);
  how.seed = options.seed;
  return run_with_checks(job, how, err);
}

int moe_command(const MoeOptions& o, std::ostream& out, std::ostream& err, const MoeRunner& run) {
  if (o.plan) return explain_moe_command(o, out, err);
  if (o.schedules) {
    CheckCommandOptions how;
    how.schedules = o.schedules;
    how.json = o.json;
    return check_moe_command(o, how, out, err);
  }
  return exit_status(out, err, o.json, [&] {
    check_options(o);
    const DeviceFacts facts = facts_of(o);
    MoeJob job(o, facts);
    job.load(o.seed);
    note_duration(err, "moe",
                  (facts.is_model ? job.model_seconds() : 0) + (o.check ? job.check_seconds() : 0),
                  "fewer --tokens or smaller experts are faster");
    MoeOutcome outcome{.job = job, .report = {}, .check = {}};
    const auto start = std::chrono::steady_clock::now();
    outcome.report = run(job, o, err);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    outcome.seconds = spent.count();
    // What a faulty run left is not worth a check.
    if (outcome.report.clean() && o.check)
      outcome.check = check_moe(job.operands, job.plan.way.gates_behind);
    if (o.json) out << json_text(to_json(outcome));
    if (!outcome.report.clean() && o.json) {
      err << "The model found faults, so D is not to be trusted:\n" << outcome.report.text();
      return 1;
    }
    require_clean(outcome.report);
    err << summary(outcome);
    if (outcome.check) {
      err << (outcome.check->passed ? "check: PASS. " : "check: FAIL. ") << describe(*outcome.check)
          << "\n";
    }
    return outcome.is_good() ? 0 : 1;
  });
}

int check_moe_command(const MoeOptions& o, const CheckCommandOptions& how, std::ostream& out,
                      std::ostream& err) {
  return exit_status(out, err, how.json, [&] {
    if (parse_device(o.device) != run_on_model) {
      throw InputError("schedules are the model's: " + as_rule("leave --device out") + ".");
    }
    const device::CheckOptions options = check_options(o, how);
    if (how.exhaustive && !how.kernel.empty()) {
      throw InputError(
          "--exhaustive runs a layer's launches together: " + as_rule("say check moe") + ".");
    }
    if (!how.kernel.empty() || how.family) {
      require_family(how);
      return check_moe_family(o, how.kernel, options, how.mutate, how.json, out, err);
    }
    MoeJob job(o, facts_of(o));
    job.load(o.seed);
    note_checks(options, job.model_seconds(), how.mutate, err);
    const auto subject = device::mixture_subject(job.plan, job.operands, judge_mixture);
    const auto untried = [&job](const auto& ran) {
      return Untried{device::coverage(job.plan, ran),
                     device::untried_ways(job.plan, job.operands, job.rows_here())};
    };
    return check_subject({*subject, job.plan.name(), untried, "its launches have"}, options, how,
                         out, err);
  });
}

int explain_moe_command(const MoeOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    const MoeJob job(o, facts_elsewhere(o));
    out << (o.json ? json_text(mixture_json(job.plan)) : job.plan.explain());
    return 0;
  });
}

}  // namespace warpwright::cli
