// What launches on the model have in common. Internal to device/.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "warpwright/device/model.h"
#include "warpwright/device/params.h"
#include "warpwright/model/machine.h"

namespace warpwright::device {

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

/// The launch of a kernel of this configuration.
model::LaunchShape launch_shape(const kernel::GemmConfig& config, atom::ClusterShape cluster,
                                int ctas);

/// Runs it.
model::Report run_on_model(const model::LaunchShape& shape, const DeviceFacts& device,
                           const ModelOptions& options, const Allocations& allocations,
                           const std::function<void()>& body);

}  // namespace warpwright::device
