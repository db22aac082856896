// Activations as e4m3 on a CUDA device. The work is memory's: x is read once (rows that are longer
// than a CTA's registers twice, then mostly out of a cache), codes and scales are written once.
#include "warpwright/device/quantise_parts.cuh"

namespace warpwright::device {
namespace {

constexpr int kBlock = 128;  // elements that share a scale of Scaling::blockwise

// `whole`: rows of the codes begin at multiples of kEach bytes.
template <bool whole>
__device__ void store(const Rows& r, int row, int k, const Divisor& by, const float (&v)[kEach]) {
  float quotients[kEach];
  divide(by, v, quotients);
  store_codes<whole, 8>(r.codes + row * r.codes_pitch + k, codes_of<__NV_E4M3>(quotients), r.k - k);
}

// As many lanes as hold a block of a row find its scale.
template <class T, bool whole>
__global__ void __launch_bounds__(kThreads, 4) quantise_blocks(const Rows r) {
  constexpr int lanes = kBlock / kEach;
  for_each_piece(
      r, r.rows, [&](int row, int k, float(&v)[kEach]) { load<T, whole>(r, row, k, v); },
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
      r, r.rows, [&](int row, int k, float(&v)[kEach]) { load<T, whole>(r, row, k, v); },
      [&](int row, int k, const float(&v)[kEach]) {
        if (k < r.k) store<whole>(r, row, k, scale, v);
      });
}

__global__ void make_scale(float* scale) {
  *scale = e4m3_scale(*scale);
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
      find_largest<T, whole><<<grid_for(r), kThreads, 0, stream>>>(r, r.scales);
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
  if (q.scaling == Scaling::block_scaled) return quantise_micro_on_cuda(q, stream);
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
  return started(q.x.dtype, [&](auto x) { return start<decltype(x)>(q, r, in); });
}

}  // namespace warpwright::device
