#include "warpwright/plan/families/floor.h"

#include <algorithm>
#include <cmath>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/cost/group_rounds.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/split.h"

namespace warpwright {
namespace {

// SMs that L2 answers together where they ask for the same line at about the same time.
constexpr double kSmGroup = 16;

class Floored {
 public:
  Floored(const Plan& plan, const TileNeeds& needs, const FloorBasis& basis)
      : plan_(plan),
        p_(plan.problem),
        t_(needs),
        basis_(basis),
        lengths_(basis.lengths),
        m_(basis.machine),
        numbers_(numbers_of(plan.device)),
        hz_(needs.clock_hz),
        rows_(static_cast<double>(t_.is_swapped ? p_.n() : p_.m())),
        columns_(static_cast<double>(t_.is_swapped ? p_.m() : p_.n())),
        walk_(p_.groups ? group_walk(plan, t_.token_rows, t_.is_swapped, lengths_) : GroupWalk{}),
        tiles_(p_.groups ? walk_.tiles : tile::tile_count(plan.raster)),
        at_once_(
            std::min(plan.ctas, t_.ctas_per_sm * resident_ctas(plan.device, plan.cluster_ctas()))),
        clusters_(std::max(1.0, at_once_ / plan.cluster_ctas())),
        k_tiles_(p_.reads_ab() ? std::ceil(static_cast<double>(p_.k()) / t_.k) : 0),
        sharers_(t_.along_k == AlongK::slices ? std::max(1.0, plan.ctas / std::max(tiles_, 1.0))
                                              : 1),
        sharing_(t_.sharing > 0 ? t_.sharing : std::max(1.0, at_once_ / plan.device.sms)) {
    if (p_.groups) {
      (t_.is_swapped ? inside_n_ : inside_m_) = tokens_inside();
    } else {
      const tile::Raster& r = plan.raster;
      inside_m_ = std::min(1.0, rows_ / (1.0 * r.tiles_m * plan.cluster.m * t_.tile_m));
      inside_n_ = std::min(1.0, columns_ / (1.0 * r.tiles_n * plan.cluster.n * t_.tile_n));
    }
  }

  Floor made() {
    Floor f;
    const double rounds = this->rounds();
    const double deep = std::ceil(k_tiles_ / (plan_.cluster_k * sharers_)) * rounds * sharing_;
    // Until the first operands are there, and from the last store to the next launch.
    const double once =
        (numbers_.start_clocks + numbers_.cold_start_clocks + numbers_.first_operand_clocks +
         numbers_.tma_store_done_clocks + numbers_.exit_clocks) /
        hz_;
    // CTAs of a cluster wait for each other at both ends.
    const double waits = plan_.cluster_ctas() > 1 ? 2 * numbers_.cluster_barrier_clocks / hz_ : 0;
    f.search = t_.search_loads * numbers_.l2_hit_clocks / hz_;
    f.start = m_.launch_seconds + once + waits + f.search;
    f.tensor = deep * t_.tensor / hz_;
    f.convert = deep * t_.convert / hz_;
    f.shared = deep * t_.shared / hz_;
    f.port = deep * port_clocks() / hz_;
    f.rows = p_.is_by_index() ? deep * t_.row_copy_clocks * tokens_of_tile() / hz_ : 0;
    const Together same = together();
    f.requests = lines(same) / m_.l2_lines_per_second;
    f.asked = lines({}) / m_.l2_lines_per_second;
    f.memory = basis_.moved / kernel_memory_rate(m_, plan_.device);
    f.cold = cold_bytes(same) / numbers_.cold_bytes_per_second;
    f.ring = deep / sharing_ / t_.stages * t_.load_clocks / hz_;
    const double store = store_clocks() / hz_;
    f.stores = store * (1 + (1 - t_.hidden) * (std::max(1.0, std::ceil(rounds)) - 1));
    f.exchange = exchange_seconds(rounds);
    if (t_.starts_again) f.start += (std::ceil(rounds) - 1) * once;
    if (plan_.cluster_k > 1) f.exchange *= std::ceil(rounds);
    const double busy = std::max({f.tensor, f.convert, f.shared, f.port, f.rows,
                                  t_.hidden > 0 ? rounds * store : 0}) +
                        f.stores - store;
    f.seconds = f.start + std::max({busy, f.requests, f.memory, f.ring}) + store + f.exchange;
    f.walk = {.rounds = rounds,
              .tiles = tiles_,
              .k_tiles = k_tiles_,
              .sharing = sharing_,
              .sharers = sharers_,
              .inside_m = inside_m_,
              .inside_n = inside_n_,
              .bytes = inside_bytes(),
              .again = walk_.again};
    return f;
  }

 private:
  // CTAs of a cluster along the tokens, and rows of the widest tile.
  [[nodiscard]] double along_tokens() const {
    return t_.is_swapped ? plan_.cluster.n : plan_.cluster.m;
  }
  // The share that a group has in the rows of its tiles.
  [[nodiscard]] double tokens_inside() const {
    const double token_tiles = tiles_ / std::max(1, plan_.raster.tiles_n) * along_tokens();
    const double rows = token_tiles * (t_.is_swapped ? t_.tile_n : t_.tile_m);
    return std::clamp(static_cast<double>(p_.m()) / std::max(rows, 1.0), 1e-3, 1.0);
  }
  [[nodiscard]] double tokens_of_tile() const {
    return t_.is_swapped ? inside_n_ * t_.tile_n : inside_m_ * t_.tile_m;
  }

  // Tiles of the busiest CTA; those whose CTAs share tiles along K have all as many k_tiles.
  [[nodiscard]] double rounds() const {
    if (t_.rounds > 0) return t_.rounds;
    if (p_.groups) return walk_.rounds;
    const double each = tiles_ / clusters_;
    if (t_.along_k == AlongK::slices) return std::ceil(tiles_ * sharers_ / clusters_);
    return t_.along_k == AlongK::pieces ? each : std::ceil(each);
  }

  // For a k_tile.
  [[nodiscard]] double port_clocks() const {
    const double m = t_.tile_m / plan_.cluster.n;
    const double n = t_.tile_n / plan_.cluster.m;
    const double rows = (p_.packed ? 0 : m) + n;
    const bool by_means = t_.by_means || p_.groups;
    const double bytes =
        by_means ? inside_bytes()
                 : bytes_of(std::min(1.0, rows_ / t_.tile_m), std::min(1.0, columns_ / t_.tile_n));
    return std::max((bytes + t_.scale_bytes) / t_.port_bytes_per_clock, rows * t_.row_clocks);
  }
  [[nodiscard]] double bytes_of(double inside_m, double inside_n) const {
    return t_.row_bytes * (inside_m * t_.a_share * t_.tile_m + inside_n * t_.b_share * t_.tile_n);
  }
  [[nodiscard]] double inside_bytes() const { return bytes_of(inside_m_, inside_n_); }
  [[nodiscard]] double store_clocks() const {
    const double sent = t_.store_bytes / t_.port_bytes_per_clock /
                        (plan_.cluster_k * std::min(sharers_, t_.tile_n / 8.0));
    return std::max(sent, t_.store_clocks);
  }

  // CTAs without a cluster, side by side in a group of SMs: how many ask for the same columns of
  // the product, and for the same rows.
  struct Together {
    double m = 1, n = 1;
  };
  [[nodiscard]] Together together() const {
    const tile::Raster& r = plan_.raster;
    if (atom::cluster_size(plan_.cluster) > 1 || plan_.cluster_k > 1) return {};
    if (t_.along_k == AlongK::slices || p_.groups) return {};
    if (pitch_of_a(p_) % 32 != 0 || (!p_.packed && pitch_of_b(p_) % 32 != 0)) return {};
    const double band = std::clamp<double>(r.band, 1, kSmGroup);
    const double across = std::max(1.0, std::floor(kSmGroup / band));
    return {std::min<double>(r.tiles_m, r.along_m ? band : across),
            std::min<double>(r.tiles_n, r.along_m ? across : band)};
  }

  // Lines of 128 bytes that L2 sends. How many it sends once for several SMs depends on how far
  // these run apart.
  [[nodiscard]] double lines(const Together& same) const {
    const double merged = tiles_ > clusters_ ? 0.2 : 0.6;
    const double of_a = basis_.lines_of_a;
    const double of_b = basis_.lines_of_b;
    // Tokens by index are not shared in a cluster.
    const double by_m = p_.is_by_index() && !t_.is_swapped ? 1 : plan_.cluster.n;
    const double by_n = p_.is_by_index() && t_.is_swapped ? 1 : plan_.cluster.m;
    const double m = (t_.is_swapped ? of_b : of_a) * inside_m_ * t_.tile_m / by_m;
    const double n = (t_.is_swapped ? of_a : of_b) * inside_n_ * t_.tile_n / by_n;
    return tiles_ * atom::cluster_size(plan_.cluster) * k_tiles_ * t_.row_bytes / 128 *
           (m / (1 + merged * (same.n - 1)) + n / (1 + merged * (same.m - 1)));
  }

  // What L2 sends of the larger operand while that comes from memory: once for every cluster that
  // wants it at that time.
  [[nodiscard]] double cold_bytes(const Together& same) const {
    const tile::Raster& r = plan_.raster;
    if (plan_.cluster_k > 1 || t_.along_k == AlongK::slices) return 0;
    if (p_.groups) {  // weights, for each tile of tokens
      return lengths_.busy * (1 + walk_.again) * basis_.weights;
    }
    const bool few = static_cast<double>(p_.m()) <= 4 * (t_.is_swapped ? t_.tile_n : t_.tile_m);
    if (tiles_ > clusters_ && !few) return 0;
    const double k = static_cast<double>(p_.k()) * numeric::bits(p_.a.dtype) / 8;
    const double along = std::ceil(clusters_ / r.band);
    const double m = std::min<double>(r.tiles_m, r.along_m ? r.band : along);
    const double n = std::min<double>(r.tiles_n, r.along_m ? along : r.band);
    return rows_ > columns_ ? k * t_.a_share * rows_ * std::ceil(n / same.n)
                            : k * columns_ * std::ceil(m / same.m);
  }

  [[nodiscard]] double exchange_seconds(double rounds) const {
    if (plan_.cluster_k > 1) {
      const double sent = t_.sums_bytes / plan_.cluster_k / numbers_.dsmem_bytes_per_clock;
      return (numbers_.cluster_barrier_clocks + numbers_.dsmem_clocks + sent) / hz_;
    }
    double bytes = 0;
    if (sharers_ > 1) bytes = 2 * (1 - 1 / sharers_) * t_.sums_bytes;
    if (t_.along_k == AlongK::pieces && rounds != std::floor(rounds)) {
      const double even = rounds < 1 ? std::ceil(1 / rounds) : 2;
      bytes = (t_.parts > 0 ? t_.parts : even) * t_.sums_bytes;
    }
    // Written for all to see, told, asked, answered, and read.
    if (bytes == 0) return 0;
    return (m_.exchange_clocks + bytes / (t_.sums_share * t_.port_bytes_per_clock)) / hz_;
  }

  const Plan& plan_;
  const GemmProblem& p_;
  const TileNeeds& t_;
  const FloorBasis& basis_;
  const GroupLengths& lengths_;
  const PredictionMachine& m_;
  const MachineNumbers& numbers_;
  double hz_;
  double rows_, columns_;  // of the product as the kernel has it
  GroupWalk walk_;
  double tiles_;                        // for clusters
  double at_once_;                      // CTAs
  double clusters_;                     // at once
  double k_tiles_;                      // of a tile
  double inside_m_ = 1, inside_n_ = 1;  // of all tiles' rows and columns
  double sharers_;                      // CTAs that share a tile in slices
  double sharing_;                      // CTAs that share an SM
};

}  // namespace

FloorBasis::FloorBasis(const GemmProblem& p, const DeviceFacts& device)
    : machine(prediction_machine(device)),
      lengths(group_lengths(p)),
      moved(p.groups ? moved_bytes(p, lengths.busy) : moved_bytes(p)),
      weights(p.groups ? moved_bytes(p, 1) - moved_bytes(p, 0) : 0),
      lines_of_a(lines_asked(pitch_of_a(p))),
      lines_of_b(p.packed ? packed_share(p) : lines_asked(pitch_of_b(p))) {}

Floor made_floor(const Plan& plan, const TileNeeds& needs, const FloorBasis& basis) {
  return Floored(plan, needs, basis).made();
}

void cut_tiles(TileNeeds& needs, const Plan& plan, const FloorBasis& basis) {
  const auto k_tiles = static_cast<int>(pieces(plan.problem.k(), needs.k));
  const tile::SplitPlan split(tile::tile_count(plan.raster), k_tiles,
                              plan.ctas / atom::cluster_size(plan.cluster));
  const int piece = split.each + (split.longer > 0 ? 1 : 0);
  needs.along_k = AlongK::pieces;
  needs.rounds = 1.0 * split.whole / split.clusters + 1.0 * piece / k_tiles;
  needs.parts = piece > 0 ? std::ceil(1.0 * k_tiles / piece) : 0;
  needs.sums_share = basis.machine.fitted.sums_rate;
}

double uncorrected_seconds(const Floor& f) {
  return f.seconds + 0.01 * (f.tensor + f.port + f.asked + f.stores);
}

}  // namespace warpwright
