#include "cli/pictures/cells_svg.h"

#include <algorithm>

#include "cli/pictures/svg_parts.h"

namespace warpwright::cli {
namespace {

constexpr double kCell = 34;
constexpr double kBetween = 48;
constexpr double kAbove = 92;
constexpr const char* kColours[] = {"#e9ecf0", "#8fb9e3", "#86cfb0", "#f4bd86",
                                    "#cfa5d9", "#f2e08a", "#e6a1a1", "#b8c4d2"};

double width_of(const CellGrid& grid) {
  return std::max(grid.columns * kCell, 6.4 * static_cast<double>(grid.title.size())) + kBetween;
}

}  // namespace

std::string cells_svg(const std::string& title, const std::vector<CellGrid>& grids) {
  double width = 40 + 8.4 * static_cast<double>(title.size());
  double sum = 24;
  int rows = 0;
  for (const CellGrid& grid : grids) {
    sum += width_of(grid);
    rows = std::max(rows, grid.rows);
  }
  width = std::max(width, sum);
  std::string svg = svg_head(width, kAbove + rows * kCell + 24);
  svg += svg_text(24, 30, title, 16, "font-weight=\"600\"");
  double left = 44;
  for (const CellGrid& grid : grids) {
    svg += svg_text(left, 58, grid.title);
    for (int c = 0; c < grid.columns; ++c) {
      svg += svg_text(left + (c + 0.5) * kCell, kAbove - 8, std::to_string(c), 10,
                      "text-anchor=\"middle\" opacity=\"0.6\"");
    }
    for (int r = 0; r < grid.rows; ++r) {
      svg += svg_text(left - 6, kAbove + (r + 0.6) * kCell, std::to_string(r), 10,
                      "text-anchor=\"end\" opacity=\"0.6\"");
      for (int c = 0; c < grid.columns; ++c) {
        const auto at = static_cast<std::size_t>(r) * static_cast<std::size_t>(grid.columns) +
                        static_cast<std::size_t>(c);
        svg += svg_box(left + c * kCell, kAbove + r * kCell, kCell - 1, kCell - 1,
                       kColours[grid.colours[at] & 7],
                       "(" + std::to_string(r) + "," + std::to_string(c) + "): " + grid.words[at]);
        svg += svg_text(left + (c + 0.5) * kCell, kAbove + (r + 0.62) * kCell, grid.words[at], 11,
                        "text-anchor=\"middle\"");
      }
    }
    left += width_of(grid);
  }
  return svg + "</svg>\n";
}

std::string cells_text(const CellGrid& grid) {
  std::size_t width = 0;
  for (const std::string& word : grid.words) width = std::max(width, word.size());
  std::string text = grid.title + "\n";
  for (int r = 0; r < grid.rows; ++r) {
    text += " ";
    for (int c = 0; c < grid.columns; ++c) {
      const std::string& word =
          grid.words[static_cast<std::size_t>(r) * static_cast<std::size_t>(grid.columns) +
                     static_cast<std::size_t>(c)];
      text += std::string(width + 1 - word.size(), ' ') + word;
    }
    text += "\n";
  }
  return text;
}

}  // namespace warpwright::cli
