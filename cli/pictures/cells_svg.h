// Grids of cells: layouts, who holds which element, masks of a cluster.
#pragma once

#include <string>
#include <vector>

namespace warpwright::cli {

/// A grid of `rows` x `columns` cells, row by row, each with a word and a colour (0 to 7).
struct CellGrid {
  std::string title;
  int rows = 0;
  int columns = 0;
  std::vector<std::string> words;
  std::vector<int> colours;
};

/// The grids side by side.
std::string cells_svg(const std::string& title, const std::vector<CellGrid>& grids);

/// A grid as lines of text, columns to the right.
std::string cells_text(const CellGrid& grid);

}  // namespace warpwright::cli
