#include "cli/explain_command.h"

namespace warpwright::cli {
namespace {

DeviceFacts facts_for(const GemmOptions& options) {
  if (options.as.empty()) return facts_of(parse_device(options.device));
  if (options.as == "model") return model_facts();
  const std::optional<DeviceFacts> facts = known_facts(options.as);
  if (!facts) {
    throw InputError("--as is \"" + options.as +
                     "\"; the devices known by name are h200, b200 and model.");
  }
  return *facts;
}

}  // namespace

int explain_gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err) {
  try {
    const DeviceFacts facts = facts_for(options);
    const auto job = read_job(options);
    if (facts.architecture == 90) {
      const PlanWithOrigin made = plan_job(job, facts, err);
      out << made.plan.explain() << made.origin;
      return 0;
    }
    // No kernel for this device yet. The problem's rules hold all the same, and so do the roofs.
    DeviceFacts rules = facts;
    rules.architecture = 90;
    Plan plan = plan_job(job, rules, err).plan;
    plan.device = facts;
    out << plan.explain_roofs();
    return 0;
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
