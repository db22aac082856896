// Grids of cells: layouts, who holds which element, masks of a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpwright::pictures {

/// A cell of a grid.
struct Cell {
  std::string word;        ///< stands in it, where there is room
  int colour = -1;         ///< pale(colour); -1: not looked at
  std::int64_t row = -1;   ///< of the view's table; -1 for none
  std::string tip;         ///< shown when one points at it; empty: place and word
  bool is_marked = false;  ///< with a frame
  double filled = 1;       ///< the part of it that has the colour, from the left; the rest is grey
};

/// A grid of `rows` x `columns` cells, row by row.
struct CellGrid {
  std::string title;
  int rows = 0;
  int columns = 0;
  std::vector<Cell> cells;
  std::vector<std::string> row_names, column_names;  ///< empty: their numbers
  /// After so many rows or columns the grid has a gap; 0 for none.
  int rows_together = 0, columns_together = 0;

  Cell& at(int row, int column) {
    return cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)];
  }
  [[nodiscard]] const Cell& at(int row, int column) const {
    return const_cast<CellGrid*>(this)->at(row, column);
  }
};

/// A grid with its cells made.
CellGrid cell_grid(const std::string& title, int rows, int columns);

/// The grids side by side, below each other where a line is full. Cells are as wide as the widest
/// word of their grid asks; those of large grids are small and without words or tips.
std::string cells_svg(const std::string& title, const std::vector<CellGrid>& grids);

/// A product: `a` left of `c`, `b` above it, so that rows of A and C and columns of B and C are in
/// line. All have cells of one size.
std::string product_svg(const CellGrid& a, const CellGrid& b, const CellGrid& c);

/// A grid as lines of text, columns to the right.
std::string cells_text(const CellGrid& grid);

}  // namespace warpwright::pictures
