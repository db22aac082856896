#include "cli/explain_command.h"

namespace warpwright::cli {

int explain_command(const RunOptions& options, const ProductMaker& product, std::ostream& out,
                    std::ostream& err) {
  return exit_status(err, [&] {
    const DeviceFacts facts =
        options.as.empty() ? facts_of(parse_device(options.device)) : facts_as(options.as);
    out << product(facts, err)->explain();
    return 0;
  });
}

}  // namespace warpwright::cli
