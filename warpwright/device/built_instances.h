// The kernels of this build: of the tables in kernel/, those families for which
// WARPWRIGHT_CUDA_ARCHS names an architecture. Internal to device/.
#pragma once

#include "warpwright/kernel/blackwell_instances.h"
#include "warpwright/kernel/grouped_instances.h"
#include "warpwright/kernel/instances.h"

#if WARPWRIGHT_HAS_HOPPER
#define WW_BUILT_HOPPER(X) WW_HOPPER_GEMM_INSTANCES(X)
#else
#define WW_BUILT_HOPPER(X)
#endif
#if WARPWRIGHT_HAS_BLACKWELL
#define WW_BUILT_BLACKWELL(X) WW_BLACKWELL_GEMM_INSTANCES(X)
#else
#define WW_BUILT_BLACKWELL(X)
#endif
#if WARPWRIGHT_HAS_GROUPED
#define WW_BUILT_GROUPED(X) WW_HOPPER_GROUPED_INSTANCES(X)
#else
#define WW_BUILT_GROUPED(X)
#endif
// Those of grouped products are launched by plans of their own: WW_BUILT_GROUPED.
#define WW_BUILT_INSTANCES(X) WW_BUILT_HOPPER(X) WW_BUILT_BLACKWELL(X)
