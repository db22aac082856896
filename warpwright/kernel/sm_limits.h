// What an SM has. Where no target is named: Hopper's and Blackwell's.
#pragma once

namespace warpwright::kernel {

/// The largest dynamic shared memory of a CTA.
inline constexpr int max_smem_bytes = 227 * 1024;
/// What an SM has, and what the system takes of it for every CTA.
inline constexpr int sm_smem_bytes = 228 * 1024;
inline constexpr int reserved_smem_bytes = 1024;

/// The largest dynamic shared memory of a CTA on `target` (N of sm_N); 0 where nobody knows.
constexpr int max_smem_bytes_of(int target) {
  switch (target) {
    case 70:
      return 96 * 1024;
    case 75:
      return 64 * 1024;
    case 80:
      return 163 * 1024;
    case 86:
    case 89:
    case 120:
    case 121:
      return 99 * 1024;
    case 90:
    case 100:
    case 103:
      return max_smem_bytes;
    default:
      return 0;
  }
}

/// What the system takes of an SM of `target` for each CTA, and what the SM has for them; 0 where
/// nobody knows, as above.
constexpr int reserved_smem_bytes_of(int target) {
  return target < 80 ? 0 : reserved_smem_bytes;
}
constexpr int sm_smem_bytes_of(int target) {
  const int most = max_smem_bytes_of(target);
  return most == 0 ? 0 : most + reserved_smem_bytes_of(target);
}

/// Registers a thread has at launch: what __launch_bounds__(threads, ctas_per_sm) leaves of 64 Ki,
/// in steps of 8.
constexpr int launch_registers(int threads, int ctas_per_sm) {
  const int each = 65536 / (ctas_per_sm * threads) / 8 * 8;
  return each > 255 ? 255 : each;
}

}  // namespace warpwright::kernel
