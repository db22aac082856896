// The predicted time of a Hopper plan, of a whole product or of one in groups.
#include <algorithm>
#include <cmath>

#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/kernel/hopper/config.h"
#include "warpwright/plan/cost/group_rounds.h"
#include "warpwright/plan/cost/machine.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/split.h"

namespace warpwright {
namespace {

// What a CTA does after the first operands are there: while operands are loaded, and after the last
// of them. Microseconds.
struct Serial {
  double during = 0;
  double after = 0;
  double during_stores = 0;  // of it: stores that nothing hides
};

// One plan on one machine.
class Estimate {
 public:
  Estimate(const Plan& plan, const kernel::GemmConfig& c, const GroupLengths& lengths)
      : plan_(plan),
        p_(plan.problem),
        c_(c),
        machine_(machine_of(p_.groups || p_.packed.has_value(), plan.device)),
        memory_rate_(memory_rate(machine_, plan.device)),
        blocks_(p_.reads_ab()
                    ? std::ceil(static_cast<double>(p_.k()) / kernel::tile_k(c_)) * k_atoms(c_)
                    : 0),
        a_share_(p_.packed ? packed_share(p_) : 1),
        lengths_(lengths),
        walk_(p_.groups ? group_walk(plan, c, lengths) : GroupWalk{}),
        tile_n_(has_widths(c) ? mean_width(c, lengths) : c.tile_n),
        tiles_(p_.groups ? walk_.tiles : tile::tile_count(plan.raster)),
        clusters_(static_cast<double>(plan.ctas) / plan.cluster_ctas()) {}

  double seconds() const {
    const bool pair = atom::cluster_size(plan_.cluster) > 1;
    const bool pingpong = takes_turns(c_);
    Serial work = serial();
    if (pair && p_.groups) {
      // Packed weights are each CTA's own, so that another cluster's bring no more.
      const double again = p_.packed ? 0 : std::min(1.0, walk_.again);
      work.during *= machine_.group_waits + machine_.group_pair_again * again;
    }
    const bool wide = is_blockwise(c_) && c_.tile_n / passes(c_) > 160;
    if (wide && p_.groups) work.during *= machine_.group_wide_scaled;
    if (pair && !p_.groups && !pingpong && fills_cluster()) work.during *= machine_.cluster_gain;
    const double loaded = row_loads(1, 1) * 128;
    const double from_l2 = 1e6 * loaded / machine_.l2_bytes_per_second;
    if (p_.groups) {
      // What HBM sends waits now and then for what L2 sends, which a cluster makes less; and it
      // stops where an epilogue is so long that the ring of stages is full. The lesser of products
      // and memory is not quite hidden.
      const double once = 1e6 * moved_bytes(p_, lengths_.busy) / memory_rate_ +
                          machine_.group_l2_share * from_l2 +
                          (pingpong ? 0 : machine_.group_stops * (work.during_stores + work.after));
      const double memory = once + read_again() * std::max(0.0, 1 - work.during / once);
      const double even = has_widths(c_) ? machine_.group_even : 1;
      return 1e-6 * even *
             (machine_.fixed + search() + std::max(work.during, memory) +
              machine_.group_beside * std::min(work.during, memory) + work.after);
    }
    const double moved = moved_bytes(p_, 1);
    double memory = 1e6 * std::max(moved / (machine_.hbm_share * memory_rate_),
                                   cold_bytes() / machine_.cold_bytes_per_second);
    // The last round's few tiles come no faster than their CTAs multiply.
    const double full = std::floor(tiles_ / clusters_);
    const double left = tiles_ - full * clusters_;
    if (takes_whole_tiles(c_) && full > 0 && left > 0) {
      memory = memory * (full * clusters_ / tiles_) +
               std::max(memory * left / tiles_, work.during / (full + 1));
    }
    const Together merged = together();
    // CTAs of one round are in step; later ones drift apart.
    const double share = tiles_ > clusters_ ? machine_.merged_later : machine_.merged_once;
    const double asked = row_loads((p_.packed ? 1 : sectors_of_a()) / (1 + share * (merged.n - 1)),
                                   sectors_of_b() / (1 + share * (merged.m - 1)));
    // The one of two as fast that loads less.
    const double loads = 0.004 * 1e6 * loaded / machine_.l2_bytes_per_second;
    const double during =
        std::pow(std::pow(std::max(work.during, memory), machine_.l2_beside) +
                     std::pow(1e6 * asked / machine_.l2_requests_per_second, machine_.l2_beside),
                 1 / machine_.l2_beside);
    return 1e-6 * (machine_.fixed + (pair ? machine_.pair_start : 0) + during + work.after + loads);
  }

 private:
  // Extents of the product as the kernel has it.
  double rows() const { return static_cast<double>(is_swapped(c_) ? p_.n() : p_.m()); }
  double columns() const { return static_cast<double>(is_swapped(c_) ? p_.m() : p_.n()); }

  // How much longer L2 sends a row of each operand, by its pitch.
  double sectors_of_a() const {
    return sectors_asked(is_swapped(c_) ? pitch_of_b(p_) : pitch_of_a(p_));
  }
  double sectors_of_b() const {
    return sectors_asked(is_swapped(c_) ? pitch_of_a(p_) : pitch_of_b(p_));
  }

  // Are there tiles for all CTAs of a cluster? What hardly any shares is no gain.
  bool fills_cluster() const {
    return rows() > (plan_.cluster.m - 1.0) * c_.tile_m &&
           columns() > (plan_.cluster.n - 1.0) * c_.tile_n;
  }

  // CTAs without a cluster, side by side in a group of some 16 SMs: how many of them ask for the
  // same columns, and for the same rows.
  struct Together {
    double m = 1;
    double n = 1;
  };
  Together together() const {
    const tile::Raster& r = plan_.raster;
    if (atom::cluster_size(plan_.cluster) > 1 || plan_.cluster_k > 1 || slices_k(c_)) return {};
    // Rows that begin inside a sector are asked for by each SM (as in Composer::asked).
    if (sectors_of_a() > 1 || sectors_of_b() > 1) return {};
    const double band = std::min(16, std::max(1, r.band));
    const double across = std::max(1.0, std::floor(16 / band));
    const double m = std::min<double>(r.tiles_m, r.along_m ? band : across);
    const double n = std::min<double>(r.tiles_n, r.along_m ? across : band);
    return {m, n};
  }

  // Rows of boxes that all tiles load, each counted as often as these say.
  double row_loads(double of_a, double of_b) const {
    return tiles_ * atom::cluster_size(plan_.cluster) * blocks_ *
           (of_a * a_share_ * c_.tile_m / plan_.cluster.n + of_b * tile_n_ / plan_.cluster.m);
  }

  // Microseconds in which HBM sends weights once more for every tile of a group beside its first:
  // where memory is what all wait for, L2 has lost them until these come.
  double read_again() const {
    const double weights = moved_bytes(p_, 1) - moved_bytes(p_, 0);
    return 1e6 * lengths_.busy * walk_.again * weights / memory_rate_;
  }

  // What L2 sends of the larger operand while that comes from memory: once for every cluster that
  // runs at the same time and wants it; CTAs without one, side by side in a group of some 16 SMs,
  // get it together.
  double cold_bytes() const {
    const tile::Raster& r = plan_.raster;
    if (plan_.cluster_k > 1 || slices_k(c_)) return 0;
    // Among many tiles only those of few rows: all of them want the same weights at the same time.
    const bool few = p_.m() <= 4 * (is_swapped(c_) ? c_.tile_n : c_.tile_m);
    if (tiles_ > clusters_ && !few) return 0;
    const double k = static_cast<double>(p_.k()) * numeric::bits(p_.a.dtype) / 8;
    const double a = k * a_share_ * rows();
    const double b = k * columns();
    const Together merged = together();
    // Cluster tiles that run together along the band, and across it.
    const double band = r.band;
    const double along = std::ceil(clusters_ / band);
    const double m = std::min<double>(r.tiles_m, r.along_m ? band : along);
    const double n = std::min<double>(r.tiles_n, r.along_m ? along : band);
    return a > b ? a * std::ceil(n / merged.n) : b * std::ceil(m / merged.m);
  }

  // Clocks of a k_tile of a tile on one SM, as it was measured: its tensor cores take n / 2 for
  // 64 x n x 32 bytes; its shared memory gives wgmma its operands and takes the next ones, which
  // come from L2. Sums in registers leave shared memory some time; tiles of 64 rows have one
  // warpgroup, which waits for itself; in turns, one warpgroup's waits are hidden by the other.
  double block_clocks() const {
    const double steps = 4.0 * c_.tile_m / 64;
    const double bytes = 128.0 * (c_.tile_m + tile_n_);
    const double tensor = steps * tile_n_ / 2 * machine_.tensor.at(tile_n_);
    if (p_.packed) {
      kernel::GemmConfig mean = c_;
      mean.tile_n = static_cast<int>(std::lround(tile_n_));
      return std::max({tensor,
                       packed_clocks(mean, p_.packed->format, a_share_, machine_, sharing()),
                       load_clocks(), row_copy_clocks()});
    }
    const double shared =
        (steps * (2048.0 * passes(c_) + 32.0 * tile_n_) + bytes) / machine_.shared_bytes_per_clock;
    double clocks = std::max(tensor, 1.02 * shared);
    if (sums_in_registers(c_)) clocks = 0.22 * tensor + 0.78 * shared;
    if (is_blockwise(c_)) clocks *= machine_.scaled_share;
    // Who adds by parts of a k_tile waits for each: no more is known of it.
    clocks *= 1 + 0.25 * (scale_parts(c_) - 1);
    if (takes_turns(c_)) {
      clocks *= machine_.pingpong_share;
    } else if (c_.consumer_warpgroups == 1) {
      clocks = machine_.narrow_share * clocks + machine_.narrow_clocks;
    } else {
      clocks *= machine_.cooperative_share;
    }
    const double least = machine_.block_clocks * (k_atoms(c_) > 1 ? machine_.deep_share : 1);
    // A stage is filled again as long after it is free as its bytes take to come.
    const double ring =
        machine_.ring_latency * 1e-6 * machine_.clock_hz / (c_.stages * k_atoms(c_));
    return std::max({clocks, least, load_clocks(), row_copy_clocks(), p_.groups ? 0 : ring});
  }

  // Clocks in which one SM gets its part of a k_tile's operands.
  double load_clocks() const {
    const bool grouped = p_.is_grouped();
    const double inside_m =
        grouped ? 1 : rows() / (plan_.raster.tiles_m * plan_.cluster.m * c_.tile_m);
    const double inside_n =
        grouped ? 1 : columns() / (plan_.raster.tiles_n * plan_.cluster.n * c_.tile_n);
    // Tokens by index are not shared in a cluster.
    const bool gathers_m = kernel::gathers(c_) && !is_swapped(c_);
    const bool gathers_n = kernel::gathers(c_) && is_swapped(c_);
    const double m = a_share_ * c_.tile_m / (gathers_m ? 1 : plan_.cluster.n);
    const double n = tile_n_ / (gathers_n ? 1 : plan_.cluster.m);
    const double inside = std::min(1.0, inside_m) * m + std::min(1.0, inside_n) * n;
    return 128 * inside / machine_.sm_bytes_per_clock + machine_.outside_clocks * (m + n - inside);
  }

  // Clocks in which two warps start the copies of a k_tile's tokens by index: of those rows of a
  // tile that are in its group.
  double row_copy_clocks() const {
    if (!kernel::gathers(c_)) return 0;
    const bool swapped = is_swapped(c_);
    const double along = swapped ? plan_.cluster.n : plan_.cluster.m;
    const double tiles = std::max(1.0, walk_.tiles / plan_.raster.tiles_n * along);
    const double rows =
        std::min<double>(swapped ? c_.tile_n : c_.tile_m, static_cast<double>(p_.m()) / tiles);
    return machine_.row_copy_clocks * rows;
  }

  // For a tile, in microseconds. Rows of D's chunks that are short cost more stores.
  double epilogue() const {
    double time = machine_.epilogue_time * c_.tile_m * tile_n_ / 32768 *
                  (kernel::result_bytes(c_) / 2.0) * (p_.reads_c() ? 1.5 : 1);
    if (p_.groups && !takes_turns(c_)) time *= machine_.group_epilogue;
    if (is_swapped(c_) && store_of(c_) == kernel::Store::tensor) time *= machine_.swapped_epilogue;
    if (!p_.groups && store_of(c_) == kernel::Store::lanes) time += machine_.lane_store;
    if (!is_swapped(c_) && c_.tile_n % 32 != 0) time *= machine_.by_16_columns;
    if (!is_swapped(c_) && c_.tile_n % 64 != 0 && p_.n() % 64 != 0) time *= machine_.across_lines;
    return time;
  }

  // How long a CTA looks for its tiles in groups.
  double search() const {
    const auto groups = static_cast<double>(p_.group_count());
    switch (grouping(c_)) {
      case kernel::Grouping::none:
        break;
      case kernel::Grouping::linear_scan:
        return machine_.search_linear_scan + machine_.search_linear_scan_each * groups;
      case kernel::Grouping::warp_scan:
        return machine_.search_warp_scan + machine_.search_warp_scan_each * std::ceil(groups / 32);
      case kernel::Grouping::binary_search:
        return machine_.search_binary_search +
               machine_.search_binary_search_each * groups / kernel::threads(c_);
    }
    return 0;
  }

  // CTAs that have an SM in common share its tensor cores.
  double sharing() const { return ctas_on_an_sm(plan_, c_.ctas_per_sm); }

  // Microseconds more that a tile's last k_tile takes where its rows end within the boxes.
  double partial_time(double block) const {
    if (p_.groups || p_.packed || p_.k() % kernel::span_k(c_) == 0) return 0;
    const double rows =
        static_cast<double>(c_.tile_m) / plan_.cluster.n + tile_n_ / plan_.cluster.m;
    return std::max(0.0, machine_.partial_clocks * rows / machine_.clock_hz * 1e6 - block);
  }

  Serial serial() const {
    const double block = block_clocks() / machine_.clock_hz * 1e6;
    const double store = epilogue();
    const double rounds = p_.groups ? walk_.rounds : std::ceil(tiles_ / clusters_);
    const double sharing = this->sharing();
    if (plan_.cluster_k > 1) {
      const double resident = c_.ctas_per_sm * resident_ctas(plan_.device, plan_.cluster_ctas());
      const double waves = std::ceil(plan_.ctas / resident);
      const double once = std::ceil(blocks_ / plan_.cluster_k) * block * sharing;
      const double after = store / plan_.cluster_k + machine_.cluster_exchange +
                           machine_.cluster_exchange_tile * c_.tile_m * c_.tile_n / 8192 +
                           machine_.cluster_exchange_each * plan_.cluster_k;
      return {once + (waves - 1) * (once + after + machine_.cluster_wave), after};
    }
    if (slices_k(c_)) {
      const double sharers = plan_.ctas / tiles_;
      const double exchange = sharers > 1 ? slice_time(machine_, c_.tile_m, c_.tile_n) : 0;
      return {std::ceil(plan_.waves()) * std::ceil(blocks_ / sharers) * block * sharing,
              store / std::min(sharers, c_.tile_n / 8.0) + exchange};
    }
    if (splits_k(c_)) {
      const tile::SplitPlan split(static_cast<int>(tiles_), static_cast<int>(blocks_),
                                  static_cast<int>(clusters_));
      const double whole = split.whole / clusters_;
      const double shared = tiles_ - split.whole;
      if (shared == 0) {
        return {whole * blocks_ * block + (whole - 1) * store, store + machine_.split_start};
      }
      // Where there are fewer tiles than pieces, many parts meet in one CTA.
      const double parts = std::max(1.0, split.pieces / shared);
      const double exchange = machine_.workspace_exchange +
                              parts * 4 * c_.tile_m * c_.tile_n / machine_.workspace_bytes;
      const double piece = split.each + (split.longer > 0 ? 1 : 0);
      return {(whole * blocks_ + piece) * block + whole * store, store + exchange};
    }
    if (takes_turns(c_)) {
      return {rounds * (std::max(blocks_ * block + partial_time(block),
                                 machine_.pingpong_hides * store) +
                        machine_.pingpong_each * store),
              machine_.pingpong_last * store};
    }
    const double stores = (rounds - 1) * std::max(store, machine_.between_tiles);
    return {rounds * (blocks_ * block + partial_time(block)) * sharing + stores, store, stores};
  }

  const Plan& plan_;
  const GemmProblem& p_;
  const kernel::GemmConfig& c_;
  Machine machine_;
  double memory_rate_;
  double blocks_;
  double a_share_;  // bytes of A in memory, of those of 8-bit elements (or of what is multiplied)
  const GroupLengths& lengths_;
  GroupWalk walk_;
  double tile_n_;  // on average, where tiles differ
  double tiles_;
  double clusters_;
};

}  // namespace

double predicted_cost(const Plan& plan, const kernel::GemmConfig& c, const GroupLengths& lengths) {
  return plan.ctas == 0 ? 0 : Estimate(plan, c, lengths).seconds();
}

}  // namespace warpwright
