// What kernels that quantise have in common. Internal to device/, for its .cu files.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/quantise.h"
#include "warpwright/kernel/e4m3_divisor.h"

namespace warpwright::device {

constexpr int kThreads = 256;

// What the kernels take.
struct Rows {
  const void* x;
  std::uint8_t* codes;
  float* scales;
  std::int64_t x_pitch;      // elements
  std::int64_t codes_pitch;  // bytes
  std::int64_t scale_pitch;
  std::int64_t scale_step;  // from a block's to the next
  int rows;
  int k;
};

inline __device__ float widened(float x) {
  return x;
}
inline __device__ float widened(__half x) {
  return __half2float(x);
}
inline __device__ float widened(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

// Elements of a thread at a time: 16 bytes of 16-bit ones.
constexpr int kEach = 8;

// Neighbours along K; those behind the last count as 0. `whole`: rows of x begin at multiples of
// that many elements.
template <class T, bool whole>
__device__ void load(const Rows& r, int row, int k, float (&v)[kEach]) {
  const T* const at = static_cast<const T*>(r.x) + row * r.x_pitch + k;
  if (whole && k + kEach <= r.k) {
    struct alignas(16) Piece {
      T x[16 / sizeof(T)];
    };
    constexpr int pieces = kEach * sizeof(T) / sizeof(Piece);
    for (int i = 0; i < pieces; ++i) {
      const Piece piece = reinterpret_cast<const Piece*>(at)[i];
      for (int j = 0; j < kEach / pieces; ++j) v[i * kEach / pieces + j] = widened(piece.x[j]);
    }
  } else {
    for (int i = 0; i < kEach; ++i) v[i] = k + i < r.k ? widened(at[i]) : 0.0F;
  }
}

using Divisor = kernel::E4m3Divisor;

// Of what is as large as `largest` at most.
inline __device__ bool is_usual(const Divisor& by, float largest) {
  return by.scale > 0x1p-60F && by.scale < 0x1p60F && largest * by.inverse < 0x1p60F;
}

// NaN does not count.
inline __device__ float largest_magnitude(const float (&v)[kEach]) {
  float largest = 0;
  for (const float x : v) largest = fmaxf(largest, fabsf(x));
  return largest;
}

// x / scale, as IEEE 754 rounds it, as far as codes can tell; NaN of an infinity.
inline __device__ void divide(const Divisor& by, const float (&v)[kEach], float (&to)[kEach]) {
  if (is_usual(by, largest_magnitude(v))) {
    for (int i = 0; i < kEach; ++i) to[i] = by.usual_quotient(v[i]);
  } else {
    for (int i = 0; i < kEach; ++i) to[i] = unless_infinite(v[i] / by.scale, v[i]);
  }
}

// Eight values as codes of 8 bits.
template <__nv_fp8_interpretation_t type>
__device__ std::uint64_t codes_of(const float (&v)[kEach]) {
  std::uint64_t codes = 0;
  for (int i = 0; i < kEach; i += 2) {
    const std::uint64_t two =
        __nv_cvt_float2_to_fp8x2(make_float2(v[i], v[i + 1]), __NV_SATFINITE, type);
    codes |= two << 8 * i;
  }
  return codes;
}

// Writes `count` codes of `bits` each, all eight where they are there. `whole`: rows of the codes
// begin at multiples of what is written at once.
template <bool whole, int bits>
__device__ void store_codes(std::uint8_t* at, std::uint64_t codes, int count) {
  if (whole && count >= kEach) {
    if constexpr (bits == 8) {
      *reinterpret_cast<std::uint64_t*>(at) = codes;
    } else if constexpr (bits == 4) {
      *reinterpret_cast<std::uint32_t*>(at) = static_cast<std::uint32_t>(codes);
    } else {
      for (int i = 0; i < 3; ++i) {
        reinterpret_cast<std::uint16_t*>(at)[i] = static_cast<std::uint16_t>(codes >> 16 * i);
      }
    }
  } else {
    for (int i = 0; i < bits && i < count * bits / 8; ++i) {
      at[i] = static_cast<std::uint8_t>(codes >> 8 * i);
    }
  }
}

inline __device__ float largest_of(float largest, const float (&v)[kEach]) {
  const float mine = largest_magnitude(v);
  if (finite_magnitude(mine) == mine) return fmaxf(largest, mine);
  for (const float x : v) largest = fmaxf(largest, finite_magnitude(x));
  return largest;
}

// Of as many lanes next to each other.
template <int lanes = 32>
__device__ float largest_of_lanes(float largest) {
  for (int d = lanes / 2; d > 0; d /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, d));
  }
  return largest;
}

inline __device__ float largest_of_cta(float largest) {
  __shared__ float of_warps[kThreads / 32];
  const float mine = largest_of_lanes(largest);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float all = 0;
  for (const float each : of_warps) all = fmaxf(all, each);
  return all;
}

// The elements of x in a grid of CTAs: gridDim.x of them share a row, and each takes every
// gridDim.y-th row. Calls load(row, k, values) for at_once rows, then use(row, k, values), by all
// lanes of a warp, also where k is behind the row; `use` for `rows` rows, which may be more.
constexpr int kAtOnce = 4;
template <int at_once = kAtOnce, class Load, class Use>
__device__ void for_each_piece(const Rows& r, int rows, const Load& load, const Use& use) {
  constexpr std::int64_t piece = kThreads * kEach;
  const std::int64_t stride = gridDim.y;
  for (std::int64_t k = blockIdx.x * piece; k < r.k; k += gridDim.x * piece) {
    const int mine = static_cast<int>(k) + static_cast<int>(threadIdx.x) * kEach;
    for (std::int64_t first = blockIdx.y; first < rows; first += at_once * stride) {
      float values[at_once][kEach] = {};
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const std::int64_t row = first + i * stride;
        if (row < r.rows && mine < r.k) load(static_cast<int>(row), mine, values[i]);
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const std::int64_t row = first + i * stride;
        if (row < rows) use(static_cast<int>(row), mine, values[i]);
      }
    }
  }
}

// The largest magnitude, in `place`, which was 0: bits of floats from 0 on are in order.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads, 4) find_largest(const Rows r, float* place) {
  float largest = 0;
  for_each_piece(
      r, r.rows, [&](int row, int k, float(&v)[kEach]) { load<T, whole>(r, row, k, v); },
      [&](int /*row*/, int /*k*/, const float(&v)[kEach]) { largest = largest_of(largest, v); });
  const float of_cta = largest_of_cta(largest);
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(place), __float_as_int(of_cta));
}
// A grid of for_each_piece: enough CTAs for every SM of a large device, with several rows each
// where there are so many.
inline dim3 grid_for(const Rows& r) {
  const int across = std::clamp((r.k + kThreads * kEach - 1) / (kThreads * kEach), 1, 1024);
  const int wanted = std::max(1, 4096 / across);
  return {static_cast<unsigned>(across), static_cast<unsigned>(std::clamp(r.rows, 1, wanted))};
}

// start(T{}) for the type of x; what went wrong, as a refusal.
template <class Start>
std::optional<Refusal> started(DType x, const Start& start) {
  cudaError_t error = cudaSuccess;
  if (x == DType::f32) {
    error = start(float{});
  } else if (x == DType::bf16) {
    error = start(__nv_bfloat16{});
  } else {
    error = start(__half{});
  }
  return cuda_refusal(error, "quantising x");
}

/// Scaling::block_scaled, of what has no fault.
std::optional<Refusal> quantise_micro_on_cuda(const Quantisation& q, void* stream);

}  // namespace warpwright::device
