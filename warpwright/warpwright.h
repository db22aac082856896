// The C++ API of Warpwright. docs/gemm.md and docs/grouped.md have samples, docs/api.md says what
// may be called when and from where.
//
//   using namespace warpwright;
//   GemmOperands operands{.a = matrix(a, DType::bf16, m, k), .b = matrix(b, DType::bf16, n, k),
//                         .d = matrix(d, DType::bf16, m, n)};
//   const auto facts = device::cuda_device(0);
//   if (!facts) return fail(facts.reason());
//   const auto made = plan(operands, *facts);
//   if (!made) return fail(made.reason());
//   const auto workspace = device::CudaBuffer::make(made->workspace_bytes);
//   if (!workspace) return fail(workspace.reason());
//   void* const room = (*workspace)->data();
//   if (const auto refused = device::prepare_workspace_on_cuda(*made, room, stream)) {
//     return fail(refused->reason);
//   }
//   if (const auto refused = launch(*made, operands, room, made->workspace_bytes, stream)) {
//     return fail(refused->reason);
//   }
#pragma once

#include "warpwright/device/cuda.h"
#include "warpwright/device/grouped.h"
#include "warpwright/device/model.h"
#include "warpwright/numeric/scalar.h"
#include "warpwright/plan/grouped.h"
#include "warpwright/plan/plan.h"
#include "warpwright/plan/tuning.h"

namespace warpwright {

/// Runs `plan` where it was made for. On a CUDA device: starts it on `stream` (a cudaStream_t) and
/// returns at once (see device::launch_on_cuda; the workspace was made ready by
/// device::prepare_workspace_on_cuda). On the model: runs it to its end with all checks;
/// a finding comes back as a refusal with the report's text. Operands live where the device can
/// read them: device memory, or host memory for the model.
[[nodiscard]] inline std::optional<Refusal> launch(const Plan& plan, const GemmOperands& operands,
                                                   void* workspace, std::int64_t workspace_bytes,
                                                   void* stream,
                                                   const device::LaunchOptions& options = {}) {
  if (!plan.device.is_model) {
    return device::launch_on_cuda(plan, operands, workspace, workspace_bytes, stream, options);
  }
  const auto report = device::launch_on_model(plan, operands);
  if (!report) return report.refusal();
  if (!report->clean()) {
    return Refusal{RefusalCode::model_findings, "the model found faults:\n" + report->text()};
  }
  return std::nullopt;
}

/// The same for a grouped product (see device::launch_grouped_on_cuda, which says when there must
/// be a workspace).
[[nodiscard]] inline std::optional<Refusal> launch(const GroupedPlan& plan,
                                                   const GroupedOperands& operands, void* stream,
                                                   void* workspace = nullptr,
                                                   std::int64_t workspace_bytes = 0) {
  if (!plan.device.is_model) {
    return device::launch_grouped_on_cuda(plan, operands, workspace, workspace_bytes, stream);
  }
  const auto report = device::launch_grouped_on_model(plan, operands);
  if (!report) return report.refusal();
  if (!report->clean()) {
    return Refusal{RefusalCode::model_findings, "the model found faults:\n" + report->text()};
  }
  return std::nullopt;
}

}  // namespace warpwright
