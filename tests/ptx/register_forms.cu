// The words of the register family, for targets from Turing to GeForce Blackwell:
// register_ptx_test.py compiles this for each, looks for every instruction in its kernel's PTX, and
// lets ptxas assemble it. TARGET is N of sm_N.
#include "tests/model/mma_products.h"
#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/warp.h"

using namespace warpwright;

// Product I of mma_products.h, empty where the target has no such MMA.
template <int I>
__global__ void product(tests::Words memory) {
  if constexpr (atom::mma_fault(tests::kProducts[I], TARGET) == nullptr) {
    tests::multiply_once<tests::kProducts[I]>(memory);
  }
}

template <int... I>
void launch_all(std::integer_sequence<int, I...> /*indices*/) {
  (product<I><<<1, 32>>>({}), ...);
}
void all_products() {
  launch_all(std::make_integer_sequence<int, tests::kProductCount>());
}

#if TARGET >= 80
extern "C" __global__ void copies(unsigned at, const int* from, int bytes) {
  isa::copy_async<4>(at, from, bytes);
  isa::copy_async<8>(at, from);
  isa::copy_async<16>(at, from, bytes);
  isa::copy_async_commit();
  isa::copy_async_wait<3>();
}
#endif

extern "C" __global__ void matrices(unsigned at, unsigned* to) {
  unsigned words[4];
  isa::load_matrix<4>(at, words);
  to[0] = words[0] ^ words[3];
  isa::load_matrix<4, true>(at, words);
  to[1] = words[1] ^ words[2];
}

#if TARGET >= 120
extern "C" __global__ void padded_matrices(unsigned at, unsigned* to) {
  unsigned words[4];
  isa::load_matrix_padded<4, 4>(at, words);
  to[0] = words[0] ^ words[3];
  isa::load_matrix_padded<4, 6>(at, words);
  to[1] = words[1] ^ words[2];
}
#endif
