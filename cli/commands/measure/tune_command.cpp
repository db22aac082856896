#include "cli/commands/measure/tune_command.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/commands/measure/bench.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/progress.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/tuning/tuning.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

std::vector<Shape> shapes_of(const TuneOptions& o) {
  if (!o.shapes.empty()) {
    if (!o.extents.empty()) {
      throw InputError("M N K and --shapes do not go together: " + as_rule("give one of them") +
                       ".");
    }
    std::vector<Shape> shapes =
        read_shapes(o.shapes, o.grouped ? BenchKind::grouped : BenchKind::dense);
    for (Shape& shape : shapes) shape.seed = o.seed;
    return shapes;
  }
  if (o.grouped)
    throw InputError("--grouped takes its products from --shapes FILE: " + as_rule("give it too") +
                     ".");
  if (o.extents.size() != 3) {
    if (o.extents.empty()) {
      throw InputError("What is tuned is missing: " + as_rule("give M N K, or --shapes FILE") +
                       ".");
    }
    throw InputError("M N K are three numbers, and " + std::to_string(o.extents.size()) +
                     " are given: " + as_rule("for more products give --shapes FILE") + ".");
  }
  constexpr const char* names[] = {"M", "N", "K"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (o.extents[i] >= 1) continue;
    throw InputError(std::string(names[i]) + " is " + std::to_string(o.extents[i]) +
                     "; the nearest legal value is " + as_nearest("1") + ".");
  }
  return {{o.extents[0], o.extents[1], o.extents[2]}};
}

std::string row(const bench::RankedPlan& one, std::size_t place, bool is_plan) {
  return format("%4zu  %9.2f us  %6.0f TFLOP/s  %5d CTAs  %s%s\n", place, one.timing.median,
                bench::tflops(operations(one.plan.problem), one.timing), one.plan.ctas,
                one.plan.name().c_str(), is_plan ? "  <- chosen without tuning" : "");
}

bool same_way(const Plan& x, const Plan& y) {
  return x.name() == y.name() && x.kernel == y.kernel && x.ctas == y.ctas;
}

// Measures and keeps the plans of one shape, and prints them; returns why not, else nothing.
std::string tune_shape(const Shape& shape, const ProductTypes& types, const TuneOptions& o,
                       bench::TimeOptions how, int device, const DeviceFacts& facts,
                       TuningCache& cache, Progress& progress, std::ostream& out,
                       ordered_json& json) {
  const std::string name = shape_name(shape);
  json["shape"] = name;
  const auto lengths = lengths_of(shape);
  if (!lengths) return name + ": " + lengths.reason();
  how.lengths = *lengths;
  const GemmProblem problem = problem_of(types, shape, *lengths);
  auto plans = candidates(problem, facts, measured_choices(o));
  if (!plans) return name + ": " + plans.reason();
  const std::size_t known = plans->size();
  if (!o.all && known > kTunedPlans) (*plans).erase((*plans).begin() + kTunedPlans, (*plans).end());
  const auto ranked = rank_products(*plans, device, how);
  if (!ranked) return name + ": " + ranked.reason();
  std::string rows = name + ", " + types_name(types) + ": " + std::to_string(ranked->size()) +
                     " of " + std::to_string(known) + " plans measured, seed " +
                     std::to_string(o.seed) + "\n";
  std::size_t place = 0;
  for (const bench::RankedPlan& one : *ranked) {
    rows += row(one, ++place, same_way(one.plan, plans->front()));
  }
  json = {{"shape", name}, {"types", types_name(types)}, {"legal_plans", known}, {"seed", o.seed}};
  for (const bench::RankedPlan& one : *ranked) {
    json["plans"].push_back({{"plan", one.plan.name()},
                             {"kernel", one.plan.kernel},
                             {"ctas", one.plan.ctas},
                             {"time", timing_json(one.timing)},
                             {"untuned", same_way(one.plan, plans->front())}});
  }
  if (!o.json) progress.print(out, rows);
  const bench::RankedPlan& best = ranked->front();
  const auto refusal =
      cache.store({{tuning_key(problem, facts), tuning_entry(best.plan, best.timing.median)}});
  return refusal ? refusal->reason : "";
}

int run_tune(const TuneOptions& o, std::ostream& out, std::ostream& err) {
  const ProductTypes types = parse_types(o.types);
  const std::vector<Shape> shapes = shapes_of(o);
  bench::TimeOptions how = time_options(o);
  const int device = measured_device(o, "tune");
  TuningCache cache(TuningCache::default_path());
  require(cache.unwritable());
  const DeviceFacts facts = with_files(facts_of(device), o);
  if (cache.warning()) err << printable(*cache.warning()) << "\n";
  std::size_t kept = 0;
  ordered_json told = {{"gpu", facts.name}, {"shapes", ordered_json::array()}};
  std::optional<Progress> progress;
  progress.emplace(err, "tune");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    how.progress = [&](int done, int all) {
      progress->share((static_cast<double>(i) + static_cast<double>(done) / std::max(1, all)) /
                      static_cast<double>(shapes.size()));
    };
    ordered_json shape;
    const std::string fault =
        tune_shape(shapes[i], types, o, how, device, facts, cache, *progress, out, shape);
    if (!fault.empty()) progress->print(err, fault + "\n");
    if (!fault.empty()) shape["refusal"] = fault;
    told["shapes"].push_back(std::move(shape));
    kept += fault.empty() ? 1 : 0;
    how.progress(1, 1);
  }
  progress.reset();
  if (o.json) {
    told["kept_in"] = kept > 0 ? ordered_json(cache.path()) : ordered_json();
    out << json_text(told);
    return kept == shapes.size() ? 0 : 1;
  }
  if (kept > 0) out << "kept in " << printable(cache.path()) << "\n";
  return kept == shapes.size() ? 0 : 1;
}

}  // namespace

int tune_command(const TuneOptions& options, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, options.json, [&] { return run_tune(options, out, err); });
}

}  // namespace warpwright::cli
