#include "warpwright/simulation/model_kernels.h"

#include <algorithm>
#include <utility>

#include "warpwright/kernel/check_rows.h"
#include "warpwright/kernel/copy_rows.h"
#include "warpwright/kernel/families.h"
#include "warpwright/kernel/moe/gate_rows.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/kernel/moe/sort_slots.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/kernel/zero_rows.h"
#include "warpwright/plan/families/family.h"

namespace warpwright::device {
namespace {

template <class Table, int... chunk>
void add_all(std::vector<ModelKernel>& all, std::integer_sequence<int, chunk...> /*chunks*/) {
  (add_model_kernels<Table, chunk>(all), ...);
}

}  // namespace

const ModelKernel* model_kernel(std::string_view name) {
  static const std::vector<ModelKernel> all = [] {
    std::vector<ModelKernel> found;
#define WW_ADD_ALL(Family, ...)        \
  add_all<kernel::Family##Rows>(found, \
                                std::make_integer_sequence<int, WARPWRIGHT_##Family##_CHUNKS>{});
    WW_FAMILIES(WW_ADD_ALL)
#undef WW_ADD_ALL
    found.push_back({zero_rows_kernel, &run_kernel<kernel::ZeroRowsKernel>});
    found.push_back({check_rows_kernel, &run_kernel<kernel::CheckRowsKernel>});
    found.push_back({copy_rows_kernel, &run_kernel<kernel::CopyRowsKernel>});
    found.push_back({sort_slots_kernel, &run_kernel<kernel::SortSlotsKernel>});
    found.push_back({gather_rows_kernel, &run_kernel<kernel::GatherRowsKernel>});
    found.push_back({gate_rows_kernel, &run_kernel<kernel::GateRowsKernel>});
    found.push_back({sort_gather_kernel, &run_kernel<kernel::SortGatherKernel>});
    found.push_back({sum_slots_kernel, &run_kernel<kernel::SumSlotsKernel>});
    add_layer_kernels(found);
    return found;
  }();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ModelKernel& k) { return k.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace warpwright::device
