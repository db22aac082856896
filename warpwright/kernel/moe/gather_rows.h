// The kernel that puts the rows of tokens into the order of the experts, copied or quantised,
// behind the sort of their slots. A token is read once and written for each of its slots.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/moe/micro_rows.h"
#include "warpwright/kernel/moe/token_rows.h"

namespace warpwright::kernel {

struct GatherRowsParams {
  TokenRows rows;
  MicroRows micro = {};  ///< of RowForm::micro
};

struct GatherRowsKernel {
  using Params = GatherRowsParams;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 4;

  /// CTAs of a launch on a device of `sms` SMs; 0: there is nothing to do.
  static int ctas(const Params& p, int sms) {
    const std::int64_t items = p.rows.form == RowForm::micro ? MicroRowsWork::items(p.rows, p.micro)
                                                             : TokenRowsWork::items(p.rows);
    const std::int64_t wanted = (items + warps - 1) / warps;
    return static_cast<int>(std::min<std::int64_t>(wanted, std::int64_t{ctas_an_sm} * sms));
  }

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("gathers rows");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    // Behind the wait: the kernel that multiplies then has what came before this one, and may ask
    // for weights meanwhile. For the rows it waits.
    isa::launch_dependents();
    const int me = isa::cta_index() * warps + isa::warp_index();
    if (p.rows.form == RowForm::micro) {
      MicroRowsWork::run(p.rows, p.micro, ready, me, isa::cta_count() * warps);
    } else {
      TokenRowsWork::run(p.rows, ready, me, isa::cta_count() * warps);
    }
  }
};

}  // namespace warpwright::kernel
