// The Blackwell kernels' bodies on the model, a translation unit a kind. Internal to device/.
#pragma once

#include "warpwright/kernel/blackwell_config.h"
#include "warpwright/kernel/blackwell_gemm_params.h"

namespace warpwright::device {

using BlackwellBody = void (*)(const kernel::BlackwellGemmParams&);

/// The kernel of this configuration among those of one kind; null when there is none.
BlackwellBody blackwell_f16_body(const kernel::BlackwellConfig& config);
BlackwellBody blackwell_f8f6f4_body(const kernel::BlackwellConfig& config);

}  // namespace warpwright::device
