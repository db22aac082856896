// The arguments of `bench` and `tune`, as CLI11 knows them.
#pragma once

#include <string>

#include "cli/commands/bench_command.h"
#include "cli/commands/bench_grouped_command.h"
#include "cli/commands/run.h"
#include "cli/commands/tune_command.h"

namespace CLI {
class App;
}

namespace warpwright::cli {

/// Adds `bench` with its `dense` to `app`; returns `dense`.
CLI::App* add_bench_command(CLI::App& app, BenchOptions& options);

/// Adds `grouped` to the `bench` of `app`; returns `grouped`.
CLI::App* add_bench_grouped_command(CLI::App& app, GroupedBenchOptions& options);

/// Adds `tune` to `app` and returns it.
CLI::App* add_tune_command(CLI::App& app, TuneOptions& options);

/// Adds --sms, how many SMs the model has.
void add_sms_option(CLI::App& app, RunOptions& options);

/// Why a text is no seed; empty when it is one. CLI11 alone would wrap or clamp it.
std::string refuse_seed(const std::string& text);

}  // namespace warpwright::cli
