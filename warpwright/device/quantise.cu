// Activations as e4m3 on a CUDA device. The work is memory's: x is read once (rows that are longer
// than a CTA's registers twice, then mostly out of a cache), codes and scales are written once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/quantise.h"
#include "warpwright/kernel/e4m3_divisor.h"

namespace warpwright::device {
namespace {

constexpr int kBlock = 128;  // elements that share a scale of Scaling::blockwise
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

__device__ float widened(float x) {
  return x;
}
__device__ float widened(__half x) {
  return __half2float(x);
}
__device__ float widened(__nv_bfloat16 x) {
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
__device__ bool is_usual(const Divisor& by, float largest) {
  return by.scale > 0x1p-60F && by.scale < 0x1p60F && largest * by.inverse < 0x1p60F;
}

// NaN does not count.
__device__ float largest_magnitude(const float (&v)[kEach]) {
  float largest = 0;
  for (const float x : v) largest = fmaxf(largest, fabsf(x));
  return largest;
}

// `whole`: rows of the codes begin at multiples of kEach bytes.
template <bool whole>
__device__ void store(const Rows& r, int row, int k, const Divisor& by, const float (&v)[kEach]) {
  std::uint8_t* const at = r.codes + row * r.codes_pitch + k;
  float quotients[kEach];
  if (is_usual(by, largest_magnitude(v))) {
    for (int i = 0; i < kEach; ++i) quotients[i] = by.usual_quotient(v[i]);
  } else {
    for (int i = 0; i < kEach; ++i) quotients[i] = v[i] / by.scale;
  }
  std::uint32_t codes[kEach / 4];
  for (int i = 0; i < kEach / 4; ++i) {
    const auto code = [&](int j) -> std::uint32_t {
      return __nv_cvt_float2_to_fp8x2(make_float2(quotients[j], quotients[j + 1]), __NV_SATFINITE,
                                      __NV_E4M3);
    };
    codes[i] = code(4 * i) | code(4 * i + 2) << 16;
  }
  if (whole && k + kEach <= r.k) {
    *reinterpret_cast<uint2*>(at) = make_uint2(codes[0], codes[1]);
  } else {
    for (int i = 0; i < kEach && k + i < r.k; ++i) {
      at[i] = static_cast<std::uint8_t>(codes[i / 4] >> 8 * (i % 4));
    }
  }
}

__device__ float largest_of(float largest, const float (&v)[kEach]) {
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

__device__ float largest_of_cta(float largest) {
  __shared__ float of_warps[kThreads / 32];
  const float mine = largest_of_lanes(largest);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float all = 0;
  for (const float each : of_warps) all = fmaxf(all, each);
  return all;
}

// The elements of x in a grid of CTAs: gridDim.x of them share a row, and each takes every
// gridDim.y-th row. Calls load(row, k, values) for kAtOnce rows, then use(row, k, values), by all
// lanes of a warp, also where k is behind the row.
constexpr int kAtOnce = 4;
template <class Load, class Use>
__device__ void for_each_piece(const Rows& r, const Load& load, const Use& use) {
  constexpr std::int64_t piece = kThreads * kEach;
  const std::int64_t stride = gridDim.y;
  for (std::int64_t k = blockIdx.x * piece; k < r.k; k += gridDim.x * piece) {
    const int mine = static_cast<int>(k) + static_cast<int>(threadIdx.x) * kEach;
    for (std::int64_t first = blockIdx.y; first < r.rows; first += kAtOnce * stride) {
      float values[kAtOnce][kEach] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int64_t row = first + i * stride;
        if (row < r.rows && mine < r.k) load(static_cast<int>(row), mine, values[i]);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int64_t row = first + i * stride;
        if (row < r.rows) use(static_cast<int>(row), mine, values[i]);
      }
    }
  }
}

// As many lanes as hold a block of a row find its scale.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads, 4) quantise_blocks(const Rows r) {
  constexpr int lanes = kBlock / kEach;
  for_each_piece(
      r, [&](int row, int k, float(&v)[kEach]) { load<T, whole>(r, row, k, v); },
      [&](int row, int k, const float(&v)[kEach]) {
        const float scale = e4m3_scale(largest_of_lanes<lanes>(largest_of(0, v)));
        if (k >= r.k) return;
        store<whole>(r, row, k, Divisor(scale), v);
        if (k % kBlock == 0) r.scales[row * r.scale_pitch + k / kBlock * r.scale_step] = scale;
      });
}

// A CTA takes a row. What its registers hold of it is not read again.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads, 4) quantise_rows(const Rows r) {
  constexpr int kept = 4;
  const int row = static_cast<int>(blockIdx.x);
  const int first = kEach * static_cast<int>(threadIdx.x);
  constexpr int step = kEach * kThreads;
  float values[kept][kEach];
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    if (first + i * step < r.k) load<T, whole>(r, row, first + i * step, values[i]);
  }
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    if (first + i * step < r.k) largest = largest_of(largest, values[i]);
  }
  for (int k = first + kept * step; k < r.k; k += step) {
    float v[kEach];
    load<T, whole>(r, row, k, v);
    largest = largest_of(largest, v);
  }
  const Divisor scale(e4m3_scale(largest_of_cta(largest)));
  if (threadIdx.x == 0) r.scales[row * r.scale_pitch] = scale.scale;
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    if (first + i * step < r.k) store<whole>(r, row, first + i * step, scale, values[i]);
  }
  for (int k = first + kept * step; k < r.k; k += step) {
    float v[kEach];
    load<T, whole>(r, row, k, v);
    store<whole>(r, row, k, scale, v);
  }
}

// With the scale that is there.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads, 4) quantise_tensor(const Rows r) {
  const Divisor scale(*r.scales);
  for_each_piece(
      r, [&](int row, int k, float(&v)[kEach]) { load<T, whole>(r, row, k, v); },
      [&](int row, int k, const float(&v)[kEach]) {
        if (k < r.k) store<whole>(r, row, k, scale, v);
      });
}

// The largest magnitude, in the scale's place, which was 0: bits of floats from 0 on are in order.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads, 4) find_largest(const Rows r) {
  float largest = 0;
  for_each_piece(
      r, [&](int row, int k, float(&v)[kEach]) { load<T, whole>(r, row, k, v); },
      [&](int /*row*/, int /*k*/, const float(&v)[kEach]) { largest = largest_of(largest, v); });
  const float of_cta = largest_of_cta(largest);
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(r.scales), __float_as_int(of_cta));
}
__global__ void make_scale(float* scale) {
  *scale = e4m3_scale(*scale);
}

// A grid of for_each_piece: enough CTAs for every SM of a large device, with several rows each
// where there are so many.
dim3 grid_for(const Rows& r) {
  const int across = std::clamp((r.k + kThreads * kEach - 1) / (kThreads * kEach), 1, 1024);
  const int wanted = std::max(1, 4096 / across);
  return {static_cast<unsigned>(across), static_cast<unsigned>(std::clamp(r.rows, 1, wanted))};
}

template <class T, bool whole>
cudaError_t start(const Quantisation& q, const Rows& r, cudaStream_t stream) {
  if (q.scaling == Scaling::row_column) {
    quantise_rows<T, whole><<<r.rows, kThreads, 0, stream>>>(r);
  } else if (q.scaling == Scaling::blockwise) {
    quantise_blocks<T, whole><<<grid_for(r), kThreads, 0, stream>>>(r);
  } else {
    if (!q.given) {
      if (const cudaError_t e = cudaMemsetAsync(r.scales, 0, sizeof(float), stream)) return e;
      find_largest<T, whole><<<grid_for(r), kThreads, 0, stream>>>(r);
      make_scale<<<1, 1, 0, stream>>>(r.scales);
    }
    quantise_tensor<T, whole><<<grid_for(r), kThreads, 0, stream>>>(r);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t start(const Quantisation& q, const Rows& r, cudaStream_t stream) {
  const auto is_whole = [](const MatrixView& v, int element) {
    return reinterpret_cast<std::uintptr_t>(v.data) % (kEach * element) == 0 &&
           (v.rows <= 1 || v.row_stride % kEach == 0);
  };
  return is_whole(q.x, sizeof(T)) && is_whole(q.codes, 1) ? start<T, true>(q, r, stream)
                                                          : start<T, false>(q, r, stream);
}

}  // namespace

std::optional<Refusal> quantise_on_cuda(const Quantisation& q, void* stream) {
  if (auto r = fault(q)) return r;
  auto* const in = static_cast<cudaStream_t>(stream);
  const Rows r{q.x.data,
               static_cast<std::uint8_t*>(q.codes.data),
               static_cast<float*>(q.scales.data),
               q.x.row_stride,
               q.codes.row_stride,
               q.scales.row_stride,
               q.scales.column_stride,
               static_cast<int>(q.x.rows),
               static_cast<int>(q.x.columns)};
  if (r.rows == 0 && q.scaling == Scaling::row_column) return std::nullopt;
  cudaError_t error = cudaSuccess;
  if (q.x.dtype == DType::f32) {
    error = start<float>(q, r, in);
  } else if (q.x.dtype == DType::bf16) {
    error = start<__nv_bfloat16>(q, r, in);
  } else {
    error = start<__half>(q, r, in);
  }
  return cuda_refusal(error, "quantising x");
}

}  // namespace warpwright::device
