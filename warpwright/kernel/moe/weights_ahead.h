// The weights with which a product of experts begins, asked for by a grid before it that knows the
// lengths of experts: the product itself may not read these before that grid has ended. L2 is
// asked, so nobody waits, and what lies there may still be written.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// Which they are: of the first experts that have slots, the beginnings of all rows.
struct WeightsAhead {
  const unsigned char* w = nullptr;  ///< row 0 of expert 0
  std::int64_t pitch = 0;            ///< bytes from row to row
  std::int64_t batch = 0;            ///< bytes from expert to expert
  int rows = 0;                      ///< of an expert
  int bytes = 0;    ///< of a row; this, the pitches and `w` multiples of 16. 0: none are asked for
  int experts = 0;  ///< at most

  [[nodiscard]] constexpr bool is_given() const { return bytes > 0; }
};

/// Asks for them, by warps of any number.
struct WeightsAheadWork {
  static constexpr int rows_at_once = 32;  ///< of a warp, one a lane

  /// Of warp `me` of `warps`: calls use(expert, row) for its rows. `lengths` are the slots of each
  /// of `experts` experts. All lanes call it.
  template <class Use>
  WW_DEVICE static void for_each_row(const WeightsAhead& p, isa::SharedView<std::uint32_t> lengths,
                                     int experts, int me, int warps, const Use& use) {
    const int blocks = (p.rows + rows_at_once - 1) / rows_at_once;
    WW_NO_UNROLL
    for (int item = me; item < p.experts * blocks; item += warps) {
      const int number = static_cast<int>(quotient(item, blocks));
      const int expert = with_slots(lengths, experts, number);
      if (expert < 0) return;  // nor has one behind it
      const int row = (item - number * blocks) * rows_at_once + isa::lane_index();
      if (row < p.rows) use(expert, row);
    }
  }

  WW_DEVICE static void run(const WeightsAhead& p, isa::SharedView<std::uint32_t> lengths,
                            int experts, int me, int warps) {
    for_each_row(p, lengths, experts, me, warps, [&](int expert, int row) {
      isa::bulk_prefetch(p.w + expert * p.batch + row * p.pitch, p.bytes);
    });
  }

 private:
  /// The expert that comes `number`-th of those with slots, or -1.
  WW_DEVICE static int with_slots(isa::SharedView<std::uint32_t> lengths, int experts, int number) {
    WW_NO_UNROLL
    for (int first = 0; first < experts; first += 32) {
      const int expert = first + isa::lane_index();
      std::uint32_t here = isa::ballot(expert < experts && lengths.load(expert) > 0);
      const int count = isa::count_lanes(here);
      if (number >= count) {
        number -= count;
        continue;
      }
      for (; number > 0; --number) here &= here - 1;
      return first + isa::lowest_lane(here);
    }
    return -1;
  }
};

}  // namespace warpwright::kernel
