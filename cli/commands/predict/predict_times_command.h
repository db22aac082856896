// `warpwright predict times`: predictions and choices held against measured times.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

namespace warpwright::cli {

struct PredictTimesOptions {
  std::string times;     ///< a file of `bench --record`
  std::string features;  ///< a file that what a correction is learnt from is written to
  bool json = false;
};

void add_predict_times(CLI::App& predict, PredictTimesOptions& options);

/// For each card and kind of product in the file: how far the predictions of its configurations
/// are off, and how much longer than the fastest the plan's choice takes, and those of who asks
/// only floors or what is learnt. Products that the correction was not learnt from stand by
/// themselves. Returns 0; 2 for bad input.
int predict_times_command(const PredictTimesOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
