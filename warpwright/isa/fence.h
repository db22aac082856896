// Fences between proxies and scopes, and dependence between grids.
#pragma once

#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// Orders this thread's generic accesses to shared memory with asynchronous ones (TMA,
/// tensor core) in both directions: each writing thread calls it before the barrier after which
/// another thread starts the asynchronous operation (fence.proxy.async, PTX ISA 9.7.13.4).
WW_DEVICE
void fence_proxy_async_shared([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  model::fence_proxy_async(model::Space::shared, site);
#endif
}

/// The same for global memory: generic writes that a tensor load is to read, or the other way.
WW_DEVICE
void fence_proxy_async_global([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("fence.proxy.async.global;" ::: "memory");
#else
  model::fence_proxy_async(model::Space::global, site);
#endif
}

/// Publishes this thread's mbarrier initialisations to the cluster; the cluster barrier must follow
/// before a peer uses them (fence.mbarrier_init, PTX ISA 9.7.13.4).
WW_DEVICE
void fence_mbarrier_init([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  model::fence_mbarrier_init(site);
#endif
}

/// Lets the next grid of the stream start once all CTAs have called it or ended
/// (griddepcontrol.launch_dependents, PTX ISA 9.7.13.19). Idempotent.
WW_DEVICE
void launch_dependents([[maybe_unused]] Site site = Site::here()) {
#if WW_GPU && WW_CLUSTERS
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#elif !WW_GPU
  model::launch_dependents(site);
#endif
}

/// The proof that `wait_for_prerequisites` has returned, and the only way to get it. What reads the
/// results of the grid before asks for it, so that reading them too early does not compile.
class Prerequisites {
 public:
  /// Gives it.
  friend WW_DEVICE Prerequisites wait_for_prerequisites(Site site);
  /// The same before the wait, for what grids before the grid before have written, where that one
  /// lets its dependents start behind its own wait in every CTA: they are complete then. Who makes
  /// the launch knows. On the model every access is held to it (G1).
  WW_DEVICE static constexpr Prerequisites of_earlier_grids() { return {}; }

 private:
  /// For only that one.
  WW_DEVICE constexpr Prerequisites() {}
};

/// Blocks until the grids this one depends on are complete and their writes visible. Nothing they
/// write may be read, and nothing they read be written, before.
WW_DEVICE
Prerequisites wait_for_prerequisites([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU && WW_CLUSTERS
  asm volatile("griddepcontrol.wait;" ::: "memory");
#elif !WW_GPU
  model::wait_for_grids(site);
#endif
  return {};
}

}  // namespace warpwright::isa
