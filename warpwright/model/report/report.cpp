#include "warpwright/model/report/report.h"

#include <algorithm>
#include <array>

namespace warpwright::model {
namespace {

struct CheckName {
  Check check;
  std::string_view code;
  std::string_view name;
};

constexpr std::array entries = {
    CheckName{Check::dead_barrier, "B1", "operation on a dead barrier"},
    CheckName{Check::barrier_storage, "B2", "barrier storage touched"},
    CheckName{Check::arrival_count, "B3", "arrival count"},
    CheckName{Check::transaction_bytes, "B4", "transaction bytes"},
    CheckName{Check::stale_parity, "B5", "phase passed unobserved"},
    CheckName{Check::remote_operation, "B6", "operation not allowed on a remote barrier"},
    CheckName{Check::weak_scope, "B7", "hand-off at too narrow a scope"},
    CheckName{Check::barrier_outlived, "B8", "barrier gone with signals outstanding"},
    CheckName{Check::barrier_unpublished, "B9", "barrier initialisation not published"},
    CheckName{Check::missing_proxy_fence, "P1", "proxy fence missing"},
    CheckName{Check::read_then_async_write, "P2", "generic read, then asynchronous write"},
    CheckName{Check::misplaced_proxy_fence, "P3", "proxy fence by the wrong thread or too early"},
    CheckName{Check::tensor_map_changed, "P4", "tensor map changed without release and acquire"},
    CheckName{Check::data_race, "O1", "data race"},
    CheckName{Check::before_prerequisites, "G1",
              "memory touched before the grids before have ended"},
    CheckName{Check::left_behind, "G2", "memory not left as promised"},
    CheckName{Check::tensor_map, "T1", "TMA copy"},
    CheckName{Check::shared_bounds, "T2", "shared memory bounds"},
    CheckName{Check::multicast_mask, "T3", "multicast mask"},
    CheckName{Check::in_flight_access, "T4", "memory touched in flight"},
    CheckName{Check::wgmma_unfenced, "W1", "wgmma without fence"},
    CheckName{Check::fragment_in_flight, "W2", "accumulator touched in flight"},
    CheckName{Check::divergence, "W3", "lanes do not meet"},
    CheckName{Check::bad_descriptor, "W4", "matrix descriptor"},
    CheckName{Check::tmem_allocation, "U1", "tensor memory allocation"},
    CheckName{Check::tmem_lanes, "U2", "tensor memory lanes of another warp"},
    CheckName{Check::bad_instruction, "U3", "instruction descriptor"},
    CheckName{Check::mixed_groups, "U4", "CTA groups mixed"},
    CheckName{Check::tmem_unordered, "U5", "tensor memory accesses not ordered"},
    CheckName{Check::tmem_fence, "U6", "tcgen05 fence missing"},
    CheckName{Check::pair_lifetime, "U7", "CTA of an MMA or commit not alive"},
    CheckName{Check::cluster_lifetime, "C1", "peer CTA not alive"},
    CheckName{Check::clc, "C2", "CLC"},
    CheckName{Check::register_pool, "C3", "setmaxnreg"},
    CheckName{Check::uninitialised_read, "M1", "uninitialised read"},
    CheckName{Check::undrained_exit, "M2", "exit with work outstanding"},
    CheckName{Check::global_bounds, "M3", "global memory bounds"},
    CheckName{Check::misaligned, "M4", "misaligned access"},
    CheckName{Check::unchecked_access, "M5", "unchecked access"},
    CheckName{Check::named_barrier, "N1", "named barrier"},
    CheckName{Check::deadlock, "D1", "deadlock"},
    CheckName{Check::spin_budget, "D2", "spin budget"},
    CheckName{Check::exception, "D3", "exception"},
    CheckName{Check::wrong_result, "R1", "wrong result"},
    CheckName{Check::bits_differ, "R2", "bits depend on the schedule"},
};

const CheckName& entry(Check check) {
  return *std::find_if(entries.begin(), entries.end(),
                       [&](const CheckName& e) { return e.check == check; });
}

}  // namespace

std::string_view code(Check check) {
  return entry(check).code;
}
std::string_view name(Check check) {
  return entry(check).name;
}

int rank(const Finding& finding) {
  constexpr int last = 4;
  if (finding.follows) return last;
  if (finding.cause) return 1;
  switch (finding.check) {
    case Check::exception:
    case Check::tensor_map:
    case Check::shared_bounds:
    case Check::global_bounds:
    case Check::misaligned:
    case Check::multicast_mask:
    case Check::bad_descriptor:
    case Check::bad_instruction:
    case Check::before_prerequisites:
      return 0;
    case Check::dead_barrier:
    case Check::barrier_storage:
    case Check::arrival_count:
    case Check::transaction_bytes:
    case Check::remote_operation:
    case Check::barrier_unpublished:
    case Check::named_barrier:
    case Check::register_pool:
    case Check::divergence:
      return 1;
    case Check::uninitialised_read:  // mostly of what comes too late
      return 3;
    case Check::deadlock:
    case Check::spin_budget:
    case Check::left_behind:
    case Check::wrong_result:
    case Check::bits_differ:
      return last;
    default:
      return 2;
  }
}

bool Report::has(Check check) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& f) { return f.check == check; });
}

std::string Report::text() const {
  std::string out;
  for (const Finding& f : findings) {
    out += std::string(code(f.check)) + " " + std::string(name(f.check));
    if (f.site.line > 0)
      out += std::string(" at ") + f.site.file + ":" + std::to_string(f.site.line);
    out += ": " + f.sentence;
    if (f.count > 1) out += " (seen " + std::to_string(f.count) + " times)";
    out += "\n";
  }
  return out;
}

}  // namespace warpwright::model
