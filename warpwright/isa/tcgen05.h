// tcgen05: the tensor core of sm_100, which multiplies tiles in shared memory into tensor memory
// (PTX ISA 9.7.16). One thread issues; a pair of CTAs (`Ctas` = 2, ranks that differ in bit 0)
// works as one, and its even CTA issues for both. All functions of a kernel use one `Ctas`.
//
// Order: MMAs of one accumulator and shape follow each other; everything else is asynchronous. An
// MMA's end is known through `tcgen05_commit` and a wait on its mbarrier. Where tensor memory
// passes from thread to thread, the giver calls `tcgen05_fence_before_sync` before the barrier or
// arrival (commit includes it) and the taker `tcgen05_fence_after_sync` after its wait.
#pragma once

#include "warpwright/atom/umma.h"
#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// An address in tensor memory: lane << 16 | column. A CTA has 128 lanes x 512 columns of 32 bits.
using TmemAddress = std::uint32_t;

#if WW_GPU
namespace detail {

// The ends of mnemonics, for the "C" constraint.
template <int Ctas>
struct GroupText {
  static constexpr char text[] = {static_cast<char>('0' + Ctas), '\0'};
};
template <atom::UmmaKind Kind>
struct KindText;
template <>
struct KindText<atom::UmmaKind::f16> {
  static constexpr char text[] = "f16";
};
template <>
struct KindText<atom::UmmaKind::tf32> {
  static constexpr char text[] = "tf32";
};
template <>
struct KindText<atom::UmmaKind::f8f6f4> {
  static constexpr char text[] = "f8f6f4";
};
template <>
struct KindText<atom::UmmaKind::mxf8f6f4> {
  static constexpr char text[] = "mxf8f6f4";
};
template <>
struct KindText<atom::UmmaKind::mxf4> {
  static constexpr char text[] = "mxf4";
};
template <>
struct KindText<atom::UmmaKind::mxf4nvf4> {
  static constexpr char text[] = "mxf4nvf4";
};

}  // namespace detail
#endif

/// Allocates `columns` of tensor memory, all 128 lanes of them: a power of two from 32 to 512.
/// Blocks until so many are free, and writes the address to the 4 bytes at `to` in the own CTA's
/// shared memory (generic proxy: others read it after a CTA barrier). All 32 lanes of one warp
/// execute it; with Ctas = 2 one warp in each CTA of the pair does, so both must be known to run
/// (tcgen05.alloc, PTX ISA 9.7.16.7).
template <int Ctas>
WW_DEVICE void tcgen05_allocate(SharedAddress to, int columns,
                                [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
#if WW_GPU
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to),
               "r"(columns), "C"(detail::GroupText<Ctas>::text)
               : "memory");
#else
  model::tcgen05_allocate(to, columns, Ctas, site);
#endif
}

/// Gives the `columns` of tensor memory at `address` back, as they were allocated. Every allocation
/// must be given back before the CTA ends, after all accesses to it. All 32 lanes of one warp
/// execute it, of any warp; with Ctas = 2 one warp in each CTA of the pair (tcgen05.dealloc).
template <int Ctas>
WW_DEVICE void tcgen05_deallocate(TmemAddress address, int columns,
                                  [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
#if WW_GPU
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address),
               "r"(columns), "C"(detail::GroupText<Ctas>::text)
               : "memory");
#else
  model::tcgen05_deallocate(address, columns, Ctas, site);
#endif
}

/// Says that this CTA allocates no more, so that the next CTA on the SM may
/// (tcgen05.relinquish_alloc_permit). All 32 lanes of one warp execute it.
template <int Ctas>
WW_DEVICE void tcgen05_relinquish([[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
#if WW_GPU
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"C"(
                   detail::GroupText<Ctas>::text)
               : "memory");
#else
  model::tcgen05_relinquish(Ctas, site);
#endif
}

/// D = A * B^T (+ D when `accumulate`), asynchronously: A and B in shared memory through their
/// descriptors, which hold CTA-relative addresses (in a pair for both CTAs: each gives its half of
/// A's rows and of B's columns), D in tensor memory at `d` (in a pair at the same address in both
/// CTAs, each holding its half of the rows). `instruction` is the 32-bit descriptor of shape, types
/// and majors. One thread executes it, with Ctas = 2 one of the pair's even CTA. Shared memory
/// written by threads needs their `fence_proxy_async_shared` (tcgen05.mma, PTX ISA 9.7.16.10).
template <atom::UmmaKind Kind, int Ctas>
WW_DEVICE void tcgen05_mma(TmemAddress d, std::uint64_t descriptor_a, std::uint64_t descriptor_b,
                           std::uint32_t instruction, bool accumulate,
                           [[maybe_unused]] Site site = Site::here()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
  static_assert(!atom::is_block_scaled(Kind), "tcgen05_mma_scaled has the kinds with scales");
#if WW_GPU
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::%5.kind::%6 [%0], %1, %2, %3, p;\n\t}" ::"r"(d),
      "l"(descriptor_a), "l"(descriptor_b), "r"(instruction), "r"(static_cast<int>(accumulate)),
      "C"(detail::GroupText<Ctas>::text), "C"(detail::KindText<Kind>::text)
      : "memory");
#else
  model::tcgen05_mma({.kind = Kind,
                      .ctas = Ctas,
                      .d = d,
                      .descriptor_a = descriptor_a,
                      .descriptor_b = descriptor_b,
                      .instruction = instruction,
                      .accumulate = accumulate},
                     site);
#endif
}

/// Arrives once on `barrier` (shared::cluster address) when all MMAs and copies to tensor memory
/// that this thread issued so far are complete: their operands have been read and D written. The
/// waiter needs `tcgen05_fence_after_sync` before it touches tensor memory. One thread executes it,
/// the one that issued them (tcgen05.commit, PTX ISA 9.7.16.12).
template <int Ctas>
WW_DEVICE void tcgen05_commit(SharedAddress barrier, [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
#if WW_GPU
  asm volatile(
      "tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier),
      "C"(detail::GroupText<Ctas>::text)
      : "memory");
#else
  model::tcgen05_commit(barrier, 0, Ctas, site);
#endif
}

/// The same on the barrier at the same offset in every CTA of the cluster whose bit is set in
/// `ctas` (bit r: %cluster_ctarank r). They must not have exited when the MMAs are complete.
template <int Ctas>
WW_DEVICE void tcgen05_commit_multicast(SharedAddress barrier, std::uint16_t ctas,
                                        [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
#if WW_GPU
  asm volatile(
      "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(barrier),
      "h"(ctas), "C"(detail::GroupText<Ctas>::text)
      : "memory");
#else
  model::tcgen05_commit(barrier, ctas, Ctas, site);
#endif
}

/// Orders this thread's earlier accesses to tensor memory before the arrival or barrier that
/// follows (tcgen05.fence::before_thread_sync, PTX ISA 9.7.16.11). Loads and stores must have been
/// waited for.
WW_DEVICE
void tcgen05_fence_before_sync([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
#else
  model::tcgen05_fence(true, site);
#endif
}

/// Orders this thread's later accesses to tensor memory after the wait or barrier before it
/// (tcgen05.fence::after_thread_sync).
WW_DEVICE
void tcgen05_fence_after_sync([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#else
  model::tcgen05_fence(false, site);
#endif
}

}  // namespace warpwright::isa
