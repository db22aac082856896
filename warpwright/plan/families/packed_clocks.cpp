// Clocks of a k_tile of packed weights on one SM.
#include <algorithm>
#include <cmath>

#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/plan/cost/machine.h"
#include "warpwright/plan/families/hopper.h"

namespace warpwright {
namespace {

// What a warpgroup does with a span, 128 bytes of K.
struct SpanWork {
  double converting;  // codes
  double scaling;     // sums that are in registers
  double step;        // clocks of the tensor core's k_blocks, longer than its own
  double turns;       // waits for products and sums in turn
  double waits;       // how much longer a warpgroup by itself takes
};

// CTAs that have an SM in common: of groups no more than there are.
double ctas_there(const kernel::GemmConfig& c, double sharing) {
  return is_grouped(c) ? std::min(sharing, 1.0 * c.ctas_per_sm) : c.ctas_per_sm;
}
// Two CTAs of 64 rows on an SM never won over one of 128 in groups (12.2 us for 9.6, 12.8 for 11.7;
// docs/log/w4a8.md). With 1.2, which the first of these is, plans took them where they lose.
double crowding(const kernel::GemmConfig& c, double sharing) {
  return is_grouped(c) && c.tile_m == 64 && ctas_there(c, sharing) > 1 ? 1.5 : 1;
}

double span_clocks(const kernel::GemmConfig& c, double a_share, const Machine& machine,
                   double sharing, const SpanWork& w) {
  const double warpgroups = c.tile_m / 64.0;  // what so many have to do, 64 rows each
  const double working = w.converting + w.scaling;
  const double products = w.step * std::max(15.0, c.tile_n / 2.0) * machine.tensor.at(c.tile_n);
  // Few tiles, which clusters share, seldom have two CTAs on an SM.
  const double beside =
      shares_cluster_k(c) ? std::min(1.33, 1.0 * c.ctas_per_sm) : ctas_there(c, sharing);
  const double bytes =
      128.0 * (a_share * c.tile_m + c.tile_n) + warpgroups * (4096 + 128.0 * c.tile_n);
  return std::max({warpgroups * std::max(products, working + products / 2),
                   bytes / machine.shared_bytes_per_clock,
                   w.waits * (66 + row_atoms(c) * working + 2.0 * c.tile_n + w.turns) *
                       crowding(c, sharing) / beside});
}

// For e2m1 weights, by their instructions, two clocks each of eight words a lane for e4m3 and of
// four for 16 bits, with what makes factors of their scales; how much longer products take than the
// tensor core's own clocks, and a folded word for e4m3, are from one table on an H100
// (docs/log/w4a8.md). A span is half a k_tile of 16 bits.
SpanWork e2m1_work(const kernel::GemmConfig& c, const PackedFormat& f) {
  const bool in_registers = sums_in_registers(c);
  const bool half = kernel::operand_bits(c) == 16;
  const double groups = in_registers && !packed::folds(f) ? 4 : 1;
  const double scales = f.scale == DType::ue4m3 ? 20 : 10;
  return {.converting = half           ? 88 + scales
                        : in_registers ? 116.0
                                       : 178.0,
          .scaling = in_registers ? groups * c.tile_n / 2 : 0,
          .step = half ? 4.8 : 4.2,
          .turns = 60 * groups * passes(c),
          .waits = kernel::in_flight(c) > 1 || !in_registers ? 1.1 : 1.65};
}

// For int4 weights for tokens of 16 bits. Lanes convert as many words as for e2m1, by 11
// instructions for bf16 and 9 for f16; what exact sums add between products is from a table on an
// H100 (docs/log/w4a8.md).
SpanWork int4_wide_work(const kernel::GemmConfig& c, const PackedFormat& f) {
  const double groups = sums_in_registers(c) ? static_cast<double>(packed::slices(f)) / 2 : 0;
  return {.converting = kernel::operand_b(c).type == DType::f16 ? 70.0 : 85.0,
          .scaling = groups * c.tile_n / 2,
          .step = 4.8,
          .turns = 60 * groups,
          .waits = sums_in_registers(c) ? 1.25 : 1.1};
}

}  // namespace

bool packed_ctas_meet(const Plan& plan) {
  return plan.problem.packed && plan.cluster_k > 1 &&
         plan.ctas > resident_ctas(plan.device, plan.cluster_ctas());
}

double ctas_on_an_sm(const Plan& plan, int ctas_per_sm) {
  if (packed_ctas_meet(plan)) return ctas_per_sm;
  return std::min<double>(ctas_per_sm, std::ceil(static_cast<double>(plan.ctas) / plan.device.sms));
}

double packed_share(const GemmProblem& p) {
  return 8.0 * packed::tile_bytes(p.packed->format) /
         (numeric::bits(p.a.dtype) * static_cast<double>(packed::kTileRows * packed::kTileK));
}

// By what the SM's parts must do: a warp of each warpgroup on every
// scheduler converts, multiplies and scales, of which hardly anything overlaps as measured, and a
// wgmma with A from registers takes no less for few tokens; shared memory gives codes, tokens and
// room to copies; and a warpgroup by itself waits for the codes of its rows (a gate's and an up's
// are twice as many), its products and its sums in turn, which takes the more by what was measured
// of dense tiles with exact sums (440, 700 and 810 clocks for 16, 64 and 128 tokens). For two CTAs
// an SM the second brings a part of that, as grouped tiles show; and two groups in flight hide some
// of both.
double packed_clocks(const kernel::GemmConfig& c, const PackedFormat& f, double a_share,
                     const Machine& machine, double sharing) {
  if (kernel::has_float_codes(c)) return span_clocks(c, a_share, machine, sharing, e2m1_work(c, f));
  if (kernel::operand_bits(c) == 16) {
    return span_clocks(c, a_share, machine, sharing, int4_wide_work(c, f));
  }
  const double warpgroups = c.tile_m / 64.0;
  const double groups = static_cast<double>(packed::slices(f));
  const bool coded_sm = f.encoding == Int4Encoding::sm;
  const GroupSums sums = group_sums(c);
  const double scaling = folds(sums) ? 0 : groups * (c.tile_n / 2.0);
  // Folded: through f16, and the factors of every step, or by tables, which are made of every
  // group. Zero points: three instructions a weight.
  const double converting = sums == GroupSums::table    ? 220 + 60 * groups
                            : sums == GroupSums::folded ? 520
                            : has_zero_points(c)        ? 380
                            : coded_sm                  ? 48
                                                        : 112;
  const double products = 4.0 * passes(c) * std::max(26.0, c.tile_n / 2.0 / passes(c)) *
                          machine.tensor.at(static_cast<double>(c.tile_n) / passes(c));
  const double hidden = kernel::in_flight(c) > 1 ? 0.87 : 1;
  const double issue = hidden * warpgroups * (converting + products + scaling);
  const double copied = 128.0 * (a_share * c.tile_m + c.tile_n);
  const double shared =
      (warpgroups * (4096 + 128.0 * c.tile_n) + copied) / machine.shared_bytes_per_clock;
  const double alone =
      66 + row_atoms(c) * (converting + scaling) + 2.0 * c.tile_n + 60 * groups * passes(c);
  const double waits = passes(c) > 1 ? 2.06 : 1.65;
  const double beside = passes(c) > 1 ? 1.6 : 1.3;
  return std::max(
      {issue, shared,
       hidden * waits * alone * crowding(c, sharing) / (ctas_there(c, sharing) > 1 ? beside : 1)});
}

}  // namespace warpwright
