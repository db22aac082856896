#include "cli/commands/gemm/shared_options.h"

#include <CLI/CLI.hpp>

#include "cli/commands/values.h"

namespace warpwright::cli {

void add_machine_option(CLI::App& app, std::string& file) {
  const Values add(app);
  add("--machine", file, "FILE",
      "a device in numbers, as docs/machines.md says and calibrate writes it: plans, predictions "
      "and the model's nominal time follow it");
}

CLI::Option* add_sms_option(CLI::App& app, RunOptions& o) {
  const Values add(app);
  return add("--sms", o.sms, "N",
             "SMs of the model, up to 256: fewer of them take more tiles each (default 8, or what "
             "--cluster and its like need)",
             whole(1, 256));
}

}  // namespace warpwright::cli
