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

/// The device of `run` that is the model, and one that is not there, only to plan for.
inline constexpr int run_on_model = -1;
inline constexpr int run_nowhere = -2;

/// Where and how a product runs.
struct RunOptions {
  int device = run_on_model;  ///< the index of a CUDA device, where the tensors lie, or the model
  void* stream = nullptr;     ///< of that device; null is the default stream
  /// Memory for the launch; null: what is kept for the stream.
  Workspace* workspace = nullptr;
  PlanChoices choices = {};
  /// At the first product of its kind on a CUDA device, so many of the plans that `choices` allow
  /// are measured, the best by their predicted time, and the fastest is taken; 0: none is. See
  /// `measured_plan`. In a graph capture none is measured, and the next product outside one is.
  int measure = 0;
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

/// Puts scales of blocks into tiles, or out of them (device/scale_order.h), likewise.
[[nodiscard]] std::optional<Refusal> reorder_scales(const ScaleReordering& what, int device,
                                                    void* stream);

/// Sorts slots by expert (device/sort_slots.h), likewise.
[[nodiscard]] std::optional<Refusal> sort_slots(const SlotSort& what, int device, void* stream);

/// Facts of a CUDA device, asked once a process, or of the model.
Result<const DeviceFacts*> run_facts(int device);

/// A plan as `run` makes it: by the measurements of `warpwright tune`, where there are any. For
/// operands that have no memory yet addresses are not read.
Result<Plan> run_plan(const GemmOperands& operands, const DeviceFacts& device,
                      const PlanChoices& choices);

/// The most plans that are measured for a product.
inline constexpr int most_measured = 256;

/// As `run_plan`, on CUDA device `index`: of the `measure` best plans by predicted time, 0 to
/// `most_measured`, the one that is fastest there, in memory of its own (device/measure.h); groups
/// have lengths as the product's hints expect them. It waits, some 10 ms a plan. Kept for the
/// process, and in the file of `warpwright tune` where choices are none but batch_invariant; what
/// that file has already is not measured. Where nothing can be measured, for want of memory say,
/// the plan is `run_plan`'s and its reason says why. `index` run_on_model or run_nowhere: nothing
/// is.
Result<Plan> measured_plan(const GemmOperands& operands, const DeviceFacts& device, int index,
                           const PlanChoices& choices, int measure);

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

/// `bytes` of memory of a device, from a multiple of 256, of any content; for the model's it is
/// host memory. Refuses a device only to plan for.
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
