// The arguments of a grouped product, as CLI11 knows them.
#pragma once

#include "cli/commands/grouped_job.h"

namespace CLI {
class App;
}

namespace warpwright::cli {

/// Adds the arguments that all commands on a grouped product have in common.
void add_grouped_options(CLI::App& app, GroupedOptions& options);

/// Adds `grouped` to `app` and returns it.
CLI::App* add_grouped_command(CLI::App& app, GroupedOptions& options);

}  // namespace warpwright::cli
