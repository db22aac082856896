#include "cli/explain_command.h"

namespace warpwright::cli {

int explain_gemm_command(const GemmOptions& options, std::ostream& out, std::ostream& err) {
  try {
    const DeviceFacts facts =
        options.as.empty() ? facts_of(parse_device(options.device)) : facts_as(options.as);
    out << plan_job(read_job(options), facts).explain();
    return 0;
  } catch (const InputError& refusal) {
    err << refusal.what() << "\n";
    return 2;
  }
}

}  // namespace warpwright::cli
