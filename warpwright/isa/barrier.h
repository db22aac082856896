// Barriers of threads: the CTA's named barriers and the cluster barrier.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/trace.h"

namespace warpwright::isa {

/// Waits until `threads` threads of the CTA have come to barrier `id` (bar.sync, PTX ISA 9.7.13.1).
/// id 0 to 15 (0 is sync_threads'), threads a multiple of 32, whole warps.
WW_DEVICE
void named_barrier_sync(int id, int threads, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("barrier", id);
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
  trace_wait_end();
#else
  model::named_barrier(id, threads, true, site);
#endif
}

/// Counts this thread on barrier `id` without waiting (bar.arrive); another operation on the same
/// id before the barrier completes is undefined.
WW_DEVICE
void named_barrier_arrive(int id, int threads, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  model::named_barrier(id, threads, false, site);
#endif
}

/// Waits for all `threads` threads of the CTA (barrier 0).
WW_DEVICE
void sync_threads(int threads, [[maybe_unused]] Site site = Site::sync()) {
  named_barrier_sync(0, threads, site);
}

/// Counts this thread on the cluster barrier; its earlier generic writes are released to the
/// cluster. Every thread of every CTA arrives once a round (barrier.cluster, PTX ISA 9.7.13.3).
WW_DEVICE
void cluster_arrive([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#else
  model::cluster_arrive(true, site);
#endif
}

/// The same without releasing anything: for a barrier that only says "we are all here", after
/// `fence_mbarrier_init` for instance. The releasing form costs a memory barrier.
WW_DEVICE void cluster_arrive_relaxed([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  model::cluster_arrive(false, site);
#endif
}

/// Waits for all threads of the cluster and acquires what they released.
WW_DEVICE
void cluster_wait([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait cluster");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  trace_wait_end();
#else
  model::cluster_wait(site);
#endif
}

/// The same offset in the shared memory of CTA `rank` of the cluster (mapa, PTX ISA 9.7.9.23). That
/// CTA must have started and must not have exited when the address is used.
WW_DEVICE
SharedAddress map_rank(SharedAddress address, int rank) {
#if WW_GPU
  SharedAddress mapped = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
#else
  return model::map_rank(address, rank);
#endif
}

}  // namespace warpwright::isa
