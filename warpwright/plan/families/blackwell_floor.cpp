// What tiles of Blackwell kernels need.
#include <algorithm>
#include <cmath>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/cost/group_rounds.h"
#include "warpwright/plan/families/blackwell.h"

namespace warpwright {
namespace {

using kernel::BlackwellConfig;

// A warp's lanes start the copies of four rows of tokens by index each.
constexpr double kGatheredRowClocks = 3;

// Columns that a tile multiplies. Tiles of a whole product are cut evenly too.
double mean_columns(const BlackwellConfig& c, const GemmProblem& p, const GroupLengths& lengths) {
  if (!kernel::has_widths(c)) return c.tile_n;
  if (p.groups) return mean_width(c.widths, c.tile_n, lengths);
  return tile::even_step(c.widths, tile::count(c.widths),
                         static_cast<int>(std::max<std::int64_t>(1, p.m())));
}

// Clocks of tcgen05.mma for a k_tile. Each CTA of a pair reads half of B. An MMA of K 96 takes what
// one of K 64 does, by a B300's data sheet. Where there is room for one k_tile's scales, these are
// copied when its MMAs have ended.
double umma_clocks(const BlackwellConfig& c, const TileNeeds& t, const MachineNumbers& n) {
  const auto columns = static_cast<int>(std::lround(t.tile_n));
  const double one =
      c.pair ? std::max(n.tcgen05_mma.at(256) * columns / 256, n.tcgen05_mma.at(columns / 2))
             : n.tcgen05_mma.at(columns);
  const double mmas = 1.0 * kernel::k_blocks(c) / kernel::stages_together(c);
  const bool waits = kernel::scale_buffers(c) == 1;
  return kernel::halves(c) * mmas * one +
         (waits ? (n.tcgen05_copy_clocks + n.tcgen05_clocks) / kernel::stages_together(c) : 0);
}

// Operands and scales come in, and the tensor core reads them.
double shared_clocks_of_umma(const BlackwellConfig& c, const TileNeeds& t,
                             const PredictionMachine& m) {
  const double bytes = t.row_bytes * (c.tile_m + t.b_share * t.tile_n) + t.scale_bytes;
  return 2 * bytes / (m.shared_bytes_per_clock * m.fitted.shared_overlap);
}

// Part of a tile's store that goes on beside the next one's MMAs: where sums are registers', none;
// where accumulators share columns, what follows these.
double hidden_store(const BlackwellConfig& c) {
  if (c.accumulators < 2 || c.blockwise) return 0;
  return 1 - 1.0 * kernel::shared_columns(c) / kernel::accumulator_columns(c);
}

}  // namespace

Floor blackwell_floor(const Plan& plan, const BlackwellConfig& c, const FloorBasis& basis) {
  const GemmProblem& p = plan.problem;
  const PredictionMachine& m = basis.machine;
  const MachineNumbers& n = numbers_of(plan.device);
  TileNeeds t;
  t.clock_hz = working_clock(m);
  t.tile_m = c.tile_m;
  t.tile_n = mean_columns(c, p, basis.lengths);
  t.is_swapped = c.swap_ab;
  t.token_rows = c.swap_ab ? kernel::result_columns(c) : kernel::result_rows(c);
  t.starts_again = c.tiles == kernel::TileSource::one_tile;
  if (c.grouped) t.search_loads = 1 + std::ceil(static_cast<double>(p.group_count()) / 32);
  t.k = kernel::tile_k(c) * kernel::stages_together(c);
  t.row_bytes = t.k * kernel::operand_bits(c) / 8.0;
  if (c.pair) t.b_share = 0.5;
  t.scale_bytes = kernel::stages_together(c) *
                  (kernel::halves(c) * kernel::sfa_bytes(c) + kernel::sfb_bytes(c));
  t.tensor = kernel::stages_together(c) * umma_clocks(c, t, n);
  // Registers of a lane: a warp has 16 rows of columns in half as many.
  const double registers = kernel::halves(c) * kernel::warp_row_atoms(c) * t.tile_n / 2;
  if (c.blockwise) t.convert = registers * (n.tmem_register_clocks + n.alu_clocks);
  t.shared = shared_clocks_of_umma(c, t, m);
  t.port_bytes_per_clock = m.port_bytes_per_clock;
  t.row_clocks = m.row_clocks;
  t.row_copy_clocks = kGatheredRowClocks;
  t.stages = c.stages / kernel::stages_together(c);
  t.load_clocks = n.tma_load_clocks;
  t.store_bytes = 1.0 * kernel::result_rows(c) * kernel::result_columns(c) * t.tile_n / c.tile_n *
                  numeric::bits(c.result) / 8;
  t.store_clocks = registers * (n.tmem_register_clocks + n.element_clocks);
  t.hidden = hidden_store(c);
  t.sums_bytes = 4.0 * c.tile_m * t.tile_n;
  if (c.splits_k) cut_tiles(t, plan, basis);
  return made_floor(plan, t, basis);
}

}  // namespace warpwright
