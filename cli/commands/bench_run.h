// What the benches do around their measurements.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/commands/gemm_job.h"
#include "cli/reports/bench_words.h"

namespace warpwright::cli {

/// The head of a run that begins now.
BenchHead bench_head(const std::string& command, std::uint64_t seed, bool dependent,
                     const DeviceFacts& facts);

/// The GPU of --device. Throws InputError for the model.
DeviceChoice bench_device(const std::string& text);

/// Finds out before the work what would keep the JSON from being written. Throws InputError. An
/// empty path is fine.
void check_json(const std::string& path);

/// Replaces the file of --json as a whole; nothing for an empty path. Called after every shape, so
/// that a run that is cut short leaves what it has.
void write_json(const std::string& path, const std::string& text);

}  // namespace warpwright::cli
