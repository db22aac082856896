#include "warpwright/model/report/report.h"

#include <algorithm>
#include <array>

namespace warpwright::model {
namespace {

struct CheckName {
  Check check;
  std::string_view code;
  std::string_view name;
  int rank = 2;
};

constexpr int last = 4;
constexpr std::array entries = {
    CheckName{Check::dead_barrier, "B1", "operation on a dead barrier", 1},
    CheckName{Check::barrier_storage, "B2", "barrier storage touched", 1},
    CheckName{Check::arrival_count, "B3", "arrival count", 1},
    CheckName{Check::transaction_bytes, "B4", "transaction bytes", 1},
    CheckName{Check::stale_parity, "B5", "phase passed unobserved"},
    CheckName{Check::remote_operation, "B6", "operation not allowed on a remote barrier", 1},
    CheckName{Check::weak_scope, "B7", "hand-off at too narrow a scope"},
    CheckName{Check::barrier_outlived, "B8", "barrier gone with signals outstanding"},
    CheckName{Check::barrier_unpublished, "B9", "barrier initialisation not published", 1},
    CheckName{Check::missing_proxy_fence, "P1", "proxy fence missing"},
    CheckName{Check::read_then_async_write, "P2", "generic read, then asynchronous write"},
    CheckName{Check::misplaced_proxy_fence, "P3", "proxy fence by the wrong thread or too early"},
    CheckName{Check::tensor_map_changed, "P4", "tensor map changed without release and acquire"},
    CheckName{Check::data_race, "O1", "data race"},
    CheckName{Check::before_prerequisites, "G1",
              "memory touched before the grids before have ended", 0},
    CheckName{Check::left_behind, "G2", "memory not left as promised", last},
    CheckName{Check::tensor_map, "T1", "TMA copy", 0},
    CheckName{Check::shared_bounds, "T2", "shared memory bounds", 0},
    CheckName{Check::multicast_mask, "T3", "multicast mask", 0},
    CheckName{Check::in_flight_access, "T4", "memory touched in flight"},
    CheckName{Check::wgmma_unfenced, "W1", "wgmma without fence"},
    CheckName{Check::fragment_in_flight, "W2", "accumulator touched in flight"},
    CheckName{Check::divergence, "W3", "lanes do not meet", 1},
    CheckName{Check::bad_descriptor, "W4", "matrix descriptor", 0},
    CheckName{Check::tmem_allocation, "U1", "tensor memory allocation"},
    CheckName{Check::tmem_lanes, "U2", "tensor memory lanes of another warp"},
    CheckName{Check::bad_instruction, "U3", "instruction descriptor", 0},
    CheckName{Check::mixed_groups, "U4", "CTA groups mixed"},
    CheckName{Check::tmem_unordered, "U5", "tensor memory accesses not ordered"},
    CheckName{Check::tmem_fence, "U6", "tcgen05 fence missing"},
    CheckName{Check::pair_lifetime, "U7", "CTA of an MMA or commit not alive"},
    CheckName{Check::cluster_lifetime, "C1", "peer CTA not alive"},
    CheckName{Check::clc, "C2", "CLC"},
    CheckName{Check::register_pool, "C3", "setmaxnreg", 1},
    CheckName{Check::uninitialised_read, "M1", "uninitialised read", 3},
    CheckName{Check::undrained_exit, "M2", "exit with work outstanding"},
    CheckName{Check::global_bounds, "M3", "global memory bounds", 0},
    CheckName{Check::misaligned, "M4", "misaligned access", 0},
    CheckName{Check::unchecked_access, "M5", "unchecked access"},
    CheckName{Check::named_barrier, "N1", "named barrier", 1},
    CheckName{Check::deadlock, "D1", "deadlock", last},
    CheckName{Check::spin_budget, "D2", "spin budget", last},
    CheckName{Check::exception, "D3", "exception", 0},
    CheckName{Check::wrong_result, "R1", "wrong result", last},
    CheckName{Check::bits_differ, "R2", "bits depend on the schedule", last},
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
  if (finding.follows) return last;
  return finding.cause ? 1 : entry(finding.check).rank;
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
