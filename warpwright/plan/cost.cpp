#include "warpwright/plan/cost.h"

#include <algorithm>
#include <cmath>

#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

// What was measured on an H200 (docs/performance.md), and its rates for devices that have none.
constexpr double clock_hz = 1.72e9;  // under load
constexpr double hbm_bytes_per_second = 4.4e12;
constexpr double launch_seconds = 2.2e-6;     // from the end of the kernel before to the first load
constexpr double first_seconds = 1.7e-6;      // until the first load has arrived
constexpr double epilogue_seconds = 2.8e-6;   // of a 128 x 256 tile of 16 bits that nothing hides
constexpr double last_seconds = 0.6e-6;       // from the last stores to the end of the kernel
constexpr double cluster_seconds = 1.6e-6;    // an exchange of sums through shared memory
constexpr double workspace_seconds = 3.4e-6;  // through the workspace
constexpr double l2_bytes_per_second = 10.5e12;
constexpr double shared_bytes_per_clock = 128;
constexpr double load_bytes_per_clock = 60;  // into one SM

}  // namespace

// As long as its tensor cores take (n / 2 clocks for 64 x n x 32 bytes), or its shared memory to
// give wgmma its operands and take the next ones, or these to come from L2.
double block_clocks(const kernel::GemmConfig& c) {
  const double steps = 4.0 * c.tile_m / 64;
  const double tensor = steps * c.tile_n / 2;
  const double stage = 128.0 * (c.tile_m + c.tile_n);
  const double shared = (steps * (2048 + 32.0 * c.tile_n) + stage) / shared_bytes_per_clock;
  const double clocks = std::max({tensor, shared, stage / load_bytes_per_clock});
  // Adding accumulators to registers is hidden, but for the waits.
  return c.sums == kernel::Sums::tensor_core ? clocks : 1.03 * clocks;
}

double predicted_cost(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const kernel::GemmConfig& c = plan.config;
  if (plan.ctas == 0) return 0;
  const double blocks = p.reads_ab ? std::ceil(static_cast<double>(p.k) / kernel::tile_k(c)) : 0;
  const double tiles = tile::tile_count(plan.raster);
  const double clusters = static_cast<double>(plan.ctas) / plan.cluster_ctas();
  const double block = block_clocks(c) / clock_hz;
  const double epilogue = epilogue_seconds * c.tile_m * c.tile_n / 32768 *
                          (kernel::result_bytes(c) / 2.0) * (p.reads_c ? 1.5 : 1);
  const double rounds = std::ceil(tiles / clusters);
  // What goes on while operands are loaded, and what follows the last of them.
  double serial = rounds * blocks * block;
  double after = epilogue;
  if (c.cluster_k) {
    serial = std::ceil(blocks / plan.cluster_k) * block;
    after = epilogue / plan.cluster_k + cluster_seconds;
  } else if (c.splits_k) {
    const double pieces = tiles * blocks / clusters;
    const bool whole = blocks > 0 && std::fmod(pieces, blocks) == 0;
    serial = pieces * block + std::floor(pieces / std::max(blocks, 1.0)) * epilogue;
    if (!whole) after += workspace_seconds;
  } else if (c.schedule == kernel::Schedule::pingpong) {
    // What hides is the shorter of an epilogue and the other warpgroup's multiplications.
    serial = rounds * std::max(blocks * block, 0.55 * epilogue);
    after = 0.6 * epilogue;
  } else {
    if (c.schedule == kernel::Schedule::multistage) serial *= 1.25;
    serial += (rounds - 1) * epilogue;
  }
  // A cluster loads less, but its CTAs wait for each other.
  if (atom::cluster_size(plan.cluster) > 1) serial = 0.995 * serial + 0.2e-6;
  const double loaded = tiles * atom::cluster_size(plan.cluster) * blocks * 128 *
                        (static_cast<double>(c.tile_m) / plan.cluster.n +
                         static_cast<double>(c.tile_n) / plan.cluster.m);
  const double rate = plan.device.memory_bytes_per_second > 0 ? plan.device.memory_bytes_per_second
                                                              : hbm_bytes_per_second;
  const double memory = std::max(moved_bytes(p) / rate, loaded / l2_bytes_per_second);
  // The lesser of the two is not quite hidden.
  const double both = std::max(serial, memory) + 0.1 * std::min(serial, memory);
  return launch_seconds + first_seconds + both + after + last_seconds;
}

}  // namespace warpwright
