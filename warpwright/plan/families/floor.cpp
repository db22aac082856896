#include "warpwright/plan/families/floor.h"

#include <algorithm>
#include <cmath>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/cost/machine.h"
#include "warpwright/plan/cost/prediction_machine.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/families/prediction.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/raster.h"

namespace warpwright {
namespace {

// SMs that L2 answers together where they ask for the same line at about the same time.
constexpr double kSmGroup = 16;

class Floored {
 public:
  Floored(const Plan& plan, const PredictionMachine& machine)
      : plan_(plan),
        p_(plan.problem),
        f_(plan.facts()),
        m_(machine),
        numbers_(numbers_of(plan.device)),
        hz_(working_clock(machine)),
        swapped_(f_.swap_ab),
        rows_(static_cast<double>(swapped_ ? p_.n() : p_.m())),
        columns_(static_cast<double>(swapped_ ? p_.m() : p_.n())),
        tiles_(tile::tile_count(plan.raster)),
        at_once_(
            std::min(plan.ctas, f_.ctas_per_sm * resident_ctas(plan.device, plan.cluster_ctas()))),
        clusters_(std::max(1.0, at_once_ / plan.cluster_ctas())),
        row_bytes_(f_.tile.k * numeric::bits(p_.a.dtype) / 8.0),
        k_tiles_(std::ceil(static_cast<double>(p_.k()) / f_.tile.k)) {
    const tile::Raster& r = plan.raster;
    inside_m_ =
        std::min(1.0, rows_ / (static_cast<double>(r.tiles_m) * plan.cluster.m * f_.tile.m));
    inside_n_ =
        std::min(1.0, columns_ / (static_cast<double>(r.tiles_n) * plan.cluster.n * f_.tile.n));
    slices_ = has_word(f_, "split-K in slices");
    streams_ = has_word(f_, "stream-K");
    sums_ = has_word(f_, "promoted") || has_word(f_, "block scales");
    sharers_ = slices_ ? std::max(1.0, plan.ctas / tiles_) : 1;
    sharing_ = std::max(1.0, at_once_ / plan.device.sms);
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
    const double together =
        plan_.cluster_ctas() > 1 ? 2 * numbers_.cluster_barrier_clocks / hz_ : 0;
    f.start = m_.launch_seconds + once + together;
    f.tensor = deep * tensor_clocks() / hz_;
    f.shared = deep * shared_clocks() / hz_;
    f.port = deep * port_clocks() / hz_;
    f.requests = lines() / m_.l2_lines_per_second;
    f.memory = moved_bytes(p_) / kernel_memory_rate(m_, plan_.device);
    f.cold = cold_bytes() / numbers_.cold_bytes_per_second;
    f.ring = deep / sharing_ / f_.stages * numbers_.tma_load_clocks / hz_;
    const double store = store_clocks() / hz_;
    const bool turns = f_.schedule == kernel::Schedule::pingpong;
    const double stores = turns ? 1 : std::max(1.0, std::ceil(rounds));
    f.stores = store * stores;
    f.exchange = exchange_seconds(rounds);
    if (plan_.cluster_k > 1) {  // a cluster for each tile, which starts when another has ended
      f.start += (std::ceil(rounds) - 1) * once;
      f.exchange *= std::ceil(rounds);
    }
    const double busy =
        std::max({f.tensor, f.shared, f.port, turns ? rounds * store : 0}) + f.stores - store;
    f.seconds = f.start + std::max({busy, f.requests, f.memory, f.ring}) + store + f.exchange;
    set_features(f, rounds);
    return f;
  }

 private:
  // Tiles of the busiest CTA; those whose CTAs share tiles along K have all as many k_tiles.
  [[nodiscard]] double rounds() const {
    const double each = tiles_ / clusters_;
    if (slices_) return std::ceil(tiles_ * sharers_ / clusters_);
    return streams_ ? each : std::ceil(each);
  }

  // For a k_tile.
  [[nodiscard]] double steps() const { return std::ceil(f_.tile.m / 64.0) * row_bytes_ / 32; }
  [[nodiscard]] double tensor_clocks() const {
    const ClockCurve& curve = f_.tile.m == 64 ? m_.wgmma_one : m_.wgmma_more;
    const double clocks = steps() * curve.at(f_.tile.n);
    // One warpgroup that adds up its sums itself does not multiply meanwhile.
    return f_.tile.m == 64 && sums_ ? clocks + f_.tile.n + m_.drain_clocks : clocks;
  }
  [[nodiscard]] double shared_clocks() const {
    return (steps() * (2048 + 32.0 * f_.tile.n) + row_bytes_ * (f_.tile.m + f_.tile.n)) /
           (m_.shared_bytes_per_clock * m_.fitted.shared_overlap);
  }
  [[nodiscard]] double port_clocks() const {
    const double m = static_cast<double>(f_.tile.m) / plan_.cluster.n;
    const double n = static_cast<double>(f_.tile.n) / plan_.cluster.m;
    return std::max(inside_bytes() / m_.port_bytes_per_clock, (m + n) * m_.row_clocks);
  }
  [[nodiscard]] double inside_bytes() const {
    return row_bytes_ * (inside_m_ * f_.tile.m + inside_n_ * f_.tile.n);
  }
  [[nodiscard]] double store_clocks() const {
    return static_cast<double>(f_.result_rows) * f_.result_columns * numeric::bits(f_.result) / 8 /
           m_.port_bytes_per_clock / (plan_.cluster_k * std::min(sharers_, f_.tile.n / 8.0));
  }

  // CTAs without a cluster, side by side in a group of SMs: how many ask for the same columns of
  // the product, and for the same rows.
  struct Together {
    double m = 1, n = 1;
  };
  [[nodiscard]] Together together() const {
    const tile::Raster& r = plan_.raster;
    if (atom::cluster_size(plan_.cluster) > 1 || plan_.cluster_k > 1 || slices_) return {};
    if (pitch_of_a(p_) % 32 != 0 || pitch_of_b(p_) % 32 != 0) return {};
    const double band = std::clamp<double>(r.band, 1, kSmGroup);
    const double across = std::max(1.0, std::floor(kSmGroup / band));
    return {std::min<double>(r.tiles_m, r.along_m ? band : across),
            std::min<double>(r.tiles_n, r.along_m ? across : band)};
  }

  // Lines of 128 bytes that L2 sends. How many it sends once for several SMs depends on how far
  // these run apart.
  [[nodiscard]] double lines() const {
    const Together same = together();
    const double merged = tiles_ > clusters_ ? 0.2 : 0.6;
    const double of_a = lines_asked(pitch_of_a(p_));
    const double of_b = lines_asked(pitch_of_b(p_));
    const double m = (swapped_ ? of_b : of_a) * inside_m_ * f_.tile.m / plan_.cluster.n;
    const double n = (swapped_ ? of_a : of_b) * inside_n_ * f_.tile.n / plan_.cluster.m;
    return tiles_ * atom::cluster_size(plan_.cluster) * k_tiles_ * row_bytes_ / 128 *
           (m / (1 + merged * (same.n - 1)) + n / (1 + merged * (same.m - 1)));
  }

  // What L2 sends of the larger operand while that comes from memory: once for every cluster that
  // wants it at that time.
  [[nodiscard]] double cold_bytes() const {
    const tile::Raster& r = plan_.raster;
    if (plan_.cluster_k > 1 || slices_) return 0;
    const bool few = p_.m() <= 4 * (swapped_ ? f_.tile.n : f_.tile.m);
    if (tiles_ > clusters_ && !few) return 0;
    const double k = static_cast<double>(p_.k()) * numeric::bits(p_.a.dtype) / 8;
    const Together same = together();
    const double along = std::ceil(clusters_ / r.band);
    const double m = std::min<double>(r.tiles_m, r.along_m ? r.band : along);
    const double n = std::min<double>(r.tiles_n, r.along_m ? along : r.band);
    return rows_ > columns_ ? k * rows_ * std::ceil(n / same.n)
                            : k * columns_ * std::ceil(m / same.m);
  }

  [[nodiscard]] double exchange_seconds(double rounds) const {
    const double sums = 4.0 * f_.tile.m * f_.tile.n;
    if (plan_.cluster_k > 1) {
      const double sent = sums / plan_.cluster_k / numbers_.dsmem_bytes_per_clock;
      return (numbers_.cluster_barrier_clocks + numbers_.dsmem_clocks + sent) / hz_;
    }
    double bytes = 0;
    if (sharers_ > 1) bytes = 2 * (1 - 1 / sharers_) * sums;
    if (streams_ && rounds != std::floor(rounds)) {
      const double parts = rounds < 1 ? std::ceil(1 / rounds) : 2;
      bytes = parts * sums;
    }
    // Written for all to see, told, asked, answered, and read.
    return bytes > 0 ? (m_.exchange_clocks + bytes / m_.port_bytes_per_clock) / hz_ : 0;
  }

  void set_features(Floor& f, double rounds) const {
    const double all = f.seconds;
    const double in_flight =
        f_.stages * inside_bytes() *
        std::min<double>(plan_.ctas, static_cast<double>(plan_.device.sms) * f_.ctas_per_sm);
    f.features = {f.tensor / all,
                  f.shared / all,
                  f.port / all,
                  f.requests / all,
                  f.memory / all,
                  f.cold / all,
                  f.ring / all,
                  f.stores / all,
                  f.exchange / all,
                  std::log(all * 1e6),
                  rounds,
                  rounds / std::ceil(rounds),
                  std::ceil(k_tiles_ / (plan_.cluster_k * sharers_)),
                  std::min(1.0, static_cast<double>(plan_.ctas) / plan_.device.sms),
                  sharing_,
                  static_cast<double>(f_.ctas_per_sm),
                  static_cast<double>(f_.stages),
                  std::log(in_flight),
                  static_cast<double>(f_.tile.m),
                  static_cast<double>(f_.tile.n),
                  row_bytes_,
                  static_cast<double>(plan_.cluster.m),
                  static_cast<double>(plan_.cluster.n),
                  static_cast<double>(plan_.cluster_k),
                  sharers_,
                  f_.schedule == kernel::Schedule::pingpong ? 1.0 : 0.0,
                  streams_ ? 1.0 : 0.0,
                  has_word(f_, "promoted") ? 1.0 : 0.0,
                  has_word(f_, "block scales") ? 1.0 : 0.0,
                  swapped_ ? 1.0 : 0.0,
                  static_cast<double>(numeric::bits(p_.a.dtype)),
                  inside_m_,
                  inside_n_,
                  lines_asked(pitch_of_a(p_)) + lines_asked(pitch_of_b(p_)),
                  has_word(f_, "consumers side by side") ? 1.0 : 0.0,
                  f_.tiles == kernel::TileSource::dynamic_persistent ? 1.0 : 0.0};
  }

  const Plan& plan_;
  const GemmProblem& p_;
  const KernelFacts& f_;
  const PredictionMachine& m_;
  const MachineNumbers& numbers_;
  double hz_;
  bool swapped_;
  double rows_, columns_;  // of the product as the kernel has it
  double tiles_;           // for clusters
  double at_once_;         // CTAs
  double clusters_;        // at once
  double row_bytes_;       // of a k_tile
  double k_tiles_;
  double inside_m_ = 1, inside_n_ = 1;  // of all tiles' rows and columns
  bool slices_ = false, streams_ = false, sums_ = false;
  double sharers_ = 1;  // CTAs that share a tile in slices
  double sharing_ = 1;  // CTAs that share an SM
};

}  // namespace

const std::array<const char*, Floor::kFeatures> floor_features = {
    "tensor",  "shared",   "port",      "requests",    "memory",       "cold",
    "ring",    "stores",   "exchange",  "log_us",      "rounds",       "last_round",
    "k_tiles", "busy_sms", "sharing",   "ctas_per_sm", "stages",       "in_flight",
    "tile_m",  "tile_n",   "row_bytes", "cluster_m",   "cluster_n",    "cluster_k",
    "sharers", "pingpong", "stream_k",  "promoted",    "block_scales", "swapped",
    "bits",    "inside_m", "inside_n",  "lines",       "side_by_side", "drawn"};

std::optional<Floor> floor_of(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const bool is_plain =
      p.reads_ab() && !p.groups && !p.packed && !p.epilogue.gated && !p.is_quantised();
  if (plan.ctas == 0 || plan.facts().architecture != 90 || !is_plain) return std::nullopt;
  return Floored(plan, prediction_machine(plan.device)).made();
}

}  // namespace warpwright
