// The ways to run a kernel of the register family: what it serves, its grids, and what its
// tiles need.
#include "warpwright/plan/families/registers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

// For groups, and for tokens by index; `here` names the kernels.
std::optional<Refusal> group_fault(const GemmProblem& p, const DeviceFacts& device,
                                   const std::string& here) {
  if (p.groups && device.architecture < 120) return no_groups(device);
  if (p.groups && !scales_elements(p.scaling)) {
    return refuse(
        RefusalCode::unsupported, "the product has groups, and scaling is ", name(p.scaling), here,
        "take groups only with scales for every few elements, as operands of --dtype mxf8 "
        "have: the nearest dtype is ",
        as_nearest("mxf8"));
  }
  if (p.is_by_index()) {
    return refuse(RefusalCode::unsupported, "tokens are read by index", here,
                  "take them one behind the other: ", as_rule("leave the index of rows out"));
  }
  return std::nullopt;
}

// Operands, or a D, of a type that older tensor cores do not know.
std::optional<Refusal> types_fault(const GemmProblem& p, const DeviceFacts& device,
                                   const std::string& here) {
  const auto refused = [](const auto&... words) {
    return refuse(RefusalCode::unsupported, words...);
  };
  const bool only_f16 = device.architecture < 80;
  if (is_8bit_float(p.a.dtype) && device.architecture < 89) {
    return refused(as_tensor("A"), " is ", type_name(p.a.dtype), ", and the tensor cores of ",
                   device.name, " (sm_", device.architecture,
                   ") multiply no 8-bit floats, which sm_89 is the first to do: the nearest is ",
                   as_nearest(only_f16 ? "fp16" : "bf16"));
  }
  if (only_f16 && p.a.dtype != DType::f16) {
    return refused(as_tensor("A"), " is ", type_name(p.a.dtype), ", and kernels for ", device.name,
                   " (sm_", device.architecture,
                   ") multiply only fp16, those for sm_80 and later more: the nearest is ",
                   as_nearest("fp16"));
  }
  if (only_f16 && p.d.dtype == DType::bf16) {
    return refused(as_tensor("D"), " is bf16", here,
                   "convert to fp16 and f32 there: the nearest is ", as_nearest("fp16"));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> register_fault(const GemmProblem& p, const DeviceFacts& device) {
  const auto refused = [](const auto&... words) {
    return refuse(RefusalCode::unsupported, words...);
  };
  const std::string here = "; the kernels of mma.sync, which " + device.name + " runs, ";
  if (auto r = group_fault(p, device, here)) return r;
  if (p.is_quantised()) return no_codes(device);
  if (p.packed) {
    return refused(as_tensor("B"), " are ", packed_name(p.packed->format), here,
                   "take none: the nearest dtype is ",
                   as_nearest(unpacked_word(p, device.architecture >= 120)));
  }
  if (p.scaling == Scaling::block_scaled && device.architecture < 120) {
    return refused("scaling is block_scaled, and the tensor cores of ", device.name, " (sm_",
                   device.architecture,
                   ") multiply no scales, which of those with mma.sync sm_120 is the first to do: "
                   "the nearest device is ",
                   as_nearest("rtx5090"), " (--as rtx5090 without one)");
  }
  if (auto r = types_fault(p, device, here)) return r;
  if (p.a.dtype == DType::s8 && p.k() > 131071) {
    return refused("K is ", p.k(),
                   ", and sums of s8, of 32 bits, hold no more than 131071 products of -128 by "
                   "-128: the nearest legal K is ",
                   as_nearest("131071"));
  }
  if (p.scaling == Scaling::blockwise) {
    return refused("scaling is block", here, "have no block scales: the nearest scaling is ",
                   as_nearest("row-column"));
  }
  const std::int64_t most_k = elements_in(std::int64_t{1} << 31, p.a.dtype) - 64;
  if (p.k() > most_k) {
    return refused("K is ", p.k(), here,
                   "take rows of less than 2^31 bytes: the nearest legal K is ",
                   as_nearest(most_k));
  }
  if (p.accumulation == Accumulation::promoted) {
    return refused("accumulation is promoted", here,
                   "add only in the tensor core: the nearest accumulation is ", as_nearest("fast"));
  }
  if (p.epilogue.gated) {
    return refused("the epilogue is gated", here,
                   "multiply without a gate: ", as_rule("leave it out"));
  }
  if (is_8bit_float(p.d.dtype)) {
    return refused(as_tensor("D"), " is ", type_name(p.d.dtype), here,
                   "store bf16, fp16 and f32: the nearest is ", as_nearest("bf16"));
  }
  if (!p.reads_ab() || p.m() == 0 || p.n() == 0 || p.k() <= 1) return std::nullopt;
  for (const auto& [stride, name] : {std::pair{p.a.column_stride, "A"}, {p.b.column_stride, "B"}}) {
    if (stride == 1) continue;
    return refused(as_tensor(name), " is MN-major", here, "take only K-major operands: ",
                   as_rule("neighbours along K next to each other, column stride 1"));
  }
  return std::nullopt;
}

bool register_runs(const kernel::RegisterConfig& c, const DeviceFacts& device, bool named) {
  return kernel::config_fault(c, device.architecture) == nullptr &&
         (named || c.feed != kernel::Feed::registers ||
          kernel::first_target(c) == device.architecture);
}

bool register_multiplies(const kernel::RegisterConfig& c, const GemmProblem& p) {
  return c.mma.a == p.a.dtype && c.mma.b == p.b.dtype && c.result == p.d.dtype &&
         is_block_scaled(c) == scales_elements(p.scaling) && is_grouped(c) == p.is_grouped() &&
         (!is_block_scaled(c) || c.mma.scale == micro_scale(p, true));
}

bool splits_tiles(const Plan& p) {
  return !p.problem.groups && p.tile_source == kernel::TileSource::static_persistent &&
         p.ctas > tile::tile_count(p.raster);
}

// The walk over a product, whole or in groups; none where it has more tiles than can be numbered.
std::optional<int> register_walk(Plan& plan, const kernel::RegisterConfig& c, int resident,
                                 const GroupLengths& lengths) {
  const GemmProblem& p = plan.problem;
  if (c.grouped) {
    plan.workspace_bytes = 16;  // for the check of the offsets
    const auto most = walk_groups(plan, {c.tile_m, c.tile_n}, resident, lengths);
    return most ? std::optional(static_cast<int>(*most)) : std::nullopt;
  }
  const auto tiles_m = static_cast<int>(pieces(p.m(), c.tile_m));
  const auto tiles_n = static_cast<int>(pieces(p.n(), c.tile_n));
  if (std::int64_t{tiles_m} * tiles_n > max_extent / p.batch()) return std::nullopt;
  plan.raster = tile::make_raster(
      tiles_m, tiles_n, {}, resident,
      {.row = static_cast<double>(c.tile_m), .column = static_cast<double>(c.tile_n)});
  plan.raster.batch = static_cast<int>(p.batch());
  return tile::tile_count(plan.raster);
}

namespace {

// Clocks of an SM's four tensor cores for a k_tile of one CTA, and of its shared memory, which
// takes the operands and gives each warp its rows and columns.
double mma_clocks_of(const kernel::RegisterConfig& c, const MachineNumbers& n) {
  const double products = static_cast<double>(c.tile_m) * c.tile_n * c.tile_k;
  const double an_mma = static_cast<double>(c.mma.m) * c.mma.n * c.mma.k;
  const MmaClocks* const known = find_mma(n, c.mma);
  return products / an_mma * (known != nullptr ? known->clocks : an_mma / 256) / 4;
}
double shared_clocks_of_mma(const kernel::RegisterConfig& c, const MachineNumbers& n) {
  const double copied = c.tile_m + c.tile_n;
  const double read = c.tile_m * c.warps_n + c.tile_n * c.warps_m;
  return (copied + read) * row_bytes(c) / n.shared_bytes_per_clock;
}

// How far both go on beside each other: warps that also copy hide less of one behind the other, and
// they wait for each other where no CTA is beside theirs, or too few warps. Set by an H200's
// 8192^3: 2,569 us by 128x128 in twos, 2,882 by 128x256, 2,502 by a producer
// (docs/log/registers.md).
double both_clocks(const kernel::RegisterConfig& c, double tensor, double shared, double ctas) {
  const double power = has_producer(c) ? 4 : 3;
  const double both = std::pow(std::pow(tensor, power) + std::pow(shared, power), 1 / power);
  double share = ctas > 1 || has_producer(c) ? 1 : 0.86;
  if (ctas * threads(c) < 256) share *= 0.8;
  if (c.any_alignment) share *= 0.8;
  return both / share;
}

// That an SM gets of what L2 sends, by the way that the kernel's loads take.
double port_rate(const kernel::RegisterConfig& c, const MachineNumbers& n) {
  const double port = has_producer(c) && n.tma_bytes_per_clock > 0 ? n.tma_bytes_per_clock
                      : n.cp_async_bytes_per_clock > 0             ? n.cp_async_bytes_per_clock
                                                                   : n.read_bytes_per_clock;
  return std::min(port, n.l2_bytes_per_second / n.sms / n.clock_hz);
}

}  // namespace

Floor register_floor(const Plan& plan, const kernel::RegisterConfig& c, const FloorBasis& basis) {
  const GemmProblem& p = plan.problem;
  const MachineNumbers& n = numbers_of(plan.device);
  TileNeeds t;
  t.clock_hz = n.loaded_clock_hz;  // by which the numbers of both_clocks were set
  t.tile_m = c.tile_m;
  t.tile_n = c.tile_n;
  t.token_rows = c.tile_m;
  t.ctas_per_sm = c.ctas_per_sm;
  const double sms = plan.device.sms;
  t.sharing = std::ceil(std::min<double>(plan.ctas, c.ctas_per_sm * sms) / sms);
  if (c.grouped) t.search_loads = 1 + static_cast<double>(p.group_count()) / 5;
  t.k = c.tile_k;
  t.row_bytes = row_bytes(c);
  t.scale_bytes = scale_bytes(c, c.tile_m + c.tile_n);
  t.shared = shared_clocks_of_mma(c, n);
  t.tensor = both_clocks(c, mma_clocks_of(c, n), t.shared, t.sharing);
  t.port_bytes_per_clock = port_rate(c, n);
  if (has_producer(c)) t.row_clocks = n.tma_row_clocks;
  const bool asynchronous = c.feed == kernel::Feed::copy_async;
  t.stages = has_producer(c) ? c.stages : c.stages - 1;  // that are on their way
  t.load_clocks = has_producer(c) ? n.tma_load_clocks
                  : asynchronous  ? n.cp_async_clocks
                                  : n.l2_hit_clocks;
  t.store_bytes = 1.0 * c.tile_m * c.tile_n * numeric::bits(c.result) / 8;
  t.hidden = takes_turns(c) ? 1 : 0;
  t.sums_bytes = 4.0 * c.tile_m * c.tile_n;
  if (splits_tiles(plan)) cut_tiles(t, plan, basis);
  // Who exchanges sums does not share L2 with all SMs.
  t.sums_share *= n.read_bytes_per_clock / t.port_bytes_per_clock;
  return made_floor(plan, t, basis);
}

std::vector<int> register_grids(const kernel::RegisterConfig& c, int tiles, int resident,
                                std::int64_t blocks, const PlanChoices& choices) {
  if (tiles == 0) return {0};
  if (asks_for_tiles(c)) {
    return choices.ctas.value_or(tiles) == tiles ? std::vector<int>{tiles} : std::vector<int>{};
  }
  const bool splits = c.splits_k && !choices.batch_invariant && tiles * blocks <= max_extent;
  if (choices.ctas) {
    const int most = splits ? static_cast<int>(std::min<std::int64_t>(resident, tiles * blocks))
                            : std::min(tiles, resident);
    if (*choices.ctas < 1 || *choices.ctas > std::max(most, std::min(tiles, resident))) return {};
    return {*choices.ctas};
  }
  std::vector<int> grids = {std::min(tiles, resident)};
  for (std::int64_t parts = 2; splits && parts <= 16; ++parts) {
    if (parts * 4 <= blocks && parts * tiles <= resident) {
      grids.push_back(static_cast<int>(parts) * tiles);
    }
  }
  return grids;
}

}  // namespace warpwright
