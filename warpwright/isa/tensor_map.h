// Tensor maps that a kernel makes from others: fields rewritten in shared memory, the map published
// in global memory, and acquired there before copies go through it (PTX ISA 9.7.9.28, 9.7.13.16).
//
// TMA reads maps through a proxy of their own. A map in global memory is seen there
// only behind a release by its writer and an acquire by the thread that issues the copy; where the
// grid before has written it, wait_for_prerequisites comes between the two.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/tma.h"

namespace warpwright::isa {

/// Replaces the address of the tensor's first element in the map at `map` in this CTA's shared
/// memory (tensormap.replace, sm_90a, PTX ISA 9.7.9.28). `map` is a multiple of 128 bytes, `base`,
/// in global memory, one of 16. A generic write of the whole map: a barrier must lead to it from
/// whoever wrote the map before.
WW_DEVICE
void tensormap_replace_global_address(SharedAddress map, const void* base,
                                      [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map),
               "l"(base)
               : "memory");
#else
  model::replace_map_base(map, reinterpret_cast<std::uintptr_t>(base), site);
#endif
}

/// Replaces the extent, in elements and at least 1, of dimension `Dimension`, 0 the innermost. As
/// above otherwise. Strides stay as they are.
template <int Dimension>
WW_DEVICE void tensormap_replace_global_dim(SharedAddress map, std::uint32_t extent,
                                            [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Dimension >= 0 && Dimension < 5, "tensor maps have rank 1 to 5");
#if WW_GPU
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(map),
               "n"(Dimension), "r"(extent)
               : "memory");
#else
  model::replace_map_extent(map, Dimension, extent, site);
#endif
}

/// Copies the map at `from` in this CTA's shared memory to `to` in global memory and releases it
/// there at GPU scope to the proxy of tensor maps (tensormap.cp_fenceproxy, PTX ISA 9.7.13.16).
/// Both are multiples of 128 bytes. All 32 lanes of the warp execute it together with the same
/// operands; all of them must have met whoever wrote to `from`, and meet again before it is written
/// next. No copy may still go through what `to` held.
WW_DEVICE
void tensormap_cp_fenceproxy(TensorMap* to, SharedAddress from,
                             [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%0], [%1], 128;" ::"l"(to),
      "r"(from)
      : "memory");
#else
  model::release_map(to, from, site);
#endif
}

/// Lets the copies that this thread issues from now on see the map in global memory as it was
/// released before (fence.proxy.tensormap::generic.acquire.gpu, PTX ISA 9.7.13.4). What ordered the
/// release before this, a barrier or the end of a grid, must already have been waited for. Every
/// issuing thread calls it, once for a map that does not change any more.
WW_DEVICE
void fence_proxy_tensormap_acquire(const TensorMap& map,
                                   [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
#else
  model::acquire_map(&map, site);
#endif
}

}  // namespace warpwright::isa
