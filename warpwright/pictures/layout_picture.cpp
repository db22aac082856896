#include "warpwright/pictures/layout_picture.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "warpwright/atom/values.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"
#include "warpwright/layout/text.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

using layout::ComposedLayout;
using layout::CoordinateTensor;
using layout::Error;
using layout::Layout;
using layout::Shape;
using layout::Tensor;
using layout::TiledCopy;
using layout::Tuple;
using layout::Value;

constexpr int kBanks = 32;
constexpr int kBankBits = 32;
constexpr int kWrappedAt = 32;  // cells of a layout of one mode in a line

// A function from the coordinates of `domain`: a layout, a swizzled one, or one into coordinates.
struct Map {
  Value value;
  Layout domain;
  std::string text;

  [[nodiscard]] std::int64_t size() const { return layout::size(domain); }
  [[nodiscard]] bool has_offsets() const {
    return !std::holds_alternative<CoordinateTensor>(value) && !layout::has_basis(domain);
  }
  // A tensor's are byte addresses.
  [[nodiscard]] bool has_addresses() const { return std::holds_alternative<Tensor>(value); }
  [[nodiscard]] std::int64_t offset(std::int64_t index) const {
    if (const auto* t = std::get_if<Tensor>(&value)) {
      return (*t)(layout::to_coordinate(index, layout::shape(domain)));
    }
    if (const auto* c = std::get_if<ComposedLayout>(&value)) return (*c)(index);
    return domain(index);
  }
  [[nodiscard]] std::string word(std::int64_t index) const {
    if (has_offsets()) return std::to_string(offset(index));
    const Tuple at = layout::to_coordinate(index, layout::shape(domain));
    if (const auto* t = std::get_if<CoordinateTensor>(&value)) return layout::to_text((*t)(at));
    return layout::to_text(layout::coordinate(domain, at));
  }
};

Map map_of(const std::string& expression) {
  const Value value = layout::evaluate(expression, atom::copy_functions());
  const std::string text = layout::to_text(value);
  if (const auto* l = std::get_if<Layout>(&value)) return {value, *l, text};
  if (const auto* c = std::get_if<ComposedLayout>(&value)) return {value, c->layout, text};
  if (const auto* t = std::get_if<CoordinateTensor>(&value)) return {value, t->layout, text};
  if (const auto* t = std::get_if<Tensor>(&value)) return {value, t->layout, text};
  std::optional<Layout> compact;
  if (const auto* s = std::get_if<Shape>(&value)) compact = layout::make_layout(s->tuple);
  if (!compact) {
    throw Error("\"" + expression + "\" is " + text +
                ", and no layout: only layouts have cells to draw.");
  }
  return {*compact, *compact, layout::to_text(*compact)};
}

// The extents of the top-level modes, and how many elements of a mode its first part holds: 0 where
// the mode has no parts.
struct Extents {
  std::vector<std::int64_t> modes;
  std::vector<std::int64_t> first_parts;
};

Extents extents_of(const Layout& domain) {
  Extents e;
  for (int m = 0; m < layout::rank(domain); ++m) {
    const Layout one = layout::mode(domain, m);
    e.modes.push_back(layout::size(one));
    const bool has_parts = layout::rank(one) > 1;
    const std::int64_t first = has_parts ? layout::size(one, 0) : 0;
    e.first_parts.push_back(first > 1 && first < e.modes.back() ? first : 0);
  }
  return e;
}

// Where index `i` of a map stands: in which grid, which row, which column.
struct Place {
  std::size_t grid = 0;
  int row = 0, column = 0;
};

Place place_of(const Extents& e, std::int64_t i) {
  if (e.modes.size() == 1) {
    return {0, static_cast<int>(i / kWrappedAt), static_cast<int>(i % kWrappedAt)};
  }
  const std::int64_t inner = e.modes[0] * e.modes[1];
  return {static_cast<std::size_t>(i / inner), static_cast<int>(i % e.modes[0]),
          static_cast<int>(i % inner / e.modes[0])};
}

// "(_,_,1,0)": what the grids of a layout of three modes and more are called.
std::string slice_name(const Extents& e, std::size_t grid) {
  std::string text = "(_,_";
  auto rest = static_cast<std::int64_t>(grid);
  for (std::size_t m = 2; m < e.modes.size(); ++m) {
    text += "," + std::to_string(rest % e.modes[m]);
    rest /= e.modes[m];
  }
  return text + ")";
}

std::vector<CellGrid> empty_grids(const std::string& title, const Map& map) {
  const Extents e = extents_of(map.domain);
  std::vector<CellGrid> grids;
  if (e.modes.size() == 1) {
    const auto size = static_cast<int>(e.modes[0]);
    const int rows = (size + kWrappedAt - 1) / kWrappedAt;
    grids.push_back(cell_grid(title, rows, std::min(size, kWrappedAt)));
    for (int r = 0; r < rows; ++r) grids[0].row_names.push_back(std::to_string(r * kWrappedAt));
    if (rows == 1) grids[0].columns_together = static_cast<int>(e.first_parts[0]);
    return grids;
  }
  std::int64_t count = 1;
  for (std::size_t m = 2; m < e.modes.size(); ++m) count *= e.modes[m];
  for (std::int64_t g = 0; g < count; ++g) {
    const auto at = static_cast<std::size_t>(g);
    grids.push_back(cell_grid(title + (count == 1 ? "" : " " + slice_name(e, at)),
                              static_cast<int>(e.modes[0]), static_cast<int>(e.modes[1])));
    grids.back().rows_together = static_cast<int>(e.first_parts[0]);
    grids.back().columns_together = static_cast<int>(e.first_parts[1]);
  }
  return grids;
}

void require_size(std::int64_t cells) {
  if (cells <= kMostCells) return;
  throw Error("a picture of " + std::to_string(cells) +
              " cells is too large to read; the most is " + std::to_string(kMostCells) + ".");
}

std::string coordinate_text(const Layout& domain, std::int64_t index) {
  return layout::to_text(layout::to_coordinate(index, layout::shape(domain)));
}

// Collects the grids and the table of a view.
class Drawing {
 public:
  explicit Drawing(std::vector<std::string> header) { table_.header = std::move(header); }

  /// Adds a map as a grid; `cell` gives colour and word of each index, `more` the last columns of
  /// the table.
  template <class CellOf>
  void add(const std::string& name, const Map& map, CellOf cell) {
    const Extents e = extents_of(map.domain);
    std::vector<CellGrid> grids = empty_grids(name + " = " + map.text, map);
    for (std::int64_t i = 0; i < map.size(); ++i) {
      const Place p = place_of(e, i);
      Cell& c = grids[p.grid].at(p.row, p.column);
      std::vector<std::string> row = {name, coordinate_text(map.domain, i), map.word(i)};
      cell(i, c, row);
      c.row = static_cast<std::int64_t>(table_.rows.size());
      c.tip = row[1] + " -> " + row[2];
      for (std::size_t k = 3; k < row.size(); ++k) c.tip += ", " + table_.header[k] + " " + row[k];
      table_.rows.push_back(std::move(row));
    }
    for (CellGrid& g : grids) grids_.push_back(std::move(g));
  }

  View view(const std::string& id, const std::string& title, const std::string& caption) {
    View v;
    v.id = id;
    v.title = title;
    v.caption = caption;
    v.svg = cells_svg("", grids_);
    v.table = std::move(table_);
    return v;
  }

 private:
  std::vector<CellGrid> grids_;
  Table table_;
};

// The eighth of [0, reach) in which an offset lies.
int eighth(std::int64_t offset, std::int64_t reach) {
  return static_cast<int>(
      std::clamp<std::int64_t>(offset * 8 / std::max<std::int64_t>(reach, 1), 0, 7));
}

std::int64_t reach_of(const Map& map) {
  std::int64_t reach = 1;
  for (std::int64_t i = 0; i < map.size(); ++i) reach = std::max(reach, map.offset(i) + 1);
  return reach;
}

View offsets_view(const Map& map) {
  Drawing drawing({"layout", "coordinate", "offset"});
  const bool has_offsets = map.has_offsets();
  const std::int64_t reach = has_offsets ? reach_of(map) : 0;
  drawing.add("A", map, [&](std::int64_t i, Cell& cell, std::vector<std::string>& row) {
    cell.word = row[2];
    cell.colour = has_offsets ? eighth(map.offset(i), reach) : 0;
  });
  std::string caption = "A cell is a coordinate: rows are mode 0, columns mode 1; ";
  caption += !has_offsets          ? "in it stands what the layout makes of it."
             : map.has_addresses() ? "its number is the byte address."
                                   : "its number is the offset.";
  if (has_offsets) caption += " A colour is an eighth of the memory that is reached.";
  return drawing.view("layout", map.text, caption);
}

View banks_view(const Map& map, int element_bits) {
  if (!map.has_offsets()) {
    throw Error(map.text + " gives coordinates, not offsets: they lie in no bank.");
  }
  if (map.has_addresses()) element_bits = 8;  // of a byte
  Drawing drawing({"layout", "coordinate", "offset", "bank"});
  drawing.add("A", map, [&](std::int64_t i, Cell& cell, std::vector<std::string>& row) {
    const std::int64_t offset = map.offset(i);
    if (offset < 0) throw Error(map.text + " has the offset " + row[2] + ": no bank holds it.");
    const auto bank = static_cast<int>(offset * element_bits / kBankBits % kBanks);
    row.push_back(std::to_string(bank));
    cell.word = row[3];
    cell.colour = bank / 2;
  });
  return drawing.view("banks", map.text,
                      "A cell is a coordinate; its number is the bank of shared memory in which "
                      "its element begins: "
                      "32 banks of 4 bytes. Two neighbouring banks share a colour.");
}

// For a layout (thread, value) -> element of a tile, column-major: who holds each element.
View holders_view(const Map& map, const LayoutAsk& ask, const std::string& id,
                  const std::string& title) {
  const std::string option =
      ask.colour == LayoutColour::threads ? "--colour threads" : "--colour values";
  if (layout::rank(map.domain) != 2 || !map.has_offsets()) {
    throw Error(map.text + " has no threads and values: " + option +
                " asks for a layout of two modes, (thread, value), into the elements of a tile.");
  }
  const std::int64_t elements = ask.tile_rows * ask.tile_columns;
  if (elements == 0) {
    throw Error(option + " asks for --tile M,N, the tile whose elements the threads hold.");
  }
  const std::int64_t reach = reach_of(map);
  if (reach > elements) {
    throw Error(map.text + " reaches element " + std::to_string(reach - 1) + "; a tile of " +
                std::to_string(ask.tile_rows) + " x " + std::to_string(ask.tile_columns) + " has " +
                std::to_string(elements) + ".");
  }
  require_size(elements);
  const std::int64_t threads = layout::size(map.domain, 0);
  CellGrid grid =
      cell_grid(map.text, static_cast<int>(ask.tile_rows), static_cast<int>(ask.tile_columns));
  Table table{{"thread", "value", "row", "column"}, {}};
  for (std::int64_t i = 0; i < map.size(); ++i) {
    const std::int64_t thread = i % threads, value = i / threads, element = map.offset(i);
    const auto row = static_cast<int>(element % ask.tile_rows);
    const auto column = static_cast<int>(element / ask.tile_rows);
    Cell& cell = grid.at(row, column);
    const std::string word = "T" + std::to_string(thread) + "V" + std::to_string(value);
    // Several may hold one element: the first has the cell, all stand in its tip.
    const bool is_first = cell.word.empty();
    cell.tip += (is_first ? "" : ", ") + word;
    if (is_first) {
      cell.word = word;
      cell.colour = static_cast<int>(ask.colour == LayoutColour::threads ? thread : value);
      cell.row = static_cast<std::int64_t>(table.rows.size());
    }
    table.rows.push_back({std::to_string(thread), std::to_string(value), std::to_string(row),
                          std::to_string(column)});
  }
  View v;
  v.id = id;
  v.title = title;
  v.caption = std::string(
                  "A cell is an element of the tile; T is the thread that holds it, V as "
                  "which of its values. A colour is a ") +
              (ask.colour == LayoutColour::threads ? "thread." : "value.");
  v.svg = cells_svg("", {grid});
  v.table = std::move(table);
  return v;
}

// What an operation makes of A and B, and which colour each index of A and of the result has. It is
// asked of the operation itself: on the compact layout of A's shape it gives indices of A.
struct Operation {
  Map a, result;
  std::optional<Map> b;  // nothing where it is a tiler by modes: that has no cells
  std::string indices;   // the compact layout of A's shape
  std::vector<int> colour_of_a, colour_of_result, colour_of_b;
  std::string column;  // what a colour is
  std::string caption;
};

constexpr const char* kSides = "Side by side A, B and what becomes of them; numbers are offsets. ";

// The compact layout of A's shape; `by_mode` into coordinates, one for each top-level mode, so that
// what hangs over the edge of a mode is told from the next column.
Layout numbered(const Layout& a, bool by_mode) {
  Layout l = layout::make_layout(layout::shape(a));
  for (int m = 0; by_mode && m < layout::rank(l); ++m) {
    const layout::detail::Range leaves = layout::detail::range_of(l, m);
    std::int64_t step = 1;
    for (int i = leaves.first; i <= leaves.last; ++i) {
      l.stride[i] = {l.shape[i] == 1 ? 0 : step, l.shape[i] == 1 ? -1 : m};
      step *= l.shape[i];
    }
  }
  return l;
}

// Which index of A `source`, an operation on numbered(A), gives for its own index; -1 where that
// lies outside of A.
std::int64_t index_in(const Layout& a, const Map& source, std::int64_t index) {
  if (!layout::has_basis(source.domain)) {
    const std::int64_t at = source.offset(index);
    return at >= 0 && at < layout::size(a) ? at : -1;
  }
  const Tuple at =
      layout::coordinate(source.domain, layout::to_coordinate(index, layout::shape(source.domain)));
  std::int64_t sum = 0, step = 1;
  for (int m = 0; m < layout::rank(a); ++m) {
    const std::int64_t extent = layout::size(a, m);
    const std::int64_t c = m < at.count ? at.leaf[m].value : 0;
    if (c < 0 || c >= extent) return -1;
    sum += c * step;
    step *= extent;
  }
  return sum;
}

// A's elements in the order in which B picks them.
void colour_picks(Operation& o, const Map& source) {
  const std::int64_t size = source.size();
  o.column = "pick";
  o.caption = std::string(kSides) +
              "B's numbers are indices into A. What B picks has the same colour in all of them, in "
              "the order of the picks; the rest of A is grey.";
  for (std::int64_t i = 0; i < size; ++i) {
    const int colour = size <= pale_colours ? static_cast<int>(i) : eighth(i, size);
    o.colour_of_result.push_back(colour);
    o.colour_of_b.push_back(colour);
    const std::int64_t from = index_in(o.a.domain, source, i);
    if (from >= 0) o.colour_of_a[static_cast<std::size_t>(from)] = colour;
  }
}

// The tile of every element of A, and so of the result: by the division that gathers tiles.
void colour_tiles(Operation& o, const Map& source, const std::string& with) {
  const Map tiles = map_of("zipped_divide(" + o.indices + ", " + with + ")");
  const std::int64_t inside = layout::size(tiles.domain, 0);
  o.column = "tile";
  o.caption = std::string(kSides) +
              "A colour is a tile: in A where it lies, in the result as a "
              "part of its own.";
  for (std::int64_t i = 0; i < tiles.size(); ++i) {
    const std::int64_t from = index_in(o.a.domain, tiles, i);
    if (from >= 0) o.colour_of_a[static_cast<std::size_t>(from)] = static_cast<int>(i / inside);
  }
  bool hangs_over = false;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const std::int64_t from = index_in(o.a.domain, source, i);
    hangs_over = hangs_over || from < 0;
    o.colour_of_result.push_back(from < 0 ? -1 : o.colour_of_a[static_cast<std::size_t>(from)]);
  }
  if (hangs_over) o.caption += " Grey is what hangs over the edge of A.";
  // B is the tile at the front.
  if (o.b) o.colour_of_b.assign(static_cast<std::size_t>(o.b->size()), 0);
}

// The copy of every element of the result: that of a compact A begins at its number times A's size.
void colour_copies(Operation& o, const Map& source) {
  o.column = "copy";
  o.caption = std::string(kSides) + "A colour is a copy of A; B's number says where it stands.";
  o.colour_of_a.assign(static_cast<std::size_t>(o.a.size()), 0);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    o.colour_of_result.push_back(static_cast<int>(source.offset(i) / o.a.size()));
  }
  for (std::int64_t i = 0; i < o.b->size(); ++i) {
    o.colour_of_b.push_back(static_cast<int>(o.b->offset(i)));
  }
}

Operation operation_of(const LayoutAsk& ask) {
  const auto call = [&](const std::string& first) {
    return ask.operation + "(" + first + ", " + ask.with + ")";
  };
  Operation o{map_of(ask.layout), map_of(call(ask.layout)), {}, {}, {}, {}, {}, {}, {}};
  const Value with = layout::evaluate(ask.with, atom::copy_functions());
  const auto* const extents = std::get_if<Shape>(&with);
  // A tree of several extents cuts mode by mode, as a tiler does.
  if (std::holds_alternative<Layout>(with) ||
      (extents != nullptr && layout::rank(extents->tuple) == 1)) {
    o.b = map_of(ask.with);
  }
  const bool is_product = ask.operation.ends_with("product");
  if (is_product && !o.b) {
    throw Error("\"" + ask.with +
                "\" cuts mode by mode: a product is drawn with a layout of its copies, such as "
                "(2,2).");
  }
  require_size(o.a.size() + o.result.size() + (o.b ? o.b->size() : 0));
  o.indices = layout::to_text(numbered(o.a.domain, !o.b));
  o.colour_of_a.assign(static_cast<std::size_t>(o.a.size()), -1);
  const Map source = map_of(call(o.indices));
  if (ask.operation == "composition") {
    colour_picks(o, source);
  } else if (ask.operation.ends_with("divide")) {
    colour_tiles(o, source, ask.with);
  } else {
    colour_copies(o, source);
  }
  return o;
}

View operation_view(const LayoutAsk& ask) {
  const Operation o = operation_of(ask);
  Drawing drawing({"layout", "coordinate", "offset", o.column});
  const auto add = [&](const std::string& name, const Map& map, const std::vector<int>& colours) {
    drawing.add(name, map, [&](std::int64_t i, Cell& cell, std::vector<std::string>& row) {
      const int colour =
          static_cast<std::size_t>(i) < colours.size() ? colours[static_cast<std::size_t>(i)] : -1;
      cell.word = row[2];
      cell.colour = colour;
      row.push_back(colour < 0 ? "" : std::to_string(colour));
    });
  };
  add("A", o.a, o.colour_of_a);
  if (o.b) add("B", *o.b, o.colour_of_b);
  add("result", o.result, o.colour_of_result);
  return drawing.view("operation", ask.operation + "(" + ask.layout + ", " + ask.with + ")",
                      o.caption);
}

// A copy that is dealt out to threads: who reads which element of its tile, and who writes it.
std::vector<View> copy_views(const TiledCopy& copy, LayoutAsk ask) {
  if (ask.colour == LayoutColour::banks) {
    throw Error("\"" + ask.layout +
                "\" is a TiledCopy: its elements have threads and values, and no "
                "bank before there is a tensor.");
  }
  if (ask.colour == LayoutColour::offsets) ask.colour = LayoutColour::threads;
  if (copy.tiler.count != 2) {
    throw Error("\"" + ask.layout + "\" copies tiles of " + std::to_string(copy.tiler.count) +
                " modes; only tiles of rows and columns are drawn.");
  }
  ask.tile_rows = layout::size(copy.tiler.tile[0]);
  ask.tile_columns = layout::size(copy.tiler.tile[1]);
  const auto view = [&](const Layout& tv, const char* id, const char* what) {
    const std::string text = layout::to_text(tv);
    return holders_view({tv, tv, text}, ask, id, std::string(what) + ": " + text);
  };
  return {view(copy.layout_s_tv(), "source", "who reads"),
          view(copy.layout_d_tv(), "destination", "who writes")};
}

}  // namespace

Picture layout_picture(const LayoutAsk& ask) {
  Picture picture;
  picture.kind = "layout";
  if (!ask.operation.empty()) {
    picture.views.push_back(operation_view(ask));
    picture.title = picture.views.front().title;
    return picture;
  }
  const Value value = layout::evaluate(ask.layout, atom::copy_functions());
  if (const auto* copy = std::get_if<TiledCopy>(&value)) {
    picture.views = copy_views(*copy, ask);
    picture.title = ask.layout;
    return picture;
  }
  const Map map = map_of(ask.layout);
  require_size(map.size());
  switch (ask.colour) {
    case LayoutColour::offsets:
      picture.views.push_back(offsets_view(map));
      break;
    case LayoutColour::banks:
      picture.views.push_back(banks_view(map, ask.element_bits));
      break;
    case LayoutColour::threads:
    case LayoutColour::values:
      picture.views.push_back(holders_view(map, ask, "holders", map.text));
      break;
  }
  picture.title = map.text;
  return picture;
}

}  // namespace warpwright::pictures
