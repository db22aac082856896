// What tiles of Hopper kernels need, and what the correction of their floors goes by.
#include <algorithm>
#include <cmath>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/plan/cost/group_rounds.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::GemmConfig;

// In which two warps start the copy of a row of tokens by index.
constexpr double kRowCopyClocks = 12;

// Do CTAs of clusters that share a tile of packed weights along K meet on an SM that runs two?
// Where more clusters were launched than fit with a CTA an SM, they took as long as if all had
// (docs/log/w4a8.md).
bool packed_ctas_meet(const Plan& plan) {
  return plan.problem.packed && plan.cluster_k > 1 &&
         plan.ctas > resident_ctas(plan.device, plan.cluster_ctas());
}

// Loads one behind the other until a CTA knows its tile: a lane goes through the groups, a warp
// through 32 at a step, or all threads add them up first.
double search_loads(const GemmConfig& c, double groups) {
  switch (grouping(c)) {
    case kernel::Grouping::none:
      return 0;
    case kernel::Grouping::linear_scan:
      return 1 + groups / 5;
    case kernel::Grouping::warp_scan:
      return 1 + std::ceil(groups / 32);
    case kernel::Grouping::binary_search:
      return 2 + std::ceil(groups / kernel::threads(c)) + std::log2(groups + 1);
  }
  return 0;
}

// wgmmas of a k_tile.
double steps(const GemmConfig& c, const TileNeeds& t) {
  return std::ceil(c.tile_m / 64.0) * t.row_bytes / 32;
}

double wgmma_clocks_of(const GemmConfig& c, const TileNeeds& t, const PredictionMachine& m,
                       bool is_packed) {
  const ClockCurve& curve = c.tile_m == 64 ? m.wgmma_one : m.wgmma_more;
  const double clocks = steps(c, t) * curve.at(static_cast<int>(std::lround(t.tile_n)));
  // One warpgroup that adds up its sums itself does not multiply meanwhile.
  const bool waits = c.tile_m == 64 && sums_in_registers(c) && !is_packed;
  return waits ? clocks + t.tile_n + m.drain_clocks : clocks;
}

double shared_clocks_of(const GemmConfig& c, const TileNeeds& t, const PredictionMachine& m,
                        bool is_packed) {
  const double stored = t.row_bytes * (t.a_share * c.tile_m + t.tile_n);
  // Packed weights are read as codes, and multiplied from registers.
  const double rows_read = is_packed ? 64 * t.a_share * 32 : 2048;
  return (steps(c, t) * (rows_read + 32.0 * t.tile_n) + stored) /
         (m.shared_bytes_per_clock * m.fitted.shared_overlap);
}

TileNeeds hopper_needs(const Plan& plan, const GemmConfig& c, const FloorBasis& basis) {
  const GemmProblem& p = plan.problem;
  const PredictionMachine& m = basis.machine;
  const bool is_packed = p.packed.has_value();
  TileNeeds t;
  t.clock_hz = working_clock(m);
  t.tile_m = c.tile_m;
  t.tile_n = has_widths(c) ? mean_width(tile_widths(c), c.tile_n, basis.lengths) : c.tile_n;
  t.is_swapped = is_swapped(c);
  t.token_rows = t.is_swapped ? kernel::result_columns(c) : kernel::result_rows(c);
  t.ctas_per_sm = c.ctas_per_sm;
  if (packed_ctas_meet(plan)) t.sharing = c.ctas_per_sm;
  if (splits_k(c)) t.along_k = AlongK::pieces;
  if (slices_k(c)) t.along_k = AlongK::slices;
  t.starts_again = plan.cluster_k > 1;
  t.search_loads = search_loads(c, static_cast<double>(p.group_count()));
  t.k = kernel::tile_k(c);
  t.row_bytes = kernel::tile_k(c) * kernel::operand_bits(c) / 8.0;
  if (is_packed) t.a_share = packed_share(p);
  t.tensor = wgmma_clocks_of(c, t, m, is_packed);
  if (is_packed) t.convert = convert_clocks(c, p.packed->format);
  t.shared = shared_clocks_of(c, t, m, is_packed);
  t.port_bytes_per_clock = m.port_bytes_per_clock;
  t.row_clocks = m.row_clocks;
  t.row_copy_clocks = kRowCopyClocks;
  t.by_means = true;
  t.stages = c.stages;
  t.load_clocks = numbers_of(plan.device).tma_load_clocks;
  t.store_bytes = static_cast<double>(kernel::result_rows(c)) *
                  (kernel::result_columns(c) * t.tile_n / c.tile_n) * numeric::bits(c.result) / 8;
  t.hidden = takes_turns(c) ? 1 : 0;
  t.sums_bytes = 4.0 * c.tile_m * c.tile_n;
  return t;
}

void set_features(Floor& f, const Plan& plan, const GemmConfig& c, const TileNeeds& t,
                  const FloorBasis& basis) {
  const GemmProblem& p = plan.problem;
  const GroupLengths& lengths = basis.lengths;
  const Floor::Walk& w = f.walk;
  const double all = f.seconds;
  const auto yes = [](bool is) { return is ? 1.0 : 0.0; };
  const double in_flight =
      c.stages * w.bytes *
      std::min<double>(plan.ctas, static_cast<double>(plan.device.sms) * c.ctas_per_sm);
  const auto& format = p.packed ? p.packed->format : PackedFormat{};
  const double code = !p.packed ? 0 : packed::has_float_codes(format) ? 2 : 1;
  const double groups = static_cast<double>(p.group_count());
  f.features = {
      // units over the whole floor
      f.tensor / all, f.convert / all, f.shared / all, f.port / all, f.rows / all, f.requests / all,
      f.memory / all, f.cold / all, f.ring / all, f.stores / all, f.exchange / all, f.search / all,
      std::log(all * 1e6),
      // the walk
      w.rounds, w.rounds / std::ceil(w.rounds), std::ceil(w.k_tiles / (plan.cluster_k * w.sharers)),
      std::min(1.0, static_cast<double>(plan.ctas) / plan.device.sms), w.sharing, w.sharers,
      static_cast<double>(plan.cluster.m), static_cast<double>(plan.cluster.n),
      static_cast<double>(plan.cluster_k),
      static_cast<double>(plan.ctas) / std::max(1, resident_ctas(plan.device, plan.cluster_ctas())),
      std::log2(1 + w.tiles), std::log2(f.memory * 1e6 + 1e-3),
      // the kernel
      static_cast<double>(c.ctas_per_sm), static_cast<double>(c.stages), std::log(in_flight),
      static_cast<double>(c.tile_m), t.tile_n, t.row_bytes, yes(takes_turns(c)), yes(splits_k(c)),
      yes(sums_in_registers(c) && !is_blockwise(c)), yes(is_blockwise(c)), yes(t.is_swapped),
      yes(c.side_by_side), yes(kernel::is_dynamic_persistent(c)),
      static_cast<double>(kernel::passes(c)), yes(has_widths(c)), yes(kernel::gathers(c)),
      yes(c.gated), yes(c.quantises),
      // the product
      static_cast<double>(numeric::bits(p.a.dtype)), w.inside_m, w.inside_n,
      basis.lines_of_a + basis.lines_of_b,
      // its groups
      groups > 0 ? std::log2(1 + lengths.busy) : -1, static_cast<double>(grouping(c)), w.again,
      groups > 0 ? std::log2(static_cast<double>(p.m()) / lengths.busy) : 0, yes(lengths.is_equal),
      // packed weights
      code, p.packed ? static_cast<double>(kernel::group_sums(c)) : -1,
      static_cast<double>(p.packed ? kernel::in_flight(c) : 0),
      static_cast<double>(p.packed ? format.group : 0),
      yes(p.packed && format.scale == DType::ue4m3), yes(p.packed && has_zero_points(c))};
}

// Clocks of a warp for a code of each lane, by the instructions of kernel/hopper/decode: those of
// e2m1 and int4 by bf16 and f16, and by e4m3, where sums decide what a code becomes.
double code_clocks(const kernel::GemmConfig& c, const PackedFormat& format) {
  const bool is_wide = kernel::operand_bits(c) == 16;
  if (packed::has_float_codes(format)) {
    if (is_wide) return format.scale == DType::ue4m3 ? 3.4 : 3.1;
    return sums_in_registers(c) ? 1.8 : 2.8;
  }
  if (is_wide) return kernel::operand_b(c).type == DType::f16 ? 2.2 : 2.7;
  if (group_sums(c) == GroupSums::folded) return 8.1;
  if (group_sums(c) == GroupSums::table) return 3.4 + 120.0 / static_cast<double>(format.group);
  if (has_zero_points(c)) return 5.9;
  return format.encoding == Int4Encoding::sm ? 0.75 : 1.75;
}

}  // namespace

const std::array<const char*, Floor::kFeatures> floor_features = {
    "tensor",           "convert",     "shared",     "port",       "rows",         "requests",
    "memory",           "cold",        "ring",       "stores",     "exchange",     "search",
    "log_us",           "rounds",      "last_round", "k_tiles",    "busy_sms",     "sharing",
    "sharers",          "cluster_m",   "cluster_n",  "cluster_k",  "resident",     "log_tiles",
    "log_memory_us",    "ctas_per_sm", "stages",     "in_flight",  "tile_m",       "tile_n",
    "row_bytes",        "pingpong",    "stream_k",   "promoted",   "block_scales", "swapped",
    "side_by_side",     "drawn",       "passes",     "widths",     "by_index",     "gated",
    "quantises",        "bits",        "inside_m",   "inside_n",   "lines",        "busy_groups",
    "grouping",         "again",       "group_rows", "equal",      "code",         "sums",
    "groups_in_flight", "scale_group", "ue4m3",      "zero_points"};

// A warp of each warpgroup on every scheduler makes 64 rows of codes into elements; and where sums
// are exact it scales each for every group of weights.
double convert_clocks(const kernel::GemmConfig& c, const PackedFormat& format) {
  const double warpgroups = c.tile_m / 64.0;
  const double codes = kernel::tile_k(c) / 2.0;  // of a lane
  const double groups = kernel::tile_k(c) / static_cast<double>(format.group);
  const bool scales = sums_in_registers(c) && !packed::folds(format);
  return warpgroups * (code_clocks(c, format) * codes + (scales ? groups * c.tile_n / 2.0 : 0));
}

double packed_share(const GemmProblem& p) {
  return 8.0 * packed::tile_bytes(p.packed->format) /
         (numeric::bits(p.a.dtype) * static_cast<double>(packed::kTileRows * packed::kTileK));
}

Floor hopper_floor(const Plan& plan, const GemmConfig& c, const FloorBasis& basis,
                   bool with_features) {
  const TileNeeds needs = hopper_needs(plan, c, basis);
  Floor floor = made_floor(plan, needs, basis);
  if (with_features) set_features(floor, plan, c, needs, basis);
  return floor;
}

std::optional<Floor> floor_of(const Plan& plan) {
  if (plan.ctas == 0 || !plan.problem.multiplies() || plan.facts().architecture != 90) {
    return std::nullopt;
  }
  const FloorBasis basis(plan.problem, plan.device);
  return hopper_floor(plan, hopper_config(plan), basis, true);
}

}  // namespace warpwright
