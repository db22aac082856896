#include "cli/commands/tune_command.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/commands/bench.h"
#include "cli/commands/gemm_job.h"
#include "cli/reports/progress.h"
#include "warpwright/plan/tuning.h"

namespace warpwright::cli {
namespace {

std::vector<Shape> shapes_of(const TuneOptions& o) {
  if (!o.shapes.empty()) {
    if (!o.extents.empty()) {
      throw InputError("M N K and --shapes do not go together: give one of them.");
    }
    return read_shapes(o.shapes);
  }
  if (o.extents.size() != 3) {
    throw InputError("What is tuned is missing: give M N K, or --shapes FILE.");
  }
  constexpr const char* names[] = {"M", "N", "K"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (o.extents[i] >= 1) continue;
    throw InputError(std::string(names[i]) + " is " + std::to_string(o.extents[i]) +
                     "; the nearest legal value is 1.");
  }
  return {{o.extents[0], o.extents[1], o.extents[2]}};
}

std::string row(const GemmProblem& problem, const bench::RankedPlan& one, std::size_t place,
                bool is_plan) {
  char text[256];
  std::snprintf(text, sizeof(text), "%4zu  %9.2f us  %6.0f TFLOP/s  %5d CTAs  %s%s\n", place,
                one.timing.median, bench::tflops(problem, one.timing), one.plan.ctas,
                one.plan.name().c_str(), is_plan ? "  <- chosen without tuning" : "");
  return text;
}

bool same_way(const Plan& x, const Plan& y) {
  return x.name() == y.name() && x.kernel == y.kernel && x.ctas == y.ctas;
}

// Measures and keeps the plans of one shape, `at` of all that are asked for; returns why not, else
// nothing.
std::string tune_shape(const std::vector<Shape>& shapes, std::size_t at, const ProductTypes& types,
                       const TuneOptions& o, const DeviceChoice& device, const DeviceFacts& facts,
                       TuningCache& cache, Progress& progress, std::ostream& out) {
  const Shape& shape = shapes[at];
  const GemmProblem problem = problem_of(types, shape);
  const Result<std::vector<Plan>> legal = candidates(problem, facts);
  if (!legal) return shape_name(shape) + ": " + legal.reason();
  std::vector<Plan> plans = *legal;
  const std::size_t known = plans.size();
  if (!o.all && known > kTunedPlans) plans.erase(plans.begin() + kTunedPlans, plans.end());
  bench::TimeOptions how;
  how.rounds = o.rounds;
  how.seed = o.seed;
  how.progress = [&](int done, int all) {
    const double share = static_cast<double>(done) / std::max(1, all);
    progress.share((static_cast<double>(at) + share) / static_cast<double>(shapes.size()));
  };
  const auto ranked = rank_products(plans, device.index, how);
  if (!ranked) return shape_name(shape) + ": " + ranked.reason();
  std::string rows = shape_name(shape) + ", " + types_name(types) + ": " +
                     std::to_string(ranked->size()) + " of " + std::to_string(known) +
                     " plans measured, seed " + std::to_string(o.seed) + "\n";
  for (std::size_t i = 0; i < ranked->size(); ++i) {
    rows += row(problem, (*ranked)[i], i + 1, same_way((*ranked)[i].plan, plans.front()));
  }
  progress.print(out, rows);
  const bench::RankedPlan& best = ranked->front();
  const auto refusal =
      cache.store({{tuning_key(problem, facts), tuning_entry(best.plan, best.timing.median)}});
  return refusal ? refusal->reason : "";
}

int run_tune(const TuneOptions& o, std::ostream& out, std::ostream& err) {
  const ProductTypes types = parse_types(o.types);
  const std::vector<Shape> shapes = shapes_of(o);
  if (o.rounds < 1) throw InputError("--rounds is less than 1; the nearest legal value is 1.");
  const DeviceChoice device = parse_device(o.device);
  if (device.is_model) {
    throw InputError(
        "--device is model, which does not predict time; tune measures a GPU: cuda:0, cuda:1, "
        "...");
  }
  TuningCache cache(TuningCache::default_path());
  require(cache.unwritable());
  const DeviceFacts facts = facts_of(device);
  if (cache.warning()) err << printable(*cache.warning()) << "\n";
  int kept = 0;
  std::optional<Progress> progress;
  progress.emplace(err, "tune");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string fault = tune_shape(shapes, i, types, o, device, facts, cache, *progress, out);
    if (!fault.empty()) progress->print(err, fault + "\n");
    kept += fault.empty() ? 1 : 0;
    progress->share(static_cast<double>(i + 1) / static_cast<double>(shapes.size()));
  }
  progress.reset();
  if (kept > 0) out << "kept in " << printable(cache.path()) << "\n";
  return kept == static_cast<int>(shapes.size()) ? 0 : 1;
}

}  // namespace

int tune_command(const TuneOptions& options, std::ostream& out, std::ostream& err) {
  try {
    return run_tune(options, out, err);
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
