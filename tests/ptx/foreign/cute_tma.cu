// The kernel of CuTe's tutorial for Hopper with TMA (examples/cute/tutorial/hopper), with sums in
// float32: its sources stay where they are, and only a kernel of them is asked for.
#define main cute_main
#include "wgmma_tma_sm90.cu"
#undef main

namespace {
using Bm = Int<128>;
using Bk = Int<64>;
using Pipe = Int<3>;
using T = cute::half_t;
using Shared =
    decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<T>{}, make_shape(Bm{}, Bk{}, Pipe{})));
using Mma = decltype(make_tiled_mma(SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{}));
using Source = decltype(make_tensor(static_cast<const T*>(nullptr), make_shape(0, 0),
                                    make_stride(0, Int<1>{})));
using Tma =
    decltype(make_tma_atom(SM90_TMA_LOAD{}, Source{}, Shared{}(_, _, 0), make_shape(Bm{}, Bk{})));
using Problem = decltype(make_shape(0, 0, 0));
using Tiler = decltype(make_shape(Bm{}, Bm{}, Bk{}));
using Strides = decltype(make_stride(Int<1>{}, 0));
}  // namespace

const void* asked_for() {
  return reinterpret_cast<const void*>(&gemm_device<Problem, Tiler, T, Shared, Tma, T, Shared, Tma,
                                                    float, Strides, Mma, float, float>);
}
