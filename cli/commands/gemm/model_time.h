// How long work on the CPU takes, said before it begins.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace warpwright::cli {

/// Seconds that the model needs for `tiles` CTA tiles of m x n with `k` products for each element.
/// A rough guess: from a release build on a server's core.
double model_seconds(std::int64_t tiles, int m, int n, std::int64_t k);

/// Seconds of --check for so many products a * b, on all threads of this machine. As rough.
double check_seconds(double products);

/// Says on `err` what takes more than a minute: "gemm: this will take roughly 3 hours of ...".
/// `advice` says what is faster.
void note_duration(std::ostream& err, const std::string& command, double seconds,
                   const std::string& advice);

}  // namespace warpwright::cli
