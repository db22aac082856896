#include "warpwright/plan/cost.h"

#include <algorithm>
#include <cmath>

#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

// What was measured on an H200 (docs/performance.md), and its rates for devices that have none.
constexpr double clock_hz = 1.72e9;          // under load
constexpr double hbm_bytes_per_second = 4.4e12;
constexpr double launch_seconds = 2.2e-6;    // from the end of the kernel before to the first load
constexpr double first_seconds = 1.7e-6;     // until the first load has arrived
constexpr double epilogue_seconds = 1.9e-6;  // of a 128 x 256 tile of 16 bits that nothing hides
constexpr double last_seconds = 0.6e-6;      // from the last stores to the end of the kernel
constexpr double cluster_seconds = 1.6e-6;   // an exchange of sums through shared memory
constexpr double workspace_seconds = 3.4e-6; // through the workspace
constexpr double shared_bytes_per_clock = 128;
constexpr double load_bytes_per_clock = 60;  // into one SM

// Clocks in which one SM multiplies a K block of a tile: as long as its tensor cores take (n / 2
// clocks for 64 x n x 32 bytes), or its shared memory to give wgmma its operands and take the next
// ones, or these to come from L2.
double block_clocks(const kernel::GemmConfig& c) {
  const double steps = 4.0 * c.tile_m / 64;
  const double tensor = steps * c.tile_n / 2;
  const double stage = 128.0 * (c.tile_m + c.tile_n);
  const double shared = (steps * (2048 + 32.0 * c.tile_n) + stage) / shared_bytes_per_clock;
  const double clocks = std::max({tensor, shared, stage / load_bytes_per_clock});
  // Adding accumulators to registers is hidden, but for the waits.
  return c.sums == kernel::Sums::tensor_core ? clocks : 1.03 * clocks;
}

double bytes_moved(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const auto m = static_cast<double>(p.m);
  const auto n = static_cast<double>(p.n);
  const double operands = (m + n) * static_cast<double>(p.k) * numeric::bits(p.a) / 8;
  const double result = m * static_cast<double>(result_columns(p)) *
                        kernel::result_bytes(plan.config) * (p.reads_c ? 2 : 1);
  return static_cast<double>(p.batch) * (operands + result);
}

}  // namespace

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
  double serial = 0;
  if (c.cluster_k) {
    serial = std::ceil(blocks / plan.cluster_k) * block + epilogue / plan.cluster_k +
             cluster_seconds;
  } else if (c.splits_k) {
    const double pieces = tiles * blocks / clusters;
    const bool whole = blocks > 0 && std::fmod(pieces, blocks) == 0;
    serial = pieces * block + std::ceil(pieces / std::max(blocks, 1.0)) * epilogue +
             (whole ? 0 : workspace_seconds);
  } else if (c.schedule == kernel::Schedule::pingpong) {
    // What hides is the shorter of an epilogue and the other warpgroup's multiplications.
    serial = rounds * std::max(blocks * block, 0.55 * epilogue) + 0.6 * epilogue;
  } else {
    const double slow = c.schedule == kernel::Schedule::multistage ? 1.25 : 1.0;
    serial = rounds * (slow * blocks * block + epilogue);
  }
  // A cluster spreads over fewer loads, but all its CTAs wait for each other.
  if (atom::cluster_size(plan.cluster) > 1) serial += 0.25e-6;
  const double rate = plan.device.memory_bytes_per_second > 0 ? plan.device.memory_bytes_per_second
                                                              : hbm_bytes_per_second;
  return launch_seconds + first_seconds + std::max(serial, bytes_moved(plan) / rate) +
         last_seconds;
}

}  // namespace warpwright
