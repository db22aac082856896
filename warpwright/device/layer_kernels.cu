// The __global__ entries of layers in one launch, which are of sm_90a.
#include "warpwright/device/cuda_entry.cuh"
#include "warpwright/kernel/hopper/warp_layer.h"

namespace warpwright::device {

template <class Tag>
__global__ void __launch_bounds__(kernel::LayerKernelOf<Tag>::threads,
                                  kernel::LayerKernelOf<Tag>::ctas_per_sm)
    moe_layer(const __grid_constant__ typename kernel::LayerKernelOf<Tag>::Params params) {
  kernel::LayerKernelOf<Tag>::run(params);
}

void add_layer_kernels(std::vector<CudaKernel>& all) {
  kernel::LayerInstances::visit([&]<class Tag>() {
    using Kernel = kernel::LayerKernelOf<Tag>;
    all.push_back({Tag::name, 9, 90, Kernel::threads, Kernel::shared_bytes,
                   reinterpret_cast<const void*>(&moe_layer<Tag>), &watch_this_file,
                   record_this_file});
  });
}

}  // namespace warpwright::device
