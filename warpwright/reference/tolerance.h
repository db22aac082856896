// What the sums of a product may lose on their way, by how a kernel keeps them.
#pragma once

#include <cstdint>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::reference {

/// How the sums of a product are kept.
struct Sums {
  /// For 8-bit floats: in Hopper's tensor core, `narrow_step` products at a time.
  bool narrow = false;
  bool promoted = false;           ///< narrow ones begin at 0 every block of K (scale_block_of)
  bool exact = false;              ///< of integers, until they become a float
  packed::Rounding rounding = {};  ///< of weights that are multiplied by their scales
};

/// Those of a product.
inline Sums sums_of(const GemmOperands& o) {
  Sums sums;
  sums.narrow = o.scaling != Scaling::block_scaled && is_8bit_float(o.a.dtype) &&
                (o.packed || is_8bit_float(o.b.dtype));
  const GroupSums grouped =
      o.packed ? packed::sums_for(o.packed->format, o.packed->sums) : GroupSums::exact;
  const Accumulation accumulation = !o.packed                     ? o.accumulation
                                    : grouped == GroupSums::exact ? Accumulation::promoted
                                                                  : Accumulation::fast;
  sums.promoted = o.scaling == Scaling::blockwise || accumulation == Accumulation::promoted;
  sums.exact = o.a.dtype == DType::s8;
  const packed::WeightForm* const form =
      o.packed && folds(grouped) ? packed::weight_form(o.packed->format) : nullptr;
  if (form != nullptr) sums.rounding = form->rounding;
  return sums;
}

/// Products that the tensor core adds to a narrow sum in one step.
inline constexpr std::int64_t narrow_step = 32;
/// What a step loses of the leading bit of its largest term, or of the sum so far. All are cut to
/// multiples of 2^-13 of it: 32 products, and the sum before and after, twice, were the step done
/// in halves.
inline constexpr double narrow_step_loss = 36 * 0x1p-13;
/// A step cuts each of its products off 2^-13 of the largest, which is taken for at most so many
/// times their mean.
inline constexpr double narrow_terms = 8;
/// A rounding of float32, as a share of the value.
inline constexpr double float_rounding = 0x1p-24;
/// What a sum may lose, as a share of the sum of |a b|, told only from the product's shape: K
/// float32 additions and `roundings` more, and of narrow sums 2^-13 a step: all steps of K, or,
/// promoted, the four of each 128 of K, which lose no more than their share. And `narrow_terms`
/// more, which a short K shows.
inline double lost_share(const GemmOperands& o, double roundings) {
  const Sums sums = sums_of(o);
  double share =
      float_rounding * (static_cast<double>(o.a.columns) + roundings) + sums.rounding.both;
  if (sums.narrow) {
    const std::int64_t depth = sums.promoted ? scale_block_of(o) : o.a.columns;
    const std::int64_t steps = (depth + narrow_step - 1) / narrow_step;
    share += (static_cast<double>(steps) + narrow_terms) * 0x1p-13;
  }
  return share;
}

}  // namespace warpwright::reference
