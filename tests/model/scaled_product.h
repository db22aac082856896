// Block-scaled products by tcgen05 for tests: codes and scales, how they lie in shared memory, and
// what comes out, element by element.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/model/harness.h"
#include "tests/model/operands.h"
#include "warpwright/atom/umma_scaled.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {

/// What is multiplied: rows of codes along K, and a scale each `block` of them.
struct ScaledMatrix {
  int rows = 0;
  int depth = 0;
  int block = 32;
  DType type = DType::e4m3;
  DType scale = DType::ue8m0;
  std::vector<std::uint8_t> codes;   // row * depth + k
  std::vector<std::uint8_t> scales;  // row * (depth / block) + k / block
  std::vector<double> values;        // elements by their scales, as codes

  void set_values() {
    values.clear();
    for (std::size_t i = 0; i < codes.size(); ++i) {
      values.push_back(numeric::to_double(type, codes[i]) *
                       numeric::to_double(scale, scales[i / static_cast<std::size_t>(block)]));
    }
  }
};

/// Random codes, all that are numbers, and scales within a few powers of two.
inline ScaledMatrix random_scaled(const atom::UmmaAtom& atom, DType type, int rows, int depth,
                                  unsigned seed) {
  std::mt19937 random(seed);
  const bool scaled = atom.scale_block > 0;
  ScaledMatrix m{rows, depth, scaled ? atom.scale_block : 32, type, atom.scale, {}, {}, {}};
  const unsigned mask = (1U << numeric::bits(type)) - 1;
  while (m.codes.size() < index(rows * depth)) {
    const unsigned code = random() & mask;
    if (std::isfinite(numeric::to_double(type, code))) {
      m.codes.push_back(static_cast<std::uint8_t>(code));
    }
  }
  m.scales.resize(index(rows * (depth / m.block)));
  for (std::uint8_t& s : m.scales) {
    if (!scaled) {
      s = 127;  // 1
      continue;
    }
    s = static_cast<std::uint8_t>(atom.scale == DType::ue8m0 ? 121 + random() % 12
                                                             : random() % 0x7f);
  }
  m.set_values();
  return m;
}

/// The tile that the operand is, in bytes: two elements of a packed kind share one.
inline atom::OperandTile byte_tile(const atom::UmmaAtom& atom, int rows, int depth,
                                   atom::SmemSwizzle swizzle, atom::Major major = atom::Major::k) {
  return {rows, atom::is_packed(atom.kind) ? depth / 2 : depth, 8, major, swizzle};
}

/// The bytes of rows [first, first + tile.rows) as a stored tile. Padding holds all ones.
inline std::vector<unsigned char> stored_codes(const atom::UmmaAtom& atom,
                                               const atom::OperandTile& tile, const ScaledMatrix& m,
                                               int first) {
  std::vector<unsigned char> image(index(atom::tile_bytes(tile)), 0xff);
  const bool along_k = tile.major == atom::Major::k;
  const int bits = numeric::bits(m.type);
  const int each = atom::is_packed(atom.kind) ? 32 : 16;  // elements in 16 bytes
  const int lines = along_k ? tile.rows : m.depth;
  const int length = along_k ? m.depth : tile.rows;
  for (int line = 0; line < lines; ++line) {
    for (int at = 0; at < length; at += each) {
      std::array<unsigned char, 16> piece{};
      for (int e = 0; e < each; ++e) {
        const int row = along_k ? line : at + e;
        const int k = along_k ? at + e : line;
        const unsigned code = m.codes[index((first + row) * m.depth + k)] << e * bits % 8;
        piece[index(e * bits / 8)] |= static_cast<unsigned char>(code);
        if (e * bits % 8 + bits > 8) {
          piece[index(e * bits / 8 + 1)] |= static_cast<unsigned char>(code >> 8);
        }
      }
      std::fill(piece.begin() + each * bits / 8, piece.end(), 0xff);
      const int byte = at * 16 / each;  // along the contiguous dimension
      std::uint32_t to =
          along_k ? atom::tile_offset(tile, line, byte) : atom::tile_offset(tile, byte, line);
      to ^= (to >> 7 & ((1U << atom::swizzle_bits(tile.swizzle)) - 1)) << 4;
      std::copy(piece.begin(), piece.end(), image.begin() + to);
    }
  }
  return image;
}

/// The scales of rows [first, first + count) as atoms of 512 bytes: all rows of four of K, then the
/// next four. Rows that are not there have scales that are NaN, the first `skip` of them too.
inline std::vector<unsigned char> stored_scales(const ScaledMatrix& m, int first, int count,
                                                int skip = 0) {
  const int of_row = m.depth / m.block;
  const int atoms = (count + skip + 127) / 128;
  const int words = (of_row + 3) / 4;
  std::vector<unsigned char> image(index(atoms * words * atom::kScaleAtomBytes),
                                   m.scale == DType::ue8m0 ? 0xff : 0x7f);
  for (int r = 0; r < count; ++r) {
    for (int s = 0; s < of_row; ++s) {
      const int at = r + skip;
      const int atom = s / 4 * atoms + at / 128;
      image[index(512 * atom + at % 32 * 16 + at / 32 % 4 * 4 + s % 4)] =
          m.scales[index((first + r) * of_row + s)];
    }
  }
  return image;
}

/// D(row, column) after instructions of `k` each, `times` over all of K: their products exactly,
/// one rounding each.
inline float scaled_sum(const ScaledMatrix& a, const ScaledMatrix& b, int row, int column, int k) {
  const double* of_a = a.values.data() + std::ptrdiff_t{row} * a.depth;
  const double* of_b = b.values.data() + std::ptrdiff_t{column} * b.depth;
  float sum = 0;
  for (int i = 0; i < a.depth; i += k) {
    double part = 0;
    for (int e = i; e < i + k; ++e) part += of_a[e] * of_b[e];
    sum = static_cast<float>(sum + part);
  }
  return sum;
}

}  // namespace warpwright::model
