// The product in float64, tile by tile, and what a correct kernel may differ from it.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/compute/check.h"

namespace warpwright::cli {

/// A value with a bound of what a correct kernel's may differ, and with one of what it may meet on
/// its way to it (that decides whether fp32 may overflow).
struct Approximate {
  double value = 0;
  double slack = 0;
  double magnitude = 0;
};

/// The element (row, column) of a matrix; extents are those of the matrix, not of its storage.
double element(const MatrixCodes& matrix, std::int64_t rows, std::int64_t columns, std::int64_t row,
               std::int64_t column);

/// The matrix of a batch.
MatrixCodes of_batch(MatrixCodes matrix, std::int64_t batch);

/// activation(x) of a kernel that computes in float32.
Approximate activate(Activation activation, const Approximate& x);

/// One tile of alpha * scaled(A * B^T) + beta * C + bias. Keeps its buffers: one for each thread.
class TileReference {
 public:
  /// Rows and columns of the largest tile.
  static constexpr std::int64_t tile = 128;

  explicit TileReference(const GemmCheck& problem);

  /// Computes rows [row, row + rows) x columns [column, column + columns) of one of the batch.
  void compute(std::int64_t batch, std::int64_t row, std::int64_t column, std::int64_t rows,
               std::int64_t columns);
  /// The element at this place within the tile.
  [[nodiscard]] const Approximate& at(std::int64_t i, std::int64_t j) const {
    return result_[static_cast<std::size_t>(i * tile + j)];
  }

 private:
  struct Place {
    std::int64_t batch, row, column, rows, columns;
  };

  void pack_slice(const Place& place, std::int64_t k, std::int64_t depth);
  void multiply(const std::vector<double>& a, const std::vector<double>& b, const Place& place,
                std::int64_t depth, std::int64_t first, std::int64_t count,
                std::vector<double>& sums) const;
  void add_wide(const Place& place);
  void add_narrow(const Place& place);
  void narrow_step(const Place& place, std::int64_t depth, std::int64_t first, std::int64_t count);
  void promote(const Place& place, std::int64_t block);
  void finish(const Place& place);

  const GemmCheck& p_;
  bool narrow_ = false;  // 8-bit operands, and thus the tensor core's narrow sums
  // Scales of int4 weights come after the sums: 2^e of what is scaled is up to twice as far.
  double leading_ = 1;
  std::vector<double> a_, b_, a_abs_, b_abs_;  // packed slices
  std::vector<double> sums_, sums_abs_;        // since the last promotion
  std::vector<double> low_, high_, loss_;      // of the narrow sums since then
  std::vector<double> scale_a_, scale_b_;      // of the tile's rows and columns
  std::vector<double> largest_a_, largest_b_;  // of each row and column in one step
  std::vector<Approximate> result_;
};

}  // namespace warpwright::cli
