// The register family's main loop with the tiles that its registers and shared memory are made for:
// register_ptx_test.py compiles one for each target. TARGET is N of sm_N.
#include "tests/kernel/register_loop.h"

using namespace warpwright;

struct Loop {
#if TARGET == 80
  static constexpr kernel::RegisterConfig config{
      tests::mma_of<DType::bf16>(), 128, 256, 32, 2, 4, 4};
#elif TARGET == 86
  static constexpr kernel::RegisterConfig config{tests::mma_of<DType::s8>(), 128, 128, 64, 2, 2, 5};
#else
  static constexpr kernel::RegisterConfig config{
      tests::mma_of<DType::e4m3>(), 128, 128, 128, 2, 2, 3};
#endif
};
static_assert(kernel::config_fault(Loop::config, TARGET) == nullptr);

extern "C" __global__ void __launch_bounds__(kernel::threads(Loop::config))
    loop(const __grid_constant__ tests::LoopParams params) {
  tests::multiply_tile<Loop>(params);
}
