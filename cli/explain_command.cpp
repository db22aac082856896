#include "cli/explain_command.h"

namespace warpwright::cli {

int explain_gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err) {
  try {
    const DeviceFacts facts =
        options.as.empty() ? facts_of(parse_device(options.device)) : facts_as(options.as);
    const PlanWithOrigin made = plan_job(read_job(options), facts, err);
    out << made.plan.explain() << made.origin;
    return 0;
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
