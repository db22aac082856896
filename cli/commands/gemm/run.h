// Where and how a product runs: what the commands on products have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>

#include "cli/files/machine_file.h"
#include "cli/files/tensor_file.h"
#include "warpwright/run.h"

namespace warpwright::cli {

/// The numbers of a gate as they were typed; empty texts were not given.
struct GateOptions {
  std::string limit, alpha, beta;
};

/// What every command on a product takes, as it was typed; empty texts were not given.
struct RunOptions : DeviceFiles {
  std::string device = "model";
  std::string as;    ///< whose kernels run on the model; `explain` plans for that device itself
  std::string mode;  ///< when asynchronous operations complete on the model
  std::uint64_t seed = 1;
  std::optional<int> sms;  ///< of the model; not given: 8, or what the next ones need
  std::string cluster;
  std::optional<int> cluster_k, ctas;
};

/// The run itself went wrong: the model found faults, or the GPU's kernel failed. Exit status 1.
class RunError : public std::runtime_error {
 public:
  explicit RunError(Sentence sentence, RefusalCode code = RefusalCode::device_error)
      : std::runtime_error(sentence.reason), sentence_(std::move(sentence)), code_(name(code)) {}
  explicit RunError(const Refusal& refusal) : RunError(refusal, refusal.code) {}

  [[nodiscard]] const Sentence& sentence() const { return sentence_; }
  [[nodiscard]] const char* code() const { return code_; }

 private:
  Sentence sentence_;
  const char* code_;  // of static storage
};

/// What `body` returns; 2 for InputError and where memory is short, 1 for RunError, both with their
/// sentence on `err` and, with `json`, as an object on `out`, where `body` has printed nothing
/// then.
int exit_status(std::ostream& out, std::ostream& err, bool json, const std::function<int()>& body);

/// What warpwright/run.h calls the device of --device, which is no other device's model (--as says
/// that) and none only to plan for. Throws InputError.
int parse_device(const std::string& text);

/// Facts of the device; refuses one that is not here. Throws InputError.
DeviceFacts facts_of(int device);

/// The facts with the numbers and the correction of these files, where they are given. Throws
/// InputError where one cannot be read, or a machine is of another architecture.
DeviceFacts with_files(const DeviceFacts& facts, const DeviceFiles& files);

/// Facts of the device that `options` name, with the files that describe it. If it is the model,
/// its architecture is that of `options.as`, and it has enough SMs for the cluster and the grid
/// that are asked for. A GPU of another architecture than `options.as` is refused; where there is
/// none, the model is advised, unless the work `needs_gpu`. Throws InputError.
DeviceFacts facts_of(const RunOptions& options, bool needs_gpu = false);

/// What is known of the device that `options.as` names or `options.machine` describes, for a plan
/// without it; without either and for "model" as facts_of. Throws InputError.
DeviceFacts facts_elsewhere(const RunOptions& options);

/// "v100, t4, ... or rtx5090": the devices that --as knows beside the model.
std::string known_names();
/// The same with a space behind each, and the names of this build's kernels, of all or of those in
/// groups or not: for shells to offer.
std::string device_words();
std::string kernel_words(std::optional<bool> grouped = {});

/// Refuses a number that lies outside. Throws InputError.
void require_between(const char* option, std::int64_t value, std::int64_t least, std::int64_t most);

/// Refuses a --jobs that is below 1. Throws InputError.
void require_jobs(const std::optional<int>& jobs);

/// Throws InputError with the sentence of a refusal.
void require(const std::optional<Refusal>& refusal);

/// Refuses what this machine cannot hold, before the system ends the program for trying: `what`
/// ("A, B and D") would take `bytes`, and `advice` says how to ask for less. Throws InputError.
void require_memory(const std::string& what, double bytes, const std::string& advice);

/// The word of --mode; nothing where it was not given. Throws InputError.
std::optional<model::Mode> parse_mode(const std::string& text);

/// Throws RunError where the model found faults, so that D is not to be trusted.
void require_clean(const model::Report& report);

}  // namespace warpwright::cli
