#include "warpwright/pictures/tile_map.h"

#include <algorithm>
#include <utility>

#include "warpwright/pictures/svg_parts.h"
#include "warpwright/tile/raster.h"

namespace warpwright::pictures {
namespace {

constexpr double kMapWidth = 1180;
constexpr double kMapEdge = 16;
constexpr double kMapLeft = 70;
constexpr double kMapGap = 34;
constexpr double kMapTop = 32;       // above D: B, and the numbers of columns
constexpr double kOperandSide = 14;  // how thick A and B are
constexpr double kMostCellWidth = 74;
constexpr double kMostCellHeight = 40;

// How cells are coloured and what stands in them.
struct CellWords {
  int (*colour)(const TilePlace&);
  std::string (*word)(const TilePlace&);
  std::string (*tip)(const TilePlace&);
  bool draws_walk = false;
};

std::string place_text(const TilePlace& t) {
  return "row " + std::to_string(t.row) + ", column " + std::to_string(t.column) + " of tiles";
}

class MapPicture {
 public:
  MapPicture(const TileMap& map, const CellWords& words) : map_(map), words_(words) {
    int columns = 1;
    int rows = 0;
    for (const TileOutput& o : map.outputs) {
      columns = std::max(columns, o.columns);
      rows += o.rows;
    }
    width_ = std::min(kMostCellWidth, (kMapWidth - kMapLeft - kMapEdge) / columns);
    height_ = std::clamp(1400.0 / std::max(1, rows), 12.0, kMostCellHeight);
  }

  std::string draw() {
    double y = 16;
    for (std::size_t i = 0; i < map_.outputs.size(); ++i) {
      const TileOutput& o = map_.outputs[i];
      if (!o.name.empty()) {
        svg_ += svg_text(kMapLeft, y + 10, o.name, 12, "font-weight=\"600\"");
        y += 18;
      }
      tops_.push_back(y + kMapTop);
      axes(o, y + kMapTop);
      operands(o, y + kMapTop);
      y += kMapTop + o.rows * height_ + (i + 1 < map_.outputs.size() ? kMapGap / 2 : 0);
    }
    for (std::size_t i = 0; i < map_.tiles.size(); ++i) cell(i);
    if (words_.draws_walk) walk();
    return svg_head(kMapWidth, y + 20) + svg_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(const TilePlace& t) const { return kMapLeft + t.column * width_; }
  [[nodiscard]] double y(const TilePlace& t) const {
    return tops_[static_cast<std::size_t>(t.output)] + t.row * height_;
  }

  // Every so-many-th row and column has its number.
  void axes(const TileOutput& o, double top) {
    const int across = std::max(1, static_cast<int>(26 / width_ + 0.999));
    for (int c = 0; c < o.columns; c += across) {
      svg_ += svg_text(kMapLeft + (c + 0.5) * width_, top - 4, std::to_string(c), 10,
                       "text-anchor=\"middle\"");
    }
    const int down = std::max(1, static_cast<int>(13 / height_ + 0.999));
    for (int r = 0; r < o.rows; r += down) {
      svg_ += svg_text(kMapLeft - 8, top + (r + 0.5) * height_ + 4, std::to_string(r), 10,
                       "text-anchor=\"end\"");
    }
  }

  // A beside D's rows and B above its columns: what the CTA of a tile reads, along all of K.
  void operands(const TileOutput& o, double top) {
    const double left = kMapEdge, above = top - kMapTop;
    svg_ += svg_text(left + kOperandSide / 2, top - 4, "A", 10, "text-anchor=\"middle\"");
    svg_ += svg_text(kMapLeft - 8, above + 11, "B", 10, "text-anchor=\"end\"");
    for (int r = 0; r < o.rows; ++r) {
      svg_ += svg_box(left, top + r * height_, kOperandSide, height_ - 1, ink::grey,
                      "A: the rows of row " + std::to_string(r) + " of tiles");
    }
    for (int c = 0; c < o.columns; ++c) {
      svg_ += svg_box(kMapLeft + c * width_, above, width_ - 1, kOperandSide, ink::grey,
                      "B: the rows of column " + std::to_string(c) + " of tiles");
    }
  }

  void cell(std::size_t i) {
    const TilePlace& t = map_.tiles[i];
    svg_ += svg_box(x(t), y(t), width_ - 1, height_ - 1, pale(words_.colour(t)), words_.tip(t),
                    data_row(i));
    const std::string word = words_.word(t);
    const double size = std::min(11.0, height_ - 3);
    if (static_cast<double>(word.size()) * 0.6 * size + 4 > width_) return;
    svg_ += svg_text(x(t) + width_ / 2 - 0.5, y(t) + height_ / 2 + 0.36 * size, word, size,
                     "text-anchor=\"middle\" pointer-events=\"none\"");
  }

  // From the middle of each number's tiles to those of the next.
  void walk() {
    struct Middle {
      double x = 0;
      double y = 0;
      int tiles = 0;
      int output = 0;
    };
    std::vector<Middle> middles;
    for (const TilePlace& t : map_.tiles) {
      const auto at = static_cast<std::size_t>(t.number);
      if (at >= middles.size()) middles.resize(at + 1);
      middles[at].x += x(t) + width_ / 2;
      middles[at].y += y(t) + height_ / 2;
      middles[at].output = t.output;
      ++middles[at].tiles;
    }
    std::string path;
    int output = -1;
    for (const Middle& m : middles) {
      if (m.tiles == 0) continue;
      path +=
          (m.output != output ? "M" : "L") + decimal(m.x / m.tiles) + " " + decimal(m.y / m.tiles);
      output = m.output;
    }
    svg_ += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + std::string(ink::faint_text) +
            "\" stroke-width=\"1\" stroke-opacity=\"0.5\" pointer-events=\"none\"/>\n";
  }

  const TileMap& map_;
  const CellWords& words_;
  double width_ = 0;
  double height_ = 0;
  std::vector<double> tops_;
  std::string svg_;
};

std::vector<std::string> cells_of(const TileMap& map, const TilePlace& t) {
  const std::string& output = map.outputs[static_cast<std::size_t>(t.output)].name;
  return {output.empty() ? "D" : output, std::to_string(t.row), std::to_string(t.column)};
}

}  // namespace

TileMap planned_tiles(const TilePlan& plan) {
  TileMap map;
  const int count = tile::tile_count(plan.raster);
  for (int b = 0; b < plan.raster.batch; ++b) {
    const std::string name = plan.raster.batch > 1 ? "batch " + std::to_string(b) : "";
    map.outputs.push_back({name, plan.rows, plan.columns});
  }
  for (int i = 0; i < count; ++i) {
    const tile::TilePosition at = tile::position(plan.raster, i);
    for (int n = 0; n < plan.cluster.n; ++n) {
      for (int m = 0; m < plan.cluster.m; ++m) {
        TilePlace t;
        t.output = at.batch;
        t.row = at.m * plan.cluster.m + m;
        t.column = at.n * plan.cluster.n + n;
        if (plan.swapped) std::swap(t.row, t.column);
        if (t.row >= plan.rows || t.column >= plan.columns) continue;
        t.number = i;
        t.wave = i / std::max(1, plan.resident_clusters);
        map.tiles.push_back(t);
      }
    }
  }
  return map;
}

View raster_view(const std::string& caption, const TileMap& map) {
  const CellWords words{[](const TilePlace& t) { return t.wave; },
                        [](const TilePlace& t) { return std::to_string(t.number); },
                        [](const TilePlace& t) {
                          return place_text(t) + ": number " + std::to_string(t.number) +
                                 ", wave " + std::to_string(t.wave);
                        },
                        true};
  View view;
  view.id = "d";
  view.title = "D and the order of its tiles";
  view.caption = caption;
  view.svg = MapPicture(map, words).draw();
  view.table.header = {"output", "row", "column", "number", "wave"};
  for (const TilePlace& t : map.tiles) {
    view.table.rows.push_back(cells_of(map, t));
    view.table.rows.back().push_back(std::to_string(t.number));
    view.table.rows.back().push_back(std::to_string(t.wave));
  }
  return view;
}

View placement_view(const std::string& caption, const TileMap& map) {
  const CellWords words{[](const TilePlace& t) { return t.sm; },
                        [](const TilePlace& t) { return "SM " + std::to_string(t.sm); },
                        [](const TilePlace& t) {
                          return place_text(t) + ": SM " + std::to_string(t.sm) + ", CTA " +
                                 std::to_string(t.cta) + ", " + std::to_string(t.begin) + " to " +
                                 std::to_string(t.end);
                        },
                        false};
  View view;
  view.id = "sms";
  view.title = "Which SM computed which tile";
  view.caption = caption;
  view.svg = MapPicture(map, words).draw();
  view.table.header = {"output", "row", "column", "SM", "CTA", "begin", "end"};
  for (const TilePlace& t : map.tiles) {
    view.table.rows.push_back(cells_of(map, t));
    for (const std::int64_t value : {std::int64_t{t.sm}, std::int64_t{t.cta}, t.begin, t.end}) {
      view.table.rows.back().push_back(std::to_string(value));
    }
  }
  return view;
}

}  // namespace warpwright::pictures
