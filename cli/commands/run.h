// Where and how a product runs: what the commands on products, dense or grouped, have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/files/tensor_file.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/model.h"
#include "warpwright/plan/plan.h"

namespace warpwright::cli {

/// What every command on a product takes, as it was typed; empty texts were not given.
struct RunOptions {
  std::string device = "model";
  std::string as;    ///< whose kernels run on the model; `explain` plans for that device itself
  std::string mode;  ///< when asynchronous operations complete on the model
  std::uint64_t seed = 1;
  std::optional<int> sms;  ///< of the model; not given: 8, or what the next ones need
  std::string cluster;
  std::optional<int> cluster_k, ctas;
};

/// Where a product runs.
struct DeviceChoice {
  bool is_model = true;
  int index = 0;  ///< of the CUDA device
};

/// The run itself went wrong: the model found faults, or the GPU's kernel failed. Exit status 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `body` returns; 2 for InputError and where memory is short, 1 for RunError, both with their
/// sentence on `err`.
int exit_status(std::ostream& err, const std::function<int()>& body);

/// "model", "cuda", "cuda:i", or "auto": the first GPU, the model where there is none. Throws
/// InputError.
DeviceChoice parse_device(const std::string& text);

/// Facts of the device; refuses one that is not here. Throws InputError.
DeviceFacts facts_of(const DeviceChoice& device);

/// Facts of the device that `options` name. If it is the model, its architecture is that of
/// `options.as`, and it has enough SMs for the cluster and the grid that are asked for. A GPU of
/// another architecture than `options.as` is refused; where there is none, the model is advised,
/// unless the work `needs_gpu`. Throws InputError.
DeviceFacts facts_of(const RunOptions& options, bool needs_gpu = false);

/// What is known of the device that `options.as` names, for a plan without it; without a name and
/// for "model" as facts_of. Throws InputError.
DeviceFacts facts_elsewhere(const RunOptions& options);

/// "h100, h200 or b200": the devices that --as knows beside the model; `grouped`, those whose
/// kernels multiply groups.
std::string known_names(bool grouped = false);

/// Refuses a number that lies outside. Throws InputError.
void require_between(const char* option, std::int64_t value, std::int64_t least, std::int64_t most);

/// Throws InputError with the sentence of a refusal.
void require(const std::optional<Refusal>& refusal);

/// Refuses what this machine cannot hold, before the system ends the program for trying: `what`
/// ("A, B and D") would take `bytes`, and `advice` says how to ask for less. Throws InputError.
void require_memory(const std::string& what, double bytes, const std::string& advice);

/// Refuses a --mode that is none, or that is given to a GPU. Throws InputError.
void check_mode(const RunOptions& options);

/// Runs a kernel of `tiles` tiles on the model, with all checks; `command` names the line of
/// progress on `err`. Throws InputError where `launch` refuses.
model::Report run_on_model(
    const RunOptions& options, const char* command, std::int64_t tiles, std::ostream& err,
    const std::function<Result<model::Report>(const device::ModelOptions&)>& launch);

/// Throws RunError where the model found faults; `result` names what is then not to be trusted.
void require_clean(const model::Report& report, const char* result);

/// The bytes of a packed tensor.
std::int64_t bytes_of(const MatrixView& view);

/// Memory of the current CUDA device for one product. New memory is filled with 0xff: an element of
/// the result that nobody stores shows as NaN. All throw InputError.
class CudaMemory {
 public:
  /// Makes `index` the current device.
  explicit CudaMemory(int index);
  device::CudaBuffer& make(std::int64_t bytes);
  /// A copy of `bytes` of host memory.
  void* copy(const void* data, std::int64_t bytes);
  /// Points a packed tensor of the host at a copy of it; one without memory stays as it is.
  void move(MatrixView& view);

 private:
  std::vector<std::shared_ptr<device::CudaBuffer>> buffers_;
};

}  // namespace warpwright::cli
