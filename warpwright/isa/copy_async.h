// cp.async (sm_80 and later): a thread copies 4, 8 or 16 bytes from global to shared memory without
// waiting, and counts its copies in groups (PTX ISA 9.7.9.25.3), or has them arrive at an mbarrier
// when they are complete. They belong to the generic proxy: ldmatrix and ld.shared need no fence,
// wgmma and TMA do.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/trace.h"

namespace warpwright::isa {

/// Starts the copy of `Bytes` bytes, both sides aligned to them, in the current group of this
/// thread. Only the first `from_bytes` of them are read, the others become 0; with 0 nothing is
/// read, and `from` need only be some address in global memory. 16 bytes pass the L1 cache by,
/// fewer go through it (cp.async.cg, cp.async.ca).
template <int Bytes>
WW_DEVICE void copy_async(SharedAddress to, const void* from, int from_bytes = Bytes,
                          [[maybe_unused]] Site site = Site::here()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if WW_GPU
  const auto global = static_cast<std::uint64_t>(__cvta_generic_to_global(from));
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global),
                 "r"(from_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(Bytes),
                 "r"(from_bytes)
                 : "memory");
  }
#else
  model::copy_async(to, from, Bytes, from_bytes, site);
#endif
}

/// Starts the copy of 16 bytes, both sides aligned to them, in the current group of this thread,
/// or, with `zeros`, writes 16 zero bytes in its place and reads nothing (cp.async.cg with
/// ignore-src). Takes fewer instructions than `copy_async` of a number of bytes. With `whole_line`
/// L2 is told that all 128 bytes around them are wanted (.L2::128B), as where other lanes or the
/// next copies ask for them: rows of which a warp takes 64 bytes at a time come at three quarters
/// of the memory's rate without.
template <bool whole_line = false>
WW_DEVICE void copy_async_or_zeros(SharedAddress to, const void* from, bool zeros,
                                   [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  const auto global = static_cast<std::uint64_t>(__cvta_generic_to_global(from));
  if constexpr (whole_line) {
    asm volatile(
        "{\n.reg .pred zeros;\nsetp.ne.u32 zeros, %2, 0;\n"
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, zeros;\n}" ::"r"(to),
        "l"(global), "r"(static_cast<std::uint32_t>(zeros))
        : "memory");
  } else {
    asm volatile(
        "{\n.reg .pred zeros;\nsetp.ne.u32 zeros, %2, 0;\n"
        "cp.async.cg.shared.global [%0], [%1], 16, zeros;\n}" ::"r"(to),
        "l"(global), "r"(static_cast<std::uint32_t>(zeros))
        : "memory");
  }
#else
  model::copy_async(to, from, 16, zeros ? 0 : 16, site);
#endif
}

/// Closes this thread's current group, which may be empty (cp.async.commit_group).
WW_DEVICE
void copy_async_commit([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  model::copy_async_commit(site);
#endif
}

/// Waits until at most N of this thread's newest groups are incomplete: this thread sees what the
/// older ones wrote. The other threads see it behind a barrier with this one (cp.async.wait_group).
template <int N>
WW_DEVICE void copy_async_wait([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait copies");
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
  trace_wait_end();
#else
  model::copy_async_wait(N, site);
#endif
}

/// Arrives once on `barrier`, of this CTA, as soon as all copies that this thread has started so
/// far are complete, of whatever group, and does not wait for that. Whoever then waits for the
/// barrier's phase sees what they wrote, and nothing else that this thread wrote: the arrival
/// releases nothing. The barrier's count includes it (cp.async.mbarrier.arrive.noinc, PTX
/// ISA 9.7.13.15).
WW_DEVICE
void copy_async_arrive(SharedAddress barrier, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
#else
  model::copy_async_arrive(barrier, site);
#endif
}

}  // namespace warpwright::isa
