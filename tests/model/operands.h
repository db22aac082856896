// Operand tiles of MMAs for tests: numbers, their bytes in shared memory, and how they get there.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "tests/model/harness.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {

inline constexpr atom::SmemSwizzle swizzles[] = {atom::SmemSwizzle::none, atom::SmemSwizzle::b32,
                                                 atom::SmemSwizzle::b64, atom::SmemSwizzle::b128};

/// Small whole numbers: every product and sum is exact in every type.
inline std::vector<int> numbers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> all(static_cast<std::size_t>(count));
  for (int& x : all) x = static_cast<int>(random() % 9) - 4;
  return all;
}

/// The code of a whole number.
inline std::uint64_t code(DType type, int x) {
  return numeric::from_double(type, x);
}

/// The bytes of a stored tile whose element (row, k) is values[row * depth + k]; the swizzle's
/// XOR by hand.
inline std::vector<unsigned char> stored(const atom::OperandTile& tile, DType type,
                                         const std::vector<int>& values) {
  std::vector<unsigned char> image(static_cast<std::size_t>(atom::tile_bytes(tile)));
  for (int row = 0; row < tile.rows; ++row) {
    for (int k = 0; k < tile.depth; ++k) {
      std::uint32_t at = atom::tile_offset(tile, row, k);
      at ^= (at >> 7 & ((1U << swizzle_bits(tile.swizzle)) - 1)) << 4;
      const std::uint64_t c = code(type, values[index(row * tile.depth + k)]);
      for (int b = 0; b < tile.element_bits / 8; ++b) {
        image[at + static_cast<std::uint32_t>(b)] = static_cast<unsigned char>(c >> (8 * b));
      }
    }
  }
  return image;
}

/// 128 threads write them to shared memory.
inline void copy_in(isa::SharedAddress to, const std::vector<unsigned char>& image) {
  for (std::size_t i = 16 * static_cast<std::size_t>(isa::thread_index()); i < image.size();
       i += 16 * 128) {
    isa::Words<4> w;
    std::memcpy(&w, image.data() + i, 16);
    isa::SharedView<isa::Words<4>>{to + static_cast<isa::SharedAddress>(i)}.store(0, w);
  }
}

}  // namespace warpwright::model
