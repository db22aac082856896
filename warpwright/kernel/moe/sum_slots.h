// The kernel that adds up what experts made of a token, behind the last product of a mixture
// (slot_adder.h says how).
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/moe/slot_adder.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

struct SumSlotsKernel {
  using Params = SumSlotsParams;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 8;
  using Adder = SlotAdder<WholeRows>;
  static constexpr int max_top_k = Adder::max_top_k;
  static constexpr int piece = 32 * Adder::each;  ///< elements of a warp at a time

  /// What warps share out: pieces of tokens.
  static constexpr std::int64_t items(const Params& p) {
    return std::int64_t{p.tokens} * ((p.k + piece - 1) / piece);
  }
  /// CTAs of a launch on a device of `sms` SMs; 0: there is nothing to do.
  static int ctas(const Params& p, int sms) {
    const std::int64_t wanted = (items(p) + warps - 1) / warps;
    return static_cast<int>(std::min<std::int64_t>(wanted, std::int64_t{ctas_an_sm} * sms));
  }

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("adds up slots");
    // The next kernel may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    if (p.type == DType::bf16) {
      add_all<DType::bf16>(p, ready);
    } else {
      add_all<DType::f16>(p, ready);
    }
  }

 private:
  template <DType T>
  WW_DEVICE static void add_all(const Params& p, const isa::Prerequisites& ready) {
    const Adder adder(p);
    const int pieces = (p.k + piece - 1) / piece;
    const std::int64_t all = items(p);
    const std::int64_t step = std::int64_t{warps} * isa::cta_count();
    for (std::int64_t item = std::int64_t{warps} * isa::cta_index() + isa::warp_index(); item < all;
         item += step) {
      const std::int64_t token = quotient(item, pieces);
      adder.add<T>(
          ready, RowsOfSlots{p.rows}, static_cast<int>(token),
          static_cast<int>(item - token * pieces) * piece + isa::lane_index() * Adder::each);
    }
  }
};

}  // namespace warpwright::kernel
