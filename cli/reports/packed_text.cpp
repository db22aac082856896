#include "cli/reports/packed_text.h"

#include <cstring>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/facts/packed_values.h"

namespace warpwright::cli {
namespace {

std::string type_text(DType t) {
  return std::string(numeric::word(t));
}

// One tile's bytes, and what they are.
class TileText {
 public:
  TileText(const PackedFormat& format, const std::byte* tile, std::int64_t row, std::int64_t k)
      : f_(format), tile_(tile), row_(row), k_(k) {}

  [[nodiscard]] std::string parts() const {
    std::string text;
    const auto part = [&](int begin, int end, const std::string& what) {
      text += format("  %5d..%-5d %s\n", begin, end - 1, what.c_str());
    };
    for (int half = 0; half < 2; ++half) {
      const int begin = packed::lane_begin(half, 0);
      part(begin, begin + packed::kHalfBytes,
           format("codes of k %lld..%lld: 16 bytes, 4 words, for each of 128 threads",
                  at(64 * half), at(64 * half + 63)));
    }
    if (packed::has_float_codes(f_)) {
      part(packed::scales_begin(), packed::tile_bytes(f_),
           format("scales, %d bytes for each row, behind them those of the eighth row below",
                  packed::slices(f_)));
      return text;
    }
    for (int slice = 0; slice < packed::slices(f_); ++slice) {
      const int begin = packed::scale_pair_begin(f_, slice, 0);
      part(begin, begin + packed::slice_bytes(f_),
           format("scales of k %lld..%lld, %s times 512: pairs of a row and the eighth below",
                  at(slice * f_.group), at((slice + 1) * f_.group - 1),
                  type_text(f_.scale).c_str()));
    }
    if (f_.zero_points == ZeroPoints::groups) {
      part(packed::zero_points_begin(f_), packed::tile_bytes(f_),
           "zero points: a word for each such pair, a byte for each group");
    }
    return text;
  }

  [[nodiscard]] std::string codes(int threads) const {
    std::string text;
    for (int half = 0; half < 2; ++half) {
      for (int thread = 0; thread < threads; ++thread) {
        for (int word = 0; word < 4; ++word) {
          text += code_line(packed::lane_begin(half, thread) + 4 * word, thread);
        }
      }
    }
    return text;
  }

  // One pair of rows a line.
  [[nodiscard]] std::string scales() const {
    std::string text;
    if (packed::has_float_codes(f_)) {
      for (int thread = 0; thread < 128; thread += 4) {
        for (int below = 0; below < 2; ++below) {
          const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * below;
          const int begin = packed::scales_begin() + packed::scale_byte(f_, row, 0);
          text += format("  %5d  %-24s row %lld:", begin, hex(begin, packed::slices(f_)).c_str(),
                         row_ + row);
          for (int slice = 0; slice < packed::slices(f_); ++slice) {
            text += format(" %g", scale(row, slice));
          }
          text += "\n";
        }
      }
      return text;
    }
    for (int slice = 0; slice < packed::slices(f_); ++slice) {
      for (int thread = 0; thread < 128; thread += 4) {
        const int begin = packed::scale_pair_begin(f_, slice, thread);
        const int row = thread / 32 * 16 + thread % 32 / 4;
        text += format("  %5d  %-24s k %lld..%lld:", begin,
                       hex(begin, packed::slice_bytes(f_) / 32).c_str(), at(slice * f_.group),
                       at((slice + 1) * f_.group - 1));
        for (const int r : {row, row + 8}) {
          text += format("  row %lld: %g", row_ + r, scale(r, slice));
          if (f_.zero_points == ZeroPoints::groups)
            text += format(" (zero point %d)", zero(r, slice));
        }
        text += "\n";
      }
    }
    return text;
  }

  /// By rows of the tile: its codes, its scales and, where there are some, its zero points.
  [[nodiscard]] nlohmann::ordered_json values() const {
    constexpr int rows = packed::kTileRows;
    packed::TileCodes bits;
    packed::take_codes(tile_, f_, bits);
    std::vector<std::vector<double>> codes(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      for (const std::uint8_t each : bits[row]) codes[row].push_back(code(each));
    }
    std::vector<std::vector<double>> scales(rows);
    std::vector<std::vector<int>> zeros(rows);
    for (int row = 0; row < rows; ++row) {
      for (int slice = 0; slice < packed::slices(f_); ++slice) {
        scales[static_cast<std::size_t>(row)].push_back(scale(row, slice));
        if (f_.zero_points == ZeroPoints::groups) {
          zeros[static_cast<std::size_t>(row)].push_back(zero(row, slice));
        }
      }
    }
    nlohmann::ordered_json json = {{"row", row_}, {"k", k_}, {"codes", codes}, {"scales", scales}};
    if (!packed::has_float_codes(f_)) {  // whole numbers
      json["codes"] = std::vector<std::vector<int>>{};
      for (const auto& line : codes)
        json["codes"].push_back(std::vector<int>(line.begin(), line.end()));
    }
    if (f_.zero_points == ZeroPoints::groups) json["zero_points"] = zeros;
    return json;
  }

 private:
  [[nodiscard]] std::uint32_t bits_at(int begin) const {
    std::uint32_t word = 0;
    std::memcpy(&word, tile_ + begin, 4);
    return packed::bits_of(f_, word);
  }
  [[nodiscard]] double code(std::uint32_t bits) const { return packed::value_of(f_, bits); }

  [[nodiscard]] long long at(int k) const { return k_ + k; }

  [[nodiscard]] std::string hex(int begin, int count) const {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += format("%s%02x", i > 0 ? " " : "", static_cast<unsigned>(tile_[begin + i]));
    }
    return text;
  }

  [[nodiscard]] std::string code_line(int begin, int thread) const {
    const auto [row, k] = packed::word_place(f_, begin / 4);
    const std::uint32_t bits = bits_at(begin);
    std::string text = format("  %5d  %s  thread %3d:", begin, hex(begin, 4).c_str(), thread);
    for (int below = 0; below < 2; ++below) {
      const bool apart = packed::quad_step(f_, 2) > 2;
      text += format("  row %lld, k %lld..%lld:", row_ + row + 8 * below, at(k),
                     at(k + (apart ? 1 : 3)));
      for (int i = 0; i < 4; ++i) {
        if (apart && i == 2) text += format(", %lld..%lld:", at(k + 8), at(k + 9));
        text += format(" %2g", code(bits >> (8 * i + 4 * below) & 15U));
      }
    }
    return text + "\n";
  }

  [[nodiscard]] double scale(int row, int slice) const {
    return packed::scale_in(tile_, f_, row, slice);
  }
  [[nodiscard]] int zero(int row, int slice) const {
    return packed::zero_point_in(tile_, f_, row, slice);
  }

  PackedFormat f_;
  const std::byte* tile_;
  long long row_;
  long long k_;
};

void require_tile(const char* what, std::int64_t index, std::int64_t count) {
  if (index >= 0 && index < count) return;
  throw InputError(std::string("--tile names ") + what + " " + std::to_string(index) +
                   "; the nearest legal value is " +
                   as_nearest(std::to_string(index < 0 ? 0 : count - 1)) + ".");
}

// The byte of the tensor where the tile begins. Throws InputError where there is no such tile.
std::int64_t tile_begin(const PackedTensor& packed, const TileView& view) {
  const packed::Extents& e = packed.header.extents;
  require_tile("expert", view.expert, e.experts);
  require_tile("row tile", view.row_tile, packed::row_tiles(e));
  require_tile("K tile", view.k_tile, packed::k_tiles(e));
  return packed::kHeaderBytes + packed::tile_index(e, view.expert, view.row_tile, view.k_tile) *
                                    packed::tile_bytes(packed.header.format);
}

}  // namespace

// How kernels take the scales of e2m1 weights.
static const char* scales_text(const PackedFormat& f) {
  if (f.exponents == Exponents::of_rows) return "scales folded by rows: no weight is rounded";
  if (f.scale == DType::ue4m3) return "scales folded: no weight is rounded";
  return "scales exact, of groups of 32: those of a row span too far to be folded";
}

std::string packed_line(const weights::Header& header) {
  const PackedFormat& f = header.format;
  const packed::Extents& e = header.extents;
  if (packed::has_float_codes(f)) {
    return format("%s for tokens of %s, %s, %lld x %lld x %lld, from %s",
                  packed::weights_word(f).c_str(), type_text(f.tokens).c_str(), scales_text(f),
                  static_cast<long long>(e.experts), static_cast<long long>(e.n),
                  static_cast<long long>(e.k), header.source.c_str());
  }
  const std::string tokens = packed::is_wide(f) ? " for tokens of " + type_text(f.tokens) : "";
  return format(
      "%s %s%s, groups of %d, %s scales%s, %lld x %lld x %lld, from %s",
      packed::weights_word(f).c_str(), f.encoding == Int4Encoding::sm ? "sm (-7..7)" : "ex (-8..7)",
      tokens.c_str(), f.group, type_text(f.scale).c_str(),
      f.zero_points == ZeroPoints::groups ? ", zero points" : "", static_cast<long long>(e.experts),
      static_cast<long long>(e.n), static_cast<long long>(e.k), header.source.c_str());
}

nlohmann::ordered_json packed_json(const std::string& name, const weights::Header& header,
                                   std::size_t bytes) {
  const PackedFormat& f = header.format;
  const packed::Extents& e = header.extents;
  nlohmann::ordered_json json;
  json["tensor"] = name;
  json["experts"] = e.experts;
  json["n"] = e.n;
  json["k"] = e.k;
  json["group"] = f.group;
  json["encoding"] = packed::has_float_codes(f)       ? std::string(numeric::word(f.code))
                     : f.encoding == Int4Encoding::sm ? "sm"
                                                      : "ex";
  if (packed::has_float_codes(f)) {
    json["tokens"] = numeric::word(f.tokens);
    json["folded"] = packed::folds(f);
  }
  json["scales"] = numeric::word(f.scale);
  json["zero_points"] = f.zero_points == ZeroPoints::groups;
  json["from"] = header.source;
  json["bytes"] = bytes;
  json["bits_per_weight"] =
      8 * static_cast<double>(bytes) / static_cast<double>(e.experts * e.n * e.k);
  return json;
}

nlohmann::ordered_json packed_json(const PackedTensor& packed, const TileView& view) {
  const PackedFormat& f = packed.header.format;
  nlohmann::ordered_json json = packed_json(packed.name, packed.header, packed.tensor.bytes.size());
  const std::int64_t begin = tile_begin(packed, view);
  const TileText tile(f, packed.tensor.bytes.data() + begin, view.row_tile * packed::kTileRows,
                      view.k_tile * packed::kTileK);
  json["tile"] = {{"expert", view.expert},
                  {"row_tile", view.row_tile},
                  {"k_tile", view.k_tile},
                  {"begin", begin},
                  {"bytes", packed::tile_bytes(f)}};
  json["tile"].update(tile.values());
  return json;
}

std::string packed_text(const PackedTensor& packed, const TileView& view) {
  const PackedFormat& f = packed.header.format;
  const packed::Extents& e = packed.header.extents;
  const std::int64_t row_tiles = packed::row_tiles(e);
  const std::int64_t k_tiles = packed::k_tiles(e);
  const std::int64_t row = view.row_tile * packed::kTileRows;
  const std::int64_t k = view.k_tile * packed::kTileK;
  const std::int64_t begin = tile_begin(packed, view);
  const TileText tile(f, packed.tensor.bytes.data() + begin, row, k);
  const auto number = [](std::int64_t x) { return static_cast<long long>(x); };
  std::string text = printable(packed.name) + ": " + packed_line(packed.header) + "\n";
  text += format(
      "A header of %d bytes, then for each expert %lld x %lld tiles of 64 rows and 128 K, "
      "K first,\n%d bytes each: %zu bytes, %.2f bits a weight.\n",
      packed::kHeaderBytes, number(row_tiles), number(k_tiles), packed::tile_bytes(f),
      packed.tensor.bytes.size(),
      8 * static_cast<double>(packed.tensor.bytes.size()) /
          static_cast<double>(e.experts * e.n * e.k));
  text += format(
      "\nTile %lld,%lld,%lld: rows %lld..%lld, k %lld..%lld, bytes %lld..%lld of the tensor. "
      "Its bytes:\n",
      number(view.expert), number(view.row_tile), number(view.k_tile), number(row),
      number(row + packed::kTileRows - 1), number(k), number(k + packed::kTileK - 1), number(begin),
      number(begin + packed::tile_bytes(f) - 1));
  text += tile.parts();
  const bool bytes_are_codes = !packed::has_float_codes(f) && f.tokens == DType::e4m3;
  text += !bytes_are_codes ? "\nA word of codes:\n"
                           : "\nA word of codes: byte i has the magnitude of code i of the row "
                             "in bits 2..0 and its sign "
                             "in "
                             "bit 7;\nthe magnitude of code i of the eighth row below in bits "
                             "6..4, and its sign in bit 3 "
                             "of the next byte.\n";
  if (f.encoding == Int4Encoding::ex && !packed::has_float_codes(f) && f.tokens == DType::e4m3)
    text += "The magnitude of a negative code is stored less 1.\n";
  text += tile.codes(view.threads);
  if (view.threads < 128) text += "  ... (--threads 128 shows all)\n";
  return text + "\nScales:\n" + tile.scales();
}

std::string error_text(const PackedError& e, const std::string& against) {
  if (e.largest == 0) return "Against " + printable(against) + ": no weight is off.\n";
  return "Against " + printable(against) +
         format(
             ": rms error %.4f of the weights' own; the largest, of row %lld and k = %lld of "
             "expert %lld, is %.6g where %.6g is due.\n",
             e.rms, static_cast<long long>(e.row), static_cast<long long>(e.k),
             static_cast<long long>(e.expert), e.got, e.want);
}

}  // namespace warpwright::cli
