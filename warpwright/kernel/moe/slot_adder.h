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

/// A row that is not there.
inline constexpr std::uint32_t no_row = ~0U;

/// The rows of slots as the sort has left them in global memory.
class RowsOfSlots {
 public:
  explicit WW_DEVICE RowsOfSlots(const std::int32_t* rows) : rows_(rows) {}

  /// Those of a token, of which each lane knows one.
  class Token {
   public:
    struct Place {
      std::uint32_t row;
      int whose;  // the lane that knows its slot
    };

    WW_DEVICE Token(const std::int32_t* rows, const SumSlotsParams& p, int token) {
      const int lane = isa::lane_index();
      if (lane < p.top_k) {
        row_ = isa::GlobalView<const std::int32_t>{rows}.load(std::int64_t{token} * p.top_k + lane);
        weight_ = p.factor * weight_of(p, token, lane);
      }
      // Which of the token's rows mine is: those left out come behind all others.
      const auto number = static_cast<std::uint32_t>(row_);
      for (int j = 0; j < p.top_k; ++j) place_ += isa::shuffle(number, j) < number ? 1 : 0;
    }
    [[nodiscard]] WW_DEVICE int count() const { return isa::count_lanes(isa::ballot(row_ >= 0)); }
    [[nodiscard]] WW_DEVICE Place find(int i) const {
      const std::uint32_t of = isa::ballot(row_ >= 0 && place_ == i);
      const int whose = of != 0 ? isa::lowest_lane(of) : isa::lane_index();
      const std::uint32_t row = isa::shuffle(static_cast<std::uint32_t>(row_), whose);
      return {of != 0 ? row : no_row, whose};
    }
    [[nodiscard]] WW_DEVICE float weight(const Place& place) const {
      return isa::float_of(isa::shuffle(isa::float_bits(weight_), place.whose));
    }

   private:
    WW_DEVICE static float weight_of(const SumSlotsParams& p, int token, int slot) {
      if (p.weights == nullptr) return 1;
      const int line = p.of_weights > 1 ? token / p.of_weights : token;
      const int place = token - line * p.of_weights + slot;
      return float_at(p.weights, p.weight_type, line * p.weight_pitch + place);
    }

    int row_ = -1;
    float weight_ = 0;
    int place_ = 0;
  };
  [[nodiscard]] WW_DEVICE Token of_token(const SumSlotsParams& p, int token) const {
    return {rows_, p, token};
  }

 private:
  const std::int32_t* rows_;
};

/// How rows lie: of 16 bits, as x does.
struct WholeRows {
  static constexpr int each = 8;     ///< elements of a lane: 16 bytes
  static constexpr int at_once = 4;  ///< rows that are on their way
};
/// Or a row of float32 for each part along K, `step` bytes apart, and where there are biases the
/// expert's as a last one. They are added up in order, and rounded to 16 bits.
struct PartialRows {
  static constexpr int each = 4;
  static constexpr int at_once = 8;
  int parts;
  std::int64_t step;
  const unsigned char* bias;  ///< of the first expert; null: none
  std::int64_t bias_pitch;    ///< bytes from expert to expert
  bool is_wide;               ///< it is float32, else of the rows' 16 bits
};

/// Adds up slots of a token at a time: each lane of a warp knows a slot, and adds up some elements.
template <class Form>
class SlotAdder {
 public:
  static constexpr int max_top_k = 32;  ///< a lane a slot
  static constexpr int each = Form::each;

  /// Keeps a reference to `p`.
  WW_DEVICE explicit SlotAdder(const SumSlotsParams& p, const Form& form = {})
      : p_(p),
        form_(form),
        lane_(isa::lane_index()),
        whole_x_(begin_at_multiples<16>(p.x, p.x_pitch)),
        whole_y_(begin_at_multiples<16>(p.y, p.y_pitch)),
        whole_addend_(begin_at_multiples<16>(p.addend, p.addend_pitch)) {}

  /// The whole warp: of a token, this lane's elements from `column` on, a multiple of `each`; none
  /// of a column behind the row. T is the type of rows, which are those that `rows` knows.
  template <DType T, class Rows>
  WW_DEVICE void add(const isa::Prerequisites& /*ready*/, const Rows& rows, int token,
                     int column) const {
    const auto its = rows.of_token(p_, token);
    const int kept = its.count();
    float sum[each] = {};
    WW_NO_UNROLL
    for (int first = 0; first < kept; first += at_once) {
      Chunk chunk[at_once];
      typename decltype(its)::Place place[at_once];
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) place[i] = its.find(first + i);
      load<T>(form_, place, column, chunk);
      // Weights are waited for behind the requests of the rows.
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        const float factor = its.weight(place[i]);
        if (first + i < kept) add_chunk<T>(chunk[i], factor, sum);
      }
    }
    if (p_.addend != nullptr) add_row(token, column, sum);
    store(token, column, sum);
  }

 private:
  using Chunk = isa::Words<each / 2>;
  static constexpr int at_once = Form::at_once;

  template <DType T, class Place>
  WW_DEVICE void load(const WholeRows& /*form*/, const Place (&from)[at_once], int column,
                      Chunk (&chunk)[at_once]) const {
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      if (from[i].row != no_row) {
        chunk[i] = load_elements<each / 2>(p_.x + from[i].row * p_.x_pitch, column, p_.k, whole_x_);
      }
    }
  }
  template <DType T, class Place>
  WW_DEVICE void load(const PartialRows& form, const Place (&from)[at_once], int column,
                      Chunk (&chunk)[at_once]) const {
    float sum[at_once][each] = {};
    const int lines = form.parts + (form.bias != nullptr ? 1 : 0);
    const bool whole_bias = begin_at_multiples<16>(form.bias, form.bias_pitch);
    WW_NO_UNROLL
    for (int line = 0; line < lines; ++line) {
      const bool is_bias = line == form.parts;
      const unsigned char* const first = is_bias ? form.bias : p_.x + line * form.step;
      const std::int64_t pitch = is_bias ? form.bias_pitch : p_.x_pitch;
      const bool whole = is_bias ? whole_bias : whole_x_;
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        if (from[i].row == no_row) continue;
        const unsigned char* const row = first + (is_bias ? from[i].expert : from[i].row) * pitch;
        if (is_bias && !form.is_wide) {
          add_chunk<T>(load_elements<each / 2>(row, column, p_.k, whole), 1, sum[i]);
        } else {
          add_floats(row + std::int64_t{column} * 4, column, whole, sum[i]);
        }
      }
    }
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      WW_UNROLL
      for (int j = 0; j < each / 2; ++j) {
        chunk[i].word[j] = isa::pack<T>(sum[i][2 * j], sum[i][2 * j + 1]);
      }
    }
  }

  WW_DEVICE void add_row(int token, int column, float (&sum)[each]) const {
    const unsigned char* const row = p_.addend + token * p_.addend_pitch;
    if (p_.addend_type == DType::f32) {
      add_floats(row + std::int64_t{column} * 4, column, whole_addend_, sum);
      return;
    }
    const Chunk chunk = load_elements<each / 2>(row, column, p_.k, whole_addend_);
    if (p_.addend_type == DType::bf16) {
      add_chunk<DType::bf16>(chunk, 1, sum);
    } else {
      add_chunk<DType::f16>(chunk, 1, sum);
    }
  }

  WW_DEVICE void add_floats(const unsigned char* at, int column, bool whole,
                            float (&sum)[each]) const {
    if (whole && column + each <= p_.k) {
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
  WW_DEVICE static void add_chunk(const Chunk& chunk, float factor, float (&sum)[each]) {
    WW_UNROLL
    for (int i = 0; i < each / 2; ++i) {
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
    Chunk chunk;
    WW_UNROLL
    for (int i = 0; i < each / 2; ++i) {
      chunk.word[i] = p_.y_type == DType::bf16 ? isa::pack<DType::bf16>(sum[2 * i], sum[2 * i + 1])
                                               : isa::pack<DType::f16>(sum[2 * i], sum[2 * i + 1]);
    }
    store_elements(y, column, p_.k, whole_y_, chunk);
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
  Form form_;
  int lane_;
  bool whole_x_;
  bool whole_y_;
  bool whole_addend_;
};

}  // namespace warpwright::kernel
