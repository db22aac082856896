// A product with a plan, for the commands that run its kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "cli/commands/gemm/gemm_job.h"
#include "warpwright/run.h"

namespace warpwright::cli {

/// A job and how it is computed. It has tensors, and memory for its result, once `load` ran: all
/// but what speaks of the plan need them.
struct Product {
  /// Plans the product that `options` describe; on a GPU the tuning cache may know how. Says on
  /// `err` what is wrong with the cache's file. Throws InputError.
  Product(const GemmOptions& options, const DeviceFacts& facts, std::ostream& err);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// Makes the tensors; says on `err` what the user may not expect of them. Throws InputError.
  void load(std::uint64_t seed, std::ostream& err, Draw draw = Draw::normal);

  /// The whole plan for a reader, and where it came from.
  [[nodiscard]] std::string explain() const;
  /// The product in few words, for a picture: "D[64,32], K = 48".
  [[nodiscard]] std::string title() const;
  /// Products a * b.
  [[nodiscard]] double products() const;
  /// Seconds that one run on the model takes, roughly.
  [[nodiscard]] double model_seconds() const;

  GemmJob job;
  Plan plan;
  std::string origin;  ///< of the plan, a line
  HostTensor d;
  GemmOperands operands;  ///< in host memory
};

/// What a run left beside D.
struct RunOutput {
  model::Report report = {};  ///< of the model
  /// What is wrong with the offsets, where they were checked.
  std::optional<std::string> offsets = {};
  double launch_seconds = 0;  ///< of one of the timed launches on a GPU
};

/// Runs a loaded product on the model, with all checks; `label` names the line of progress on
/// `err`. Throws InputError where the model refuses.
model::Report run_with_checks(const Product& product, device::ModelOptions how, const char* label,
                              std::ostream& err);

/// Carries out a loaded product through the memory of CUDA device `index`, and then `repeat` times
/// more, back to back and timed. Throws InputError or RunError.
RunOutput run_on_gpu(const Product& product, int index, bool check_offsets = false, int repeat = 0);

}  // namespace warpwright::cli
