// A buffer of the epilogue in shared memory: a subtile of D or C with its elements as they lie in
// memory, swizzled.
#pragma once

#include "warpwright/atom/ldmatrix.h"
#include "warpwright/atom/swizzle.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue_geometry.h"

namespace warpwright::kernel {

/// A buffer as a layout: (row, column) of D in the subtile -> byte, before the swizzle.
template <class Config>
constexpr layout::Layout subtile_layout(const Config& c) {
  return layout::make_layout(layout::tuple(subtile_outer(c), subtile_inner(c)),
                             layout::tuple(subtile_row_bytes(c), result_bytes(c)));
}
/// (Row, column) of the accumulator -> byte: swapped, its rows are the columns of D.
template <class Config>
constexpr layout::Layout accumulator_layout(const Config& c) {
  const layout::Layout d = subtile_layout(c);
  return c.swap_ab ? layout::make_layout(layout::mode(d, 1), layout::mode(d, 0)) : d;
}

/// The buffers of `Tag::config`, each named by its address. Values are a lane's of a subtile,
/// spread over the warp like those of an accumulator's fragment.
template <class Tag>
struct SubtileBuffer {
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int values = subtile_columns(config) / 2;  // a lane's of one subtile
  static constexpr int c_words = result_bytes(config) == 4 ? values : (values + 1) / 2;
  using Element = isa::StorageOf<config.result>;

  /// Byte address of the 16-byte piece `piece` of row `row` in a buffer, `further` rows down: these
  /// are known when it is compiled, and a multiple of a power of two that `row` stays below.
  WW_DEVICE static isa::SharedAddress piece(isa::SharedAddress buffer, int row, int piece,
                                            int further) {
    return at<subtile_layout(config)>(buffer, row, piece * (16 / result_bytes(config)), further, 0);
  }

  /// The element of D at (row, column) of a buffer.
  WW_DEVICE static isa::SharedView<Element> element(isa::SharedAddress buffer, int row,
                                                    int column) {
    return {at<subtile_layout(config)>(buffer, row, column, 0, 0)};
  }

  /// Registers into the swizzled buffer.
  WW_DEVICE static void fill(isa::SharedAddress buffer, const float (&value)[values],
                             isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    if constexpr (sizeof(Element) == 2 && config.tma) {
      fill_matrices(buffer, value);
    } else if constexpr (sizeof(Element) == 2) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        isa::SharedView<std::uint32_t>{element_of(buffer, i).address}.store(0,
                                                                            packed(value, i / 2));
      }
    } else if constexpr (sizeof(Element) == 1) {
      fill_bytes(buffer, value);
    } else if constexpr (config.swap_ab) {
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
        if constexpr (config.swap_ab) {
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

  /// Where a lane's place (i, j) of a layout lies in a buffer, and from there a step that is known
  /// when it is compiled. The two offsets have no bit in common, so that the step is one XOR, and
  /// the swizzle of the lane's part is computed once.
  template <layout::Layout Places>
  WW_DEVICE static isa::SharedAddress at(isa::SharedAddress buffer, int i, int j, int step_i,
                                         int step_j) {
    static_assert(epilogue_buffer_bytes(config) % atom::repeat_bytes(subtile_swizzle(config)) == 0);
    const auto swizzled = [](int offset) {
      return atom::apply_swizzle(subtile_swizzle(config), static_cast<std::uint32_t>(offset));
    };
    return buffer + (swizzled(layout::offset_of<Places>(i, j)) ^
                     swizzled(layout::offset_of<Places>(step_i, step_j)));
  }

  /// The element of value `i` of this lane.
  WW_DEVICE static isa::SharedView<Element> element_of(isa::SharedAddress buffer, int i) {
    return {at<accumulator_layout(config)>(buffer, atom::c_row(lane(), 0), atom::c_col(lane(), 0),
                                           atom::c_row(0, i), atom::c_col(0, i))};
  }

  /// Values `2 i` and `2 i + 1` as one word.
  WW_DEVICE static std::uint32_t packed(const float (&value)[values], int i) {
    return isa::pack<config.result>(value[2 * i], value[2 * i + 1]);
  }

  /// 16-bit elements: 8x8 matrices of 16 rows and 8 columns of the accumulator, two or four at a
  /// time.
  WW_DEVICE static void fill_matrices(isa::SharedAddress buffer, const float (&value)[values]) {
    constexpr layout::Layout lanes = atom::fragment_lanes(config.swap_ab);
    // Where the lane points for the `count` matrices whose first value is `i`. Lanes that are not
    // asked repeat the addresses of others.
    const auto from = [&](int count, int i) {
      const int l = lane() % (8 * count);
      return at<accumulator_layout(config)>(
          buffer, layout::offset_of<layout::component(lanes, 0)>(l),
          layout::offset_of<layout::component(lanes, 1)>(l), 0, atom::c_col(0, i));
    };
    WW_UNROLL for (int i = 0; i + 8 <= values; i += 8) {
      const std::uint32_t matrices[4] = {packed(value, i / 2), packed(value, i / 2 + 1),
                                         packed(value, i / 2 + 2), packed(value, i / 2 + 3)};
      isa::store_matrix<4, config.swap_ab>(from(4, i), matrices);
    }
    if constexpr (values % 8 != 0) {
      constexpr int i = values - 4;
      const std::uint32_t matrices[2] = {packed(value, i / 2), packed(value, i / 2 + 1)};
      isa::store_matrix<2, config.swap_ab>(from(2, i), matrices);
    }
  }

  /// 8-bit elements, two at a time: neighbours in a row lie in one lane, neighbours in a column in
  /// lanes that differ by 4.
  WW_DEVICE static void fill_bytes(isa::SharedAddress buffer, const float (&value)[values]) {
    if constexpr (sizeof(Element) == 1) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        float low = value[i];
        float high = value[i + 1];
        int which = i;
        if constexpr (config.swap_ab) {
          // Even rows of the accumulator take the first column of the pair, odd ones the second.
          const bool odd = lane() / 4 % 2 != 0;
          const float other =
              isa::float_of(isa::shuffle(isa::float_bits(odd ? low : high), lane() ^ 4));
          low = odd ? other : low;
          high = odd ? high : other;
          which = odd ? i + 1 : i;
          const int row = atom::c_row(lane(), which) & ~1;
          isa::SharedView<std::uint16_t>{element(buffer, atom::c_col(lane(), which), row).address}
              .store(0, isa::pack_bytes<config.result>(low, high));
        } else {
          isa::SharedView<std::uint16_t>{element_of(buffer, which).address}.store(
              0, isa::pack_bytes<config.result>(low, high));
        }
      }
    }
  }
};

}  // namespace warpwright::kernel
