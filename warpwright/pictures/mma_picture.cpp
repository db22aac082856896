#include "warpwright/pictures/mma_picture.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/atom/mma_text.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

using atom::Mma;
using atom::MmaKind;
using atom::TiledMma;

constexpr int kFewElements = 1024;   // of A, B and C: each has a cell of its own
constexpr int kMostRows = 64;        // of C that are drawn
constexpr int kMostCellsOfC = 1024;  // likewise
constexpr int kCoreLines = 8;        // of a core matrix in shared memory
constexpr int kCoreBytes = 16;

// From `first` on `count` of `all` along M, N or K.
struct Span {
  int first = 0, count = 0, all = 0;
  [[nodiscard]] bool is_whole() const { return count == all; }
  [[nodiscard]] bool has(int i) const { return i >= first && i < first + count; }
};

std::string range(int first, int count) {
  return std::to_string(first) + (count == 1 ? "" : "-" + std::to_string(first + count - 1));
}

Span span_of(const char* what, int first, int most, int all) {
  if (first < 0 || first >= all) {
    throw layout::Error("the part begins at " + std::string(what) + " " + std::to_string(first) +
                        "; the tile has " + std::to_string(all) + ": 0 to " +
                        std::to_string(all - 1) + " are legal.");
  }
  return {first, std::min(most, all - first), all};
}

// Rows and columns of a core matrix: 8 lines of 16 bytes along the contiguous dimension.
std::pair<int, int> core_of(int bits, atom::Major major) {
  const int along = kCoreBytes * 8 / bits;
  return major == atom::Major::k ? std::pair(kCoreLines, along) : std::pair(along, kCoreLines);
}

// A, B or C of the tile: its modes, and where several elements along its columns (of B also its
// rows) share a cell.
struct Operand {
  const char* name;
  const char* letters;
  Span rows, columns;
  bool turned = false;  // B stands above C with its rows as columns
  int rows_in_cell = 1, columns_in_cell = 1;
};

// Who holds an element first, and all who do.
struct Holder {
  int thread = -1, value = 0;
  std::string all;
};

// The holders of the elements that are drawn, row by row.
struct Holders {
  std::vector<Holder> of;
  int columns = 0;
  Holder& at(int row, int column) {
    return of[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
              static_cast<std::size_t>(column)];
  }
};

template <class PartOfThread>
Holders holders_of(const TiledMma& mma, const Operand& o, PartOfThread part_of_thread) {
  Holders holders;
  holders.columns = o.columns.count;
  holders.of.resize(static_cast<std::size_t>(o.rows.count) *
                    static_cast<std::size_t>(o.columns.count));
  const layout::Layout vmnk = mma.thr_layout_vmnk();
  std::vector<int> threads;
  for (std::int64_t i = 0; i < layout::size(vmnk); ++i) {
    threads.push_back(static_cast<int>(vmnk(i)));
  }
  std::sort(threads.begin(), threads.end());
  for (const int thread : threads) {
    const layout::Slice share = part_of_thread(thread);
    for (std::int64_t v = 0; v < layout::size(share.layout); ++v) {
      const auto element = static_cast<int>(share.offset + share.layout(v));
      const int row = element % o.rows.all, column = element / o.rows.all;
      if (!o.rows.has(row) || !o.columns.has(column)) continue;
      Holder& holder = holders.at(row - o.rows.first, column - o.columns.first);
      holder.all += (holder.all.empty() ? "" : ", ") + std::string("T") + std::to_string(thread) +
                    "V" + std::to_string(v);
      if (holder.thread < 0) {
        holder.thread = thread;
        holder.value = static_cast<int>(v);
      }
    }
  }
  return holders;
}

// The most elements along a row, a power of two up to 8, that a thread holds one after the other
// wherever they begin at a multiple of it.
int run_of(Holders holders, const Operand& o) {
  for (int run = 8; run > 1; run /= 2) {
    if (o.columns.count % run != 0 || o.columns.first % run != 0) continue;
    bool fits = true;
    for (int r = 0; r < o.rows.count && fits; ++r) {
      for (int c = 0; c < o.columns.count && fits; ++c) {
        const Holder& first = holders.at(r, c / run * run);
        const Holder& one = holders.at(r, c);
        fits = one.thread == first.thread && one.value == first.value + c % run;
      }
    }
    if (fits) return run;
  }
  return 1;
}

CellGrid grid_of(const Operand& o, const std::string& more) {
  const auto names = [](const Span& span, int in_cell) {
    std::vector<std::string> all;
    for (int i = 0; i < span.count; i += in_cell) {
      all.push_back(range(span.first + i, std::min(in_cell, span.count - i)));
    }
    return all;
  };
  const std::vector<std::string> rows = names(o.rows, o.rows_in_cell);
  const std::vector<std::string> columns = names(o.columns, o.columns_in_cell);
  const std::string title = std::string(o.name) + " (" + o.letters[0] + " " +
                            std::to_string(o.rows.all) + " x " + o.letters[1] + " " +
                            std::to_string(o.columns.all) + ")" + more;
  const auto count = [](const std::vector<std::string>& list) {
    return static_cast<int>(list.size());
  };
  CellGrid grid = o.turned ? cell_grid(title, count(columns), count(rows))
                           : cell_grid(title, count(rows), count(columns));
  grid.row_names = o.turned ? columns : rows;
  grid.column_names = o.turned ? rows : columns;
  return grid;
}

Cell& cell_of(CellGrid& grid, const Operand& o, int row, int column) {
  const int r = row / o.rows_in_cell, c = column / o.columns_in_cell;
  return o.turned ? grid.at(c, r) : grid.at(r, c);
}

// An operand in registers.
CellGrid register_grid(const Operand& o, Holders holders, MmaColour colour, Table& table) {
  CellGrid grid = grid_of(o, "");
  for (int r = 0; r < o.rows.count; ++r) {
    for (int c = 0; c < o.columns.count; c += o.columns_in_cell) {
      const Holder& holder = holders.at(r, c);
      const std::string values = range(holder.value, o.columns_in_cell);
      Cell& cell = cell_of(grid, o, r, c);
      cell.word = "T" + std::to_string(holder.thread) + "V" + values;
      cell.colour = colour == MmaColour::threads ? holder.thread : holder.value / o.columns_in_cell;
      cell.row = static_cast<std::int64_t>(table.rows.size());
      const std::string row = std::to_string(o.rows.first + r);
      const std::string column = range(o.columns.first + c, o.columns_in_cell);
      cell.tip = joined({o.name, "(", row, ",", column, "): ", holder.all,
                         o.columns_in_cell > 1 ? " and on" : ""});
      table.rows.push_back(
          {o.name, row, column, holder.all, "T" + std::to_string(holder.thread), "V" + values});
    }
  }
  return grid;
}

// An operand in shared memory, its core matrices in two colours.
CellGrid shared_grid(const Operand& o, int bits, atom::Major major, Table& table) {
  const auto [core_rows, core_columns] = core_of(bits, major);
  CellGrid grid = grid_of(o, " in shared memory");
  for (int r = 0; r < o.rows.count; r += o.rows_in_cell) {
    for (int c = 0; c < o.columns.count; c += o.columns_in_cell) {
      const int row = o.rows.first + r, column = o.columns.first + c;
      const std::string core = joined(
          {"(", std::to_string(row / core_rows), ",", std::to_string(column / core_columns), ")"});
      Cell& cell = cell_of(grid, o, r, c);
      cell.colour = (row / core_rows + column / core_columns) % 2;
      cell.row = static_cast<std::int64_t>(table.rows.size());
      const std::string rows = range(row, o.rows_in_cell);
      const std::string columns = range(column, o.columns_in_cell);
      cell.tip = joined({o.name, "(", rows, ",", columns, "): core matrix ", core});
      table.rows.push_back({o.name, rows, columns, "core matrix " + core, "all", ""});
    }
  }
  return grid;
}

layout::Layout compact(const TiledMma& mma, int rows, int columns) {
  return layout::make_layout(layout::tuple(mma.tile_size(rows), mma.tile_size(columns)));
}

constexpr const char* kRegisterCaption =
    "A stands left of C, B above it, turned. T is a thread, V one of its values of that operand; ";

// The part of the tile that fits: along N and K whole where C's cells are few.
View register_view(const TiledMma& mma, MmaColour colour, const MmaPart& from) {
  const Mma& one = mma.atom;
  const auto size = [&](int mode) { return static_cast<int>(mma.tile_size(mode)); };
  const bool b_is_shared = !atom::is_register_mma(one.kind);
  const bool is_large = size(0) * size(1) + (size(0) + size(1)) * size(2) > kFewElements;
  const Span m = span_of("row", from.m, kMostRows, size(0));
  // Where B is no matter of threads, two columns of C share a cell.
  const int together = is_large && b_is_shared && from.n % 2 == 0 ? 2 : 1;
  const Span n =
      span_of("column", from.n, std::max(8, kMostCellsOfC * together / m.count / 8 * 8), size(1));
  const Span k = span_of("k", from.k, kMostRows, size(2));
  Operand a{"A", "MK", m, k}, b{"B", "NK", n, k, true}, c{"C", "MN", m, n};
  c.columns_in_cell = b.rows_in_cell = together;
  Table table{{"operand", "row", "column", "all holders", "thread", "value"}, {}};
  const layout::Layout tile_a = compact(mma, 0, 2), tile_b = compact(mma, 1, 2),
                       tile_c = compact(mma, 0, 1);
  const auto shared = [&](Operand& o, DType type, atom::Major major) {
    const int bits = numeric::bits(type);
    if (is_large) o.columns_in_cell = std::gcd(core_of(bits, major).second, o.columns.count);
    return shared_grid(o, bits, major, table);
  };
  const auto registers = [&](Operand& o, auto part_of_thread) {
    Holders holders = holders_of(mma, o, part_of_thread);
    // C's columns stand below B's.
    if (is_large && &o != &c) o.columns_in_cell = run_of(holders, o);
    return register_grid(o, std::move(holders), colour, table);
  };
  const CellGrid grid_a =
      one.kind == MmaKind::wgmma
          ? shared(a, one.a, one.a_major)
          : registers(a, [&](int t) { return mma.get_slice(t).partition_a(tile_a); });
  const CellGrid grid_b =
      b_is_shared ? shared(b, one.b, one.b_major)
                  : registers(b, [&](int t) { return mma.get_slice(t).partition_b(tile_b); });
  const CellGrid grid_c = registers(c, [&](int t) { return mma.get_slice(t).partition_c(tile_c); });
  View view;
  view.id = "operands";
  view.title = "Who holds what";
  view.caption = kRegisterCaption +
                 std::string(colour == MmaColour::threads ? "a colour is a thread. "
                                                          : "a colour is a value. ") +
                 "What several threads hold has the word of the first.";
  if (b_is_shared) {
    view.caption += " What lies in shared memory is coloured by core matrices of 8 times 16 bytes.";
  }
  if (!m.is_whole() || !n.is_whole() || !k.is_whole()) {
    view.caption += " The part of the tile that is drawn: rows " + range(m.first, m.count) +
                    ", columns " + range(n.first, n.count) + " and K " + range(k.first, k.count) +
                    "; --at says where to begin.";
  }
  view.svg = product_svg(grid_a, grid_b, grid_c);
  view.table = std::move(table);
  return view;
}

// --- tcgen05 -------------------------------------------------------------------------------------

// 32, 16 or 8, whichever divides the extent first.
int largest_of(int extent) {
  return extent % 32 == 0 ? 32 : extent % 16 == 0 ? 16 : 8;
}

std::string where_operands_lie(bool in_pair) {
  return std::string(
             "D lies in tensor memory: L is the lane, C the column in which a block begins; a "
             "colour is a quarter of the lanes, which one warp can read") +
         (in_pair ? ", of a CTA of the pair." : ".") + " A and B lie in shared memory" +
         (in_pair ? ", half of the rows of each in each CTA." : ".");
}

// D by blocks of 16 rows; `add` tells of one.
template <class Add>
CellGrid umma_sums(const atom::UmmaAtom& atom, int columns, const Add& add) {
  const int share = atom::umma_cta_rows(atom);
  constexpr int kRows = 16;
  CellGrid d =
      cell_grid("D (M " + std::to_string(atom.m) + " x N " + std::to_string(atom.n) +
                    "), blocks of " + std::to_string(kRows) + " x " + std::to_string(columns),
                atom.m / kRows, atom.n / columns);
  for (int r = 0; r < d.rows; ++r) {
    d.row_names.push_back(range(r * kRows, kRows));
    for (int c = 0; c < d.columns; ++c) {
      const int cta = r * kRows / share;
      const atom::TmemCell at = atom::umma_cell(atom, r * kRows % share, c * columns);
      Cell& cell = d.at(r, c);
      cell.word = "L" + std::to_string(at.lane) + " C" + std::to_string(at.column);
      cell.colour = at.lane / 32 + 4 * cta;
      add("D", r * kRows, kRows, c * columns, columns, cta,
          "lanes " + range(at.lane, kRows) + ", columns " + range(at.column, columns), cell);
    }
  }
  for (int c = 0; c < d.columns; ++c) d.column_names.push_back(std::to_string(c * columns));
  return d;
}

// The operands by blocks, with their CTA and their place in its memory.
View umma_view(const TiledMma& mma) {
  const atom::UmmaAtom atom = atom::umma_of(mma.atom);
  const int columns = largest_of(atom::umma_columns(atom));
  const int bits_a = atom::umma_operand_bits(atom.kind, atom.a);
  const int bits_b = atom::umma_operand_bits(atom.kind, atom.b);
  Table table{{"operand", "rows", "columns", "CTA", "place"}, {}};
  const auto add = [&](const std::string& operand, int row, int rows, int column, int count,
                       int cta, const std::string& place, Cell& cell) {
    cell.row = static_cast<std::int64_t>(table.rows.size());
    cell.tip = operand + " rows " + range(row, rows) + ", columns " + range(column, count) +
               ": CTA " + std::to_string(cta) + ", " + place;
    table.rows.push_back(
        {operand, range(row, rows), range(column, count), std::to_string(cta), place});
  };
  const CellGrid d = umma_sums(atom, columns, add);
  // A and B by the CTA that holds them.
  const auto operand = [&](const char* name, int rows, int bits, atom::Major major) {
    const int step = core_of(bits, major).second;
    const int halves = atom.pair ? rows / 2 : rows;
    const int high = largest_of(halves);
    CellGrid grid = cell_grid(std::string(name) + " (" + std::to_string(rows) + " x K " +
                                  std::to_string(atom.k) + ") in shared memory",
                              rows / high, atom.k / step);
    for (int r = 0; r < grid.rows; ++r) {
      grid.row_names.push_back(range(r * high, high));
      for (int c = 0; c < grid.columns; ++c) {
        const int cta = r * high / halves;
        Cell& cell = grid.at(r, c);
        cell.word = "CTA " + std::to_string(cta);
        cell.colour = 8 + 2 * cta + (r + c) % 2;
        add(name, r * high, high, c * step, step, cta, "shared memory", cell);
      }
    }
    for (int c = 0; c < grid.columns; ++c) grid.column_names.push_back(range(c * step, step));
    return grid;
  };
  const CellGrid a = operand("A", atom.m, bits_a, atom.a_major);
  const CellGrid b = operand("B", atom.n, bits_b, atom.b_major);
  View view;
  view.id = "operands";
  view.title = "Where the operands lie";
  view.caption = where_operands_lie(atom.pair);
  if (layout::size(mma.threads) > 1) view.caption += " One of the MMAs is drawn.";
  view.svg = cells_svg("", {d, a, b});
  view.table = std::move(table);
  return view;
}

struct FoundScale {
  int row, scale, step, id;
  atom::ScaleCell at;
};

std::vector<FoundScale> found_scales(const atom::UmmaAtom& atom, bool of_b) {
  const int rows = of_b ? atom::scale_rows_b(atom) : atom::scale_rows_a(atom);
  std::vector<FoundScale> all;
  for (int step = 0; step == 0 || atom::scale_step(atom, step).id != 0; ++step) {
    const atom::ScaleStep s = atom::scale_step(atom, step);
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < atom::umma_scales(atom); ++i) {
        atom::ScaleCell at =
            of_b ? atom::scale_cell_b(atom, s.id, row, i) : atom::scale_cell_a(atom, s.id, row, i);
        at.column += of_b ? s.column_b : s.column_a;
        all.push_back({row, step * atom::umma_scales(atom) + i, step, s.id, at});
      }
    }
  }
  return all;
}

// The scales of one operand in tensor memory: which row's, and which k_block takes them.
CellGrid umma_scales_grid(const atom::UmmaAtom& atom, bool of_b, Table& table) {
  const int rows = of_b ? atom::scale_rows_b(atom) : atom::scale_rows_a(atom);
  const std::vector<FoundScale> all = found_scales(atom, of_b);
  int lanes = 0, columns = 0, steps = 0;
  for (const FoundScale& f : all) {
    lanes = std::max(lanes, f.at.lane + 1);
    columns = std::max(columns, f.at.column + 1);
    steps = std::max(steps, f.step + 1);
  }
  const char* const name = of_b ? "SFB" : "SFA";
  // Quarters of the lanes that hold only copies are left out.
  std::vector<int> shown;
  for (int lane = 0; lane < lanes; ++lane) {
    const int quarter = lane / 32;
    if (std::any_of(all.begin(), all.end(),
                    [&](const FoundScale& f) { return f.at.lane / 32 == quarter; })) {
      shown.push_back(lane);
    }
  }
  const auto line_of = [&](int lane) {
    return static_cast<int>(std::find(shown.begin(), shown.end(), lane) - shown.begin());
  };
  // Scales of a row that one instruction takes and that lie in one word share a cell.
  const int together = std::gcd(atom::kScaleAtomDepth, atom::umma_scales(atom));
  CellGrid grid =
      cell_grid(std::string(name) + ": " + std::to_string(rows) + " rows, " +
                    std::to_string(columns) + " columns of 4 bytes",
                static_cast<int>(shown.size()), columns * atom::kScaleAtomDepth / together);
  for (const int lane : shown) grid.row_names.push_back(std::to_string(lane));
  grid.columns_together = atom::kScaleAtomDepth / together;
  for (int c = 0; c < grid.columns; ++c) {
    const int byte = c * together;
    grid.column_names.push_back(std::to_string(byte / atom::kScaleAtomDepth) +
                                (together == atom::kScaleAtomDepth
                                     ? ""
                                     : "." + range(byte % atom::kScaleAtomDepth, together)));
  }
  for (const FoundScale& f : all) {
    if (f.at.byte % together != 0) continue;
    Cell& cell =
        grid.at(line_of(f.at.lane), (f.at.column * atom::kScaleAtomDepth + f.at.byte) / together);
    const std::string row = std::to_string(f.row), scales = range(f.scale, together),
                      lane = std::to_string(f.at.lane), column = std::to_string(f.at.column),
                      bytes = range(f.at.byte, together), step = std::to_string(f.step),
                      id = std::to_string(f.id);
    cell.word = joined({row, ": ", scales});
    cell.colour = steps > 1 ? f.step : f.row / 32;
    cell.row = static_cast<std::int64_t>(table.rows.size());
    table.rows.push_back({name, row, scales, step, lane, column, bytes, id});
    cell.tip = joined({name, " row ", row, ", scales ", scales, " of K: lane ", lane, ", column ",
                       column, ", bytes ", bytes, ", k_block ", step, ", id ", id});
  }
  return grid;
}

// The scales of both operands.
View umma_scales_view(const TiledMma& mma) {
  const atom::UmmaAtom atom = atom::umma_of(mma.atom);
  Table table{{"scales", "row", "K", "k_block", "lane", "column", "byte", "id"}, {}};
  const auto grid_of = [&](bool of_b) { return umma_scales_grid(atom, of_b, table); };
  View view;
  view.id = "scales";
  view.title = "Scales in tensor memory";
  view.caption =
      "Rows are lanes, columns those of tensor memory with their byte; \"5: 1\" is scale 1 along K "
      "of "
      "row 5, until the ids repeat. A colour is a k_block, or 32 rows where one k_block takes all. "
      "The other quarters of the lanes hold copies.";
  view.svg = cells_svg("", {grid_of(false), grid_of(true)});
  view.table = std::move(table);
  return view;
}

// For mma.sync with scales: whose scales the register of each lane holds, and as which lanes of
// four an instruction asks for them.
View lane_scales_view(const Mma& mma) {
  Table table{{"lane", "row of A", "lanes of A", "column of B", "lane of B"}, {}};
  CellGrid a = cell_grid("scales of A: row", 8, 4);
  CellGrid b = cell_grid("scales of B: column", 8, 4);
  const layout::Layout of_a = atom::mma_layout_scales_a(mma);
  const layout::Layout of_b = atom::mma_layout_scales_b(mma);
  for (int lane = 0; lane < 32; ++lane) {
    // Which lanes of four are named by the instruction so that this one is read.
    int lanes_a = 0, lanes_b = 0;
    while (!atom::gives_scales_a(lane, {0, lanes_a, 0, 0})) ++lanes_a;
    while (!atom::gives_scales_b(lane, {0, 0, 0, lanes_b})) ++lanes_b;
    Cell& cell_a = a.at(lane / 4, lane % 4);
    Cell& cell_b = b.at(lane / 4, lane % 4);
    cell_a.word = std::to_string(of_a(lane, 0));
    cell_b.word = std::to_string(of_b(lane, 0));
    cell_a.colour = lanes_a;
    cell_b.colour = lanes_b;
    cell_a.row = cell_b.row = static_cast<std::int64_t>(table.rows.size());
    table.rows.push_back({std::to_string(lane), cell_a.word, std::to_string(lanes_a), cell_b.word,
                          std::to_string(lanes_b)});
    cell_a.tip = "lane " + std::to_string(lane) + ": row " + cell_a.word +
                 " of A, taken as lanes " + std::to_string(lanes_a);
    cell_b.tip = "lane " + std::to_string(lane) + ": column " + cell_b.word +
                 " of B, taken as lane " + std::to_string(lanes_b);
  }
  for (CellGrid* grid : {&a, &b}) {
    for (int r = 0; r < 8; ++r) grid->row_names.push_back("T" + std::to_string(4 * r));
  }
  View view;
  view.id = "scales";
  view.title = "Scales in registers";
  view.caption = "A cell is a lane, four to a line, and whose scales its register holds: " +
                 std::to_string(atom::mma_scales(mma)) +
                 " along K of an instruction. A colour is the choice of lanes (PTX's thread-id) by "
                 "which they are taken.";
  view.svg = cells_svg("", {a, b});
  view.table = std::move(table);
  return view;
}

}  // namespace

Picture mma_picture(const TiledMma& mma, MmaColour colour, MmaPart from) {
  const Mma& one = mma.atom;
  Picture picture;
  picture.kind = "mma";
  picture.title = atom::to_text(one);
  if (layout::size(mma.threads) > 1) {
    picture.title += ", " + layout::to_text(mma.threads) + " of them: a tile of " +
                     std::to_string(mma.tile_size(0)) + " x " + std::to_string(mma.tile_size(1)) +
                     " x " + std::to_string(mma.tile_size(2));
  }
  if (one.kind >= MmaKind::tcgen05) {
    picture.views.push_back(umma_view(mma));
    if (one.scale_block > 0) picture.views.push_back(umma_scales_view(mma));
    return picture;
  }
  picture.views.push_back(register_view(mma, colour, from));
  if (one.scale_block > 0) picture.views.push_back(lane_scales_view(one));
  return picture;
}

}  // namespace warpwright::pictures
