// What the model found: checks with codes, findings, and the report of one run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/mutation.h"
#include "warpwright/model/report/site.h"

namespace warpwright::model {

/// The checks, one a rule of the machine. The code letters follow the house's list: B barriers,
/// P proxies, O order, G grids that follow each other, T TMA copies, W wgmma, U tcgen05 and
/// tensor memory, C clusters, CLC and registers, M memory, D progress, R results.
enum class Check {
  dead_barrier,           // B1
  barrier_storage,        // B2
  arrival_count,          // B3
  transaction_bytes,      // B4
  stale_parity,           // B5
  remote_operation,       // B6
  weak_scope,             // B7
  barrier_outlived,       // B8
  barrier_unpublished,    // B9
  missing_proxy_fence,    // P1
  read_then_async_write,  // P2
  misplaced_proxy_fence,  // P3
  tensor_map_changed,     // P4
  data_race,              // O1
  before_prerequisites,   // G1
  left_behind,            // G2
  tensor_map,             // T1
  shared_bounds,          // T2
  multicast_mask,         // T3
  in_flight_access,       // T4
  wgmma_unfenced,         // W1
  fragment_in_flight,     // W2
  divergence,             // W3
  bad_descriptor,         // W4
  tmem_allocation,        // U1
  tmem_lanes,             // U2
  bad_instruction,        // U3
  mixed_groups,           // U4
  tmem_unordered,         // U5
  tmem_fence,             // U6
  pair_lifetime,          // U7
  cluster_lifetime,       // C1
  clc,                    // C2
  register_pool,          // C3
  uninitialised_read,     // M1
  undrained_exit,         // M2
  global_bounds,          // M3
  misaligned,             // M4
  unchecked_access,       // M5
  named_barrier,          // N1
  deadlock,               // D1
  spin_budget,            // D2
  exception,              // D3
  wrong_result,           // R1
  bits_differ,            // R2
};

/// "B4" and so on.
std::string_view code(Check check);
/// A short name: "transaction bytes".
std::string_view name(Check check);

struct Finding;
/// Among several findings those of the smallest rank are likely causes of the others: wrong counts
/// and places before the accesses that go wrong with them, and these before hangs, wrong results,
/// and what follows from others.
int rank(const Finding& finding);

/// One of the accesses that a finding of the order checker is about.
struct Access {
  std::string role;  ///< of the thread that made it, or issued it
  int cta = 0;       ///< in the grid
  int warp = 0;
  int lane = 0;
  Site site;
  std::string instruction;  ///< "store", "tensor load", "wgmma"
  std::string proxy;        ///< "generic" or "async"
  bool write = false;
  std::string memory;  ///< "shared memory of CTA rank 0", or the tensor's name
  std::uint64_t begin =
      0;  ///< first byte that both touch: a shared-memory offset, or in the tensor
  std::int64_t bytes = 0;
};

/// One finding. Findings of the same check at the same place are counted, not repeated; with two
/// accesses both places count.
struct Finding {
  Check check;
  std::string sentence;  ///< the whole message
  Site site;             ///< of the second access, where there are two
  int count = 1;
  /// From something else: bytes that did not come from a thread that hangs, an address out of range
  /// behind a data race.
  bool follows = false;
  bool cause = false;  ///< of others, which its check by itself does not say
  /// What the order checker adds: the accesses, earlier one first, the edge that is missing between
  /// them, and the usual mend. Empty in findings of other checks.
  std::vector<Access> accesses{};
  std::string missing{};
  std::string mend{};
};

/// Sums over one run, for reports and for tests of the model's own cost.
struct Statistics {
  std::int64_t fiber_switches = 0;
  std::int64_t copies = 0;
  std::int64_t copied_bytes = 0;
  std::int64_t wgmmas = 0;
  std::int64_t ummas = 0;
  std::int64_t barrier_waits = 0;
  std::int64_t tiles = 0;
  std::int64_t decisions = 0;  ///< of Mode::random
};

/// The result of running one grid on the model.
struct Report {
  std::vector<Finding> findings;  ///< likely causes first, then as they were made
  Statistics statistics;
  /// Where Options::hash_order asks for it: equal when every access is ordered after the same ones.
  std::uint64_t order_hash = 0;
  /// With Options::record_decisions: their names, in the order in which they were made.
  std::vector<std::int64_t> decisions;
  /// With Options::only: what each of those decisions did.
  std::vector<std::string> decided;
  /// What synchronised, where Options::count_sites asks for it.
  std::vector<SyncSite> sites;
  [[nodiscard]] bool clean() const { return findings.empty(); }
  [[nodiscard]] bool has(Check check) const;
  /// All findings as lines, "T4 file:line sentence".
  [[nodiscard]] std::string text() const;
};

}  // namespace warpwright::model
