// Which token a row of a grouped product reads: tokens by index, for products whose rows are slots
// of a router.
#pragma once

#include <cstdint>

#include "warpwright/isa/config.h"
#include "warpwright/isa/memory.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// Row r of the product reads token rows[r] / divisor. The list lies in global memory and may be
/// the work of the grid before: only who has waited for that grid may look.
class TokenIndex {
 public:
  static constexpr int none = -1;  ///< no token: its elements and scales are zeros

  constexpr TokenIndex() = default;
  /// For `tokens` tokens; `divisor` is at least 1.
  constexpr TokenIndex(const std::int32_t* rows, int divisor, int tokens)
      : rows_(rows), by_(divisor), tokens_(tokens) {}

  [[nodiscard]] constexpr int tokens() const { return tokens_; }
  /// Is there a list? Where there is none, row r reads token r.
  [[nodiscard]] constexpr bool is_there() const { return rows_ != nullptr; }

  /// The token of row `i` of the product, which is one; `none` where the list names no token.
  [[nodiscard]] WW_DEVICE int token(int i) const {
    const std::int32_t row = isa::GlobalView<const std::int32_t>{rows_}.load(i);
    if (row < 0) return none;
    const int token = by_.quotient(row);
    return token < tokens_ ? token : none;
  }

 private:
  const std::int32_t* rows_ = nullptr;
  Divisor by_;
  int tokens_ = 0;
};

}  // namespace warpwright::tile
