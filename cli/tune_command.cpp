#include "cli/tune_command.h"

#include <algorithm>
#include <cstdio>

#include "cli/bench.h"
#include "cli/gemm_job.h"
#include "cli/progress.h"
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

Result<std::vector<bench::RankedPlan>> rank(const std::vector<Plan>& plans, const Shape& shape,
                                            const TuneOptions& o, int index, std::ostream& err) {
  Progress progress(err, "tune " + shape_name(shape), "plans",
                    static_cast<std::int64_t>(plans.size()));
  bench::TimeOptions how;
  how.rounds = o.rounds;
  how.seed = o.seed;
  how.progress = [&progress](int done, int /*all*/) { progress.update(done); };
  return rank_products(plans, index, how);
}

// Whether the shape was measured and kept.
bool tune_shape(const Shape& shape, const ProductTypes& types, const TuneOptions& o,
                const DeviceChoice& device, const DeviceFacts& facts, TuningCache& cache,
                std::ostream& out, std::ostream& err) {
  const GemmProblem problem = problem_of(types, shape);
  const Result<std::vector<Plan>> legal = candidates(problem, facts);
  if (!legal) {
    err << shape_name(shape) << ": " << legal.reason() << "\n";
    return false;
  }
  std::vector<Plan> plans = *legal;
  const std::size_t known = plans.size();
  if (!o.all && known > kTunedPlans) plans.erase(plans.begin() + kTunedPlans, plans.end());
  const auto ranked = rank(plans, shape, o, device.index, err);
  if (!ranked) {
    err << shape_name(shape) << ": " << ranked.reason() << "\n";
    return false;
  }
  out << shape_name(shape) << ", " << types_name(types) << ": " << ranked->size() << " of " << known
      << " plans measured, seed " << o.seed << "\n";
  for (std::size_t i = 0; i < ranked->size(); ++i) {
    out << row(problem, (*ranked)[i], i + 1, same_way((*ranked)[i].plan, plans.front()));
  }
  const bench::RankedPlan& best = ranked->front();
  const auto refusal =
      cache.store({{tuning_key(problem, facts), tuning_entry(best.plan, best.timing.median)}});
  if (!refusal) return true;
  err << refusal->reason << "\n";
  return false;
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
  for (const Shape& shape : shapes) {
    kept += tune_shape(shape, types, o, device, facts, cache, out, err) ? 1 : 0;
    out << std::flush;
  }
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
