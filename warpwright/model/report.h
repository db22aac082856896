// What the model found: checks with codes, findings, and the report of one run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/site.h"

namespace warpwright::model {

/// The checks, one a rule of the machine. The code letters follow the house's list: B barriers,
/// P proxies, T tensor copies, W wgmma, C clusters and registers, M memory, D progress.
enum class Check {
  dead_barrier,         // B1
  barrier_storage,      // B2
  arrival_count,        // B3
  transaction_bytes,    // B4
  stale_parity,         // B5
  remote_operation,     // B6
  barrier_outlived,     // B8
  barrier_unpublished,  // B9
  tensor_map,           // T1
  shared_bounds,        // T2
  multicast_mask,       // T3
  in_flight_access,     // T4
  wgmma_unfenced,       // W1
  fragment_in_flight,   // W2
  divergence,           // W3
  bad_descriptor,       // W4
  cluster_lifetime,     // C1
  register_pool,        // C3
  uninitialised_read,   // M1
  undrained_exit,       // M2
  global_bounds,        // M3
  misaligned,           // M4
  named_barrier,        // N1
  deadlock,             // D1
  spin_budget,          // D2
};

/// "B4" and so on.
std::string_view code(Check check);
/// A short name: "transaction bytes".
std::string_view name(Check check);

/// One finding. Findings of the same check at the same place are counted, not repeated.
struct Finding {
  Check check;
  std::string sentence;
  Site site;
  int count = 1;
};

/// Sums over one run, for reports and for tests of the model's own cost.
struct Statistics {
  std::int64_t fiber_switches = 0;
  std::int64_t copies = 0;
  std::int64_t copied_bytes = 0;
  std::int64_t wgmmas = 0;
  std::int64_t barrier_waits = 0;
  std::int64_t tiles = 0;
};

/// The result of running one grid on the model.
struct Report {
  std::vector<Finding> findings;
  Statistics statistics;
  [[nodiscard]] bool clean() const { return findings.empty(); }
  [[nodiscard]] bool has(Check check) const;
  /// All findings as lines, "T4 file:line sentence".
  [[nodiscard]] std::string text() const;
};

}  // namespace warpwright::model
