// A kernel of the register family for each target: register_ptx_test.py compiles it. TARGET is N of
// sm_N, ROW a row of the table.
#include "warpwright/device/registers_entry.cuh"
#include "warpwright/kernel/registers/table.h"

using namespace warpwright;

struct Kernel : kernel::Instance<kernel::RegistersRows, ROW> {};
static_assert(kernel::config_fault(Kernel::config, TARGET) == nullptr);

template __global__ void device::registers_gemm<Kernel>(
    const __grid_constant__ typename kernel::RegistersGemm<Kernel>::Params);
