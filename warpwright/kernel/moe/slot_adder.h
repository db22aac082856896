// What experts made of a token, added up:
//   y[t] = sum of factor * weight[t, j] * row[rows[t * top_k + j]] over the slots that have a row
// in the order of the rows, which is that of the experts, then of the slots. Every step is one
// fused multiply-add in float32, so that the bits depend on nothing else. A slot that is left out
// is not read, and a token without a slot becomes 0. An addend comes last. Slots by themselves are
// "tokens" of one slot, whose weights lie `of_weights` in a line.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/float_at.h"
#include "warpwright/kernel/quantise/row_pieces.h"

namespace warpwright::kernel {

/// Rows, weights and sums. Addresses and pitches of any multiple of an element are legal; multiples
/// of 16 bytes are faster.
struct SumSlotsParams {
  const unsigned char* x = nullptr;       ///< rows in the order of the experts
  std::int64_t x_pitch = 0;               ///< bytes
  unsigned char* y = nullptr;             ///< tokens x k
  std::int64_t y_pitch = 0;               ///< bytes
  const void* weights = nullptr;          ///< tokens x top_k; null: all are 1
  std::int64_t weight_pitch = 0;          ///< elements from line to line
  const unsigned char* addend = nullptr;  ///< tokens x k, added to sums; null: none
  std::int64_t addend_pitch = 0;          ///< bytes
  const std::int32_t* rows = nullptr;     ///< the sort's: slot -> row, or negative
  int tokens = 0;
  int top_k = 1;                   ///< 1 to SlotAdder::max_top_k
  int k = 0;                       ///< elements of a row
  DType type = DType::bf16;        ///< of x: bf16 or f16
  DType y_type = DType::bf16;      ///< bf16, f16 or f32
  DType weight_type = DType::f32;  ///< f32, bf16 or f16
  DType addend_type = DType::f32;  ///< f32, bf16 or f16
  float factor = 1;                ///< multiplied to weights
  int of_weights = 1;              ///< tokens that share a line of weights; above 1 top_k is 1
};

/// The rows of slots as the sort has left them in global memory.
struct RowsOfSlots {
  const std::int32_t* rows;

  [[nodiscard]] WW_DEVICE int row(std::int64_t slot) const {
    return isa::GlobalView<const std::int32_t>{rows}.load(slot);
  }
};

/// Adds up slots of a token at a time: each lane of a warp knows a slot and adds up eight elements.
class SlotAdder {
 public:
  static constexpr int max_top_k = 32;  ///< a lane a slot
  static constexpr int each = 8;        ///< elements of a lane: 16 bytes of x
  /// Rows that are on their way at once.
  static constexpr int at_once = 4;

  /// Keeps a reference to `p`.
  WW_DEVICE explicit SlotAdder(const SumSlotsParams& p)
      : p_(p),
        lane_(isa::lane_index()),
        whole_x_(begin_at_multiples<16>(p.x, p.x_pitch)),
        whole_y_(begin_at_multiples<16>(p.y, p.y_pitch)),
        whole_addend_(begin_at_multiples<16>(p.addend, p.addend_pitch)) {}

  /// The whole warp: of a token, this lane's elements from `column` on, a multiple of eight; none
  /// of a column behind the row. T is the type of x; `rows.row(slot)` is the row of a slot, or
  /// negative.
  template <DType T, class Rows>
  WW_DEVICE void add(const isa::Prerequisites& /*ready*/, const Rows& rows, int token,
                     int column) const {
    int row = -1;
    float weight = 0;
    if (lane_ < p_.top_k) {
      row = rows.row(std::int64_t{token} * p_.top_k + lane_);
      weight = p_.factor * weight_of_lane(token);
    }
    // Which of the token's rows mine is: those left out come behind all others.
    const auto number = static_cast<std::uint32_t>(row);
    int place = 0;
    for (int j = 0; j < p_.top_k; ++j) {
      place += isa::shuffle(number, j) < number ? 1 : 0;
    }
    const int kept = isa::count_lanes(isa::ballot(row >= 0));

    float sum[each] = {};
    for (int first = 0; first < kept; first += at_once) {
      Eight chunk[at_once];
      int whose[at_once];  // the lane that knows its slot
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        const std::uint32_t of = isa::ballot(row >= 0 && place == first + i);
        whose[i] = of != 0 ? isa::lowest_lane(of) : lane_;
        const std::uint32_t from = isa::shuffle(number, whose[i]);
        if (of != 0) chunk[i] = load_eight(p_.x + from * p_.x_pitch, column, p_.k, whole_x_);
      }
      // Weights are waited for behind the requests of the rows.
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        const float factor = isa::float_of(isa::shuffle(isa::float_bits(weight), whose[i]));
        if (first + i < kept) add_chunk<T>(chunk[i], factor, sum);
      }
    }
    if (p_.addend != nullptr) add_row(token, column, sum);
    store(token, column, sum);
  }

 private:
  WW_DEVICE float weight_of_lane(int token) const {
    if (p_.weights == nullptr) return 1;
    const int line = p_.of_weights > 1 ? token / p_.of_weights : token;
    const int place = token - line * p_.of_weights + lane_;
    return float_at(p_.weights, p_.weight_type, line * p_.weight_pitch + place);
  }

  WW_DEVICE void add_row(int token, int column, float (&sum)[each]) const {
    const unsigned char* const row = p_.addend + token * p_.addend_pitch;
    if (p_.addend_type == DType::f32) {
      add_floats(row + std::int64_t{column} * 4, column, sum);
      return;
    }
    const Eight chunk = load_eight(row, column, p_.k, whole_addend_);
    if (p_.addend_type == DType::bf16) {
      add_chunk<DType::bf16>(chunk, 1, sum);
    } else {
      add_chunk<DType::f16>(chunk, 1, sum);
    }
  }

  WW_DEVICE void add_floats(const unsigned char* at, int column, float (&sum)[each]) const {
    if (whole_addend_ && column + each <= p_.k) {
      WW_UNROLL
      for (int i = 0; i < each; i += 4) {
        const auto four = isa::global_view<const isa::Words<4>>(at).load(i / 4);
        WW_UNROLL
        for (int j = 0; j < 4; ++j) sum[i + j] += isa::float_of(four.word[j]);
      }
      return;
    }
    const auto element = isa::global_view<const float>(at);
    WW_UNROLL
    for (int i = 0; i < each; ++i) {
      if (column + i < p_.k) sum[i] += element.load(i);
    }
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
    if (column >= p_.k) return;
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

  const SumSlotsParams& p_;
  int lane_;
  bool whole_x_;
  bool whole_y_;
  bool whole_addend_;
};

}  // namespace warpwright::kernel
