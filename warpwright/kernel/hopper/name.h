// The name of a kernel of Hopper follows from its configuration.
#pragma once

#include <string_view>

#include "warpwright/kernel/hopper/config.h"
#include "warpwright/kernel/rows.h"

namespace warpwright::kernel {

/// Operands, result, tile (grouped and swapped: weights x tokens), then what is special.
constexpr Name name_of(const GemmConfig& c) {
  const DType a = stored_a(c);
  const DType b = operand_b(c).type;
  Name name(is_grouped(c) ? "grouped_" : "hopper_");
  name += numeric::name(a);
  if (b != a) (name += "x") += numeric::name(b);
  (name += "_") += numeric::name(c.result);
  ((name += "_") += c.tile_m) += "x";
  name += c.tile_n;
  constexpr std::string_view groupings[] = {"", "_h", "_v", "_b"};
  constexpr std::string_view schedules[] = {"", "_pp"};
  constexpr std::string_view sums[] = {"", "_pr", "_bs"};
  name += groupings[static_cast<int>(grouping(c))];
  name += schedules[static_cast<int>(schedule_of(c))];
  name += sums[static_cast<int>(sums_of(c))];
  if (scale_parts(c) > 1) name += scale_block(c);
  if (is_swapped(c)) name += "_sw";
  if (c.side_by_side) name += "_side";
  if (has_widths(c)) name += "_w";
  if (splits_k(c)) name += "_sk";
  if (slices_k(c)) name += "_sl";
  if (shares_cluster_k(c)) name += "_ck";
  if (c.ctas_per_sm > 1) name += c.ctas_per_sm;
  if (has_zero_points(c)) name += "_zp";
  if (passes(c) > 1) (name += "_p") += passes(c);
  if (packed_a(c) && in_flight(c) > 1) (name += "_k") += in_flight(c);
  if (group_sums(c) == GroupSums::folded) name += "_fold";
  if (group_sums(c) == GroupSums::table) name += "_lut";
  if (c.gated) name += "_gated";
  if (c.quantises) name += "_q";
  if (gathers(c)) name += "_ix";
  if (is_dynamic_persistent(c)) name += "_dyn";
  const bool a_mn = operand_a(c).major == atom::Major::mn;
  const bool b_mn = operand_b(c).major == atom::Major::mn;
  if (a_mn || b_mn) name += !a_mn ? "_nn" : b_mn ? "_tt" : "_tn";
  return name;
}

}  // namespace warpwright::kernel
