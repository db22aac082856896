// What experts made of tokens, added up for 16 columns, from partial sums in shared memory: the
// end of a layer in one launch by warps. A thread has a column of a token. Each row is rounded to
// 16 bits, as it would lie in memory, and added in the order of the rows, as SlotAdder does.
#pragma once

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/kernel/float_at.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/moe/slot_tiles.h"

namespace warpwright::kernel {

/// Partial sums of a block: for each part of K, and each row of all tokens, block_rows floats.
struct PartialSums {
  isa::SharedAddress address;
  int parts;
  int rows;
  const unsigned char* bias;  ///< of the first expert, side by side; null: none
  std::int64_t bias_pitch;    ///< bytes from expert to expert
  bool bias_is_wide;          ///< it is float32, else of T
};

/// T: the type that rows are rounded to.
template <DType T>
class ColumnSums {
 public:
  /// Keeps references.
  WW_DEVICE ColumnSums(const SumSlotsParams& p, const PartialSums& partials)
      : p_(p), partials_(partials) {}

  /// One column of a token, `its` rows in order.
  WW_DEVICE void add(const isa::Prerequisites& /*ready*/, const RowsInOrder& its, int token,
                     int column) const {
    if (column >= p_.k) return;
    // It is asked for first, and added last.
    float addend = 0;
    if (p_.addend != nullptr) {
      addend = float_at(p_.addend + token * p_.addend_pitch, p_.addend_type, column);
    }
    float sum = 0;
    WW_NO_UNROLL for (int first = 0; first < its.count(); first += at_once) {
      // Behind the last row it is read again, so that all are on their way together.
      RowsInOrder::Place place[at_once];
      float row[at_once] = {};
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        place[i] = its.find(first + i < its.count() ? first + i : its.count() - 1);
      }
      add_parts(place, column, row);
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        const float more = isa::multiply_add(place[i].weight, rounded(row[i]), sum);
        if (first + i < its.count()) sum = more;
      }
    }
    store(token, column, sum + addend);
  }

 private:
  static constexpr int at_once = 4;

  WW_DEVICE static float rounded(float x) {
    const std::uint32_t bits = isa::pack<T>(x, 0);
    return isa::unpack<T>(&bits).low;
  }

  WW_DEVICE void add_parts(const RowsInOrder::Place (&place)[at_once], int column,
                           float (&row)[at_once]) const {
    const isa::SharedView<float> from{partials_.address};
    WW_NO_UNROLL for (int part = 0; part < partials_.parts; ++part) {
      WW_UNROLL for (int i = 0; i < at_once; ++i) {
        const int at = part * partials_.rows + static_cast<int>(place[i].row);
        row[i] += from.load(at * block_rows + column % block_rows);
      }
    }
    if (partials_.bias == nullptr) return;
    WW_UNROLL for (int i = 0; i < at_once; ++i) {
      row[i] += float_at(partials_.bias + place[i].expert * partials_.bias_pitch,
                         partials_.bias_is_wide ? DType::f32 : T, column);
    }
  }

  WW_DEVICE void store(int token, int column, float sum) const {
    unsigned char* const y = p_.y + token * p_.y_pitch;
    if (p_.y_type == DType::f32) {
      isa::global_view<float>(y).store(column, sum);
      return;
    }
    const std::uint32_t bits =
        p_.y_type == DType::bf16 ? isa::pack<DType::bf16>(sum, 0) : isa::pack<DType::f16>(sum, 0);
    isa::global_view<std::uint16_t>(y).store(column, static_cast<std::uint16_t>(bits));
  }

  const SumSlotsParams& p_;
  const PartialSums& partials_;
};

}  // namespace warpwright::kernel
