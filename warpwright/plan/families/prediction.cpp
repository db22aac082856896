#include "warpwright/plan/families/prediction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "warpwright/plan/families/composer.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/split.h"

namespace warpwright {
namespace {

constexpr double kLine = 128;
constexpr double kModelPort = 64;  // bytes a clock (model/report/timing.h)
constexpr std::size_t kGroupSms = 16;

// Mean errors of measured products by what bounds them, the larger of an H200 and an H100
// (docs/log/prediction.md).
constexpr double kWithin[] = {0.09, 0.06, 0.09, 0.07, 0.2};

}  // namespace

bool has_word(const KernelFacts& kernel, const char* feature) {
  return std::find(kernel.features.begin(), kernel.features.end(), feature) !=
         kernel.features.end();
}

// Every family's rows and columns are the kernel's own, where it swaps A and B too.
void Composer::list_tiles() {
  const bool swapped = f_.swap_ab;
  const double k = static_cast<double>(p_.k());
  const double a_bits = k * numeric::bits(p_.a.dtype);
  const double b_bits = p_.packed ? k * 8 * packed::tile_bytes(p_.packed->format) /
                                        static_cast<double>(packed::kTileRows * packed::kTileK)
                                  : k * numeric::bits(p_.b.dtype);
  const double row_bits = swapped ? b_bits : a_bits;  // of the kernel's rows
  const double column_bits = swapped ? a_bits : b_bits;
  const int high = plan_.cluster.m * f_.tile.m;
  const int wide = plan_.cluster.n * f_.tile.n;
  const auto extent = [](std::int64_t all, std::int64_t at, int each) {
    return static_cast<double>(std::clamp<std::int64_t>(all - at * each, 0, each));
  };
  const auto add = [&](std::int64_t rows, std::int64_t columns, const tile::Raster& r,
                       std::int64_t base) {
    for (int i = 0; i < r.tiles_m * r.tiles_n; ++i) {
      const tile::TilePosition at = tile::position(r, i);
      tiles_.push_back({base + at.m, base + r.tiles_m + at.n,
                        extent(rows, at.m, high) * row_bits / 8,
                        extent(columns, at.n, wide) * column_bits / 8,
                        extent(rows, at.m, high) * extent(columns, at.n, wide) / high / wide});
    }
  };
  if (!p_.groups) {
    const std::int64_t rows = swapped ? p_.n() : p_.m();
    const std::int64_t columns = swapped ? p_.m() : p_.n();
    inside_m_ = std::min(1.0, static_cast<double>(rows) / high / plan_.raster.tiles_m);
    inside_n_ = std::min(1.0, static_cast<double>(columns) / wide / plan_.raster.tiles_n);
    for (int b = 0; b < plan_.raster.batch; ++b) {
      tile::Raster one = plan_.raster;
      one.batch = 1;
      add(rows, columns, one, panels_);
      panels_ += one.tiles_m + one.tiles_n;
    }
    return;
  }
  for (const std::int64_t tokens : lengths_) {
    tile::Raster one = plan_.raster;
    const int each = swapped ? wide : high;
    const int weights = swapped ? high : wide;
    const auto token_tiles = static_cast<int>((tokens + each - 1) / each);
    const auto weight_tiles = static_cast<int>((p_.n() + weights - 1) / weights);
    one.tiles_m = swapped ? weight_tiles : token_tiles;
    one.tiles_n = swapped ? token_tiles : weight_tiles;
    // A group's tiles of tokens follow each other for one tile of weights.
    one.along_m = !swapped;
    one.band = std::max(1, token_tiles);
    one.batch = 1;
    add(swapped ? p_.n() : tokens, swapped ? tokens : p_.n(), one, panels_);
    panels_ += one.tiles_m + one.tiles_n;
  }
}

// Clocks in which an SM gets a k_tile: by its port the bytes that lie inside, while TMA goes
// through rows of boxes, which CTAs of a cluster share, and of which those outside take longer.
double Composer::port_clocks() const {
  const double row_bytes = f_.tile.k * numeric::bits(p_.a.dtype) / 8.0;
  const double m = static_cast<double>(f_.tile.m) / plan_.cluster.n;
  const double n = static_cast<double>(f_.tile.n) / plan_.cluster.m;
  const double outside = (1 - inside_m_) * m + (1 - inside_n_) * n;
  const double bytes = row_bytes * (inside_m_ * f_.tile.m + inside_n_ * f_.tile.n);
  return std::max(bytes / m_.port_bytes_per_clock,
                  (m + n) * m_.row_clocks + outside * m_.outside_row_clocks);
}

double Composer::k_tile_clocks() const {
  if (f_.architecture != 90) return phases_.k_tile / m_.tensor_share;
  if (p_.packed) {
    // The model does not time the instructions that decode: those of the kernel are counted. Warps
    // decode or multiply; and a warpgroup by itself waits for codes, products and sums in turn,
    // of which another CTA on the SM hides some (docs/log/w4a8.md).
    const kernel::GemmConfig& c = hopper_config(plan_);
    const double convert = convert_clocks(c, p_.packed->format);
    const double steps = f_.tile.m / 64.0 * f_.tile.k * kernel::operand_bits(c) / 8 / 32;
    const double tensor = steps * m_.wgmma_more.at(f_.tile.n);
    const double waits =
        1.65 * kernel::k_atoms(c) * (126 + 2.0 * f_.tile.n) + 1.65 * convert * 64 / f_.tile.m;
    return std::max(
        {phases_.k_tile / m_.tensor_share, convert + tensor, waits / std::min(1.3, sharing())});
  }
  const int row_bytes = f_.tile.k * numeric::bits(p_.a.dtype) / 8;
  const double steps = f_.tile.m / 64.0 * row_bytes / 32;
  const double bytes = static_cast<double>(f_.tile.m + f_.tile.n) * row_bytes;
  const double tensor = steps * (f_.tile.m == 64 ? m_.wgmma_one : m_.wgmma_more).at(f_.tile.n);
  const double shared = (steps * (2048 + 32.0 * f_.tile.n) + bytes) /
                        (m_.shared_bytes_per_clock * m_.fitted.shared_overlap);
  const double floor = std::max(tensor / m_.tensor_share, shared);
  if (has_word(f_, "block scales") || has_word(f_, "promoted")) {  // sums in registers
    // A warpgroup by itself waits for its products, then adds n / 2 registers.
    if (f_.tile.m == 64) return std::max(floor, tensor + f_.tile.n + m_.drain_clocks);
    return floor * m_.fitted.sums_share;
  }
  // The model's pace counts where roles and barriers hold it up. Where it waited for its port to
  // L2, a round number there, or for the waits that the curve of one warpgroup has in it, which a
  // main loop has not, the measured rates count.
  const double port = port_clocks();
  const double told = std::max(bytes / kModelPort, steps * m_.wgmma_one.at(f_.tile.n));
  const bool waited = phases_.k_tile < 1.12 * told;
  return std::max({waited ? 0 : phases_.k_tile / m_.tensor_share, port, floor});
}

// Lines that the tiles [begin, end) ask L2 for. CTAs without a cluster fill one group of some 16
// SMs after the other, and what these ask for at about the same time is fetched once.
double Composer::asked(std::size_t begin, std::size_t end) const {
  const double all = static_cast<double>(end - begin) * (row_lines_ + column_lines_);
  if (atom::cluster_size(plan_.cluster) > 1 || plan_.cluster_k > 1) return all;
  // Rows that begin inside a sector are asked for by each SM: what was measured of them shows it.
  if (pitch_of_a(p_) % 32 != 0 || (!p_.packed && pitch_of_b(p_) % 32 != 0)) return all;
  double apart = 0;
  for (std::size_t i = begin; i < end; i += kGroupSms) {
    const std::size_t last = std::min(end, i + kGroupSms);
    for (std::size_t j = i; j < last; ++j) {
      bool row = false;
      bool column = false;
      for (std::size_t other = i; other < j; ++other) {
        row |= tiles_[other].rows == tiles_[j].rows;
        column |= tiles_[other].columns == tiles_[j].columns;
      }
      apart += (row ? 0 : row_lines_) + (column ? 0 : column_lines_);
    }
  }
  return all - m_.fitted.merged * (all - apart);
}

double Composer::missed(std::size_t begin, std::size_t end, std::vector<Panel>& panels,
                        double& passed) const {
  const double kept = m_.l2_kept * static_cast<double>(plan_.device.l2_bytes);
  double bytes = 0;
  const double before = passed;
  const auto read = [&](std::int64_t number, double size) {
    Panel& panel = panels[static_cast<std::size_t>(number)];
    if (panel.last >= before && panel.last == before + 1e-3) return;  // of this wave already
    if (panel.last < 0 || before - panel.last > kept) bytes += size;
    panel.last = before + 1e-3;
    passed += size;
  };
  for (std::size_t i = begin; i < end; ++i) {
    read(tiles_[i].rows, tiles_[i].row_bytes);
    read(tiles_[i].columns, tiles_[i].column_bytes);
  }
  return bytes;
}

// Clocks in which CTAs of a cluster add up the sums of more than two, which have been sent to them.
// What they do for two is in the sample. A warp adds its share of the columns of 16 rows.
double Composer::cluster_exchange() const {
  if (plan_.cluster_k <= 2) return 0;
  const double warps = 4 * std::max(1, f_.threads / 128 - 1);
  const double rows = f_.tile.m / 16.0 / warps;  // of 16, of a warp
  const double words = std::max(1.0, f_.tile.n / 8.0 / plan_.cluster_k) * rows;
  return (plan_.cluster_k - 2) * words * (m_.load_clocks + m_.alu_clocks * warps);
}

Composer::SharedPart Composer::shared_part(double count, double resident) const {
  SharedPart part{.whole = count};
  if (has_word(f_, "stream-K") && count > 0) {
    const double k_tiles = std::max(1.0, k_tiles_);
    const tile::SplitPlan split(static_cast<int>(count), static_cast<int>(k_tiles),
                                static_cast<int>(resident));
    part.whole = split.whole;
    if (count > part.whole) {
      part.rounds = (split.each + (split.longer > 0 ? 1 : 0)) / k_tiles;
      // One of a tile's CTAs adds up the parts of the others.
      const double parts = std::max(2.0, split.pieces / (count - part.whole));
      part.exchange_clocks = exchange_clocks(m_, parts * sums_bytes());
    }
  }
  if (sharers_ > 1) {  // each writes all parts but its own, and reads its own of the others
    part.exchange_clocks = exchange_clocks(m_, 2 * (1 - 1 / sharers_) * sums_bytes());
  }
  if (plan_.cluster_k > 1) part.exchange_clocks = cluster_exchange();
  return part;
}

// Clusters at a time.
double Composer::resident() const {
  const int cluster = plan_.cluster_ctas();
  const double fit = static_cast<double>(f_.ctas_per_sm) * resident_ctas(plan_.device, cluster);
  return std::max(1.0, std::min(static_cast<double>(plan_.ctas), fit) / cluster);
}

// CTAs that an SM runs at a time.
double Composer::sharing() const {
  return std::clamp(resident() * plan_.cluster_ctas() / plan_.device.sms, 1.0,
                    static_cast<double>(f_.ctas_per_sm));
}

// What no clock changes of each wave.
void Composer::list_waves() {
  const auto count = static_cast<double>(tiles_.size());
  // For tiles that CTAs share in slices: so many go at once.
  at_once_ = std::max(1.0, std::floor(resident() / sharers_));
  split_ = shared_part(count, resident());
  const double d_bytes = static_cast<double>(plan_.cluster_ctas()) / plan_.cluster_k * store_bytes_;
  std::vector<Panel> panels(static_cast<std::size_t>(panels_));
  double passed = 0;
  for (std::size_t begin = 0; begin < tiles_.size();) {
    const bool shared = static_cast<double>(begin) >= split_.whole;
    const double take = shared ? count - split_.whole : at_once_;
    const std::size_t end =
        shared ? tiles_.size() : std::min(tiles_.size(), begin + static_cast<std::size_t>(take));
    Wave wave{.shared = shared, .tiles = static_cast<double>(end - begin)};
    for (std::size_t i = begin; i < end; ++i) wave.stored += tiles_[i].inside * d_bytes;
    wave.read = missed(begin, end, panels, passed);
    wave.lines = asked(begin, end);
    waves_.push_back(wave);
    begin = end;
  }
}

Prediction Composer::at_clock(double hz, double& busy) const {
  Prediction out;
  out.clock_hz = hz;
  const int cluster = plan_.cluster_ctas();
  const double sharing = this->sharing();
  out.exchange = split_.exchange_clocks / hz;
  const double memory = m_.memory_bytes_per_second * m_.fitted.memory_share;
  const double l2 = m_.l2_lines_per_second * hz / working_clock(m_);
  const bool hides = f_.schedule == kernel::Schedule::pingpong;
  // D goes through shared memory, which gives the other tile's operands later meanwhile.
  const double own = std::max(0.0, phases_.between) * (hides ? 1 : sharing) +
                     (hides ? 2 * store_bytes_ / m_.shared_bytes_per_clock : 0);
  double tensor_clocks = 0;  // of all SMs
  double by_limit[5] = {};
  const double start = m_.launch_seconds + (m_.start_clocks + phases_.first) / hz;
  out.start = start;
  for (const Wave& w : waves_) {
    const double depth = w.shared ? split_.rounds : 1;
    // In one wave of CTAs that share an SM each has a part of it.
    const double sm = depth * k_tiles_ * clocks_ * sharing / hz;
    // What is stored behind the multiplications is not beside them.
    const double bytes = w.read + w.stored;
    const double from_memory = (hides ? bytes : w.read) / memory;
    const double from_l2 = w.lines / l2;
    const double wave = std::max({sm, from_memory, from_l2});
    // All SMs together store no faster than memory takes it.
    const double store = std::max(own / hz, hides ? 0 : w.stored / memory);
    out.multiply += sm;
    out.loads += wave - sm;
    out.epilogue += store;
    if (!w.shared) out.tail += sm * (1 - w.tiles / at_once_);
    out.memory_bytes += bytes;
    out.l2_lines += w.lines;
    by_limit[static_cast<int>(wave == sm              ? Limit::tensor_cores
                              : from_memory > from_l2 ? Limit::memory
                                                      : Limit::l2)] += wave;
    by_limit[static_cast<int>(Limit::epilogue)] += store;
    tensor_clocks += w.tiles * cluster * sharers_ * k_tiles_ * clocks_;
    out.waves += w.shared ? depth : w.tiles / at_once_;
  }
  by_limit[static_cast<int>(Limit::start)] = start + out.exchange;
  out.limit = static_cast<Limit>(std::max_element(by_limit, by_limit + 5) - by_limit);
  out.within = kWithin[static_cast<int>(out.limit)];
  out.seconds = start + out.multiply + out.loads + out.epilogue + out.exchange;
  busy = tensor_clocks / (out.seconds * hz * plan_.device.sms);
  return out;
}

Prediction Composer::made() {
  if (plan_.ctas == 0) return {};
  list_tiles();
  k_tiles_ = p_.reads_ab()
                 ? std::ceil(std::ceil(static_cast<double>(p_.k()) / f_.tile.k) / plan_.cluster_k)
                 : 0;
  if (has_word(f_, "split-K in slices") && !tiles_.empty()) {
    sharers_ = std::max(1.0, static_cast<double>(plan_.ctas) / static_cast<double>(tiles_.size()));
  }
  k_tiles_ = std::ceil(k_tiles_ / sharers_);
  clocks_ = k_tile_clocks();
  const double rows = static_cast<double>(f_.tile.k) * numeric::bits(p_.a.dtype) / 8 / kLine;
  const bool swapped = f_.swap_ab;
  const double of_a = lines_asked(pitch_of_a(p_));
  const double of_b = p_.packed ? 0.5 : lines_asked(pitch_of_b(p_));
  const double deep = k_tiles_ * sharers_ * plan_.cluster_k * rows;
  row_lines_ = deep * (swapped ? of_b : of_a) * plan_.cluster.m * f_.tile.m;
  column_lines_ = deep * (swapped ? of_a : of_b) * plan_.cluster.n * f_.tile.n;
  store_bytes_ =
      static_cast<double>(f_.result_rows) * f_.result_columns * numeric::bits(f_.result) / 8;
  list_waves();
  // The clock under power: what it is at the highest, then what that power allows, until it stays.
  const double highest = working_clock(m_);
  double hz = highest;
  Prediction out;
  for (int i = 0; i < 6; ++i) {
    double busy = 0;
    out = at_clock(hz, busy);
    const double bytes_rate = out.memory_bytes / out.seconds;
    const double left = (m_.limit_watts - m_.memory_joules_per_byte * bytes_rate) / m_.loaded_watts;
    // Power of the tensor cores goes with the clock's third power, as voltage follows it.
    const double at_most = m_.loaded_clock_hz * std::cbrt(left / std::max(1e-3, busy));
    const double next = std::min(highest, at_most);
    if (std::abs(next - hz) < 1e-3 * hz) break;
    hz = 0.5 * (hz + next);
  }
  return out;
}

const char* limit_name(Limit limit) {
  constexpr const char* names[] = {"start", "tensor cores", "L2", "memory", "epilogue"};
  return names[static_cast<int>(limit)];
}

Prediction predict(const Plan& plan, const TilePhases& phases, const PredictionMachine& machine,
                   const std::vector<std::int64_t>& lengths) {
  return Composer(plan, phases, machine, lengths).made();
}

}  // namespace warpwright
