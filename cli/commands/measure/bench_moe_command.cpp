#include "cli/commands/measure/bench_moe_command.h"

#include <utility>
#include <vector>

#include "cli/commands/gemm/outputs.h"
#include "cli/commands/measure/bench.h"
#include "cli/compute/bench_shapes.h"
#include "cli/compute/token_lengths.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "cli/reports/bench_moe_report.h"
#include "cli/reports/progress.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/moe/moe_alternatives.h"

namespace warpwright::cli {
namespace {

struct MoeKind {
  std::string word;
  MoeTypes types;
  bool or_fp8 = false;  // or fp8 of the same values, where the plan expects it to be faster
};
const std::vector<MoeKind>& moe_kinds() {
  static const std::vector<MoeKind> all = [] {
    std::vector<MoeKind> kinds = {{"bf16", moe_types("bf16", "", "")},
                                  {"e4m3-block", moe_types("e4m3", "", "blockwise")},
                                  {"e4m3-row-column", moe_types("e4m3", "", "row-column")}};
    for (const packed::WeightForm& form : packed::weight_forms) {
      if (form.bench == nullptr) continue;
      const std::string word = packed::format_of(form).word;
      const std::string tokens(numeric::word(form.tokens));
      kinds.push_back({form.bench, moe_types(tokens, word, "")});
      if (!packed::has_blocks(form)) continue;
      const MoeTypes blocks = moe_types(tokens, word, "blockwise");
      kinds.push_back({word + "-block", blocks});
      kinds.push_back({word + "-or-fp8", blocks, true});
    }
    return kinds;
  }();
  return all;
}
constexpr int kUsualMoeKinds = 2;

std::vector<MoeKind> parse_moe_kinds(const std::string& list) {
  return chosen_kinds(moe_kinds(), &MoeKind::word, kUsualMoeKinds, list);
}

std::vector<std::int64_t> parse_tokens(const std::string& list) {
  std::vector<std::int64_t> all;
  for (const std::string& word : split(list)) {
    const auto tokens = as_number<std::int64_t>(word);
    if (!tokens || *tokens < 1) {
      throw InputError("--tokens has \"" + word + "\"; " +
                       as_rule("it must be numbers from 1 with commas between, for example 1,64") +
                       ".");
    }
    all.push_back(*tokens);
  }
  return all;
}

std::vector<ExpertModel> wanted_models(const std::string& name) {
  if (!name.empty()) return {expert_model(name)};
  const std::vector<ExpertModel>& all = expert_models();
  return {all.begin(), all.begin() + kBuiltInModels};
}

// What is measured, and how.
struct MoeBenchJob {
  std::vector<ExpertModel> models;
  std::vector<MoeKind> kinds;
  std::vector<std::int64_t> tokens;
  MixtureChoices choices;
  Groups hints;
  bench::MoeTimeOptions how;
  int device = 0;
  DeviceFacts facts;

  [[nodiscard]] std::size_t rows() const { return models.size() * kinds.size() * tokens.size(); }
};

MoeBenchJob job_of(const BenchMoeOptions& o) {
  MoeBenchJob job;
  job.models = wanted_models(o.model);
  job.kinds = parse_moe_kinds(o.dtype);
  job.tokens = parse_tokens(o.tokens);
  job.choices = mixture_choices(o.choices);
  expect_lengths(job.hints, o.choices.expected_lengths);
  job.how.how = time_options(o);
  job.how.how.dependent = o.dependent;
  job.how.steps = o.steps;
  check_outputs({{"--json", "The JSON", o.json, {".json"}}});
  job.device = measured_device(o, "bench");
  job.facts = with_files(facts_of(job.device), o);
  return job;
}

// The plan of a layer whose weights are of that kind.
Result<MixturePlan> plan_of(const MoeKind& kind, const MixtureOperands& shapes,
                            const MixtureOperands& as_fp8, const MoeBenchJob& job) {
  if (!kind.or_fp8) return run_moe_plan(shapes, job.facts, job.choices);
  const MixtureOperands both[] = {shapes, as_fp8};
  auto chosen = plan_fastest(both, job.facts, job.choices);
  if (!chosen) return chosen.refusal();
  return std::move((*chosen).plan);
}

// Times a layer for so many tokens, or says in its row why not.
MoeBenchRow measure(const ExpertModel& model, const MoeKind& kind, std::int64_t tokens,
                    const BenchMoeOptions& o, const MoeBenchJob& job) {
  MoeBenchRow row;
  const auto with = [&](const MoeTypes& types) {
    MixtureOperands m =
        packed_mixture({tokens, model.hidden, model.inner, model.experts, model.top_k}, types);
    m.expected_lengths = job.hints.expected_lengths;
    m.expected_zipf = job.hints.expected_zipf;
    return m;
  };
  const MixtureOperands shapes = with(kind.types);
  bench::MoeTimeOptions how = job.how;
  how.ids = routed_choices(moe_routing(shapes, o.routing, model), model.experts, o.seed);
  row.tokens = tokens;
  row.lengths = how.how.lengths = lengths_of(how.ids, model.experts);
  auto plan = plan_of(kind, shapes, with(moe_types("e4m3", "", "blockwise")), job);
  if (!plan) {
    row.refusal = plan.reason();
    return row;
  }
  row.roof = bench::moe_roof(plan->problem, job.facts, row.lengths);
  row.plan = *std::move(plan);
  if (row.plan->way.one_launch()) {  // the steps in turns with it
    MixtureChoices by_steps = job.choices;
    by_steps.one_launch = false;
    auto steps = run_moe_plan(shapes, job.facts, by_steps);
    if (steps) how.beside = *std::move(steps);
  }
  const auto times = time_mixture(*row.plan, job.device, how);
  if (times) {
    row.times = *times;
  } else {
    row.refusal = times.reason();
  }
  return row;
}

int run_bench_moe(const BenchMoeOptions& o, std::ostream& out, std::ostream& err) {
  const MoeBenchJob job = job_of(o);
  err << "bench: " << job.rows() << (job.rows() == 1 ? " mixture" : " mixtures")
      << " of experts, seed " << o.seed << ".\n";
  MoeBenchRun run{origin_of(o.command, o.seed, o.dependent, job.facts), {}};
  Progress progress(err, "bench", "mixtures", static_cast<std::int64_t>(job.rows()));
  const bool prints_rows = !(o.wants_json && o.json.empty());
  const auto print = [&](const std::string& text) {
    if (prints_rows) progress.print(out, text);
  };
  print(moe_title(run));
  std::int64_t done = 0;
  int missing = 0;
  for (const ExpertModel& model : job.models) {
    for (const MoeKind& kind : job.kinds) {
      run.sections.push_back({model, kind.word, {}});
      MoeBenchSection& section = run.sections.back();
      print(moe_heading(section));
      for (const std::int64_t tokens : job.tokens) {
        section.rows.push_back(measure(model, kind, tokens, o, job));
        missing += section.rows.back().times ? 0 : 1;
        print(moe_row(section.rows.back()));
        // After every row, so that a run that is cut short leaves what it has.
        if (!o.json.empty()) replace_file(o.json, moe_json(run));
        progress.update(++done);
      }
    }
  }
  if (!prints_rows) out << moe_json(run);
  if (missing > 0) {
    err << missing << " of " << job.rows() << " mixtures were not measured; their rows say why.\n";
  }
  return missing == 0 ? 0 : 1;
}

}  // namespace

std::string moe_kind_words(const char* between) {
  return joined(moe_kinds(), between, between, &MoeKind::word);
}

int bench_moe_command(const BenchMoeOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.wants_json && o.json.empty(),
                     [&] { return run_bench_moe(o, out, err); });
}

}  // namespace warpwright::cli
