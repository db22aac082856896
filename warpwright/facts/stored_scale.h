// How a scale is stored in a packed tile: the same on the host and on a GPU.
#pragma once

#include <cstdint>

#include "warpwright/facts/packed_weights.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::packed {

enum class ScaleKind : std::uint8_t {
  good,
  zero,  ///< its weights are 0: codes 0
  nan,
  infinite,
  too_large,  ///< for its type times 512, or for sums times 512
};

struct StoredScale {
  ScaleKind kind = ScaleKind::good;
  std::uint64_t code = 0;  ///< of the scale, of 1 where that is 0 and none is before it, times 512
};

/// The largest scale of a format: stored times 512 it is a number. By tokens of 16 bits sums count
/// in 2^-9 to their end, so what is due must be a number times 512: up to 2^64 it is, unless tokens
/// are beyond 2^40.
constexpr double largest_scale(const PackedFormat& format) {
  const double all = numeric::format_of(format.scale).max() / kScaleFactor;
  return is_wide(format) && all > 0x1p64 ? 0x1p64 : all;
}

/// The scale with this code of type `from`, rounded to that of `format`, times 512.
constexpr StoredScale stored_scale(DType from, std::uint64_t code, const PackedFormat& format) {
  const DType to = format.scale;
  double scale = numeric::to_double(from, code);
  if (scale != scale) return {ScaleKind::nan, 0};
  if (scale - scale != 0) return {ScaleKind::infinite, 0};
  if (from != to) scale = numeric::to_double(to, numeric::from_double(to, scale));
  if (scale == 0) return {ScaleKind::zero, numeric::from_double(to, kScaleFactor)};
  if (scale > largest_scale(format) || -scale > largest_scale(format)) {
    return {ScaleKind::too_large, 0};
  }
  return {ScaleKind::good, numeric::from_double(to, scale * kScaleFactor)};
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

}  // namespace warpwright::packed
