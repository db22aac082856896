// Predictions of plans, for the commands that print them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/predict/sample.h"

namespace warpwright::cli {

/// A prediction and what it is made of.
struct Predicted {
  TilePhases phases;
  Prediction time;
};

/// Samples the plan's kernel and composes by the numbers of its device. `options` are the
/// product's; `lengths` those of its groups, or M. Throws InputError where the kernel cannot be
/// sampled, RunError where the model finds a fault in it.
Predicted predicted(const GemmOptions& options, const Plan& plan,
                    const std::vector<std::int64_t>& lengths);

/// The same by the counts that are kept of the kernel, without a run of the model; nothing where
/// none are.
std::optional<Predicted> predicted_by_counts(const Plan& plan,
                                             const std::vector<std::int64_t>& lengths);

/// Options by which `gemm` or `grouped` is given a random product of such types, scales and
/// epilogue: for samples of a plan that no command line asked for.
GemmOptions options_of(const GemmProblem& problem);

/// Microseconds of such a plan; nothing where it cannot be sampled.
std::optional<double> predicted_us(const Plan& plan, const std::vector<std::int64_t>& lengths);

/// "184.35 us, bounded by tensor cores (746 TFLOP/s, ...)".
std::string prediction_words(const Plan& plan, const Prediction& prediction);

/// How sure it is, a line.
std::string certainty_line(const Plan& plan, const Prediction& prediction);

/// For programs.
nlohmann::ordered_json prediction_json(const Plan& plan, const Predicted& predicted);

}  // namespace warpwright::cli
