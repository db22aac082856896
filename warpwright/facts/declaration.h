// What a protocol says about its barriers, as values: the same numbers initialise the barriers,
// are checked at compile time, and print as the table of `explain`.
#pragma once

namespace warpwright::pipeline {

/// One kind of barrier of a kernel (an array of `copies` of them, one a stage).
struct BarrierRow {
  const char* name = "";
  int copies = 0;
  int arrivals = 0;           ///< expected a phase
  int transaction_bytes = 0;  ///< a phase; 0 when no copy signals it
  const char* arrivers = "";  ///< who arrives
  const char* waiters = "";   ///< who waits
  /// For the first wait on copy 0. 1 passes on the fresh barrier: there is nothing to wait for yet.
  /// 0 waits for its first phase. The pipelines' waits follow from it.
  int first_wait_parity = 0;
  bool alternates = false;  ///< the other of two copies has the other parity
};

/// The parity of the first wait on a copy.
constexpr int first_parity(const BarrierRow& row, int copy = 0) {
  return row.first_wait_parity ^ (row.alternates ? copy & 1 : 0);
}

}  // namespace warpwright::pipeline
