#include "cli/commands/explain_command.h"

namespace warpwright::cli {

int explain_command(const RunOptions& options, const ProductMaker& product, std::ostream& out,
                    std::ostream& err) {
  return exit_status(err, [&] {
    out << product(facts_elsewhere(options), err)->explain();
    return 0;
  });
}

}  // namespace warpwright::cli
