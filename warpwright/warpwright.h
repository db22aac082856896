// The C++ API of Warpwright: values, planning, launches on CUDA devices. docs/gemm.md and
// docs/grouped.md have samples, docs/api.md says what may be called when and from where. Programs
// that run plans on the machine model link warpwright::model too and include warpwright/model.h.
//
//   using namespace warpwright;
//   GemmOperands operands{.a = matrix(a, DType::bf16, m, k), .b = matrix(b, DType::bf16, n, k),
//                         .d = matrix(d, DType::bf16, m, n)};
//   const auto facts = device::cuda_device(0);
//   if (!facts) return fail(facts.reason());
//   const auto made = plan(operands, *facts);
//   if (!made) return fail(made.reason());
//   auto workspace = Workspace::make(*made);
//   if (!workspace) return fail(workspace.reason());
//   if (const auto refused = launch(*made, operands, *workspace, stream)) {
//     return fail(refused->reason);
//   }
#pragma once

#include "warpwright/device/cuda.h"
#include "warpwright/device/launch.h"
#include "warpwright/device/moe.h"
#include "warpwright/numeric/scalar.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/moe/moe_alternatives.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/search/alternatives.h"
#include "warpwright/plan/tuning/tuning.h"
