#include "warpwright/plan/cost.h"

#include <algorithm>
#include <cmath>

#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

// An H200's rates: for devices that have none of their own, and as the unit of what was measured.
constexpr double clock_hz = 1.7e9;  // under load
constexpr double l2_bytes_per_second = 5.5e12;
constexpr double hbm_bytes_per_second = 4.4e12;
constexpr double fixed_seconds = 2.5e-6;       // launch, first loads, last stores
constexpr double epilogue_seconds = 1.1e-6;    // of a 128 x 256 tile of 16 bits that nothing hides
constexpr double exchange_seconds = 2.0e-6;    // of parts of sums through the workspace

// Clocks in which the tensor cores of one SM multiply a K block of a tile: wgmma takes n / 2 clocks
// for 64 x n x 32 bytes, or as long as reading its operands from shared memory takes.
double block_clocks(const kernel::GemmConfig& c) {
  const double n = c.tile_n;
  const double each = std::max(n / 2, 16 + n / 4);
  const double clocks = each * (c.tile_m / 64.0) * 4;
  // Adding accumulators to registers is hidden, but for the waits.
  return clocks * (c.sums == kernel::Sums::tensor_core ? 1.04 : 1.12);
}

}  // namespace

double predicted_cost(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const kernel::GemmConfig& c = plan.config;
  if (plan.ctas == 0) return 0;
  const double blocks = p.reads_ab ? std::ceil(static_cast<double>(p.k) / kernel::tile_k(c)) : 0;
  const double tiles = tile::tile_count(plan.raster);
  const double clusters = plan.ctas / plan.cluster_ctas();
  const double sms = plan.device.sms;
  // What the CTAs of a wave draw from L2 in one K block.
  const double bytes = 128.0 * (static_cast<double>(c.tile_m) / plan.cluster.n +
                                static_cast<double>(c.tile_n) / plan.cluster.m);
  const double multiply = block_clocks(c) / clock_hz;
  const double load = bytes * plan.ctas / (l2_bytes_per_second * sms / 132);
  const double block = std::max(multiply, load);
  const double epilogue = epilogue_seconds * c.tile_m * c.tile_n / 32768 *
                          (kernel::result_bytes(c) / 2.0) * (p.reads_c ? 1.5 : 1);
  double serial = 0;
  if (c.cluster_k) {
    serial = std::ceil(blocks / plan.cluster_k) * block + epilogue / plan.cluster_k +
             0.5 * exchange_seconds;
  } else if (c.splits_k) {
    const double pieces = tiles * blocks / clusters;
    serial = pieces * block + (std::ceil(pieces / std::max(blocks, 1.0))) * epilogue;
    if (std::fmod(pieces, std::max(blocks, 1.0)) != 0) serial += exchange_seconds;
  } else {
    const double rounds = std::ceil(tiles / clusters);
    const bool hidden = c.schedule == kernel::Schedule::pingpong;
    const double all = rounds * blocks * block;
    serial = hidden ? std::max(all, rounds * epilogue / 2) + epilogue : all + rounds * epilogue;
    if (c.schedule == kernel::Schedule::multistage) serial *= 1.1;
  }
  const double element = numeric::bits(p.a) / 8.0;
  const double traffic =
      static_cast<double>(p.batch) *
      ((static_cast<double>(p.m) + static_cast<double>(p.n)) * static_cast<double>(p.k) * element +
       static_cast<double>(p.m) * static_cast<double>(result_columns(p)) *
           kernel::result_bytes(c) * (p.reads_c ? 2 : 1));
  const double rate = plan.device.memory_bytes_per_second > 0 ? plan.device.memory_bytes_per_second
                                                              : hbm_bytes_per_second;
  return fixed_seconds + std::max(serial, traffic / rate);
}

}  // namespace warpwright
