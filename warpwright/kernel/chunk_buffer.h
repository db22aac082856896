// A buffer of the epilogue in shared memory: a chunk of D or C with its elements as they lie in
// memory, swizzled.
#pragma once

#include "warpwright/atom/swizzle.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue_geometry.h"

namespace warpwright::kernel {

/// The buffers of `Tag::config`, each named by its address. Values are a lane's of a chunk, spread
/// over the warp like those of an accumulator's fragment.
template <class Tag>
struct ChunkBuffer {
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int values = chunk_columns(config) / 2;  // a lane's of one chunk
  static constexpr int c_words = result_bytes(config) == 4 ? values : (values + 1) / 2;
  using Element = isa::StorageOf<config.result>;

  /// Byte address of the 16-byte piece `piece` of row `row` in a buffer.
  WW_DEVICE static isa::SharedAddress piece(isa::SharedAddress buffer, int row, int piece) {
    constexpr EpilogueShape cfg = Tag::config;
    return atom::apply_swizzle(chunk_swizzle(cfg),
                               buffer + row * chunk_row_bytes(cfg) + piece * 16);
  }

  /// The element of D at (row, column) of a buffer.
  WW_DEVICE static isa::SharedView<Element> element(isa::SharedAddress buffer, int row,
                                                    int column) {
    const int byte = column * static_cast<int>(sizeof(Element));
    return {piece(buffer, row, byte / 16) + byte % 16};
  }

  /// Registers into the swizzled buffer.
  WW_DEVICE static void fill(isa::SharedAddress buffer, const float (&value)[values]) {
    if constexpr (sizeof(Element) == 2) {
      fill_matrices(buffer, value);
    } else if constexpr (sizeof(Element) == 1) {
      fill_bytes(buffer, value);
    } else if constexpr (config.swapped) {
      WW_UNROLL for (int i = 0; i < values; ++i) element_of(buffer, i).store(0, value[i]);
    } else {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        isa::SharedView<isa::Words<2>>{element_of(buffer, i).address}.store(
            0, {isa::float_bits(value[i]), isa::float_bits(value[i + 1])});
      }
    }
  }

  /// The lane's elements of C out of the buffer. Neighbours in memory are read as one word.
  WW_DEVICE static void read_c(isa::SharedAddress buffer, std::uint32_t (&c)[c_words]) {
    if constexpr (sizeof(Element) == 4) {
      WW_UNROLL for (int i = 0; i < values; ++i) {
        c[i] = isa::float_bits(element_of(buffer, i).load());
      }
    } else if constexpr (sizeof(Element) == 2) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        if constexpr (config.swapped) {
          c[i / 2] = element_of(buffer, i).load() |
                     static_cast<std::uint32_t>(element_of(buffer, i + 1).load()) << 16;
        } else {
          c[i / 2] = isa::SharedView<std::uint32_t>{element_of(buffer, i).address}.load();
        }
      }
    }
  }

 private:
  WW_DEVICE static int lane() { return isa::lane_index(); }

  /// That of value `i` of this lane.
  WW_DEVICE static isa::SharedView<Element> element_of(isa::SharedAddress buffer, int i) {
    const int row = atom::c_row(lane(), i);
    const int column = atom::c_col(lane(), i);
    return config.swapped ? element(buffer, column, row) : element(buffer, row, column);
  }

  /// Values `2 i` and `2 i + 1` as one word.
  WW_DEVICE static std::uint32_t packed(const float (&value)[values], int i) {
    return isa::pack<config.result>(value[2 * i], value[2 * i + 1]);
  }

  /// 16-bit elements: 8x8 matrices of 16 rows and 8 columns of the accumulator, two or four at a
  /// time. Lane l gives the address of row l % 8 of matrix l / 8.
  WW_DEVICE static void fill_matrices(isa::SharedAddress buffer, const float (&value)[values]) {
    const int row = lane() % 8;
    const int second = lane() / 8 % 2;  // of the two matrices of 8 columns: the lower rows
    const int beside = lane() / 16;     // the next 8 columns
    const auto at = [&](int i) {
      return config.swapped ? piece(buffer, 8 * (i / 4 + beside) + row, second)
                            : piece(buffer, 8 * second + row, i / 4 + beside);
    };
    WW_UNROLL for (int i = 0; i + 8 <= values; i += 8) {
      const std::uint32_t matrices[4] = {packed(value, i / 2), packed(value, i / 2 + 1),
                                         packed(value, i / 2 + 2), packed(value, i / 2 + 3)};
      isa::store_matrix<4, config.swapped>(at(i), matrices);
    }
    if constexpr (values % 8 != 0) {
      constexpr int i = values - 4;
      const std::uint32_t matrices[2] = {packed(value, i / 2), packed(value, i / 2 + 1)};
      // Lanes 16 to 31 repeat the addresses of the others, which are not used.
      isa::store_matrix<2, config.swapped>(config.swapped ? piece(buffer, 8 * (i / 4) + row, second)
                                                          : piece(buffer, 8 * second + row, i / 4),
                                           matrices);
    }
  }

  /// 8-bit elements, two at a time: neighbours in a row lie in one lane, neighbours in a column in
  /// lanes that differ by 4.
  WW_DEVICE static void fill_bytes(isa::SharedAddress buffer, const float (&value)[values]) {
    if constexpr (sizeof(Element) == 1) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        float low = value[i];
        float high = value[i + 1];
        int at = i;
        if constexpr (config.swapped) {
          // Even rows of the accumulator take the first column of the pair, odd ones the second.
          const bool odd = lane() / 4 % 2 != 0;
          const float other =
              isa::float_of(isa::shuffle(isa::float_bits(odd ? low : high), lane() ^ 4));
          low = odd ? other : low;
          high = odd ? high : other;
          at = odd ? i + 1 : i;
          const int row = atom::c_row(lane(), at) & ~1;
          isa::SharedView<std::uint16_t>{element(buffer, atom::c_col(lane(), at), row).address}
              .store(0, isa::pack_bytes<config.result>(low, high));
        } else {
          isa::SharedView<std::uint16_t>{element_of(buffer, at).address}.store(
              0, isa::pack_bytes<config.result>(low, high));
        }
      }
    }
  }
};

}  // namespace warpwright::kernel
