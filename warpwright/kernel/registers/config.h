// What compiles a main loop whose operands and sums lie in registers (mma.sync).
#pragma once

#include "warpwright/atom/mma.h"
#include "warpwright/atom/swizzle.h"

namespace warpwright::kernel {

/// A CTA's tile of D, and how its warps and its ring of stages divide it. A is M x K, B N x K, both
/// K-major.
struct RegisterConfig {
  atom::Mma mma;
  int tile_m = 128;
  int tile_n = 128;
  int tile_k = 32;  ///< elements: 64 or 128 bytes, a row of a stage
  int warps_m = 2;
  int warps_n = 2;
  int stages = 4;

  friend constexpr bool operator==(const RegisterConfig&, const RegisterConfig&) = default;
};

constexpr int threads(const RegisterConfig& c) {
  return 32 * c.warps_m * c.warps_n;
}
/// Bytes of a row of a stage.
constexpr int row_bytes(const RegisterConfig& c) {
  return c.tile_k * numeric::bits(c.mma.a) / 8;
}
/// MMAs along K of a stage, 32 bytes each; and those of a warp along M and N.
constexpr int k_steps(const RegisterConfig& c) {
  return c.tile_k / c.mma.k;
}
constexpr int m_tiles(const RegisterConfig& c) {
  return c.tile_m / c.warps_m / c.mma.m;
}
constexpr int n_tiles(const RegisterConfig& c) {
  return c.tile_n / c.warps_n / c.mma.n;
}
/// The swizzle by which eight rows of an ldmatrix lie in eight groups of banks.
constexpr atom::SmemSwizzle swizzle(const RegisterConfig& c) {
  return row_bytes(c) == 128 ? atom::SmemSwizzle::b128 : atom::SmemSwizzle::b64;
}
constexpr int stage_bytes(const RegisterConfig& c) {
  return (c.tile_m + c.tile_n) * row_bytes(c);
}
constexpr int shared_bytes(const RegisterConfig& c) {
  return c.stages * stage_bytes(c);
}

/// The most shared memory of a CTA on a target that has cp.async; 0 on others.
constexpr int shared_limit(int target) {
  if (target == 80) return 163 * 1024;
  if (target == 90) return 227 * 1024;
  return target == 86 || target == 89 || target >= 120 ? 99 * 1024 : 0;
}

/// Why this is no main loop for the target (N of sm_N), as a sentence; null when it is one.
constexpr const char* config_fault(const RegisterConfig& c, int target) {
  if (const char* fault = atom::mma_fault(c.mma, target)) return fault;
  if (c.mma.kind != atom::MmaKind::warp || c.mma.m != 16 || numeric::bits(c.mma.a) < 8 ||
      c.mma.k * numeric::bits(c.mma.a) != 256) {
    return "the MMA takes 16 rows and 32 bytes of K: k16 of f16 and bf16, k8 of tf32, k32 of 8 "
           "bits";
  }
  if (shared_limit(target) == 0) return "cp.async is of sm_80, 86, 89, 90 and 120";
  if (row_bytes(c) != 64 && row_bytes(c) != 128) return "tile_k is 64 or 128 bytes";
  if (c.warps_m < 1 || c.warps_n < 1 || threads(c) > 512) return "a CTA has 1 to 16 warps";
  if (c.tile_m < 1 || c.tile_m % (16 * c.warps_m) != 0) {
    return "tile_m is a multiple of 16 rows for every warp along M";
  }
  if (c.tile_n < 1 || c.tile_n % (16 * c.warps_n) != 0) {
    return "tile_n is a multiple of 16 columns, two MMAs, for every warp along N";
  }
  const int rows = threads(c) * 16 / row_bytes(c);  // that the threads copy at once
  if (rows % 8 != 0 || c.tile_m % rows != 0 || c.tile_n % rows != 0) {
    return "the threads copy whole rows, 16 bytes each, in turns of which the tile is a multiple";
  }
  if (c.stages < 2) return "one stage is read while another is filled: stages are 2 or more";
  if (shared_bytes(c) > shared_limit(target)) return "the stages exceed the target's shared memory";
  return nullptr;
}

}  // namespace warpwright::kernel
