// A kernel of the register family for each target: register_ptx_test.py compiles it. TARGET is N of
// sm_N, ROW a row of the table, or row_named(its name).
#include <string_view>

#include "warpwright/device/registers_entry.cuh"
#include "warpwright/kernel/registers/table.h"

using namespace warpwright;

constexpr int row_named(std::string_view name) {
  int row = 0;
  for (const auto& each : kernel::RegistersRows::rows) {
    if (each.name == name) return row;
    ++row;
  }
  return row;
}
constexpr int rows = kernel::RegistersRows::rows.size();
static_assert((ROW) < rows, "the table has no such row");
constexpr int row = (ROW) < rows ? (ROW) : 0;

struct Kernel : kernel::Instance<kernel::RegistersRows, row> {};
static_assert(kernel::config_fault(Kernel::config, TARGET) == nullptr,
              "this is no kernel for the target");

template __global__ void device::registers_gemm<Kernel>(
    const __grid_constant__ typename kernel::RegistersGemm<Kernel>::Params);
