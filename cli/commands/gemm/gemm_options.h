// The arguments of a product, as CLI11 knows them.
#pragma once

#include <string>

#include "cli/commands/gemm/gemm_job.h"

namespace CLI {
class App;
}

namespace warpwright::cli {

/// Adds the arguments that all commands on a product have in common, on a dense or a grouped one.
void add_gemm_options(CLI::App& app, GemmOptions& options, bool is_grouped);

/// Adds where a product or a mixture runs: --device, --as, which is said of `plans` too, the files
/// of a device, --sms.
void add_place(CLI::App& app, RunOptions& options, const char* plans);

/// Adds --machine, a file that describes a device in numbers.
void add_machine_option(CLI::App& app, std::string& file);

/// Adds the files that plans follow: --machine and --correction.
void add_device_files(CLI::App& app, DeviceFiles& files);

/// Adds --mode, how the model schedules.
void add_mode(CLI::App& app, RunOptions& options);

/// Adds the numbers of a gate, of a product or a mixture.
void add_gate_numbers(CLI::App& app, GateOptions& options);

/// Adds what `gemm` and `grouped` have beside them.
void add_run_options(CLI::App& app, GemmOptions& options, bool is_grouped);

/// The options of `app` that hold something, as they would be typed.
std::string given_text(CLI::App& app);

/// These arguments as they would be typed: "--random 256 256 448 --kernel ...". Without those of
/// add_run_options but the seed.
std::string arguments_text(const GemmOptions& options);

/// What the help of a command on a product says below its options: what these mean together, then
/// these examples of the command's own.
std::string product_help(const std::string& examples, bool is_grouped);

}  // namespace warpwright::cli
