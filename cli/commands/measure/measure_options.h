// The arguments of `bench` and `tune`, as CLI11 knows them.
#pragma once

#include <string>

#include "cli/commands/gemm/run.h"
#include "cli/commands/measure/bench_command.h"
#include "cli/commands/measure/bench_moe_command.h"
#include "cli/commands/measure/tune_command.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace warpwright::cli {

/// Adds `bench` with its `dense`, `grouped`, `w4a8` and `moe` to `app`.
void add_bench_command(CLI::App& app, BenchOptions& dense, BenchOptions& grouped,
                       BenchOptions& w4a8, BenchMoeOptions& moe);

/// Adds `tune` to `app` and returns it.
void add_tune_command(CLI::App& app, TuneOptions& options);

}  // namespace warpwright::cli
