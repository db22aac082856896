// Scales of blocks put into tiles, or back into rows (device/scale_order.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/facts/micro_scale.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/quantise/scale_rows.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

struct ReorderScalesParams {
  unsigned char* rows = nullptr;  ///< of one byte, or of float32 where `is_f32`
  unsigned char* tiles = nullptr;
  std::int64_t pitch = 0;        ///< elements from row to row
  std::int64_t batch_pitch = 0;  ///< elements from matrix to matrix
  std::int64_t count = 0;        ///< rows of a matrix, as tiles have them
  std::int64_t blocks = 0;       ///< scales of a row, as tiles have them
  std::int64_t tile_rows = 0;
  std::int64_t tile_columns = 0;
  std::int64_t batch = 0;
  tile::GroupOffsets groups;
  bool to_tiles = true;
  bool is_f32 = false;
  int rows_each = 1;  ///< ScaleReordering's
  int blocks_each = 1;
};

/// A warp takes a row, a lane four of its scales: a word of a tile.
struct ReorderScales {
  using Params = ReorderScalesParams;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 4;

  static constexpr int ctas(const Params& p) {
    return static_cast<int>(
        std::clamp<std::int64_t>((p.batch * p.count + warps - 1) / warps, 1, 4096));
  }

  WW_DEVICE static void run(const Params& p) {
    isa::set_role("puts scales in order");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const std::int64_t all = std::int64_t{isa::cta_count()} * warps;
    const std::int64_t first = std::int64_t{isa::cta_index()} * warps + isa::warp_index();
    for (std::int64_t piece = first; piece < p.batch * p.count; piece += all) {
      const std::int64_t batch = quotient(piece, p.count);
      const std::int64_t row = piece - batch * p.count;
      const std::int64_t place = scale_row(p.groups, ready, row);
      if (place < 0 || place >= p.tile_rows) continue;
      move_row(p, batch * p.batch_pitch + quotient(row, p.rows_each) * p.pitch,
               p.tiles + batch * p.tile_rows * p.tile_columns, place);
    }
  }

 private:
  WW_DEVICE static void move_row(const Params& p, std::int64_t first_of_row, unsigned char* tiles,
                                 std::int64_t place) {
    const isa::GlobalView<unsigned char> plain{p.rows};
    const auto bits = isa::global_view<const std::uint32_t>(p.rows);
    for (std::int64_t block = isa::lane_index() * 4; block < p.blocks; block += 128) {
      const isa::GlobalView<unsigned char> word{tiles +
                                                block_scales::place(place, block, p.tile_columns)};
      for (int i = 0; i < 4 && block + i < p.blocks; ++i) {
        const std::int64_t from = first_of_row + quotient(block + i, p.blocks_each);
        if (p.is_f32) {
          word.store(i, micro::power_code(bits.load(from)));
        } else if (p.to_tiles) {
          word.store(i, plain.load(from));
        } else {
          plain.store(from, word.load(i));
        }
      }
    }
  }
};

}  // namespace warpwright::kernel
