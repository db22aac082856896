// What `explain` says of a Hopper kernel's schedule, sums and weights.
#include "warpwright/facts/format.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {

using kernel::GemmConfig;

std::string hopper_schedule_text(const GemmConfig& c) {
  constexpr const char* schedules[] = {"cooperative", "ping-pong"};
  constexpr const char* searches[] = {
      "", "linear_scan: one group after the other",
      "binary_search: over the tiles of all groups, added up in shared memory",
      "warp_scan: a warp looks at 32 groups at a step"};
  std::string out;
  out +=
      format("persistent, warp-specialised, %s%s%s\n", schedules[static_cast<int>(schedule_of(c))],
             kernel::is_swapped(c) ? ", operands swap_ab (rows are columns of D)" : "",
             kernel::splits_k(c)   ? ", split along K"
             : kernel::slices_k(c) ? ", split along K and added up in slices"
                                   : "");
  if (kernel::is_grouped(c)) {
    out += format("groups     found on the device, %s\n", searches[static_cast<int>(grouping(c))]);
    out += kernel::gathers(c)
               ? std::string(
                     "tokens     by index: two warps copy the rows of a tile, up to the group's "
                     "end\n")
               : "maps       one over all tokens; rows loaded past a group's end are not stored\n";
  }
  return out;
}

std::string hopper_sums_text(const GemmConfig& c) {
  std::string text;
  if (kernel::packed_a(c) && kernel::has_float_codes(c)) {
    text = kernel::sums_in_registers(c) ? "added to float32 registers every 128 of K"
                                        : "in the tensor core's accumulators, of folded weights";
    return kernel::is_blockwise(c) ? text + ", times the scales of the tokens' block" : text;
  }
  if (kernel::packed_a(c)) {
    switch (kernel::group_sums(c)) {
      case GroupSums::exact:
        text = "exact: added to float32 registers after every group, times its scales";
        return kernel::is_blockwise(c) ? text + " and those of the tokens' block" : text;
      case GroupSums::chained:
        return "chained: in the tensor core's accumulators, rescaled from group to group";
      case GroupSums::folded:
        return std::string("folded: in the tensor core's accumulators, of codes times scales in ") +
               (kernel::operand_bits(c) == 16 ? "bf16" : "e4m3");
      case GroupSums::open:  // only of a problem
      case GroupSums::table:
        return "table: in the tensor core's accumulators, of codes times scales in e4m3, from a "
               "table of each group and row";
    }
  }
  switch (sums_of(c)) {
    case kernel::Sums::tensor_core:
      text = "in the tensor core's accumulators";
      if (kernel::operand_bits(c) == 8) {
        text += ", 13 bits below the leading one (fast accumulation)";
      }
      break;
    case kernel::Sums::promoted:
      text = format("added to float32 registers every %d of K", kernel::tile_k(c));
      break;
    case kernel::Sums::blockwise:
      text = format("added to float32 registers every %d of K, times the block's scales",
                    kernel::tile_k(c) / scale_parts(c));
      break;
  }
  if (kernel::passes(c) > 1) {
    text += format(", %d columns after the others", c.tile_n / kernel::passes(c));
  }
  if (c.gated) text += "; a tile holds the same part of both halves of N";
  return text;
}

std::string hopper_weights_text(const Plan& plan) {
  const PackedFormat& f = plan.problem.packed->format;
  const int blocks = in_flight(hopper_config(plan));
  if (packed::has_float_codes(f)) {
    return format(
        "weights    %s, a bulk copy of %d bytes for 64 rows of a stage: %d of codes, which lanes "
        "convert to %s in registers, and %d of %s scales of groups of %d, which %s\n",
        type_name(f.code).c_str(), blocks * packed::tile_bytes(f), blocks * packed::kTileCodeBytes,
        packed::is_wide(f) ? type_name(f.tokens).c_str() : "e5m2",
        blocks * packed::slices(f) * packed::slice_bytes(f), type_name(f.scale).c_str(), f.group,
        packed::folds(f) ? "are folded into them: no weight is rounded"
                         : "meet their groups' sums, for a row's span too far to be folded");
  }
  return format(
      "weights    %s (%s), a bulk copy of %d bytes for 64 rows of a stage: %d of codes, which "
      "lanes convert to %s in registers, and %d of %s scales of groups of %d%s\n",
      packed::weights_word(f).c_str(), f.encoding == Int4Encoding::ex ? "-8 to 7" : "-7 to 7",
      blocks * packed::tile_bytes(f), blocks * packed::kTileCodeBytes, type_name(f.tokens).c_str(),
      blocks * packed::slices(f) * packed::slice_bytes(f), type_name(f.scale).c_str(), f.group,
      f.zero_points == ZeroPoints::none ? "" : ", with zero points, which are subtracted exactly");
}

}  // namespace warpwright
