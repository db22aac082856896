// How a scale is stored in a packed tile: the same on the host and on a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "warpwright/facts/packed_weights.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::weights {

enum class ScaleKind : std::uint8_t {
  good,
  zero,  ///< its weights are 0: codes 0
  nan,
  infinite,
  too_large,  ///< times 512
};

struct StoredScale {
  ScaleKind kind = ScaleKind::good;
  std::uint64_t code = 0;  ///< of the scale, of 1 where that is 0 and none is before it, times 512
};

/// The scale with this code of type `from`, rounded to `to`, times 512.
constexpr StoredScale stored_scale(DType from, std::uint64_t code, DType to) {
  double scale = numeric::to_double(from, code);
  if (scale != scale) return {ScaleKind::nan, 0};
  if (scale - scale != 0) return {ScaleKind::infinite, 0};
  if (from != to) scale = numeric::to_double(to, numeric::from_double(to, scale));
  if (scale == 0) return {ScaleKind::zero, numeric::from_double(to, packed::kScaleFactor)};
  const double stored = scale * packed::kScaleFactor;
  if (stored > numeric::format_of(to).max() || -stored > numeric::format_of(to).max()) {
    return {ScaleKind::too_large, 0};
  }
  return {ScaleKind::good, numeric::from_double(to, stored)};
}

/// What is packed for a group of a row, whose `groups` scales `scale_of` gives: its own scale.
/// Codes 0, behind the last group too, have the scale before them: chained sums are multiplied by
/// the quotient of neighbours, and then the tensor core cuts them off anew, unless it is 1.
template <class ScaleOf>
constexpr StoredScale packed_scale(const ScaleOf& scale_of, std::int64_t group,
                                   std::int64_t groups) {
  std::int64_t from = group < groups ? group : groups - 1;
  StoredScale found = scale_of(from);
  while (found.kind == ScaleKind::zero && from > 0) found = scale_of(--from);
  if (from != group) found.kind = ScaleKind::zero;
  return found;
}

/// Why such a scale is not packed.
Refusal scale_refusal(ScaleKind kind, DType stored, std::int64_t expert, std::int64_t n,
                      std::int64_t group);
/// Why a code of -8 is not packed as sm.
Refusal code_refusal(std::int64_t expert, std::int64_t n, std::int64_t k);

}  // namespace warpwright::weights
