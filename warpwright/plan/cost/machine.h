// One machine in numbers, by which plans are held against each other. Internal to plan/.
#pragma once

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/plan/product/device_facts.h"

namespace warpwright {

/// How much longer one device's tensor cores take than another's, by the columns of an MMA.
struct CurveRatio {
  const ClockCurve* of = nullptr;  ///< null: as long
  const ClockCurve* to = nullptr;
  [[nodiscard]] double at(double n) const {
    if (of == to) return 1;
    return of->at(static_cast<int>(n)) / to->at(static_cast<int>(n));
  }
};

/// Rates, and what was measured of each way of multiplying. Times in microseconds, rates in units a
/// second.
struct Machine {
  // For dense products: fitted to what an H100 took for some 25,000 pairs of a shape and a plan, as
  // an H200 by the ratios of their descriptions (docs/log/performance.md), so that the choice loses
  // least: the sum of a few of them means more than one by itself.
  double clock_hz = 1.44e9;              ///< under load
  double fixed = 2;                      ///< start, first operands, end of the kernel
  double pair_start = 0.518;             ///< of CTAs that share operands
  double epilogue_time = 2.72;           ///< of a 128 x 256 tile
  double swapped_epilogue = 1.61;        ///< times as long, transposed
  double lane_store = 0.2;               ///< beside it, where lanes store
  double by_16_columns = 1.77;           ///< times as long in chunks of 32 bytes
  double across_lines = 1.39;            ///< and in short ones that begin anywhere
  double between_tiles = 0.479;          ///< at least, where nothing hides an epilogue
  double cluster_exchange = 0.00118;     ///< of sums through shared memory, of any tile
  double cluster_exchange_tile = 3.7;    ///< for a tile of 128 x 64
  double cluster_exchange_each = 0.147;  ///< for every CTA of the cluster
  double workspace_exchange = 0.00962;   ///< through the workspace
  double split_start = 0.96;             ///< of kernels that could share tiles, and do not
  // For sums that all CTAs of a tile add up in slices.
  double slice_exchange = 2.21;       ///< of any tile
  double slice_exchange_tile = 2.26;  ///< for a tile of 128 x 64
  double workspace_bytes = 19.3e3;    ///< of other CTAs' parts, that one CTA adds up, a microsecond
  double cluster_wave = 4.82;         ///< from a cluster's end to the next one's loads
  double pingpong_hides = 0.0649;     ///< epilogues as long as a tile's products
  double pingpong_each = 0.404;       ///< of the epilogue: what ping-pong does not hide
  double pingpong_last = 0.602;       ///< of the epilogue: what follows the last tile
  double cluster_gain = 0.776;        ///< a pair of CTAs loads less
  double hbm_share = 0.928;           ///< of the device's rate, over a whole kernel
  double hbm_bytes_per_second = 4.4e12;
  double l2_bytes_per_second = 15.1e12;
  double l2_requests_per_second = 69.5e9;
  double cold_bytes_per_second = 5.04e12;  ///< that L2 sends of what it is still fetching
  double merged_once = 1;  ///< of what CTAs side by side ask of L2 at once: how much is merged
  double merged_later = 0.0117;  ///< the same once they have drifted apart
  double l2_beside = 3.15;       ///< the power in which L2's requests and the rest add up
  double shared_bytes_per_clock = 128;
  double sm_bytes_per_clock = 97;  ///< that L2 sends to one SM: the most that one got, 140 GB/s
  double outside_clocks = 4.52;    ///< that a row of a box takes that is outside its matrix
  double block_clocks = 123;       ///< of a k_tile at least: waits and their instructions
  double partial_clocks = 9.85;    ///< that a row of a box takes which ends within the box
  double ring_latency = 1.85;      ///< from a stage that is free to one that is full
  double deep_share = 0.824;       ///< of them, a span of 128 bytes of K, in stages of two
  double narrow_share = 0.979;     ///< of a k_tile's clocks, where one warpgroup multiplies
  double narrow_clocks = 0.667;    ///< and beside them
  double cooperative_share = 1.08;
  double pingpong_share = 0.713;
  double scaled_share = 1.24;  ///< with block scales
  // For products in groups: how CTAs look for their tiles, by one load of offsets behind another.
  double search_linear_scan = 0.3625;
  double search_linear_scan_each = 0.027;  ///< a group
  double search_warp_scan = 1.446;
  double search_warp_scan_each = 0.1;  ///< 32 groups
  double search_binary_search = 4.29;
  double search_binary_search_each = 0.05;  ///< a group of a thread
  double group_epilogue = 1.07;             ///< times as long, up to the groups' ends by lanes
  double group_wide_scaled = 1.057;         ///< scales of a wide tile are fetched less far ahead
  double group_waits = 1.0097;              ///< of the CTAs of a cluster for each other
  /// And beside it where groups have several tiles of tokens, whose weights other clusters bring.
  double group_pair_again = 0.2;
  double group_l2_share = 0.081;  ///< of what L2 sends, that HBM waits for
  double group_stops = 0.405;     ///< of stores, in which a full ring stops HBM
  double group_beside = 0.361;    ///< of the lesser of products and memory
  /// A copy of one row of tokens by index, by two warps together: from products of 4,096 tokens of
  /// 128 experts, in bf16 (13.5) and in e4m3 with block scales (11.8).
  double row_copy_clocks = 12;
  /// For groups cut evenly, set by hand before any was measured: taken where they gain more.
  double group_even = 1.035;
  /// How much longer this device's tensor cores take than those of the fit.
  CurveRatio tensor;
};

/// The same for products in groups and of packed weights: fitted apart, each with the numbers above
/// that are only theirs.
inline Machine grouped_machine() {
  Machine m;
  m.workspace_bytes = 30e3;
  m.l2_requests_per_second = 86.3e9;
  m.slice_exchange = 2.2;
  m.slice_exchange_tile = 1.1;
  m.lane_store = 0;
  m.deep_share = 1;
  m.merged_once = 0;
  m.merged_later = 0;
  m.ring_latency = 0;
  m.outside_clocks = 5;
  m.swapped_epilogue = 1;
  m.cluster_exchange_tile = 1.4;
  m.hbm_share = 0.921;
  m.cold_bytes_per_second = 4.04e12;
  m.l2_beside = 8.55;
  m.clock_hz = 1.78e9;
  m.fixed = 2.62;
  m.pair_start = 0.6;
  m.epilogue_time = 1.37;
  m.by_16_columns = 2.79;
  m.across_lines = 0.97;
  m.between_tiles = 0.736;
  m.cluster_exchange = 0;
  m.cluster_exchange_each = 0.42;
  m.workspace_exchange = 6.38;
  m.split_start = 2;
  m.cluster_wave = 2.45;
  m.pingpong_hides = 0.04;
  m.pingpong_each = 0.486;
  m.pingpong_last = 1.5;
  m.cluster_gain = 0.981;
  m.l2_bytes_per_second = 20e12;
  m.sm_bytes_per_clock = 63.4;
  m.block_clocks = 214;
  m.narrow_share = 0.82;
  m.narrow_clocks = 66.8;
  m.cooperative_share = 0.952;
  m.pingpong_share = 0.859;
  m.scaled_share = 1.005;
  return m;
}

/// The fit to an H200 as it is.
inline const Machine& fitted_machine(bool groups_or_packed) {
  static const Machine whole;
  static const Machine grouped = grouped_machine();
  return groups_or_packed ? grouped : whole;
}

/// The machine that a device is taken for: the fit, with each rate and time as much more or less as
/// the device's description says of the unit behind it than an H200's does. For an H200 it is the
/// fit.
Machine machine_of(bool groups_or_packed, const DeviceFacts& device);

/// How much longer L2 sends the rows of a box, 128 bytes each, that begin across sectors of 32
/// bytes (measured; only across lines they take no longer).
inline double sectors_asked(std::int64_t pitch) {
  return pitch % 32 == 0 ? 1 : 1.235;
}
/// Requests to L2 for a row of a box, 128 bytes, against those where rows begin at lines: counted
/// by ncu are 1.76 where they lie across lines, and 3.9, which do not take as long, across sectors
/// too.
inline double lines_asked(std::int64_t pitch) {
  return pitch % 128 == 0 ? 1 : (pitch % 32 == 0 ? 1.72 : 2.01);
}
/// Bytes a second of a device's memory: its own rate where that is known, else the machine's.
inline double memory_rate(const Machine& machine, const DeviceFacts& device) {
  return device.memory_bytes_per_second > 0 ? device.memory_bytes_per_second
                                            : machine.hbm_bytes_per_second;
}

/// Microseconds in which the CTAs of a tile give each other its sums in slices.
inline double slice_time(const Machine& m, int tile_m, int tile_n) {
  return m.slice_exchange + m.slice_exchange_tile * tile_m * tile_n / 8192;
}

}  // namespace warpwright
