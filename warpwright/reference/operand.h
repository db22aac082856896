// A and B as they are multiplied, read from host memory whatever form they have there.
#pragma once

#include <cstdint>
#include <vector>

#include "warpwright/reference/formulas.h"

namespace warpwright::reference {

/// The row of A, and of its scales, that row `row` of D reads; -1 where an index names none.
std::int64_t row_of_a(const GemmOperands& operands, std::int64_t row);

/// Rows [begin, end) of a product, and of a group those of D.
struct GroupRows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
GroupRows rows_of_group(const GemmOperands& operands, std::int64_t group);

/// The scale of A for row `row` of D at depth `k`: of no row 0.
double scale_of_a(const GemmOperands& operands, std::int64_t batch, std::int64_t group,
                  std::int64_t row, std::int64_t k);

/// The row of tiles in which the scales of a group's rows begin: every group's begin a tile.
std::int64_t first_scale_row(const GemmOperands& o, std::int64_t group);

/// An operand of a product: the values of its codes, times the scales that the tensor core
/// multiplies (Scaling::block_scaled), and of packed weights those of their groups. Every
/// value is exact in a float; with scales of f32, of int4 weights or of rows, it is rounded once.
class Operand {
 public:
  /// `operands` and the memory they point to stay.
  Operand(const GemmOperands& operands, Side side);

  /// Matrices that differ: 1 where one serves all.
  [[nodiscard]] std::int64_t matrices() const;
  /// Rows of one of them, as the product multiplies them: of A as many as D has.
  [[nodiscard]] std::int64_t rows() const { return side_ == Side::a ? o_.d.rows : o_.b.rows; }
  /// Elements [k, k + depth) of `rows` rows from `row` on, every `step`-th, of the matrix that a
  /// product of `batch` and `group` multiplies: that of row + i * step at k + j goes to
  /// to[i * pitch + j].
  void read(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t rows,
            std::int64_t k, std::int64_t depth, float* to, std::int64_t pitch,
            std::int64_t step = 1) const;

 private:
  struct Block {
    std::int64_t matrix, row, rows, step, k, depth;
    float* to;
    std::int64_t pitch;
  };

  [[nodiscard]] const MatrixView& view() const { return side_ == Side::a ? o_.a : o_.b; }
  [[nodiscard]] bool is_packed() const { return side_ == Side::b && o_.packed.has_value(); }
  void read_lines(const Block& block) const;
  void read_packed(const Block& block) const;
  void scale_line(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t k,
                  std::int64_t depth, float* to) const;

  const GemmOperands& o_;
  Side side_;
  /// Where rows of A in groups have their scales, which begin at a tile for each group; -1 of a row
  /// in none. Empty: where the rows are.
  std::vector<std::int64_t> scale_rows_;
};

}  // namespace warpwright::reference
