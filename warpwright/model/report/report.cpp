#include "warpwright/model/report/report.h"

#include <algorithm>
#include <array>
#include <utility>

namespace warpwright::model {
namespace {

struct Entry {
  Check check;
  std::string_view code;
  std::string_view name;
};

constexpr std::array entries = {
    Entry{Check::dead_barrier, "B1", "operation on a dead barrier"},
    Entry{Check::barrier_storage, "B2", "barrier storage touched"},
    Entry{Check::arrival_count, "B3", "arrival count"},
    Entry{Check::transaction_bytes, "B4", "transaction bytes"},
    Entry{Check::stale_parity, "B5", "phase passed unobserved"},
    Entry{Check::remote_operation, "B6", "operation not allowed on a remote barrier"},
    Entry{Check::weak_scope, "B7", "hand-off at too narrow a scope"},
    Entry{Check::barrier_outlived, "B8", "barrier gone with signals outstanding"},
    Entry{Check::barrier_unpublished, "B9", "barrier initialisation not published"},
    Entry{Check::missing_proxy_fence, "P1", "proxy fence missing"},
    Entry{Check::read_then_async_write, "P2", "generic read, then asynchronous write"},
    Entry{Check::misplaced_proxy_fence, "P3", "proxy fence by the wrong thread or too early"},
    Entry{Check::tensor_map_changed, "P4", "tensor map changed without release and acquire"},
    Entry{Check::data_race, "O1", "data race"},
    Entry{Check::before_prerequisites, "G1", "memory touched before the grids before have ended"},
    Entry{Check::left_behind, "G2", "memory not left as promised"},
    Entry{Check::tensor_map, "T1", "TMA copy"},
    Entry{Check::shared_bounds, "T2", "shared memory bounds"},
    Entry{Check::multicast_mask, "T3", "multicast mask"},
    Entry{Check::in_flight_access, "T4", "memory touched in flight"},
    Entry{Check::wgmma_unfenced, "W1", "wgmma without fence"},
    Entry{Check::fragment_in_flight, "W2", "accumulator touched in flight"},
    Entry{Check::divergence, "W3", "lanes do not meet"},
    Entry{Check::bad_descriptor, "W4", "matrix descriptor"},
    Entry{Check::tmem_allocation, "U1", "tensor memory allocation"},
    Entry{Check::tmem_lanes, "U2", "tensor memory lanes of another warp"},
    Entry{Check::bad_instruction, "U3", "instruction descriptor"},
    Entry{Check::mixed_groups, "U4", "CTA groups mixed"},
    Entry{Check::tmem_unordered, "U5", "tensor memory accesses not ordered"},
    Entry{Check::tmem_fence, "U6", "tcgen05 fence missing"},
    Entry{Check::pair_lifetime, "U7", "CTA of an MMA or commit not alive"},
    Entry{Check::cluster_lifetime, "C1", "peer CTA not alive"},
    Entry{Check::clc, "C2", "CLC"},
    Entry{Check::register_pool, "C3", "setmaxnreg"},
    Entry{Check::uninitialised_read, "M1", "uninitialised read"},
    Entry{Check::undrained_exit, "M2", "exit with work outstanding"},
    Entry{Check::global_bounds, "M3", "global memory bounds"},
    Entry{Check::misaligned, "M4", "misaligned access"},
    Entry{Check::unchecked_access, "M5", "unchecked access"},
    Entry{Check::named_barrier, "N1", "named barrier"},
    Entry{Check::deadlock, "D1", "deadlock"},
    Entry{Check::spin_budget, "D2", "spin budget"},
    Entry{Check::exception, "D3", "exception"},
    Entry{Check::wrong_result, "R1", "wrong result"},
    Entry{Check::bits_differ, "R2", "bits depend on the schedule"},
};

const Entry& entry(Check check) {
  return *std::find_if(entries.begin(), entries.end(),
                       [&](const Entry& e) { return e.check == check; });
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
