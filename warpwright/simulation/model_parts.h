// What launches on the model have in common. Internal to device/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "warpwright/model/machine.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/simulation/model.h"

namespace warpwright::device {

/// Memory that begins as a CUDA allocation does, ends with its owner, and is full of ones.
std::shared_ptr<std::byte> host_memory(std::int64_t bytes);

/// A tensor map for the model. Throws std::logic_error for a request that no plan should make.
isa::TensorMap encode_for_model(const MapRequest& request);

/// What a kernel may touch: every view from its first to behind its last element.
class Allocations {
 public:
  void add(const MatrixView& v, const char* name, bool writable = false);
  void add(const void* data, std::int64_t bytes, const char* name, bool writable = true);
  [[nodiscard]] const std::vector<model::Allocation>& all() const { return all_; }

 private:
  std::vector<model::Allocation> all_;
};

/// What the model may touch while `grid` of `plan` runs.
Allocations allocations_of(const Plan& plan, const GemmOperands& operands, const Grid& grid,
                           std::byte* workspace);

/// What a launch leaves of its flags, the first bytes of its workspace, which the next one relies
/// on; nothing where they are 0.
std::optional<model::Finding> flags_left(const std::byte* workspace, std::int64_t flag_bytes);

/// A grid of a launch, as early as it may start.
model::GridLaunch grid_launch(const Grid& grid, const Allocations& allocations,
                              std::function<void()> body);

/// launch_on_model without a second thought about what it found: offsets that overlap show as the
/// findings they make.
Result<model::Report> report_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options);

/// What a check of the offsets of the groups, which lie in host memory, has to say (see
/// offsets_fault); 0 where there are none.
std::uint32_t disorder_status(const GemmOperands& operands);

/// The same of the numbers of tokens by index (see rows_fault).
std::uint64_t stray_status(const GemmOperands& operands);

/// That the offsets of the groups, which lie in host memory, are not in order; nothing where they
/// are, or there are none. Where groups overlap, that is what the model finds in any kernel.
std::optional<Refusal> disorder(const GemmOperands& operands);

/// Runs grids, one after the other.
model::Report run_on_model(const std::vector<model::GridLaunch>& grids, const DeviceFacts& device,
                           const ModelOptions& options);

}  // namespace warpwright::device
