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
  int first_wait_parity = 0;  ///< 1: the first wait passes on the fresh barrier
};

}  // namespace warpwright::pipeline
