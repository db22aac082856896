// What a launch takes of the host's time. Internal to bench/.
#pragma once

#include <cuda_runtime.h>

#include "bench/gemm_bench.h"
#include "bench/replay.h"

namespace warpwright::bench {

/// Times single launches of `plan` by `launch`, in turns with those of an empty kernel of the same
/// grid, clusters, shared memory and parameters: what CUDA by itself takes on this host.
HostTimes host_times(const Plan& plan, const Launch& launch, bool dependent, cudaStream_t stream);

}  // namespace warpwright::bench
