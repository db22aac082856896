// The kernel that checks the numbers of tokens, before the grouped kernel that reads tokens by
// index. That one takes zeros where a number names no token; this one tells which is the first. It
// is a grid of its own, so that kernels that nobody asks for a check stay as they are.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/tile/groups.h"
#include "warpwright/tile/token_index.h"

namespace warpwright::kernel {

struct CheckRowsParams {
  tile::TokenIndex index;
  const std::int32_t* rows = nullptr;  ///< those of `index`
  tile::GroupOffsets offsets;
  std::uint32_t* status = nullptr;  ///< two words, see CheckRowsKernel
};

/// One warp: leaves in the first word of the status one more than the first row, from the first
/// offset to the last, whose number names no token, or 0; in the second that number, or 0.
struct CheckRowsKernel {
  using Params = CheckRowsParams;
  static constexpr int threads = 32;
  static constexpr int shared_bytes = 0;

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("checker of rows");
    // The kernel that multiplies may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const tile::GroupSpan inside = tile::clamped(
        p.offsets.load(ready, 0), p.offsets.load(ready, p.offsets.groups()), p.offsets.total());
    const int lane = isa::lane_index();
    constexpr std::uint32_t none = 0xffffffff;
    std::uint32_t first = none;
    for (int i = inside.first + lane; i < inside.end && first == none; i += 32) {
      if (p.index.token(i) == tile::TokenIndex::none) first = static_cast<std::uint32_t>(i);
    }
    for (int d = 16; d > 0; d /= 2) {
      const std::uint32_t other = isa::shuffle(first, lane ^ d);
      first = other < first ? other : first;
    }
    if (lane != 0) return;
    const isa::GlobalView<std::uint32_t> status{p.status};
    status.store(0, first + 1);
    const isa::GlobalView<const std::int32_t> rows{p.rows};
    status.store(1, first == none
                        ? 0U
                        : static_cast<std::uint32_t>(rows.load(static_cast<std::int64_t>(first))));
  }
};

}  // namespace warpwright::kernel
