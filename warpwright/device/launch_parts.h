// What `launch` hands on, by the kind of device. Internal to device/.
#pragma once

#include "warpwright/device/launch.h"
#include "warpwright/plan/family.h"

namespace warpwright::device {

/// The ways of one kind of device.
struct Backend {
  std::optional<Refusal> (*launch)(const Plan& plan, const GemmOperands& operands,
                                   Workspace& workspace, void* stream,
                                   const LaunchOptions& options);
  std::optional<Refusal> (*prepare)(const Plan& plan, Workspace& workspace, void* stream);
  Result<std::shared_ptr<void>> (*allocate)(std::int64_t bytes);
};

const Backend& cuda_backend();
/// The model's; null until `use_model` (warpwright/model.h) has set it.
const Backend*& model_backend();

}  // namespace warpwright::device
