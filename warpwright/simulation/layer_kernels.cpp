#include "warpwright/kernel/hopper/warp_layer.h"
#include "warpwright/simulation/model_kernels.h"

namespace warpwright::device {

void add_layer_kernels(std::vector<ModelKernel>& all) {
  kernel::LayerInstances::visit([&]<class Tag>() {
    all.push_back({Tag::name, &run_kernel<kernel::LayerKernelOf<Tag>>});
  });
}

}  // namespace warpwright::device
