#include "warpwright/pictures/cells_svg.h"

#include <algorithm>

#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

constexpr double kBetween = 40;  // grids
constexpr double kLineWidth = 1480;
constexpr double kGroupGap = 5;
constexpr int kFewCells = 1024;   // with tips
constexpr int kManyCells = 2048;  // and more: without words

// How a grid is drawn.
struct Measures {
  double width = 0, height = 0;  // of a cell
  double left = 0, above = 0;    // for the names of rows; for those of columns and the title
  double text = 11;
  int name_every_row = 1, name_every_column = 1;
  bool has_words = true;
  double whole_width = 0, whole_height = 0;
};

std::string name_of(const std::vector<std::string>& names, int i) {
  return names.empty() ? std::to_string(i) : names[static_cast<std::size_t>(i)];
}

double text_width(std::size_t letters, double size) {
  return 0.6 * size * static_cast<double>(letters);
}

double place(int i, double size, int together) {
  const int gaps = together > 0 ? i / together : 0;
  return i * size + gaps * kGroupGap;
}

std::size_t longest(const std::vector<std::string>& names, int count) {
  std::size_t most = 0;
  for (int i = 0; i < count; ++i) most = std::max(most, name_of(names, i).size());
  return most;
}

// What follows from the size of a cell.
void set_extent(const CellGrid& grid, Measures& m) {
  const std::size_t column_name = longest(grid.column_names, grid.columns);
  m.name_every_column =
      std::max(1, static_cast<int>((text_width(column_name, 9) + 3) / m.width + 0.99));
  m.name_every_row = m.height < 11 ? 2 : 1;
  m.left = text_width(longest(grid.row_names, grid.rows), 9) + 10;
  m.above = (grid.title.empty() ? 0 : 20) + 16;
  m.whole_width = m.left + std::max(place(grid.columns, m.width, grid.columns_together),
                                    text_width(grid.title.size(), 11.5));
  m.whole_height = m.above + place(grid.rows, m.height, grid.rows_together) + 6;
}

Measures measures_of(const CellGrid& grid) {
  Measures m;
  std::size_t word = 0;
  for (const Cell& cell : grid.cells) word = std::max(word, cell.word.size());
  const auto count = static_cast<int>(grid.cells.size());
  m.has_words = count <= kManyCells;
  m.text = std::max(grid.rows, grid.columns) > 32   ? 8
           : std::max(grid.rows, grid.columns) > 20 ? 9.5
                                                    : 11;
  m.height = !m.has_words ? 9 : m.text < 9 ? 15 : m.text < 11 ? 18 : 26;
  m.width = m.has_words ? std::max(m.height, text_width(word, m.text) + 8) : 9;
  set_extent(grid, m);
  return m;
}

std::string name_text(double x, double y, const std::string& name, const char* anchor) {
  return "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(name) + "</text>\n";
}

std::string tip_of(const CellGrid& grid, int r, int c) {
  const Cell& cell = grid.at(r, c);
  if (!cell.tip.empty()) return cell.tip;
  return "(" + name_of(grid.row_names, r) + "," + name_of(grid.column_names, c) + "): " + cell.word;
}

std::string drawn(const CellGrid& grid, const Measures& m, double left, double top, bool has_tips) {
  std::string svg;
  if (!grid.title.empty()) svg += svg_text(left + m.left, top + 12, grid.title, 12.5);
  const double x0 = left + m.left;
  const double y0 = top + m.above;
  const auto x = [&](int c) { return x0 + place(c, m.width, grid.columns_together); };
  const auto y = [&](int r) { return y0 + place(r, m.height, grid.rows_together); };
  std::string names = "<g font-size=\"9\" fill=\"#6b7480\">\n";
  for (int c = 0; c < grid.columns; c += m.name_every_column) {
    names += name_text(x(c) + m.width / 2, y0 - 5, name_of(grid.column_names, c), "middle");
  }
  for (int r = 0; r < grid.rows; r += m.name_every_row) {
    names += name_text(x0 - 5, y(r) + m.height / 2 + 3, name_of(grid.row_names, r), "end");
  }
  svg += names + "</g>\n";
  std::string words = "<g font-size=\"" + decimal(m.text) +
                      "\" fill=\"#1f2933\" text-anchor=\"middle\" pointer-events=\"none\">\n";
  for (int r = 0; r < grid.rows; ++r) {
    for (int c = 0; c < grid.columns; ++c) {
      const Cell& cell = grid.at(r, c);
      std::string more;
      if (cell.row >= 0) more += data_row(static_cast<std::size_t>(cell.row));
      if (cell.is_marked) more += " stroke=\"#1f2933\" stroke-width=\"1.5\"";
      svg += svg_box(x(c), y(r), m.width - 1, m.height - 1,
                     cell.colour < 0 ? ink::none : pale(cell.colour),
                     has_tips ? tip_of(grid, r, c) : "", more);
      if (cell.filled < 1) {
        const double filled = cell.filled * (m.width - 1);
        svg += svg_box(x(c) + filled, y(r), m.width - 1 - filled, m.height - 1, ink::none, "",
                       "pointer-events=\"none\"");
      }
      if (!m.has_words || cell.word.empty()) continue;
      words += "<text x=\"" + decimal(x(c) + (m.width - 1) / 2) + "\" y=\"" +
               decimal(y(r) + m.height / 2 + 0.34 * m.text) + "\">" + escaped(cell.word) +
               "</text>\n";
    }
  }
  return svg + words + "</g>\n";
}

}  // namespace

CellGrid cell_grid(const std::string& title, int rows, int columns) {
  CellGrid grid;
  grid.title = title;
  grid.rows = rows;
  grid.columns = columns;
  grid.cells.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  return grid;
}

std::string cells_svg(const std::string& title, const std::vector<CellGrid>& grids) {
  std::size_t cells = 0;
  for (const CellGrid& grid : grids) cells += grid.cells.size();
  double width = title.empty() ? 0 : 48 + text_width(title.size(), 16);
  double left = 24;
  double top = title.empty() ? 4 : 48;
  double bottom = top;
  std::string body;
  for (const CellGrid& grid : grids) {
    const Measures m = measures_of(grid);
    if (left > 24 && left + m.whole_width + 24 > kLineWidth) {
      left = 24;
      top = bottom + 16;
    }
    body += drawn(grid, m, left, top, cells <= kFewCells);
    left += m.whole_width + kBetween;
    width = std::max(width, left - kBetween + 24);
    bottom = std::max(bottom, top + m.whole_height);
  }
  std::string svg = svg_head(width, bottom + 12);
  if (!title.empty()) svg += svg_text(24, 30, title, 16, "font-weight=\"600\"");
  return svg + body + "</svg>\n";
}

std::string product_svg(const CellGrid& a, const CellGrid& b, const CellGrid& c) {
  const std::size_t cells = a.cells.size() + b.cells.size() + c.cells.size();
  Measures of[3];
  const CellGrid* const grids[] = {&a, &b, &c};
  for (int i = 0; i < 3; ++i) of[i] = measures_of(*grids[i]);
  const bool has_words = cells <= kManyCells;
  for (Measures& m : of) {
    m.text = std::min({of[0].text, of[1].text, of[2].text});
    m.height = std::max({of[0].height, of[1].height, of[2].height});
    m.width = std::max({of[0].width, of[1].width, of[2].width});
    m.has_words = has_words;
  }
  for (int i = 0; i < 3; ++i) set_extent(*grids[i], of[i]);
  const double left = 24 + of[0].whole_width + kBetween / 2;
  const double in_line = left + std::max(of[1].left, of[2].left);  // where cells of B and C begin
  const double top = 4 + of[1].whole_height + 8;
  std::string svg = svg_head(
      in_line + std::max(of[1].whole_width - of[1].left, of[2].whole_width - of[2].left) + 24,
      top + std::max(of[0].whole_height, of[2].whole_height) + 12);
  const bool has_tips = cells <= kFewCells;
  svg += drawn(a, of[0], 24, top, has_tips);
  svg += drawn(b, of[1], in_line - of[1].left, 4, has_tips);
  svg += drawn(c, of[2], in_line - of[2].left, top, has_tips);
  return svg + "</svg>\n";
}

std::string cells_text(const CellGrid& grid) {
  std::size_t width = 0;
  for (const Cell& cell : grid.cells) width = std::max(width, cell.word.size());
  std::string text = grid.title + "\n";
  for (int r = 0; r < grid.rows; ++r) {
    text += " ";
    for (int c = 0; c < grid.columns; ++c) {
      const std::string& word = grid.at(r, c).word;
      text += std::string(width + 1 - word.size(), ' ') + word;
    }
    text += "\n";
  }
  return text;
}

}  // namespace warpwright::pictures
