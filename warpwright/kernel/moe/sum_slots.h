// The kernel that adds up what experts made of a token, behind the last product of a mixture:
//   y[t] = sum of weight[t, j] * row[rows[t * top_k + j]] over the slots that have a row
// in the order of the rows, which is that of the experts, then of the slots. Every step is one
// fused multiply-add in float32, so that the bits depend on nothing else. A slot that is left out
// is not read, and a token without a slot becomes 0.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/float_at.h"
#include "warpwright/kernel/moe/row_pieces.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// Rows, weights and sums. Addresses and pitches of any multiple of an element are legal; multiples
/// of 16 bytes are faster.
struct SumSlotsParams {
  const unsigned char* x = nullptr;    ///< rows in the order of the experts
  std::int64_t x_pitch = 0;            ///< bytes
  unsigned char* y = nullptr;          ///< tokens x k
  std::int64_t y_pitch = 0;            ///< bytes
  const void* weights = nullptr;       ///< tokens x top_k
  std::int64_t weight_pitch = 0;       ///< elements from token to token
  const std::int32_t* rows = nullptr;  ///< the sort's: slot -> row, or negative
  int tokens = 0;
  int top_k = 1;                   ///< 1 to SumSlotsKernel::max_top_k
  int k = 0;                       ///< elements of a row
  DType type = DType::bf16;        ///< of x: bf16 or f16
  DType y_type = DType::bf16;      ///< bf16, f16 or f32
  DType weight_type = DType::f32;  ///< f32, bf16 or f16
};

struct SumSlotsKernel {
  using Params = SumSlotsParams;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 8;
  static constexpr int max_top_k = 32;     ///< a lane a slot
  static constexpr int each = 8;           ///< elements of a lane: 16 bytes of x
  static constexpr int piece = 32 * each;  ///< elements of a warp at a time
  /// Rows that are on their way at once.
  static constexpr int at_once = 4;

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
      SumSlotsKernel(p).add_all<DType::bf16>(ready);
    } else {
      SumSlotsKernel(p).add_all<DType::f16>(ready);
    }
  }

 private:
  WW_DEVICE explicit SumSlotsKernel(const Params& p)
      : p_(p),
        lane_(isa::lane_index()),
        whole_x_(begin_at_multiples<16>(p.x, p.x_pitch)),
        whole_y_(begin_at_multiples<16>(p.y, p.y_pitch)) {}

  template <DType T>
  WW_DEVICE void add_all(const isa::Prerequisites& ready) const {
    const int pieces = (p_.k + piece - 1) / piece;
    const std::int64_t all = items(p_);
    const std::int64_t step = std::int64_t{warps} * isa::cta_count();
    for (std::int64_t item = std::int64_t{warps} * isa::cta_index() + isa::warp_index(); item < all;
         item += step) {
      const std::int64_t token = quotient(item, pieces);
      add<T>(ready, static_cast<int>(token),
             static_cast<int>(item - token * pieces) * piece + lane_ * each);
    }
  }

  /// One warp: a piece of a token, this lane's elements from `column` on.
  template <DType T>
  WW_DEVICE void add(const isa::Prerequisites& /*ready*/, int token, int column) const {
    const std::int64_t slot = std::int64_t{token} * p_.top_k + lane_;
    int row = -1;
    float weight = 0;
    if (lane_ < p_.top_k) {
      row = isa::GlobalView<const std::int32_t>{p_.rows}.load(slot);
      weight = float_at(p_.weights, p_.weight_type, token * p_.weight_pitch + lane_);
    }
    // Which of the token's rows mine is: those left out come behind all others.
    const auto number = static_cast<std::uint32_t>(row);
    int place = 0;
    for (int j = 0; j < p_.top_k; ++j) place += isa::shuffle(number, j) < number ? 1 : 0;
    const int kept = isa::count_lanes(isa::ballot(row >= 0));

    float sum[each] = {};
    for (int first = 0; first < kept; first += at_once) {
      Eight chunk[at_once];
      float factor[at_once];
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (first + i >= kept) continue;
        const int lane = isa::lowest_lane(isa::ballot(row >= 0 && place == first + i));
        factor[i] = isa::float_of(isa::shuffle(isa::float_bits(weight), lane));
        chunk[i] =
            load_eight(p_.x + isa::shuffle(number, lane) * p_.x_pitch, column, p_.k, whole_x_);
      }
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (first + i < kept) add_chunk<T>(chunk[i], factor[i], sum);
      }
    }
    if (column < p_.k) store(token, column, sum);
  }

  template <DType T>
  WW_DEVICE static void add_chunk(const Eight& chunk, float factor, float (&sum)[each]) {
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const isa::Pair pair = isa::unpack<T>(&chunk.word[i]);
      sum[2 * i] = isa::multiply_add(factor, pair.low, sum[2 * i]);
      sum[2 * i + 1] = isa::multiply_add(factor, pair.high, sum[2 * i + 1]);
    }
  }

  WW_DEVICE void store(int token, int column, const float (&sum)[each]) const {
    unsigned char* const y = p_.y + token * p_.y_pitch;
    if (p_.y_type == DType::f32) {
      store_floats(y + std::int64_t{column} * 4, column, sum);
      return;
    }
    Eight chunk;
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      chunk.word[i] = p_.y_type == DType::bf16 ? isa::pack<DType::bf16>(sum[2 * i], sum[2 * i + 1])
                                               : isa::pack<DType::f16>(sum[2 * i], sum[2 * i + 1]);
    }
    store_eight(y, column, p_.k, whole_y_, chunk);
  }

  WW_DEVICE void store_floats(unsigned char* at, int column, const float (&sum)[each]) const {
    if (whole_y_ && column + each <= p_.k) {
      WW_UNROLL
      for (int i = 0; i < each; i += 4) {
        isa::global_words<4>(at).store(
            i / 4, {{isa::float_bits(sum[i]), isa::float_bits(sum[i + 1]),
                     isa::float_bits(sum[i + 2]), isa::float_bits(sum[i + 3])}});
      }
      return;
    }
    const auto element = isa::global_view<float>(at);
    WW_UNROLL
    for (int i = 0; i < each; ++i) {
      if (column + i < p_.k) element.store(i, sum[i]);
    }
  }

  const Params& p_;
  int lane_;
  bool whole_x_;
  bool whole_y_;
};

}  // namespace warpwright::kernel
