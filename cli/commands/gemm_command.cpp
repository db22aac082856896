#include "cli/commands/gemm_command.h"
#include "cli/commands/predict/configurations.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/gemm/gemm_arguments.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/commands/gemm/outputs.h"
#include "cli/commands/gemm/quantised_result.h"
#include "cli/commands/measure/bench.h"
#include "cli/commands/measure/bench_command.h"
#include "cli/commands/predict/predicted.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/plan_json.h"
#include "cli/reports/progress.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/families/learnt.h"
#include "warpwright/plan/product/micro.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// Refuses before the work what does not go together.
void check_options(const GemmOptions& o) {
  const bool is_model = parse_device(o.device) == run_on_model;
  if (o.repeat < 0) {
    throw InputError("--repeat is " + std::to_string(o.repeat) + "; the nearest legal value is " +
                     as_nearest("0") + ": no launch is timed.");
  }
  if (is_model && (o.bench || o.repeat > 0)) {
    throw InputError(std::string(o.bench ? "--bench" : "--repeat") +
                     " measures a GPU, and --device is model, the machine model: " +
                     as_rule("give --device cuda too") + ".");
  }
  if (!is_model && !o.mode.empty()) {
    throw InputError("--mode is how the model schedules; " +
                     as_rule("a GPU has no such choice: leave it out") + ".");
  }
  static_cast<void>(parse_mode(o.mode));
  if (o.in_place && (o.bench || o.repeat > 0 || (!is_model && o.check_offsets))) {
    throw InputError(std::string("--in-place has C in D, which ") +
                     (o.bench        ? "--bench"
                      : o.repeat > 0 ? "--repeat"
                                     : "--check-offsets") +
                     " would add again with every launch: " + as_rule("leave one of them out") +
                     ".");
  }
}

// All that is told of one run.
struct GemmOutcome {
  const Product& product;
  const GemmOptions& options;
  double seconds = 0;  // of the run, as the caller saw it
  RunOutput run;
  std::optional<JobCheck> check;
  std::optional<bench::GemmTimes> times;

  [[nodiscard]] bool is_good() const {
    return run.report.clean() && !run.offsets && (!check || check->passed());
  }
};

std::string type_text(DType t) {
  return std::string(numeric::word(t));
}

// What only groups have; the keys are those of the whole or of its check.
void add_groups(ordered_json& json, const GemmOutcome& o) {
  const GemmJob& job = o.product.job;
  const KernelFacts& facts = o.product.plan.facts();
  json["groups"] = job.product.group_count();
  json["tokens"] = job.lengths();
  json["total"] = job.product.m();
  json["offsets"] = job.product.groups->type == OffsetType::int64 ? "int64" : "int32";
  json["tile_tokens"] = facts.result_rows;
  json["tile_weights"] = facts.result_columns;
  if (o.options.check_offsets) {
    json["offsets_fault"] = o.run.offsets ? ordered_json(*o.run.offsets) : ordered_json();
  }
}

// A's and B's type, or format.
std::string operands_text(const GemmProblem& p) {
  const std::string a = operand_name(p, true);
  const std::string b = operand_name(p, false);
  return a == b ? a : a + "," + b;
}

// What was multiplied, and by which plan.
ordered_json product_json(const GemmOutcome& o) {
  const GemmJob& job = o.product.job;
  const Plan& plan = o.product.plan;
  const GemmProblem& p = plan.problem;
  ordered_json json;
  json["plan"] = plan.name();
  json["device"] = plan.device.name;
  json["batch"] = p.batch();
  json["m"] = p.m();
  json["n"] = p.n();
  json["k"] = job.product.k();
  if (job.product.is_grouped()) add_groups(json, o);
  json["dtype"] = {type_text(p.a.dtype), type_text(p.b.dtype)};
  json["d_dtype"] = type_text(p.d.dtype);
  json["scaling"] = name(p.scaling);
  if (scales_elements(p.scaling)) json["formats"] = operands_text(p);
  if (p.packed) {
    json["weights"] = {{"group", p.packed->format.group},
                       {"scale", type_text(p.packed->format.scale)},
                       {"sums", name(packed::sums_for(p.packed->format, p.packed->sums))}};
  } else {
    json["accumulation"] = accumulation_name(p.accumulation);
  }
  json["layout"] = layout_name(job.a_transposed, job.b_transposed);
  json["in_place"] = job.in_place;
  json["pitch"] = job.product.d.row_stride;
  json["bias"] = bias_name(p.epilogue.bias);
  json["activation"] = name(p.epilogue.activation);
  json["gated"] = p.epilogue.gated;
  if (p.epilogue.gated) json["gate_up"] = gate_up_name(p.epilogue.interleaved);
  if (const auto& gate = job.product.epilogue.gate) {
    json["gate"] = {{"alpha", gate->alpha}, {"beta", gate->beta}, {"limit", gate->limit}};
  }
  json["quantise_d"] = name(p.epilogue.quantise);
  json["tile_m"] = plan.tile().m;
  json["tile_n"] = plan.tile().n;
  json["swap_ab"] = plan.facts().swap_ab;
  json["cluster"] = {plan.cluster.m, plan.cluster.n};
  json["cluster_k"] = plan.cluster_k;
  json["ctas"] = plan.ctas;
  json["tiles"] = tiles_of(job, plan);
  return json;
}

ordered_json to_json(const GemmOutcome& o) {
  const GemmJob& job = o.product.job;
  const Plan& plan = o.product.plan;
  ordered_json json = product_json(o);
  json["seconds"] = o.seconds;
  json["findings"] = ordered_json::array();
  for (const model::Finding& f : o.run.report.findings) {
    json["findings"].push_back(finding_json(f));
  }
  if (o.check) {
    json["check"] = check_json(o.check->elements);
    json["check"]["passed"] = o.check->passed();
    if (job.product.is_grouped()) {
      json["check"]["rows_in_no_group"] = job.rest.count();
      json["check"]["rows_touched"] = o.check->touched;
    }
    json["check"]["gaps_touched"] = o.check->gaps;
  }
  if (o.options.repeat > 0) {
    json["time"] = {{"launch_us", o.run.launch_seconds * 1e6},
                    {"launches", o.options.repeat},
                    {"roof_us", roof_us(job, plan)}};
  }
  if (o.times) {
    json["time"] = {{"ours", timing_json(o.times->ours)},
                    {"cublaslt_first", timing_json(o.times->first)},
                    {"cublaslt_best", timing_json(o.times->best)},
                    {"roof_us", o.times->roof.us()}};
  }
  return json;
}

std::string summary(const GemmOutcome& o) {
  const GemmJob& job = o.product.job;
  const Plan& plan = o.product.plan;
  const GemmProblem& p = plan.problem;
  const KernelFacts& facts = plan.facts();
  const bool grouped = job.product.is_grouped();
  return format("%s: %sD[%lld,%lld] with K = %lld, %s to %s, on %s: %s of %dx%d in %.3g s%s.\n",
                job.command(), (p.batch() > 1 ? std::to_string(p.batch()) + " times " : "").c_str(),
                static_cast<long long>(p.m()), static_cast<long long>(job.result_columns()),
                static_cast<long long>(job.product.k()), operands_text(p).c_str(),
                type_text(p.d.dtype).c_str(),
                (plan.device.name + (grouped ? " by " + plan.name() : "")).c_str(),
                tiles_text(job, plan).c_str(), grouped ? facts.result_rows : plan.tile().m,
                grouped ? facts.result_columns : plan.tile().n, o.seconds,
                plan.device.is_model ? "" : ", copies to and from the GPU included");
}

std::string check_text(const GemmOutcome& o) {
  return (o.check->passed() ? "check: PASS. " : "check: FAIL. ") +
         describe(*o.check, o.product.job) + "\n";
}

// For the launches of --repeat.
std::string time_text(const GemmOutcome& o) {
  const Plan& plan = o.product.plan;
  std::string all = format("%s: %.2f us a launch (%d back to back, operands as L2 has them)",
                           plan.name().c_str(), o.run.launch_seconds * 1e6, o.options.repeat);
  if (const double roof = roof_us(o.product.job, plan); roof > 0) {
    all +=
        format(", %.0f%% of the roof of %.2f us", 100 * roof / (o.run.launch_seconds * 1e6), roof);
  }
  return all + "\n";
}

JobCheck check_result(const Product& product, std::ostream& err) {
  Progress progress(err, "check");
  return check_job(product.job, product.operands,
                   [&progress](double share) { progress.share(share); });
}

}  // namespace

RunOutput run_on_device(const Product& product, const GemmOptions& options, std::ostream& err) {
  const int index = parse_device(options.device);
  if (index != run_on_model) {
    return run_on_gpu(product, index, options.check_offsets, options.repeat);
  }
  RunOutput run;
  std::uint32_t status = 0;
  device::ModelOptions how;
  how.mode = parse_mode(options.mode).value_or(how.mode);
  how.seed = options.seed;
  std::uint64_t rows = 0;
  if (options.check_offsets) {
    how.offsets_status = &status;
    how.rows_status = &rows;
  }
  run.report = run_with_checks(product, how, product.job.command(), err);
  run.offsets = offsets_fault(status);
  if (!run.offsets) run.offsets = rows_fault(rows, product.plan.problem);
  return run;
}

int gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err,
                 const GemmRunner& run) {
  return exit_status(out, err, options.json, [&] {
    check_options(options);
    const DeviceFacts facts = facts_of(options, options.bench || options.repeat > 0);
    Product product(options, facts, err);
    const GemmJob& job = product.job;
    check_output(options.out, "D");
    check_quantised(job, options.out);
    check_not_read(options, "--out", options.out);
    check_memory(job);
    note_duration(err, job.command(),
                  (facts.is_model ? product.model_seconds() : 0) +
                      (options.check ? check_seconds(product.products()) : 0),
                  job.product.is_grouped() ? "fewer tokens or a smaller N or K are faster"
                                           : "smaller extents are faster");
    product.load(options.seed, err);
    GemmOutcome outcome{
        .product = product, .options = options, .run = {}, .check = {}, .times = {}};
    const auto start = std::chrono::steady_clock::now();
    outcome.run = run(product, options, err);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    outcome.seconds = spent.count();
    // What a faulty run left is not worth a check.
    if (outcome.run.report.clean() && options.check) outcome.check = check_result(product, err);
    if (outcome.is_good() && options.bench) {
      outcome.times = bench_gemm(product.plan, product.operands, parse_device(options.device));
      if (!options.json) out << bench_line(*outcome.times) << "\n";
    }
    const std::string object = options.json ? json_text(to_json(outcome)) : "";
    if (options.json && !outcome.run.report.clean()) {
      out << object;  // it has the findings: no second object
      err << "The model found faults, so D is not to be trusted:\n" << outcome.run.report.text();
      return 1;
    }
    require_clean(outcome.run.report);
    err << summary(outcome);
    if (options.check_offsets)
      err << "offsets: " << outcome.run.offsets.value_or("in order") << ".\n";
    if (outcome.check) err << check_text(outcome);
    if (options.repeat > 0 && !options.json) out << time_text(outcome);
    if (!outcome.is_good()) {
      out << object;
      if (!options.out.empty()) err << "Nothing was written to " << printable(options.out) << ".\n";
      return 1;
    }
    if (!options.out.empty()) write_result(job, std::move(product.d), options.out, err);
    out << object;
    return 0;
  });
}

namespace {

// The plan's way and the two that would have been next, by what they were held against each other.
std::vector<Plan> best_ways(const Product& product) {
  constexpr int shown = 3;
  auto ways = bench_plans(product.plan.problem, product.plan.device, product.job.choices, shown);
  if (!ways) return {};
  const bool has_plan = !ways->empty() && ways->front().name() == product.plan.name();
  return has_plan ? *std::move(ways) : std::vector<Plan>{};  // else a measurement decided
}

std::string best_ways_text(const Product& product) {
  std::string text;
  for (const Plan& way : best_ways(product)) {
    text += text.empty() ? "chosen by  " : "next best  " + way.name() + ", ";
    text += format("%s %.2f us\n", learnt_seconds(way) ? "learnt" : "cost", 1e6 * way.cost);
  }
  return text;
}

ordered_json best_ways_json(const Product& product) {
  ordered_json json = ordered_json::array();
  for (const Plan& way : best_ways(product)) {
    const auto learnt = learnt_seconds(way);
    json.push_back({{"config", way.name()},
                    {"cost_us", 1e6 * way.cost},
                    {"learnt_us", learnt ? ordered_json(1e6 * *learnt) : ordered_json()}});
  }
  return json;
}

}  // namespace

int explain_command(const GemmOptions& options, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, options.json, [&] {
    const Product product(options, facts_elsewhere(options), err);
    const Plan& plan = product.plan;
    std::optional<Predicted> time;
    std::string why = "the model has no rates";
    if (!plan.device.is_model) {
      try {
        time = predicted(options, plan, product.job.lengths());
      } catch (const InputError& refusal) {
        why = refusal.what();
      }
    }
    if (!options.json) {
      out << product.explain();
      if (!plan.device.is_model) {
        out << "prediction " << (time ? prediction_words(plan, time->time) : "none: " + why) << "\n"
            << best_ways_text(product);
      }
      return 0;
    }
    ordered_json json = plan_json(plan);
    if (product.job.product.is_grouped()) json["tokens"] = product.job.lengths();
    json["prediction"] = time ? prediction_json(plan, *time) : ordered_json();
    if (!plan.device.is_model) json["best_ways"] = best_ways_json(product);
    json["tuning"] = product.origin;
    out << json_text(json);
    return 0;
  });
}

}  // namespace warpwright::cli
