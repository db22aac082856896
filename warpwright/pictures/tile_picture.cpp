#include "warpwright/pictures/tile_picture.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "warpwright/atom/descriptor_text.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/facts/format.h"
#include "warpwright/layout/error.h"
#include "warpwright/pictures/cells_svg.h"
#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

using atom::Descriptor;
using atom::Major;
using atom::OperandTile;

constexpr int kChunk = 16;  // bytes that a swizzle moves as one
constexpr int kLine = 128;  // bytes of all banks
constexpr int kBankBytes = 4;
constexpr int kRowsAtOnce = 8;     // chunks that a load takes at once
constexpr int kMostChunks = 1536;  // of a tile that is drawn

std::string hex(std::uint64_t value, int digits) {
  return format("0x%0*llx", digits, static_cast<unsigned long long>(value));
}

std::string span_text(int first, int count) {
  return std::to_string(first) + (count == 1 ? "" : "-" + std::to_string(first + count - 1));
}

// The tile cut into chunks of 16 bytes: `elements` along its contiguous dimension.
struct Chunks {
  const TileAsk& ask;
  int elements = 0;
  int along = 0, across = 0;  // chunks of a line, and lines

  explicit Chunks(const TileAsk& a) : ask(a) {
    elements = kChunk * 8 / atom::stored_bits(a.tile);
    const bool k_major = a.tile.major == Major::k;
    along = (k_major ? a.tile.depth : a.tile.rows) / elements;
    across = k_major ? a.tile.rows : a.tile.depth;
  }
  [[nodiscard]] int row(int line, int chunk) const {
    return ask.tile.major == Major::k ? line : chunk * elements;
  }
  [[nodiscard]] int k(int line, int chunk) const {
    return ask.tile.major == Major::k ? chunk * elements : line;
  }
  // Where it lies as TMA writes it.
  [[nodiscard]] std::uint32_t address(int line, int chunk) const {
    return atom::apply_swizzle(ask.tile.swizzle, straight(line, chunk));
  }
  // And where it would lie without the XOR.
  [[nodiscard]] std::uint32_t straight(int line, int chunk) const {
    return ask.start + atom::tile_offset(ask.tile, row(line, chunk), k(line, chunk));
  }
  [[nodiscard]] std::string word(int line, int chunk) const {
    const bool k_major = ask.tile.major == Major::k;
    return k_major ? "r" + std::to_string(line) + " k" + std::to_string(chunk * elements)
                   : "k" + std::to_string(line) + " r" + std::to_string(chunk * elements);
  }
};

// K of an instruction, how many there are, and where each begins.
int k_of(const TileAsk& ask) {
  return ask.long_k ? atom::kUmmaLongK : atom::k_block_elements(ask.tile);
}
int steps_of(const TileAsk& ask) {
  return ask.long_k ? ask.tile.depth / atom::kUmmaLongK : atom::k_block_count(ask.tile);
}
Descriptor descriptor_of(const TileAsk& ask, int step) {
  // Behind the tile's last span would come the next stage; no step of a whole tile reads it.
  if (ask.long_k) return atom::long_descriptor(ask.tile, ask.start, step, ask.start);
  return atom::descriptor(ask.tile, ask.start + atom::k_block_offset(ask.tile, step));
}

// The chunks that the tensor core reads for the k_block.
std::vector<std::uint32_t> read_addresses(const TileAsk& ask) {
  const OperandTile& tile = ask.tile;
  const Descriptor d = descriptor_of(ask, ask.k_block);
  std::vector<std::uint32_t> all;
  for (int row = 0; row < tile.rows; ++row) {
    for (int k = 0; k < k_of(ask); ++k) {
      const std::uint32_t at =
          atom::element_address(d, row, k, atom::stored_bits(tile), tile.major);
      all.push_back(at / kChunk * kChunk);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string k_range(const TileAsk& ask, int step) {
  return span_text(step * k_of(ask), k_of(ask));
}

std::string memory_caption(const TileAsk& ask, int elements, int data) {
  const OperandTile& tile = ask.tile;
  return "A cell is 16 bytes, " + std::to_string(elements) + " elements" +
         (tile.padded ? " in their first " + std::to_string(data) + " bytes, the rest is padding"
                      : "") +
         ". A colour is the place in a span of " + std::to_string(atom::span_bytes(tile.swizzle)) +
         " bytes, which is a box of TMA across " + std::to_string(atom::box_outer(tile)) +
         " lines; gaps part the boxes. Framed is what the tensor core reads for k_block " +
         std::to_string(ask.k_block) + ", K " + k_range(ask, ask.k_block) +
         ". The mbarrier counts " + std::to_string(atom::loaded_bytes(tile)) + " bytes.";
}

View memory_view(const TileAsk& ask) {
  const OperandTile& tile = ask.tile;
  const Chunks chunks(ask);
  const std::vector<std::uint32_t> read = read_addresses(ask);
  const bool k_major = tile.major == Major::k;
  CellGrid box = cell_grid(
      k_major ? "in global memory: rows down, K along" : "in global memory: K down, rows along",
      chunks.across, chunks.along);
  box.columns_together = atom::span_bytes(tile.swizzle) / kChunk;
  for (int c = 0; c < chunks.along; ++c) {
    box.column_names.push_back(std::to_string(c * chunks.elements));
  }
  const int lines = atom::tile_bytes(tile) / kLine;
  CellGrid memory = cell_grid("in shared memory: lines of 128 bytes", lines, kLine / kChunk);
  memory.rows_together = atom::box_bytes(tile) % kLine == 0 ? atom::box_bytes(tile) / kLine : 0;
  for (int i = 0; i < lines; ++i) {
    memory.row_names.push_back(hex(ask.start + static_cast<std::uint32_t>(i * kLine), 4));
  }
  for (int c = 0; c < kLine / kChunk; ++c) {
    memory.column_names.push_back("+" + std::to_string(c * kChunk));
  }
  View view;
  view.id = "memory";
  view.table.header = {"row", "K", "address", "bytes of data", "k_block"};
  const int data = chunks.elements * tile.element_bits / 8;
  for (int line = 0; line < chunks.across; ++line) {
    for (int chunk = 0; chunk < chunks.along; ++chunk) {
      const int row = chunks.row(line, chunk), k = chunks.k(line, chunk);
      const std::uint32_t address = chunks.address(line, chunk);
      const std::uint32_t at = address - ask.start;
      const bool is_read = std::binary_search(read.begin(), read.end(), address);
      Cell cell;
      cell.word = chunks.word(line, chunk);
      // A colour for each chunk of a span: the swizzle shows as its diagonals.
      cell.colour = chunk % (atom::span_bytes(tile.swizzle) / kChunk) +
                    (tile.swizzle == atom::SmemSwizzle::none ? chunk % 8 : 0);
      cell.is_marked = is_read;
      cell.filled = static_cast<double>(data) / kChunk;
      cell.row = static_cast<std::int64_t>(view.table.rows.size());
      const std::string rows = span_text(row, k_major ? 1 : chunks.elements);
      const std::string depth = span_text(k, k_major ? chunks.elements : 1);
      cell.tip = joined({"rows ", rows, ", K ", depth, ": ", hex(address, 4)});
      if (data < kChunk) cell.tip += joined({", ", std::to_string(data), " of 16 bytes"});
      view.table.rows.push_back(
          {rows, depth, hex(address, 4), std::to_string(data), std::to_string(k / k_of(ask))});
      Cell& in_box = box.at(line, chunk);
      in_box = cell;
      in_box.word = std::to_string(k_major ? k : row);
      in_box.filled = 1;  // global memory has no padding
      memory.at(static_cast<int>(at / kLine), static_cast<int>(at % kLine / kChunk)) = cell;
    }
  }
  view.title = "The tile in shared memory";
  view.caption = memory_caption(ask, chunks.elements, data);
  view.svg = cells_svg("", {box, memory});
  return view;
}

// --- descriptors ---------------------------------------------------------------------------------

constexpr double kBit = 17;
constexpr double kBitsLeft = 96;

// A word with its fields; what they are becomes rows of the table.
std::string word_svg(const char* name, const TileAsk& ask, const Descriptor& d, bool umma,
                     double top, Table& table) {
  const std::uint64_t word = umma ? atom::encode_umma(d) : atom::encode(d);
  const std::vector<atom::DescriptorField> fields = atom::descriptor_fields(ask.tile, d, umma);
  std::string svg =
      svg_text(16, top + 14, std::string(name) + "  " + hex(word, 16), 12.5, "font-weight=\"600\"");
  // Bits 63 to 32 above 31 to 0.
  for (int bit = 63; bit >= 0; --bit) {
    const int before = 31 - bit % 32, nibbles = before / 4;
    const double x = kBitsLeft + before * kBit + nibbles * 3;
    const double y = top + 40 + (bit < 32 ? 44 : 0);
    std::string_view fill = ink::none;
    std::string tip = "bit " + std::to_string(bit), row;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (bit < fields[i].first || bit > fields[i].last) continue;
      fill = pale(static_cast<int>(i));
      tip.insert(0, joined({fields[i].name, ": "}));
      row = data_row(table.rows.size() + i);
    }
    svg += svg_box(x, y, kBit - 1, 20, fill, tip, row);
    svg += svg_text(x + kBit / 2 - 0.5, y + 14, (word >> bit & 1) != 0 ? "1" : "0", 11,
                    "text-anchor=\"middle\" pointer-events=\"none\"");
    if (bit % 4 == 3 || bit % 32 == 0) {
      svg += svg_text(x + kBit / 2 - 0.5, y - 4, std::to_string(bit), 9,
                      "text-anchor=\"middle\" opacity=\"0.6\"");
    }
  }
  double y = top + 148;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const atom::DescriptorField& f = fields[i];
    const std::string bits = f.first == f.last
                                 ? std::to_string(f.first)
                                 : std::to_string(f.last) + "-" + std::to_string(f.first);
    const std::string value = hex(f.value, 1);
    svg += svg_box(16, y - 11, 14, 14, pale(static_cast<int>(i)), "", data_row(table.rows.size()));
    svg += svg_text(38, y, bits, 12);
    svg += svg_text(kBitsLeft, y, f.name, 12);
    svg += svg_text(kBitsLeft + 150, y, value, 12);
    svg += svg_text(kBitsLeft + 220, y, f.meaning, 12);
    table.rows.push_back({name, f.name, bits, value, f.meaning});
    y += 20;
  }
  return svg;
}

View descriptor_view(const TileAsk& ask) {
  const OperandTile& tile = ask.tile;
  const Descriptor d = descriptor_of(ask, ask.k_block);
  View view;
  view.id = "descriptor";
  view.title = "The descriptor of k_block " + std::to_string(ask.k_block);
  view.caption = std::string("Bits 63 to 32 above bits 31 to 0. ") +
                 (ask.long_k ? "The k_block begins in one span, and in the place of the leading "
                               "offset stands where the next span is."
                             : "All but the start is the same for every k_block.");
  view.table.header = {"descriptor", "field", "bits", "value", "meaning"};
  constexpr double height = 148 + 20 * 7 + 16;
  double top = 4;
  std::string body;
  if (tile.element_bits >= 8) {
    body += word_svg("wgmma", ask, d, false, top, view.table);
    top += height - 40;
  }
  body += word_svg("tcgen05", ask, d, true, top, view.table);
  view.svg = svg_head(kBitsLeft + 32 * kBit + 8 * 3 + 24, top + height) + body + "</svg>\n";
  return view;
}

View steps_view(const TileAsk& ask) {
  const int steps = steps_of(ask);
  View view;
  view.id = "k-blocks";
  view.title = "From k_block to k_block";
  view.caption = "An instruction takes " + std::to_string(k_of(ask)) + " elements of K, " +
                 std::to_string(k_of(ask) * atom::stored_bits(ask.tile) / 8) +
                 " bytes of shared memory." +
                 (ask.long_k ? ""
                             : " The main loop adds the step, in 16 bytes, to the low word of "
                               "the descriptor.");
  view.table.header = {"k_block", "K", "start", "bytes from the tile's", "low word", "high word"};
  const std::vector<std::string> names = {"K", "start", "low word"};
  CellGrid grid = cell_grid("", static_cast<int>(names.size()), steps);
  grid.row_names = names;
  for (int i = 0; i < steps; ++i) {
    const Descriptor d = descriptor_of(ask, i);
    const std::uint32_t from = d.start - ask.start;
    const std::uint64_t word = atom::encode_umma(d);
    const std::string words[] = {k_range(ask, i), hex(d.start, 4), hex(atom::low_word(word), 8)};
    for (int r = 0; r < grid.rows; ++r) {
      Cell& cell = grid.at(r, i);
      cell.word = words[r];
      cell.colour = i;
      cell.row = i;
      cell.is_marked = i == ask.k_block;
      cell.tip = "k_block " + std::to_string(i) + ": +" + std::to_string(from) + " bytes";
    }
    view.table.rows.push_back({std::to_string(i), words[0], words[1], std::to_string(from),
                               words[2], hex(atom::high_word(word), 8)});
  }
  view.svg = cells_svg("", {grid});
  return view;
}

// --- banks ---------------------------------------------------------------------------------------

// Eight chunks at one place of eight lines, as ldmatrix or a core matrix takes them.
CellGrid bank_grid(const char* title, const Chunks& chunks, bool swizzled, Table& table) {
  constexpr int banks = kLine / kBankBytes;
  std::array<int, banks> taken{};
  CellGrid grid = cell_grid("", kRowsAtOnce, banks / 4);
  for (int c = 0; c < grid.columns; ++c) grid.column_names.push_back(span_text(4 * c, 4));
  const bool k_major = chunks.ask.tile.major == Major::k;
  for (int line = 0; line < kRowsAtOnce; ++line) {
    grid.row_names.push_back((k_major ? "row " : "K ") + std::to_string(line));
    const std::uint32_t address = swizzled ? chunks.address(line, 0) : chunks.straight(line, 0);
    const auto first = static_cast<int>(address % kLine / kBankBytes);
    for (int b = first; b < first + kChunk / kBankBytes; ++b) {
      ++taken[static_cast<std::size_t>(b)];
    }
    Cell& cell = grid.at(line, first / 4);
    cell.word = hex(address, 4);
    cell.colour = line;
    cell.row = static_cast<std::int64_t>(table.rows.size());
    cell.tip = grid.row_names.back() + ": banks " + span_text(first, 4);
    table.rows.push_back({title, std::to_string(line), hex(address, 4), span_text(first, 4)});
  }
  const int times = *std::max_element(taken.begin(), taken.end());
  grid.title = std::string(title) + ": " +
               (times == 1 ? "no conflict" : std::to_string(times) + " times the time");
  return grid;
}

View banks_view(const TileAsk& ask) {
  const Chunks chunks(ask);
  View view;
  view.id = "banks";
  view.title = "The banks of a load";
  view.caption =
      "Eight chunks of 16 bytes, of eight lines at one place, are what a load (ldmatrix, "
      "or the tensor core's core matrix) takes at once. Columns are banks, 4 bytes each; "
      "a bank gives one line at a time.";
  view.table.header = {"how", "line", "address", "banks"};
  std::vector<CellGrid> grids = {bank_grid("as it lies", chunks, true, view.table)};
  if (ask.tile.swizzle != atom::SmemSwizzle::none) {
    grids.push_back(bank_grid("without the XOR", chunks, false, view.table));
  }
  view.svg = cells_svg("", grids);
  return view;
}

void require_legal(const TileAsk& ask) {
  const OperandTile& tile = ask.tile;
  const std::string what = "a tile of " + std::to_string(tile.rows) + " x " +
                           std::to_string(tile.depth) + " " + ask.type;
  if (const char* fault = atom::tile_fault(tile)) throw layout::Error(what + ": " + fault + ".");
  const int bytes = atom::tile_bytes(tile);
  if (bytes / kChunk > kMostChunks) {
    throw layout::Error(what + " has " + std::to_string(bytes) +
                        " bytes; a picture shows at most " + std::to_string(kMostChunks * kChunk) +
                        ": fewer rows, or a smaller K.");
  }
  const auto repeat = static_cast<std::uint32_t>(atom::repeat_bytes(tile.swizzle));
  if (ask.start % repeat != 0 ||
      ask.start + static_cast<std::uint32_t>(bytes) > atom::kDescriptorAddressMask + 1) {
    throw layout::Error("the tile begins at byte " + std::to_string(ask.start) +
                        "; it begins at a multiple of " + std::to_string(repeat) +
                        " and ends within 256 KiB: the nearest is " +
                        std::to_string(std::min(
                            (ask.start + repeat / 2) / repeat * repeat,
                            (atom::kDescriptorAddressMask + 1 - static_cast<std::uint32_t>(bytes)) /
                                repeat * repeat)) +
                        ".");
  }
  constexpr int whole = 3 * 256;  // the least that K 96 and spans of 256 elements divide
  if (ask.long_k && (tile.element_bits != 4 || tile.padded || tile.major != Major::k ||
                     tile.swizzle != atom::SmemSwizzle::b128 || tile.depth % whole != 0)) {
    throw layout::Error(what +
                        ": k_blocks of K 96 are of packed e2m1, K-major in the 128B swizzle, " +
                        "on a K that is a multiple of " + std::to_string(whole) + ".");
  }
  const int steps = steps_of(ask);
  if (ask.k_block < 0 || ask.k_block >= steps) {
    throw layout::Error(what + " has k_blocks 0 to " + std::to_string(steps - 1) +
                        ", and k_block " + std::to_string(ask.k_block) +
                        " is asked for; the nearest is " +
                        std::to_string(std::clamp(ask.k_block, 0, steps - 1)) + ".");
  }
}

}  // namespace

Picture tile_picture(const TileAsk& ask) {
  require_legal(ask);
  const OperandTile& tile = ask.tile;
  Picture picture;
  picture.kind = "tile";
  picture.title = std::to_string(tile.rows) + " x " + std::to_string(tile.depth) + " " + ask.type +
                  (tile.padded ? " padded" : "") +
                  (tile.major == Major::k ? ", K-major" : ", MN-major") + ", swizzle " +
                  atom::name(tile.swizzle);
  picture.views = {memory_view(ask), descriptor_view(ask), steps_view(ask), banks_view(ask)};
  return picture;
}

}  // namespace warpwright::pictures
