// What runs of products and of mixtures share: the device, the stream and the memory of a launch.
// Internal to run.cpp and run_moe.cpp.
#pragma once

#include "warpwright/device/launch_parts.h"
#include "warpwright/run.h"
#include "warpwright/run_cache.h"

#if WARPWRIGHT_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace warpwright {

/// Is it in the environment, and not 0?
[[nodiscard]] bool is_set(const char* variable);

/// What plans are kept by: a CUDA device, or, for the model, the architecture whose instructions it
/// has now, as a number below run_nowhere.
[[nodiscard]] Result<int> device_key(int device);

/// Why this is no stream of the device, or nothing. A stream is asked once in a row.
[[nodiscard]] std::optional<Refusal> checked_stream(void* stream, int device);

/// The name of a plan in a profiler's timeline, where $WARPWRIGHT_NVTX asks for it.
class NamedRange {
 public:
#if WARPWRIGHT_HAS_NVTX
  template <class Planned>
  explicit NamedRange(const Planned& plan) {
    static const bool wanted = is_set("WARPWRIGHT_NVTX");
    if (wanted) nvtxRangePushA(plan.name().c_str());
    pushed_ = wanted;
  }
  ~NamedRange() {
    if (pushed_) nvtxRangePop();
  }

 private:
  bool pushed_ = false;
#else
  template <class Planned>
  explicit NamedRange(const Planned& /*plan*/) {}
  ~NamedRange() {}  // NOLINT(modernize-use-equals-default): else a range is an unused variable
#endif
 public:
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
};

/// Where a launch goes.
struct RunPlace {
  int device;
  void* stream;
  Workspace* workspace;  ///< the caller's; null: what is kept for the stream
};

/// Calls start(workspace) on the device, with the caller's memory or, where the launch cannot do
/// without any (`needs_memory`), the stream's, which is this thread's as long. `waits` names the
/// option that has `start` wait for the kernel, or is null: such is refused in a graph capture.
template <class Planned, class StartIn>
std::optional<Refusal> start_in_place(const RunPlace& o, bool needs_memory,
                                      const WorkspaceNeed& need, const char* waits,
                                      const Planned& plan, const StartIn& start) {
  const CurrentDevice current(o.device);
  if (current.fault()) return current.fault();
  const bool on_model = o.device == run_on_model;
  if (!on_model) {
    if (auto r = checked_stream(o.stream, o.device)) return r;
  }
  const NamedRange range(plan);
  const bool keeps = o.workspace == nullptr && needs_memory;
  const bool captured = !on_model && (keeps || waits != nullptr) && device::is_captured(o.stream);
  if (captured && waits != nullptr) {
    return refuse(
        RefusalCode::unsupported, waits,
        " waits for the kernel, which a graph capture does not allow: ", as_rule("leave it out"));
  }
  Workspace none;
  if (!keeps) return start(o.workspace != nullptr ? *o.workspace : none);
  if (on_model) {
    const auto backend = device::backend_for(plan.device);
    if (!backend) return backend.refusal();
    auto made = Workspace::of(*backend, need.bytes);
    if (!made) return made.refusal();
    return start(*made);
  }
  auto lease = WorkspaceCache::of_process().lease(o.device, o.stream, need, captured);
  if (!lease) return lease.refusal();
  return start(*(*lease).workspace);
}

}  // namespace warpwright
