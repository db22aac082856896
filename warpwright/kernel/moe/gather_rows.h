// The kernel that puts the rows of tokens into the order of the experts, copied or quantised,
// behind the sort of their slots. A token is read once and written for each of its slots.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/moe/micro_rows.h"
#include "warpwright/kernel/moe/token_rows.h"

namespace warpwright::kernel {

struct GatherRowsParams {
  TokenRows rows;
  MicroRows micro = {};  ///< of RowForm::micro

  /// What warps can share out, and how much of it a token is.
  [[nodiscard]] constexpr std::int64_t items() const {
    return rows.form == RowForm::micro ? MicroRowsWork::items(rows, micro)
                                       : TokenRowsWork::items(rows);
  }
  [[nodiscard]] constexpr std::int64_t items_of_token() const {
    return rows.form == RowForm::micro ? micro.parts : TokenRowsWork::items_of_token(rows);
  }

  /// A warp's share, behind the proof that x and the rows of slots are there.
  template <class Slots>
  WW_DEVICE void move(const Slots& slots, const isa::Prerequisites& ready,
                      const WarpShare& share) const {
    if (rows.form == RowForm::micro) {
      MicroRowsWork::run(rows, micro, slots, ready, share);
    } else {
      TokenRowsWork::run(rows, slots, ReadTokens(rows), ready, share);
    }
  }
};

struct GatherRowsKernel : RowsLaunch {
  using Params = GatherRowsParams;
  static int ctas(const Params& p, int sms) { return ctas_for(p.items(), sms); }

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("gathers rows");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    // Behind the wait: the kernel that multiplies then has what came before this one, and may ask
    // for weights meanwhile. For the rows it waits.
    isa::launch_dependents();
    p.move(SlotsInMemory(p.rows, p.micro.offsets), ready, share_of(p.items()));
  }
};

}  // namespace warpwright::kernel
