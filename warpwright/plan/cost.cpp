#include "warpwright/plan/cost.h"

#include <algorithm>
#include <cmath>

#include "warpwright/plan/rules.h"
#include "warpwright/tile/split.h"

namespace warpwright {
namespace {

// Fitted to what an H200 took for 7,900 pairs of a shape and a plan (docs/performance.md), so that
// the choice loses least: the sum of a few of them means more than one alone. Microseconds, but for
// the rates.
constexpr double clock_hz = 1.72e9;             // under load
constexpr double fixed = 3.08;                  // start, first operands, end of the kernel
constexpr double pair_start = 0.05;             // of CTAs that share operands
constexpr double epilogue_time = 1.13;          // of a 128 x 256 tile
constexpr double by_16_columns = 2.12;          // times as long in chunks of 32 bytes
constexpr double across_lines = 1.28;           // and in short ones that begin anywhere
constexpr double between_tiles = 0.6;           // at least, where nothing hides an epilogue
constexpr double cluster_exchange = 0.44;       // of sums through shared memory
constexpr double cluster_exchange_each = 0.24;  // for every CTA of the cluster
constexpr double workspace_exchange = 2.37;     // through the workspace
constexpr double split_start = 0.5;             // of kernels that could share tiles, and do not
constexpr double workspace_bytes = 59e3;        // of other CTAs' parts, that one CTA adds up
constexpr double cluster_wave = 4.94;           // from a cluster's end to the next one's loads
constexpr double pingpong_hides = 0.55;         // epilogues as long as a tile's products
constexpr double pingpong_each = 0.65;          // of the epilogue: what ping-pong does not hide
constexpr double pingpong_last = 0.22;          // of the epilogue: what follows the last tile
constexpr double cluster_gain = 0.995;          // a pair of CTAs loads less
constexpr double hbm_share = 0.88;              // of the device's rate, over a whole kernel
constexpr double hbm_bytes_per_second = 4.4e12;
constexpr double l2_bytes_per_second = 11e12;
constexpr double l2_requests_per_second = 90e9;
constexpr double l2_beside = 6.1;  // the power in which L2's requests and the rest add up
constexpr double shared_bytes_per_clock = 128;

// Requests to L2 for a row of a box, 128 bytes, against those where rows begin at lines: counted by
// ncu are 1.76 where they lie across lines, and 3.9, which do not take as long, across sectors too.
double requests(std::int64_t pitch, DType type) {
  const std::int64_t bytes = pitch * numeric::bits(type) / 8;
  return bytes % 128 == 0 ? 1 : (bytes % 32 == 0 ? 1.72 : 2.01);
}

// What bounds a K block of a tile on one SM: clocks of its tensor cores (n / 2 for 64 x n x 32
// bytes), clocks of its shared memory to give wgmma its operands and take the next ones, and the
// bytes of these, that come from L2.
struct BlockWork {
  double tensor = 0;
  double shared = 0;
  double bytes = 0;
};

BlockWork block_work(const kernel::GemmConfig& c) {
  const double steps = 4.0 * c.tile_m / 64;
  const double bytes = 128.0 * (c.tile_m + c.tile_n);
  return {steps * c.tile_n / 2, (steps * (2048 + 32.0 * c.tile_n) + bytes) / shared_bytes_per_clock,
          bytes};
}

// As it was measured. Sums in registers leave shared memory some time; tiles of 64 rows have one
// warpgroup, which waits for itself; in turns, one warpgroup's waits are hidden by the other.
double measured_clocks(const kernel::GemmConfig& c, const atom::ClusterShape& cluster) {
  const BlockWork w = block_work(c);
  const double loaded = 128.0 * (static_cast<double>(c.tile_m) / cluster.n +
                                 static_cast<double>(c.tile_n) / cluster.m);
  double clocks = std::max(w.tensor, 1.02 * w.shared);
  if (c.sums != kernel::Sums::tensor_core) clocks = 0.22 * w.tensor + 0.78 * w.shared;
  clocks = std::max(clocks, loaded / 77.5);
  if (c.sums == kernel::Sums::block_scaled) clocks *= 1.15;
  if (c.schedule == kernel::Schedule::pingpong) return 0.907 * (clocks + 2);
  if (c.tile_m == 64) return 0.9 * clocks + 98;
  return 1.053 * clocks;
}

// Of a tile, in microseconds. Rows of D's chunks that are short cost more stores.
double epilogue(const GemmProblem& p, const kernel::GemmConfig& c) {
  double time = epilogue_time * c.tile_m * c.tile_n / 32768 * (kernel::result_bytes(c) / 2.0) *
                (p.reads_c ? 1.5 : 1);
  if (!c.swapped && c.tile_n % 32 != 0) time *= by_16_columns;
  if (!c.swapped && c.tile_n % 64 != 0 && p.n % 64 != 0) time *= across_lines;
  return time;
}

// What a CTA does after the first operands are there: while operands are loaded, and after the last
// of them. Microseconds.
struct Serial {
  double during = 0;
  double after = 0;
};

Serial serial(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const kernel::GemmConfig& c = plan.config;
  const double blocks = p.reads_ab ? std::ceil(static_cast<double>(p.k) / kernel::tile_k(c)) : 0;
  const double tiles = tile::tile_count(plan.raster);
  const double clusters = static_cast<double>(plan.ctas) / plan.cluster_ctas();
  const double block = measured_clocks(c, plan.cluster) / clock_hz * 1e6;
  const double store = epilogue(p, c);
  const double rounds = std::ceil(tiles / clusters);
  // CTAs that have an SM in common share its tensor cores.
  const double sharing =
      std::min<double>(c.ctas_per_sm, std::ceil(static_cast<double>(plan.ctas) / plan.device.sms));
  if (c.sharing == kernel::Sharing::cluster && plan.cluster_k > 1) {
    const double resident = c.ctas_per_sm * resident_ctas(plan.device, plan.cluster_ctas());
    const double waves = std::ceil(plan.ctas / resident);
    const double once = std::ceil(blocks / plan.cluster_k) * block * sharing;
    const double after =
        store / plan.cluster_k + cluster_exchange + cluster_exchange_each * plan.cluster_k;
    return {once + (waves - 1) * (once + after + cluster_wave), after};
  }
  if (c.sharing == kernel::Sharing::workspace) {
    const tile::SplitPlan split(static_cast<int>(tiles), static_cast<int>(blocks),
                                static_cast<int>(clusters));
    const double whole = split.whole / clusters;
    const double shared = tiles - split.whole;
    if (shared == 0) return {whole * blocks * block + (whole - 1) * store, store + split_start};
    // Where there are fewer tiles than pieces, many parts meet in one CTA.
    const double parts = std::max(1.0, split.pieces / shared);
    const double exchange = workspace_exchange + parts * 4 * c.tile_m * c.tile_n / workspace_bytes;
    const double piece = split.each + (split.longer > 0 ? 1 : 0);
    return {(whole * blocks + piece) * block + whole * store, store + exchange};
  }
  if (c.schedule == kernel::Schedule::pingpong) {
    return {rounds * (std::max(blocks * block, pingpong_hides * store) + pingpong_each * store),
            pingpong_last * store};
  }
  const double slower = c.schedule == kernel::Schedule::multistage ? 1.17 : 1;
  return {
      slower * rounds * blocks * block * sharing + (rounds - 1) * std::max(store, between_tiles),
      store};
}

}  // namespace

// As long as its tensor cores take (n / 2 clocks for 64 x n x 32 bytes), or its shared memory to
// give wgmma its operands and take the next ones, or these to come from L2.
double block_clocks(const kernel::GemmConfig& c) {
  const BlockWork w = block_work(c);
  const double clocks = std::max({w.tensor, w.shared, w.bytes / 53});
  // Adding accumulators to registers is hidden, but for the waits.
  return c.sums == kernel::Sums::tensor_core ? clocks : 1.03 * clocks;
}

double predicted_cost(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const kernel::GemmConfig& c = plan.config;
  if (plan.ctas == 0) return 0;
  const double blocks = p.reads_ab ? std::ceil(static_cast<double>(p.k) / kernel::tile_k(c)) : 0;
  const double tiles = tile::tile_count(plan.raster);
  const bool pair = atom::cluster_size(plan.cluster) > 1;
  Serial work = serial(plan);
  if (pair && c.schedule != kernel::Schedule::pingpong) work.during *= cluster_gain;
  const double loaded = tiles * atom::cluster_size(plan.cluster) * blocks * 128 *
                        (static_cast<double>(c.tile_m) / plan.cluster.n +
                         static_cast<double>(c.tile_n) / plan.cluster.m);
  const std::int64_t a_pitch = std::max(p.a_row_stride, p.a_column_stride);
  const std::int64_t b_pitch = std::max(p.b_row_stride, p.b_column_stride);
  const double asked =
      tiles * atom::cluster_size(plan.cluster) * blocks *
      (requests(c.swapped ? b_pitch : a_pitch, c.a.stored) * c.tile_m / plan.cluster.n +
       requests(c.swapped ? a_pitch : b_pitch, c.b.stored) * c.tile_n / plan.cluster.m);
  const double rate = plan.device.memory_bytes_per_second > 0 ? plan.device.memory_bytes_per_second
                                                              : hbm_bytes_per_second;
  const double memory =
      1e6 * std::max(moved_bytes(p) / (hbm_share * rate), loaded / l2_bytes_per_second);
  // Of two that are as fast, the one that loads less.
  const double loads = 0.004 * 1e6 * loaded / l2_bytes_per_second;
  const double during = std::pow(std::pow(std::max(work.during, memory), l2_beside) +
                                     std::pow(1e6 * asked / l2_requests_per_second, l2_beside),
                                 1 / l2_beside);
  return 1e-6 * (fixed + (pair ? pair_start : 0) + during + work.after + loads);
}

}  // namespace warpwright
