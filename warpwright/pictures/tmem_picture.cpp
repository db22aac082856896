#include "warpwright/pictures/tmem_picture.h"

#include <algorithm>
#include <map>
#include <vector>

#include "warpwright/atom/umma_scaled.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

constexpr double kColumn = 2.5;
constexpr double kQuarter = 46;
constexpr double kQuarterGap = 3;
constexpr double kTmemLeft = 86;
constexpr double kTmemTop = 26;
constexpr int kQuarters = 4;
constexpr int kQuarterLanes = atom::kTmemLanes / kQuarters;

std::string span_of(int first, int count) {
  return std::to_string(first) + (count == 1 ? "" : "-" + std::to_string(first + count - 1));
}

std::string name_of(const TmemMap& map, const TmemPart& part) {
  int alike = 0;
  for (const TmemPart& other : map.parts) alike += other.kind == part.kind ? 1 : 0;
  const std::string number = alike > 1 ? " " + std::to_string(part.index) : "";
  switch (part.kind) {
    case TmemPart::Kind::accumulator:
      return "accumulator" + number;
    case TmemPart::Kind::scales_a:
      return "SFA" + number;
    case TmemPart::Kind::scales_b:
      break;
  }
  return "SFB" + number;
}

std::string_view fill_of(const TmemPart& part) {
  switch (part.kind) {
    case TmemPart::Kind::accumulator:
      return part.index == 0 ? ink::blue : ink::green;
    case TmemPart::Kind::scales_a:
      return ink::violet;
    case TmemPart::Kind::scales_b:
      break;
  }
  return ink::yellow;
}

double x(int column) {
  return kTmemLeft + column * kColumn;
}
double y(int quarter) {
  return kTmemTop + quarter * (kQuarter + kQuarterGap);
}

// What two accumulators share.
std::string shared_columns(const TmemMap& map, Table& table) {
  std::string body;
  const auto second = std::find_if(map.parts.begin(), map.parts.end(), [](const TmemPart& p) {
    return p.kind == TmemPart::Kind::accumulator && p.index == 1;
  });
  for (int q = 0; q < kQuarters; ++q) {
    body +=
        svg_box(x(second->first), y(q), map.shared_columns * kColumn - 1, kQuarter, ink::orange,
                "columns " + span_of(second->first, map.shared_columns) + ": of both accumulators",
                data_row(table.rows.size()));
  }
  body += svg_text(x(second->first) + map.shared_columns * kColumn / 2, y(0) + kQuarter / 2 + 4,
                   "both", 11, "text-anchor=\"middle\" pointer-events=\"none\"");
  table.rows.push_back(
      {"both", span_of(second->first, map.shared_columns), "0-127", "of both accumulators"});
  return body;
}

View memory_view(const TmemMap& map) {
  View view;
  view.id = "memory";
  view.title = "Lanes and columns";
  view.caption =
      "Tensor memory of an SM: 128 lanes of 512 columns of 32 bits, " +
      std::to_string(map.allocated) +
      " of them allocated. An accumulator has a row of D in a lane; scales lie four times, once in "
      "each quarter of the lanes, which one warp of a warpgroup can reach.";
  if (map.shared_columns > 0) {
    view.caption += " Two accumulators share " + std::to_string(map.shared_columns) +
                    " columns: the epilogue empties them first.";
  }
  view.table.header = {"part", "columns", "lanes", "what"};
  std::string body;
  for (int q = 0; q < kQuarters; ++q) {
    body += svg_text(12, y(q) + kQuarter / 2 + 4,
                     "lanes " + span_of(q * kQuarterLanes, kQuarterLanes), 10.5);
    body += svg_box(x(0), y(q), atom::kTmemColumns * kColumn, kQuarter, "#f1f2f4", "not allocated");
    body += svg_box(x(0), y(q), map.allocated * kColumn, kQuarter, ink::none, "not used");
  }
  for (int c = 0; c <= atom::kTmemColumns; c += 32) {
    body += svg_text(x(c), kTmemTop - 8, std::to_string(c), 9.5,
                     "text-anchor=\"middle\" opacity=\"0.6\"");
  }
  for (const TmemPart& part : map.parts) {
    const std::string name = name_of(map, part);
    const std::string columns = span_of(part.first, part.columns);
    const bool is_accumulator = part.kind == TmemPart::Kind::accumulator;
    for (int q = 0; q < kQuarters; ++q) {
      body += svg_box(x(part.first), y(q), part.columns * kColumn - 1, kQuarter, fill_of(part),
                      joined({name, ", columns ", columns, ": ", part.what}),
                      data_row(view.table.rows.size()));
      if (is_accumulator && q > 0) continue;
      if (0.6 * 11 * static_cast<double>(name.size()) < part.columns * kColumn) {
        body += svg_text(x(part.first) + part.columns * kColumn / 2, y(q) + kQuarter / 2 + 4, name,
                         11, "text-anchor=\"middle\" pointer-events=\"none\"");
      }
    }
    view.table.rows.push_back(
        {name, columns, is_accumulator ? "0-127" : "four times 32", part.what});
  }
  if (map.shared_columns > 0) body += shared_columns(map, view.table);
  view.svg = svg_head(x(atom::kTmemColumns) + 24, y(kQuarters) + 12) + body + "</svg>\n";
  return view;
}

// What a column of scales holds: rows, scales of K, and the k_blocks that take them.
struct ScaleColumn {
  int rows[2] = {1 << 30, -1};
  int scales[2] = {1 << 30, -1};
  int steps[2] = {1 << 30, -1};
  static void widen(int (&range)[2], int value) {
    range[0] = std::min(range[0], value);
    range[1] = std::max(range[1], value);
  }
};

std::string text_of(const int (&range)[2]) {
  return span_of(range[0], range[1] - range[0] + 1);
}

CellGrid scale_grid(const TmemMap& map, const TmemPart& part, Table& table) {
  const bool of_b = part.kind == TmemPart::Kind::scales_b;
  const int rows = of_b ? atom::scale_rows_b(map.mma) : atom::scale_rows_a(map.mma);
  const int taken = atom::umma_scales(map.mma);
  std::map<int, ScaleColumn> columns;
  for (std::size_t i = 0; i < map.steps.size(); ++i) {
    const TmemStep& step = map.steps[i];
    for (int row = 0; row < rows; ++row) {
      for (int s = 0; s < taken; ++s) {
        const atom::ScaleCell at = of_b ? atom::scale_cell_b(map.mma, step.id, row, s)
                                        : atom::scale_cell_a(map.mma, step.id, row, s);
        ScaleColumn& c = columns[part.first + at.column + (of_b ? step.column_b : step.column_a)];
        ScaleColumn::widen(c.rows, row);
        ScaleColumn::widen(c.scales, static_cast<int>(i) * taken + s);
        ScaleColumn::widen(c.steps, static_cast<int>(i));
      }
    }
  }
  const std::string name = name_of(map, part);
  CellGrid grid = cell_grid(name + ": columns " + span_of(part.first, part.columns), 3,
                            static_cast<int>(columns.size()));
  grid.row_names = {of_b ? "columns of D" : "rows of A", "scales along K", "k_blocks"};
  int c = 0;
  for (const auto& [column, holds] : columns) {
    grid.column_names.push_back(std::to_string(column));
    const std::string words[] = {text_of(holds.rows), text_of(holds.scales), text_of(holds.steps)};
    for (int r = 0; r < 3; ++r) {
      Cell& cell = grid.at(r, c);
      cell.word = words[r];
      cell.colour = holds.steps[0];
      cell.row = static_cast<std::int64_t>(table.rows.size());
      cell.tip = name + " column " + std::to_string(column) + ": " + grid.row_names[0] + " " +
                 words[0] + ", scales " + words[1] + " along K, k_blocks " + words[2];
    }
    table.rows.push_back({name, std::to_string(column), words[0], words[1], words[2]});
    ++c;
  }
  return grid;
}

View scales_view(const TmemMap& map) {
  View view;
  view.id = "scales";
  view.title = map.stages_together == 1
                   ? "The scales of a stage"
                   : "The scales of " + std::to_string(map.stages_together) + " stages";
  view.caption =
      "A column has a 32-bit word in each lane: four scales along K of one row. Rows lie "
      "in lanes row % 32. A colour is the first k_block that takes the column; where an "
      "instruction takes fewer than four, its id says from which byte on:";
  for (std::size_t i = 0; i < map.steps.size(); ++i) {
    view.caption += (i == 0 ? " k_block " : ", ") + std::to_string(i) + " id " +
                    std::to_string(map.steps[i].id);
  }
  view.caption += ".";
  view.table.header = {"part", "column", "rows", "scales along K", "k_blocks"};
  std::vector<CellGrid> grids;
  for (const TmemPart& part : map.parts) {
    if (part.kind == TmemPart::Kind::accumulator || part.index > 0) continue;
    if (part.kind == TmemPart::Kind::scales_a ? map.has_ones_a : map.has_ones_b) continue;
    grids.push_back(scale_grid(map, part, view.table));
  }
  view.svg = cells_svg("", grids);
  return view;
}

}  // namespace

Picture tmem_picture(const std::string& kernel, const TmemMap& map) {
  Picture picture;
  picture.kind = "tmem";
  picture.title = "Tensor memory of " + kernel;
  picture.views.push_back(memory_view(map));
  if (!map.steps.empty()) picture.views.push_back(scales_view(map));
  return picture;
}

}  // namespace warpwright::pictures
