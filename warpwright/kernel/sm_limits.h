// What an SM has: the same on Hopper and Blackwell.
#pragma once

namespace warpwright::kernel {

/// The largest dynamic shared memory of a CTA.
inline constexpr int max_smem_bytes = 227 * 1024;
/// What an SM has, and what the system takes of it for every CTA.
inline constexpr int sm_smem_bytes = 228 * 1024;
inline constexpr int reserved_smem_bytes = 1024;

/// Registers a thread has at launch: what __launch_bounds__(threads, ctas_per_sm) leaves of 64 Ki,
/// in steps of 8.
constexpr int launch_registers(int threads, int ctas_per_sm) {
  const int each = 65536 / (ctas_per_sm * threads) / 8 * 8;
  return each > 255 ? 255 : each;
}

}  // namespace warpwright::kernel
