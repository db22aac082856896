// Who is running: indices of the thread, its warp, its CTA and its cluster.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/trace.h"

namespace warpwright::isa {

/// Index of this thread in its CTA (CTAs are one-dimensional).
WW_DEVICE
int thread_index() {
#if WW_GPU
  return static_cast<int>(threadIdx.x);
#else
  return model::thread_index();
#endif
}

/// Lane of this thread in its warp, 0 to 31.
WW_DEVICE
int lane_index() {
  return static_cast<int>(static_cast<unsigned>(thread_index()) % 32);
}

/// Index of this warp in its CTA, in a form the compiler knows to be uniform in the warp
/// (shfl.sync.idx). All 32 lanes must execute it together.
WW_DEVICE
int warp_index([[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
#else
  return model::warp_index(site);
#endif
}

/// Index of this CTA in the one-dimensional grid.
WW_DEVICE
int cta_index() {
#if WW_GPU
  return static_cast<int>(blockIdx.x);
#else
  return model::cta_index();
#endif
}

/// CTAs in the grid.
WW_DEVICE
int cta_count() {
#if WW_GPU
  return static_cast<int>(gridDim.x);
#else
  return model::cta_count();
#endif
}

/// Rank of this CTA in its cluster (%cluster_ctarank); 0 without clusters. PTX ISA 10.
WW_DEVICE
int cluster_rank() {
#if !WW_CLUSTERS
  return 0;
#elif WW_GPU
  std::uint32_t rank = 0;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return model::cluster_rank();
#endif
}

/// Index of this CTA's cluster in the grid (%clusterid); without clusters every CTA is one.
WW_DEVICE int cluster_index() {
#if !WW_CLUSTERS
  return cta_index();
#elif WW_GPU
  std::uint32_t index = 0;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));
  return static_cast<int>(index);
#else
  return model::cta_index() / model::cluster_size();
#endif
}

/// Clusters in the grid (%nclusterid).
WW_DEVICE int cluster_count() {
#if !WW_CLUSTERS
  return cta_count();
#elif WW_GPU
  std::uint32_t count = 0;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  return static_cast<int>(count);
#else
  return model::cta_count() / model::cluster_size();
#endif
}

/// Tells reports and traces which part this thread plays; costs nothing on the GPU. `role` must be
/// a string literal.
WW_DEVICE
void set_role([[maybe_unused]] const char* role) {
#if !WW_GPU
  model::set_role(role);
#elif WARPWRIGHT_TRACE
  if (trace_records()) trace_buffer.rings[trace_ring_index()].role = role;
#endif
}

/// Tells progress and traces that this CTA has finished a tile; costs nothing on the GPU.
WW_DEVICE
void count_tile() {
#if !WW_GPU
  model::count_tile();
#endif
}

}  // namespace warpwright::isa
