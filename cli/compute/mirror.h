// Random operands whose products tell, by their bits, in which order their terms were added. Sums
// of normal values of few bits are exact in float32, and D is rounded: whatever the order, its bits
// would be the same. So two stretches of K are made to cancel: in every fourth row of A the terms
// of one are large and those of the other their negatives, all other terms are small. What the
// small ones lose beside the large ones depends on which came between the two, and is all that is
// left.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/files/tensor_file.h"

namespace warpwright::cli {

/// Two stretches [first, first + width) and [second, second + width) of K.
struct Mirror {
  std::int64_t first = 0, second = 0, width = 0;
  /// The same where `each` elements of K are one: of scales.
  [[nodiscard]] Mirror over(std::int64_t each) const {
    return {first / each, second / each, width / each};
  }
};

/// Which, by seed: each `width` long and beginning at a multiple of that, one in each half of K.
/// Nothing where K has not two of them.
std::optional<Mirror> mirror_of(std::int64_t k, std::int64_t width, std::uint64_t seed);

/// B, and scales: the second stretch becomes the first, in every row. K is the last dimension of
/// `t`, or, `transposed`, the one before it. `t` holds floats of any width, tf32 too.
void repeat(HostTensor& t, const Mirror& mirror, bool transposed = false);

/// A: rows 1, 5, 9, ... are 64 times what they were in the first stretch, the negatives of that in
/// the second, and a 128th elsewhere.
void weigh(HostTensor& t, const Mirror& mirror, bool transposed = false);

}  // namespace warpwright::cli
