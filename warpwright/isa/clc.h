// CLC of sm_100: a running cluster takes over the work of one that was not launched yet
// (PTX ISA 9.7.13.17, 9.7.13.18). The request is asynchronous; its opaque answer of 16 bytes lands
// in shared memory and counts 16 transaction bytes on an mbarrier.
#pragma once

#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// What a request wrote. Opaque: `cluster_canceled` and `canceled_first_cta` read it.
#if WW_GPU
struct LaunchAnswer {
  unsigned long long low = 0;
  unsigned long long high = 0;
};
#else
using LaunchAnswer = model::LaunchAnswer;
#endif

/// Asks that a cluster of this grid that has not been launched be canceled, for this CTA to do its
/// work. The 16 bytes at `answer` (own CTA, 16-byte aligned) are written through the asynchronous
/// proxy, then 16 transaction bytes complete on `barrier` (own CTA). One thread executes it. After
/// an answer that said no, no more may be asked; an answer must have been read, and the reads
/// handed to this thread, before the next request overwrites it
/// (clusterlaunchcontrol.try_cancel.async).
WW_DEVICE
void try_cancel(SharedAddress answer, SharedAddress barrier,
                [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], "
      "[%1];" ::"r"(answer),
      "r"(barrier)
      : "memory");
#else
  model::try_cancel(answer, barrier, false, site);
#endif
}

/// One request for the whole cluster: the same answer at the same offset in every CTA of it, and 16
/// bytes completed on the barrier at the same offset in each. No CTA may have exited. One thread of
/// the cluster executes it (.multicast::cluster::all).
WW_DEVICE
void try_cancel_multicast(SharedAddress answer, SharedAddress barrier,
                          [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(answer),
      "r"(barrier)
      : "memory");
#else
  model::try_cancel(answer, barrier, true, site);
#endif
}

/// Reads the answer at `answer` (own CTA) once its barrier's phase is complete (ld.shared.b128).
WW_DEVICE
LaunchAnswer load_launch_answer(SharedAddress answer, [[maybe_unused]] Site site = Site::here()) {
  LaunchAnswer value;
#if WW_GPU
  asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];"
               : "=l"(value.low), "=l"(value.high)
               : "r"(answer)
               : "memory");
#else
  value = model::load_launch_answer(answer, site);
#endif
  return value;
}

/// Was a cluster canceled, so that its work is ours?
/// (clusterlaunchcontrol.query_cancel.is_canceled)
WW_DEVICE
bool cluster_canceled(const LaunchAnswer& answer, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  std::uint32_t canceled = 0;
  asm volatile(
      "{\n\t.reg .pred p;\n\t.reg .b128 h;\n\tmov.b128 h, {%1, %2};\n\t"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, h;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(canceled)
      : "l"(answer.low), "l"(answer.high));
  return canceled != 0;
#else
  return model::cluster_canceled(answer, site);
#endif
}

/// Index in the grid of the first CTA of the canceled cluster. Undefined unless `cluster_canceled`
/// (clusterlaunchcontrol.query_cancel.get_first_ctaid::x).
WW_DEVICE
int canceled_first_cta(const LaunchAnswer& answer, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  std::uint32_t first = 0;
  asm volatile(
      "{\n\t.reg .b128 h;\n\tmov.b128 h, {%1, %2};\n\t"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, h;\n\t}"
      : "=r"(first)
      : "l"(answer.low), "l"(answer.high));
  return static_cast<int>(first);
#else
  return model::canceled_first_cta(answer, site);
#endif
}

}  // namespace warpwright::isa
