// A tile of D in float64, and what a right kernel's may differ from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "warpwright/reference/formulas.h"
#include "warpwright/reference/operand.h"
#include "warpwright/reference/tolerance.h"

namespace warpwright::reference {

/// A value with a bound of what a right kernel's may differ, and with one of what it may meet on
/// its way to it (that decides whether fp32 may overflow).
struct Expected : Bounded<double> {
  double magnitude = 0;
};

/// Rows and columns of the largest tile.
inline constexpr std::int64_t most_of_tile = 128;

/// A tile of alpha * scaled(A * B^T) + beta * C + bias. Keeps its buffers: one for each thread.
class ProductTile {
 public:
  /// `operands` and the host memory they point to stay; see Tile.
  ProductTile(const GemmOperands& operands, double accumulator_epsilon);

  /// Computes rows [row, row + rows) of the product and `columns` columns from `column` on, every
  /// `step`-th.
  void compute(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t column,
               std::int64_t rows, std::int64_t columns, std::int64_t step = 1);
  /// The element at this place within the tile.
  [[nodiscard]] const Expected& at(std::int64_t i, std::int64_t j) const {
    return result_[static_cast<std::size_t>(i * most_of_tile + j)];
  }

 private:
  struct Place {
    std::int64_t batch, group, row, column, rows, columns, step;
  };

  void pack_slice(const Place& place, std::int64_t k, std::int64_t depth);
  void multiply(const std::vector<double>& a, const std::vector<double>& b, const Place& place,
                std::int64_t depth, std::int64_t first, std::int64_t count,
                std::vector<double>& sums) const;
  void add_wide(const Place& place);
  void add_narrow(const Place& place);
  void narrow_step_of(const Place& place, std::int64_t depth, std::int64_t first,
                      std::int64_t count);
  void promote(const Place& place, std::int64_t k);
  void finish(const Place& place);

  const GemmOperands& o_;
  double epsilon_;
  Sums kept_;
  std::int64_t promoted_depth_;  ///< K between two promotions
  Operand operand_a_, operand_b_;
  // Scales of packed weights come after the sums: 2^e of what is scaled is up to twice as far.
  double leading_ = 1;
  std::vector<float> lines_;                   // of a slice, before they are packed
  std::vector<double> a_, b_, a_abs_, b_abs_;  // packed slices
  std::vector<double> sums_, sums_abs_;        // since the last promotion
  std::vector<double> low_, high_, loss_;      // of the narrow sums since then
  std::vector<double> scale_a_, scale_b_;      // of the tile's rows and columns
  std::vector<double> largest_a_, largest_b_;  // of each row and column in one step
  std::vector<Expected> result_;
};

/// A tile of D before it is rounded, with the bound E of a right kernel. Keeps its buffers: one for
/// each thread.
///
/// E bounds what a right kernel may lose:
///
/// * 16-bit and wider operands: E = epsilon * K' * S, with S = |alpha| * sum|a*b| + |beta*c| +
///   |bias| and K' = K + 1 for each of C and bias that takes part: what an accumulator of relative
///   error epsilon loses over K' steps in any order (S not being 0, K' * 2^-150 more, for steps
///   that underflow in fp32).
/// * 8-bit operands: Hopper adds 32 exact products to the sum so far, each cut to multiples of
///   u = 2^(e - 13), where 2^e is the leading bit of the largest of them. A step so loses less
///   than 36 u: 32 products, and the sum before and after, twice, were the step done in halves.
///   e is bounded by max|a| * max|b| over the step's K and by the largest sum of consecutive
///   steps so far, errors included, wherever K may be split. Scaled by |alpha| * scales, these
///   losses add up over all of K; with promoted accumulation (and block scales, which are applied
///   then) the sum begins at 0 every 128 of K. float32's part follows as above, with
///   K' = ceil(K/32) + 8.
/// * An activation passes E on by its steepest slope (1, or 1.13 for GELU, SiLU and the like) and
/// adds its
///   own error: both are x / (1 + exp(-z)), good to (|z| + 8) 2^-21 of the result with the
///   hardware's exponential. The gate multiplies its two parts, errors and all, each cut at the
///   activation's limits where it has some; scale_d scales E.
class Tile {
 public:
  /// `operands` and the host memory they point to stay. `accumulator_epsilon` is the relative error
  /// of one step of a float32 accumulator.
  explicit Tile(const GemmOperands& operands, double accumulator_epsilon = float_rounding);

  /// Computes rows [row, row + rows) x columns [column, column + columns) of D, most_of_tile of
  /// each at most.
  void compute(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t column,
               std::int64_t rows, std::int64_t columns);
  /// The element at this place within the tile.
  [[nodiscard]] Expected at(std::int64_t i, std::int64_t j) const;

 private:
  const GemmOperands& o_;
  Place begin_;
  ProductTile product_;
  std::optional<ProductTile> up_;  // what the gate is for
};

}  // namespace warpwright::reference
