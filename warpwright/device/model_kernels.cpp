#include "warpwright/device/model_kernels.h"

#include <algorithm>
#include <utility>

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
    add_all<kernel::HopperRows>(found, std::make_integer_sequence<int, WARPWRIGHT_HOPPER_CHUNKS>{});
    add_all<kernel::BlackwellRows>(found,
                                   std::make_integer_sequence<int, WARPWRIGHT_BLACKWELL_CHUNKS>{});
    return found;
  }();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ModelKernel& k) { return k.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace warpwright::device
