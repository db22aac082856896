// mbarriers: the barriers in shared memory that asynchronous copies signal (PTX ISA 9.7.13.15).
//
// A phase completes when no arrival and no transaction byte is outstanding. Waiters name the phase
// by its parity; on a fresh barrier parity 1 answers "complete".
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/trace.h"
#if WW_GPU && WARPWRIGHT_DEBUG_WAITS
#include "warpwright/isa/bounded_wait.h"
#endif

namespace warpwright::isa {

/// What a barrier is called in reports, "full[2]".
struct BarrierName {
  const char* name = "barrier";
  int index = 0;
};

/// Makes the 8 bytes at `barrier` (own CTA, 8-byte aligned) an mbarrier that expects `count`
/// arrivals a phase, 1 to 2^20 - 1. Others may use it after a CTA barrier; peers of the cluster
/// after `fence_mbarrier_init` and the cluster barrier. `arrivers` says who arrives, for reports.
WW_DEVICE
void mbarrier_init(SharedAddress barrier, int count, [[maybe_unused]] BarrierName name = {},
                   [[maybe_unused]] const char* arrivers = "",
                   [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
#else
  model::mbarrier_init(barrier, count, site);
  model::name_barrier(barrier, name.name, name.index, arrivers);
#endif
}

/// Ends the barrier's life, so that its bytes may be used again (mbarrier.inval).
WW_DEVICE
void mbarrier_invalidate(SharedAddress barrier, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
#else
  model::mbarrier_invalidate(barrier, site);
#endif
}

/// One arrival on a barrier of this CTA, or of a peer CTA through an address from `map_rank`. `S`
/// is how far the arrival releases this thread's earlier generic writes. Scope::cluster costs a
/// full memory barrier on sm_90 (about a microsecond, measured): take it to hand generic writes to
/// a peer. Handing back memory that was only read needs Scope::cta, also across CTAs.
template <Scope S>
WW_DEVICE void mbarrier_arrive(SharedAddress barrier, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  if constexpr (S == Scope::cluster) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
  } else {
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
  }
#else
  model::mbarrier_arrive(barrier, 1, false, S, site);
#endif
}

/// Expects `bytes` more transaction bytes in the current phase (mbarrier.expect_tx, relaxed). Own
/// CTA only: this form names the shared memory of the CTA itself.
WW_DEVICE
void mbarrier_expect(SharedAddress barrier, int bytes, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#else
  model::mbarrier_expect(barrier, bytes, site);
#endif
}

/// Expects `bytes`, then arrives once: what the thread that issues the copies of a phase does. Own
/// CTA only.
WW_DEVICE
void mbarrier_arrive_expect(SharedAddress barrier, int bytes,
                            [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile(
      "{\n\t.reg .b64 s;\n\tmbarrier.arrive.expect_tx.release.cta.shared::cta.b64 s, [%0], "
      "%1;\n\t}" ::"r"(barrier),
      "r"(bytes)
      : "memory");
#else
  model::mbarrier_expect(barrier, bytes, site);
  model::mbarrier_arrive(barrier, 1, false, Scope::cta, site);
#endif
}

#if WW_GPU
// One question about a phase; `scope` is a string.
#define WW_ASK(question, scope)                                                    \
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier." question ".parity.acquire." scope \
               ".shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"       \
               : "=r"(done)                                                        \
               : "r"(barrier), "r"(parity)                                         \
               : "memory")
#define WW_ASK_AT_SCOPE(question)      \
  std::uint32_t done = 0;              \
  if constexpr (S == Scope::cluster) { \
    WW_ASK(question, "cluster");       \
  } else {                             \
    WW_ASK(question, "cta");           \
  }                                    \
  return done != 0
#endif

/// Asks once whether the phase of `parity` is complete (acquire at scope `S` when it is; what a
/// copy brought is visible at either scope, Scope::cluster is for generic writes of a peer). May
/// wait a little, and may answer false although the phase is complete (mbarrier.try_wait.parity).
template <Scope S>
WW_DEVICE bool mbarrier_try_wait(SharedAddress barrier, int parity,
                                 [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  WW_ASK_AT_SCOPE("try_wait");
#else
  return model::mbarrier_test(barrier, parity, true, S, site);
#endif
}

/// Asks once, without waiting (mbarrier.test_wait.parity).
template <Scope S>
WW_DEVICE bool mbarrier_test_wait(SharedAddress barrier, int parity,
                                  [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  WW_ASK_AT_SCOPE("test_wait");
#else
  return model::mbarrier_test(barrier, parity, false, S, site);
#endif
}

#if WW_GPU
#undef WW_ASK_AT_SCOPE
#undef WW_ASK
#endif

/// Waits until the phase of `parity` is complete (acquire at scope `S`). `name` is for reports: of
/// the model's deadlock report, and of the bounded waits of a debug build on the GPU, which end a
/// kernel that hangs and say who waited for what.
template <Scope S>
WW_DEVICE void mbarrier_wait(SharedAddress barrier, int parity,
                             [[maybe_unused]] BarrierName name = {},
                             [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU && WARPWRIGHT_TRACE
  if (mbarrier_try_wait<S>(barrier, parity, site)) return;
  trace_wait_begin(name.name, name.index);
#endif
#if WW_GPU && WARPWRIGHT_DEBUG_WAITS
  const long long start = clock64();
  while (!mbarrier_try_wait<S>(barrier, parity, site)) {
    if (clock64() - start > wait_bound_cycles) {
      report_and_trap(name.name, name.index, parity, site.line);
    }
  }
#elif WW_GPU
  while (!mbarrier_try_wait<S>(barrier, parity, site)) {
  }
#else
  model::mbarrier_wait(barrier, parity, S, site);
#endif
#if WW_GPU && WARPWRIGHT_TRACE
  trace_wait_end();
#endif
}

}  // namespace warpwright::isa
