#include "cli/commands/measure/bench_command.h"

#include <ctime>
#include <map>
#include <span>
#include <utility>

#include "cli/commands/gemm/outputs.h"
#include "cli/commands/measure/bench.h"
#include "cli/commands/measure/child_process.h"
#include "cli/commands/measure/counters.h"
#include "cli/commands/measure/recording.h"
#include "cli/commands/predict/configurations.h"
#include "cli/commands/predict/predicted.h"
#include "cli/compute/token_lengths.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/progress.h"
#include "warpwright/plan/tuning/tuning.h"

namespace warpwright::cli {
namespace {

std::vector<Shape> wanted_shapes(const BenchOptions& o, const ProductTypes& types) {
  if (o.sample && !o.shapes.empty()) {
    throw InputError("--shapes and --sample do not go together: " + as_rule("give one of them") +
                     ".");
  }
  if (o.sample) {
    if (*o.sample < 1)
      throw InputError("--sample is less than 1; the nearest legal value is " + as_nearest("1") +
                       ".");
    return sample_shapes(*o.sample, o.seed, types.step());
  }
  if (o.routed.given() && !o.shapes.empty()) {
    throw InputError("--shapes and " +
                     std::string(o.routed.routed.empty() ? "--model" : "--routed") +
                     " do not go together: " + as_rule("give one of them") + ".");
  }
  std::vector<Shape> shapes = o.routed.given()   ? routed_shapes(o.routed)
                              : o.shapes.empty() ? shapes_of(o.kind)
                                                 : read_shapes(o.shapes, o.kind);
  for (Shape& shape : shapes) shape.seed = o.seed;
  return shapes;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

BenchRun run_of(const BenchOptions& o, const DeviceFacts& facts) {
  BenchRun run;
  static_cast<BenchOrigin&>(run) = origin_of(o.command, o.seed, o.dependent, facts);
  run.kind = o.kind;
  return run;
}

// What is measured, and how.
struct BenchJob {
  std::vector<ProductKind> kinds;
  std::size_t in_a_row = 1;  // kinds of one row; the next ones have a section of their own
  std::vector<Shape> shapes;
  std::optional<int> limit;  // plans of a product
  PlanChoices choices;
  Groups groups;  // what plans of groups expect
  bool by_index = false;
  bench::TimeOptions how;
  int device = 0;
  DeviceFacts facts;

  [[nodiscard]] std::size_t rows() const { return kinds.size() / in_a_row * shapes.size(); }
};

std::vector<ProductKind> wanted_kinds(const BenchOptions& o) {
  if (o.kind == BenchKind::grouped) return parse_kinds(o.types.dtype);
  if (o.kind == BenchKind::w4a8) {
    return packed_kinds(o.weights, o.group,
                        o.encoding == "sm" ? Int4Encoding::sm : Int4Encoding::ex);
  }
  if (is_packed_kind(o.types.dtype)) return parse_kinds(o.types.dtype);
  return {{"", parse_types(o.types)}};
}

// Refuses what the options do not say or what cannot be written later.
BenchJob job_of(const BenchOptions& o) {
  BenchJob job;
  job.kinds = wanted_kinds(o);
  for (auto& [word, types] : job.kinds) types.gated = o.gated;
  job.by_index = o.by_index;
  if (o.kind == BenchKind::w4a8) job.in_a_row = job.kinds.size();
  job.shapes = wanted_shapes(o, job.kinds.front().second);
  expect_lengths(job.groups, o.expected_lengths);
  job.limit = parse_configs(o.configs);
  job.choices = measured_choices(o);
  if (!o.kernel.empty()) job.choices.kernel = o.kernel;
  job.choices.batch_invariant = o.batch_invariant;
  job.how = time_options(o);
  job.how.dependent = o.dependent;
  if (o.wants_json && o.json.empty() && o.markdown) {
    throw InputError("--json and --markdown both print on stdout: " +
                     as_rule("leave one out, or give --json a FILE") + ".");
  }
  check_outputs({{"--json", "The JSON", o.json, {".json"}}});
  job.device = measured_device(o, "bench");
  job.facts = with_files(facts_of(job.device), o);
  return job;
}

// The product of a shape, with what its plan is to expect of its groups.
GemmProblem expected(const ProductTypes& types, const Shape& shape,
                     const std::vector<std::int64_t>& lengths, const BenchJob& job) {
  GemmProblem problem = problem_of(types, shape, lengths);
  if (problem.groups) {
    problem.groups = job.groups;
    problem.groups->rows_divisor = job.by_index ? 1 : 0;
  }
  return problem;
}

// Times the row, a product of the first kind beside those of the others, or says in it why not.
void measure(BenchRow& row, std::span<const ProductKind> kinds, const BenchJob& job) {
  const auto lengths = lengths_of(row.shape);
  if (!lengths) {
    row.refusal = lengths.reason();
    return;
  }
  row.lengths = *lengths;
  const auto plans = bench_plans(expected(kinds.front().second, row.shape, row.lengths, job),
                                 job.facts, job.choices, job.limit);
  if (!plans) {
    row.refusal = plans.reason();
    return;
  }
  bench::TimeOptions how = job.how;
  how.lengths = row.lengths;
  for (const auto& [word, types] : kinds.subspan(1)) {
    // What this build has no kernel for is left out.
    PlanChoices same;
    same.most_cluster_ctas = job.choices.most_cluster_ctas;
    auto others =
        bench_plans(expected(types, row.shape, row.lengths, job), job.facts, same, job.limit);
    if (others) how.beside.push_back(std::move(*others));
  }
  const auto times = time_product(*plans, job.device, how);
  if (times) {
    row.times = *times;
    row.times->predicted_us = predicted_us(plans->front(), row.lengths).value_or(0);
  } else {
    row.refusal = times.reason();
  }
}

// The mark of our launch of the row with this number; cuBLASLt's is the next.
int mark_of(std::int64_t row) {
  return static_cast<int>(2 * row + 1);
}

// Under ncu: the product of every row is launched once by each side. What cannot be launched is
// passed over here: the row says why.
int launch_under_ncu(const BenchJob& job) {
  std::int64_t row = 0;
  bench::TimeOptions how = job.how;
  for (std::size_t first = 0; first < job.kinds.size(); first += job.in_a_row) {
    for (const Shape& shape : job.shapes) {
      const int mark = mark_of(row++);
      const auto lengths = lengths_of(shape);
      if (!lengths) continue;
      const auto plans = bench_plans(expected(job.kinds[first].second, shape, *lengths, job),
                                     job.facts, job.choices, 1);
      how.lengths = *lengths;
      if (plans && !plans->empty()) profile_product(plans->front(), job.device, mark, how);
    }
  }
  return 0;
}

using Counts = std::map<int, bench::Counters>;  // by mark

// Runs this command under ncu where counters are asked for; what keeps them away is said.
Counts count(const BenchOptions& o, BenchRun& run, std::ostream& err) {
  if (!o.counters) return {};
  std::vector<std::string> arguments = o.arguments;
  arguments.emplace_back("--under-ncu");
  NcuLog log = run_under_ncu(this_program(), arguments);
  run.counted = !log.counts.empty();
  run.uncounted = log.error;
  if (!log.error.empty()) {
    err << "bench: " << (run.counted ? "counters are missing" : "counters are left out") << ": "
        << log.error << ".\n";
  }
  return log.counts;
}

// Is the row's product in the record already?
bool is_recorded(const TimesFile& recording, const BenchRun& run, const ProductTypes& types,
                 const Shape& shape, const BenchJob& job) {
  if (!recording.given()) return false;
  const auto lengths = lengths_of(shape);
  return lengths &&
         recording.has(run.gpu, expected(types, shape, *lengths, job), recorded_lengths(shape));
}

// Measures all rows into `run`, and prints each when it is there. Returns how many are missing.
int measure_all(const BenchOptions& o, const BenchJob& job, const Counts& counts,
                TimesFile& recording, BenchRun& run, std::ostream& out, std::ostream& err) {
  Progress progress(err, "bench", o.kind == BenchKind::grouped ? "products" : "shapes",
                    static_cast<std::int64_t>(job.rows()));
  const auto counted = [&](int mark) -> std::optional<bench::Counters> {
    const auto found = counts.find(mark);
    if (found == counts.end()) return std::nullopt;
    return found->second;
  };
  const bool prints_rows = !o.markdown && !(o.wants_json && o.json.empty());
  const auto print = [&](const std::string& text) {
    if (prints_rows) progress.print(out, text);
  };
  std::int64_t done = 0;
  int missing = 0;
  int recorded = 0;
  for (std::size_t first = 0; first < job.kinds.size(); first += job.in_a_row) {
    const std::span<const ProductKind> of_row = std::span(job.kinds).subspan(first, job.in_a_row);
    const auto& [word, types] = of_row.front();
    run.sections.push_back(
        {word,
         (o.kind == BenchKind::dense ? types_name(types) : operands_name(types)) +
             (o.gated ? ", gated" : "") + (o.by_index ? ", tokens by index" : ""),
         {}});
    BenchSection& section = run.sections.back();
    if (run.sections.size() == 1) print(table_title(run));
    print(table_heading(run, section));
    for (const Shape& shape : job.shapes) {
      if (is_recorded(recording, run, types, shape, job)) {
        ++recorded;
        progress.update(++done);
        continue;
      }
      section.rows.push_back({shape, {}, {}, {}});
      BenchRow& row = section.rows.back();
      measure(row, of_row, job);
      if (row.times) {
        if (recording.given()) recording.add(*row.times, run.gpu, recorded_lengths(shape));
        row.times->counted = counted(mark_of(done));
        row.times->first_counted = counted(mark_of(done) + 1);
      } else {
        ++missing;
      }
      print(table_row(run, row));
      // After every shape, so that a run that is cut short leaves what it has.
      if (!o.json.empty()) replace_file(o.json, json(run));
      progress.update(++done);
    }
    print(table_summary(run, section));
  }
  if (recorded > 0) {
    err << recorded << " of " << job.rows() << " are in " << printable(o.record)
        << " already, of this card and commit, and were not measured again.\n";
  }
  return missing;
}

int run_bench(const BenchOptions& o, std::ostream& out, std::ostream& err) {
  TimesFile recording(o, WARPWRIGHT_COMMIT);
  const BenchJob job = job_of(o);
  if (o.under_ncu) return launch_under_ncu(job);
  const std::size_t all = job.rows();
  const bool grouped = o.kind == BenchKind::grouped;
  const std::string what = grouped ? "product" : "shape";
  err << "bench: " << all << (grouped ? " grouped " : " ") << what << (all == 1 ? "" : "s")
      << ", seed " << o.seed << ".\n";
  BenchRun run = run_of(o, job.facts);
  const Counts counts = count(o, run, err);
  const int missing = measure_all(o, job, counts, recording, run, out, err);
  if (o.wants_json && o.json.empty()) {
    out << json(run);
  } else if (o.markdown) {
    out << markdown(run);
  }
  if (missing > 0) {
    err << missing << " of " << all << " " << what << "s were not measured; their rows say why.\n";
  }
  return missing == 0 ? 0 : 1;
}

}  // namespace

BenchOrigin origin_of(const std::string& command, std::uint64_t seed, bool dependent,
                      const DeviceFacts& facts) {
  const bench::Software software = bench_software();
  return {now(),
          tuning_key({}, facts).gpu,
          nvidia_driver_version(),
          software.cuda,
          software.cublaslt,
          WARPWRIGHT_COMMIT,
          command,
          seed,
          dependent};
}

PlanChoices measured_choices(const MeasureOptions& o) {
  if (o.clusters && (*o.clusters < 1 || *o.clusters > 16)) {
    throw InputError("--clusters is " + std::to_string(*o.clusters) + "; " +
                     as_rule("clusters have 1 to 16 CTAs") + ", so the nearest legal value is " +
                     as_nearest(*o.clusters < 1 ? 1 : 16) + ".");
  }
  PlanChoices choices;
  choices.most_cluster_ctas = o.clusters;
  return choices;
}

bench::TimeOptions time_options(const MeasureOptions& o) {
  if (o.rounds < 1)
    throw InputError("--rounds is less than 1; the nearest legal value is " + as_nearest("1") +
                     ".");
  bench::TimeOptions how;
  how.rounds = o.rounds;
  how.seed = o.seed;
  return how;
}

int measured_device(const MeasureOptions& o, const std::string& command) {
  const int device = parse_device(o.device);
  if (device == run_on_model) {
    throw InputError("--device is model, the machine model; " +
                     as_rule(command, " measures a GPU: cuda:0, cuda:1, ..."));
  }
  return device;
}

int bench_command(const BenchOptions& options, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, options.wants_json && options.json.empty(),
                     [&] { return run_bench(options, out, err); });
}

}  // namespace warpwright::cli
