// Block-scaled products by tcgen05 for tests: codes and scales, how they lie in shared memory, and
// what comes out, element by element.
#pragma once

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
  ScaledMatrix m{rows, depth, atom.scale_block, type, atom.scale, {}, {}, {}};
  const unsigned mask = (1U << numeric::bits(type)) - 1;
  while (m.codes.size() < index(rows * depth)) {
    const unsigned code = random() & mask;
    if (std::isfinite(numeric::to_double(type, code))) {
      m.codes.push_back(static_cast<std::uint8_t>(code));
    }
  }
  m.scales.resize(index(rows * (depth / m.block)));
  for (std::uint8_t& s : m.scales) {
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
  const bool packed = atom::is_packed(atom.kind);
  const int bits = numeric::bits(m.type);
  const bool along_k = tile.major == atom::Major::k;
  const auto place = [&](int row, int k) {
    std::uint32_t at = atom::tile_offset(tile, row, k);
    return at ^ (at >> 7 & ((1U << atom::swizzle_bits(tile.swizzle)) - 1)) << 4;
  };
  const auto put = [&](std::uint32_t byte, int bit, bool set) {
    const auto mask = static_cast<unsigned char>(1U << bit);
    image[byte] = static_cast<unsigned char>(set ? image[byte] | mask : image[byte] & ~mask);
  };
  for (int row = 0; row < tile.rows; ++row) {
    for (int k = 0; k < m.depth; ++k) {
      const unsigned code = m.codes[index((first + row) * m.depth + k)];
      for (int b = 0; b < bits; ++b) {
        if (packed) {
          put(place(row, k / 2), 4 * (k % 2) + b, (code >> b & 1) != 0);
          continue;
        }
        // Sixteen along the contiguous dimension lie one behind the other.
        const int along = along_k ? k : row;
        const int bit = along % 16 * bits + b;
        const int head = along - along % 16 + bit / 8;
        put(along_k ? place(row, head) : place(head, k), bit % 8, (code >> b & 1) != 0);
      }
    }
  }
  return image;
}

/// The scales of rows [first, first + count) as atoms of 512 bytes: all rows of four of K, then the
/// next four. Rows that are not there have scales that are NaN.
inline std::vector<unsigned char> stored_scales(const ScaledMatrix& m, int first, int count) {
  const int of_row = m.depth / m.block;
  const int atoms = (count + 127) / 128;
  const int words = (of_row + 3) / 4;
  std::vector<unsigned char> image(index(atoms * words * atom::kScaleAtomBytes),
                                   m.scale == DType::ue8m0 ? 0xff : 0x7f);
  for (int r = 0; r < count; ++r) {
    for (int s = 0; s < of_row; ++s) {
      const int atom = s / 4 * atoms + r / 128;
      image[index(512 * atom + r % 32 * 16 + r / 32 % 4 * 4 + s % 4)] =
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
