// Activations as e4m3 on a CUDA device. The work is memory's: x is read once (rows that are longer
// than a CTA's registers twice, then mostly out of a cache), codes and scales are written once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/quantise.h"

namespace warpwright::device {
namespace {

constexpr int kBlock = 128;  // elements that share a scale of Scaling::block
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

// Four elements along K; those behind the last count as 0. `whole`: rows of x begin at multiples of
// four elements.
template <class T, bool whole>
__device__ void load(const Rows& r, int row, int k, float (&v)[4]) {
  const T* const at = static_cast<const T*>(r.x) + row * r.x_pitch + k;
  if (whole && k + 4 <= r.k) {
    struct alignas(4 * sizeof(T)) Four {
      T x[4];
    };
    const Four four = *reinterpret_cast<const Four*>(at);
    for (int i = 0; i < 4; ++i) v[i] = widened(four.x[i]);
  } else {
    for (int i = 0; i < 4; ++i) v[i] = k + i < r.k ? widened(at[i]) : 0.0F;
  }
}

// `whole`: rows of the codes begin at multiples of four bytes.
template <bool whole>
__device__ void store(const Rows& r, int row, int k, float scale, const float (&v)[4]) {
  std::uint8_t* const at = r.codes + row * r.codes_pitch + k;
  // The quotients are those of IEEE 754: the compiler rounds divisions unless it is told not to.
  const auto code = [&](int i) {
    return __nv_cvt_float2_to_fp8x2(make_float2(v[i] / scale, v[i + 1] / scale), __NV_SATFINITE,
                                    __NV_E4M3);
  };
  const std::uint32_t codes = code(0) | static_cast<std::uint32_t>(code(2)) << 16;
  if (whole && k + 4 <= r.k) {
    *reinterpret_cast<std::uint32_t*>(at) = codes;
  } else {
    for (int i = 0; i < 4 && k + i < r.k; ++i) at[i] = static_cast<std::uint8_t>(codes >> 8 * i);
  }
}

__device__ float largest_of(float largest, const float (&v)[4]) {
  for (const float x : v) largest = fmaxf(largest, finite_magnitude(x));
  return largest;
}

__device__ float largest_of_warp(float largest) {
  for (int d = 16; d > 0; d /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, d));
  }
  return largest;
}

__device__ float largest_of_cta(float largest) {
  __shared__ float of_warps[kThreads / 32];
  const float mine = largest_of_warp(largest);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float all = 0;
  for (const float each : of_warps) all = fmaxf(all, each);
  return all;
}

// A warp takes a block of a row: a lane four of its elements.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads) quantise_blocks(const Rows r) {
  const int blocks = (r.k + kBlock - 1) / kBlock;
  const auto all = static_cast<std::int64_t>(r.rows) * blocks;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kThreads / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (std::int64_t i = blockIdx.x * (kThreads / 32) + threadIdx.x / 32; i < all; i += warps) {
    const int row = static_cast<int>(i / blocks);
    const int block = static_cast<int>(i % blocks);
    const int k = block * kBlock + 4 * lane;
    float v[4] = {};
    if (k < r.k) load<T, whole>(r, row, k, v);
    const float scale = e4m3_scale(largest_of_warp(largest_of(0, v)));
    if (k < r.k) store<whole>(r, row, k, scale, v);
    if (lane == 0) r.scales[row * r.scale_pitch + block * r.scale_step] = scale;
  }
}

// A CTA takes a row. What its registers hold of it is not read again.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads) quantise_rows(const Rows r) {
  constexpr int kept = 8;
  const int row = static_cast<int>(blockIdx.x);
  const int first = 4 * static_cast<int>(threadIdx.x);
  constexpr int step = 4 * kThreads;
  float values[kept][4];
  float largest = 0;
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    if (first + i * step >= r.k) break;
    load<T, whole>(r, row, first + i * step, values[i]);
    largest = largest_of(largest, values[i]);
  }
  for (int k = first + kept * step; k < r.k; k += step) {
    float v[4];
    load<T, whole>(r, row, k, v);
    largest = largest_of(largest, v);
  }
  const float scale = e4m3_scale(largest_of_cta(largest));
  if (threadIdx.x == 0) r.scales[row * r.scale_pitch] = scale;
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    if (first + i * step >= r.k) break;
    store<whole>(r, row, first + i * step, scale, values[i]);
  }
  for (int k = first + kept * step; k < r.k; k += step) {
    float v[4];
    load<T, whole>(r, row, k, v);
    store<whole>(r, row, k, scale, v);
  }
}

// Calls visit(row, k) for every four elements, by all threads of the grid.
template <class Visit>
__device__ void for_each_quad(const Rows& r, const Visit& visit) {
  const int quads = (r.k + 3) / 4;
  const auto all = static_cast<std::int64_t>(r.rows) * quads;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < all;
       i += step) {
    visit(static_cast<int>(i / quads), 4 * static_cast<int>(i % quads));
  }
}

// With the scale that is there.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads) quantise_tensor(const Rows r) {
  const float scale = *r.scales;
  for_each_quad(r, [&](int row, int k) {
    float v[4];
    load<T, whole>(r, row, k, v);
    store<whole>(r, row, k, scale, v);
  });
}

// The largest magnitude, in the scale's place, which was 0: bits of floats from 0 on are in order.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads) find_largest(const Rows r) {
  float largest = 0;
  for_each_quad(r, [&](int row, int k) {
    float v[4];
    load<T, whole>(r, row, k, v);
    largest = largest_of(largest, v);
  });
  const float of_cta = largest_of_cta(largest);
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(r.scales), __float_as_int(of_cta));
}
__global__ void make_scale(float* scale) {
  *scale = e4m3_scale(*scale);
}

int ctas_for(std::int64_t pieces) {
  return static_cast<int>(std::clamp<std::int64_t>(pieces, 1, 1 << 16));
}

template <class T, bool whole>
cudaError_t start(const Quantisation& q, const Rows& r, cudaStream_t stream) {
  constexpr int warps = kThreads / 32;
  const std::int64_t blocks = (r.k + kBlock - 1) / kBlock;
  const int ctas =
      ctas_for((static_cast<std::int64_t>(r.rows) * r.k / 4 + kThreads - 1) / kThreads);
  if (q.scaling == Scaling::row_column) {
    quantise_rows<T, whole><<<r.rows, kThreads, 0, stream>>>(r);
  } else if (q.scaling == Scaling::block) {
    quantise_blocks<T, whole>
        <<<ctas_for((r.rows * blocks + warps - 1) / warps), kThreads, 0, stream>>>(r);
  } else {
    if (!q.given) {
      if (const cudaError_t e = cudaMemsetAsync(r.scales, 0, sizeof(float), stream)) return e;
      find_largest<T, whole><<<std::min(ctas, 1024), kThreads, 0, stream>>>(r);
      make_scale<<<1, 1, 0, stream>>>(r.scales);
    }
    quantise_tensor<T, whole><<<ctas, kThreads, 0, stream>>>(r);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t start(const Quantisation& q, const Rows& r, cudaStream_t stream) {
  const auto is_whole = [](const MatrixView& v, int element) {
    return reinterpret_cast<std::uintptr_t>(v.data) % (4 * element) == 0 &&
           (v.rows <= 1 || v.row_stride % 4 == 0);
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
