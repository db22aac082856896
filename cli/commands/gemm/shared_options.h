// Options that several commands have, as CLI11 knows them.
#pragma once

#include <string>

#include "cli/commands/gemm/run.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace warpwright::cli {

/// Adds --machine, a file that describes a device in numbers.
void add_machine_option(CLI::App& app, std::string& file);

/// Adds --sms, how many SMs the model has.
CLI::Option* add_sms_option(CLI::App& app, RunOptions& options);

}  // namespace warpwright::cli
