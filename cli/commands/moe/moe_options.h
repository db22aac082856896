// The arguments of mixtures of experts, as CLI11 knows them.
#pragma once

#include "cli/commands/moe/moe_job.h"

namespace CLI {
class App;
}

namespace warpwright::cli {

/// Adds `moe` to `app`, and one to its `explain`, which there is already.
void add_moe_commands(CLI::App& app, MoeOptions& options);

/// Adds what says what a mixture is: extents, types, the router.
void add_moe_options(CLI::App& app, MoeOptions& options);

/// Adds what is fixed of its plan.
void add_moe_choices(CLI::App& app, MoeChoiceOptions& options);

/// The arguments as one types them behind `check moe`, without those of the check.
std::string arguments_text(const MoeOptions& options);

}  // namespace warpwright::cli
