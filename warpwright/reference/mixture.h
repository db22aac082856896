// A mixture of experts in float64, with what roundings and quantising on its way may change.
#pragma once

#include <cstdint>
#include <vector>

#include "warpwright/plan/moe/mixture.h"

namespace warpwright::reference {

/// A row of d: what is right, and how far a right kernel may be off.
struct MixtureRow {
  std::vector<double> want;
  std::vector<double> allowed;
};

/// Row `row` of d, of a mixture whose operands lie in host memory: a token's, or with `combine`
/// that of a slot. Packed weights are what their codes stand for. Tokens are quantised as the
/// kernels do it, bit for bit; for the rows between the products, which kernels quantise too, the
/// bound says what that may change; with `gates_behind` (MixtureWay) also what it changes that
/// gates and ups were rounded before. Where nobody knows, they may have been.
/// `threads` share the work (0: as many as the machine has).
MixtureRow mixture_row(const MixtureOperands& operands, std::int64_t row, bool gates_behind = true,
                       int threads = 0);

/// What a check of all rows found.
struct MixtureVerdict {
  std::int64_t elements = 0;
  std::int64_t failures = 0;
  std::int64_t worst_token = -1, worst_column = -1;  ///< the row of d
  double worst_ratio = 0;                            ///< of the largest error / allowed
  double worst_got = 0, worst_want = 0, worst_allowed = 0;
};

/// Compares d, in host memory, with float64.
MixtureVerdict check_mixture(const MixtureOperands& operands, bool gates_behind = true);

}  // namespace warpwright::reference
