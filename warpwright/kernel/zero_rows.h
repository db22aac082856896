// The kernel that clears the rows of D that are in no group, before the grouped kernel that writes
// the others. Rows in groups whose offsets are in order lie between the first offset and the last,
// so that only what lies outside is written.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/tile/groups.h"

namespace warpwright::kernel {

struct ZeroRowsParams {
  unsigned char* data = nullptr;  ///< D
  std::int64_t pitch = 0;         ///< bytes from row to row
  int row_bytes = 0;              ///< of D's elements
  int piece = 1;                  ///< divides data and pitch: at least 16, at least 4, or less
  tile::GroupOffsets offsets;
};

struct ZeroRowsKernel {
  using Params = ZeroRowsParams;
  static constexpr int warps = 4;  ///< of a CTA: each takes a row at a time
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("clears rows");
    // The kernel that multiplies may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const int total = p.offsets.total();
    const tile::GroupSpan inside =
        tile::clamped(p.offsets.load(ready, 0), p.offsets.load(ready, p.offsets.groups()), total);
    const int rows = total - (inside.end - inside.first);
    for (int i = isa::cta_index() * warps + isa::warp_index(); i < rows;
         i += isa::cta_count() * warps) {
      clear(p, i < inside.first ? i : i - inside.first + inside.end);
    }
  }

 private:
  /// One warp: a row.
  WW_DEVICE static void clear(const Params& p, std::int64_t row) {
    unsigned char* const to = p.data + row * p.pitch;
    const int lane = isa::lane_index();
    int done = 0;
    if (p.piece >= 16) {
      for (int i = lane; i < p.row_bytes / 16; i += 32) isa::global_words<4>(to).store(i, {});
      done = p.row_bytes / 16 * 16;
    }
    if (p.piece >= 4) {
      for (int i = done / 4 + lane; i < p.row_bytes / 4; i += 32) {
        isa::global_words<1>(to).store(i, {});
      }
      done = p.row_bytes / 4 * 4;
    }
    for (int i = done + lane; i < p.row_bytes; i += 32) {
      isa::GlobalView<unsigned char>{to}.store(i, 0);
    }
  }
};

}  // namespace warpwright::kernel
