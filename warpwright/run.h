// One call for a product: the plan that was made for such a product before, the memory of its
// stream, the launch. What the C ABI and Python are made of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "warpwright/device/quantise.h"
#include "warpwright/device/sort_slots.h"
#include "warpwright/model.h"

namespace warpwright {

/// The device of `run` that is the model, and one that is not there, to plan for alone.
inline constexpr int run_on_model = -1;
inline constexpr int run_nowhere = -2;

/// Where and how a product runs.
struct RunOptions {
  int device = run_on_model;  ///< the index of a CUDA device, where the tensors lie, or the model
  void* stream = nullptr;     ///< of that device; null is the default stream
  /// Memory for the launch; null: what is kept for the stream.
  Workspace* workspace = nullptr;
  PlanChoices choices = {};
  /// With check_offsets `run` waits for the kernel and refuses offsets that are not in order.
  LaunchOptions launch = {};
};

/// Carries out the product of `operands`. One that was seen before takes no memory and does not
/// wait. `made`, where not null, is set to the plan if this call made it. Every stream keeps memory
/// for the plans that need a workspace, for ever; in a graph capture, where none can be had, a
/// stream without takes what an earlier product has left in reserve on its device.
[[nodiscard]] std::optional<Refusal> run(const GemmOperands& operands, const RunOptions& options,
                                         std::shared_ptr<const Plan>* made = nullptr);

/// The same by this plan, which was made for `options.device`. Choices beside it are refused where
/// the plan is not what they ask for.
[[nodiscard]] std::optional<Refusal> run(const Plan& plan, const GemmOperands& operands,
                                         const RunOptions& options);

/// Quantises activations (device/quantise.h) on CUDA device `device`, or, for run_on_model, in host
/// memory.
[[nodiscard]] std::optional<Refusal> quantise(const Quantisation& what, int device, void* stream);

/// Sorts slots by expert (device/sort_slots.h), likewise.
[[nodiscard]] std::optional<Refusal> sort_slots(const SlotSort& what, int device, void* stream);

/// Facts of a CUDA device, asked once a process, or of the model.
Result<const DeviceFacts*> run_facts(int device);

/// A plan as `run` makes it: by the measurements of `warpwright tune`, where there are any. Of
/// operands that have no memory yet addresses are not read.
Result<Plan> run_plan(const GemmOperands& operands, const DeviceFacts& device,
                      const PlanChoices& choices);

/// What `run` calls the device of a name: "model", or the model with the instructions of another
/// device, "model:rtx5090"; "cuda" or "cuda:1"; "auto", the first CUDA device, the model where
/// there is none; or one that need not be there, "h200". The one reader of such names; it does not
/// look whether a CUDA device is there.
Result<int> device_index(std::string_view name);

/// The same with its facts.
struct NamedDevice {
  DeviceFacts facts;
  int index = run_nowhere;  ///< for `run`
};
Result<NamedDevice> device_named(std::string_view name);

/// `bytes` of memory of a device, from a multiple of 256, of any content; of the model's it is host
/// memory. Refuses a device to plan for alone.
Result<std::shared_ptr<void>> run_memory(const NamedDevice& device, std::int64_t bytes);

/// "D[5,24] = alpha * A[5,32] * B[24,32]^T, bf16 -> f32 by KERNEL on DEVICE: why", for a log.
std::string plan_line(const Plan& plan);

/// Makes a CUDA device the current one of this thread as long as it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  [[nodiscard]] const std::optional<Refusal>& fault() const { return fault_; }

 private:
  int before_ = -1;
  std::optional<Refusal> fault_;
};

}  // namespace warpwright
