#include "bench/device_math.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>

namespace warpwright::bench {
namespace {

// A mixing function of 64 bits: additions of an odd constant, shifts and multiplications, each of
// them a bijection, so that different counters give different words.
__device__ std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
  return x ^ (x >> 32);
}

// From a word's halves two uniform numbers, from these one normal number (Box and Muller).
__device__ float normal(std::uint64_t word) {
  const float u = (static_cast<float>(word >> 40) + 1.0F) * 0x1p-24F;
  const float v = static_cast<float>(word & 0xffffffU) * 0x1p-24F;
  return sqrtf(-2.0F * __logf(u)) * cospif(2.0F * v);
}

__device__ float load(const void* data, DType t, std::int64_t i) {
  switch (t) {
    case DType::f32:
      return static_cast<const float*>(data)[i];
    case DType::f16:
      return __half2float(static_cast<const __half*>(data)[i]);
    case DType::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case DType::e4m3:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
    default:
      return static_cast<float>(static_cast<const __nv_fp8_e5m2*>(data)[i]);
  }
}

__device__ void store(void* data, DType t, std::int64_t i, float x) {
  switch (t) {
    case DType::f32:
      static_cast<float*>(data)[i] = x;
      return;
    case DType::f16:
      static_cast<__half*>(data)[i] = __float2half(x);
      return;
    case DType::bf16:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(x);
      return;
    case DType::e4m3:
      static_cast<__nv_fp8_e4m3*>(data)[i] = __nv_fp8_e4m3(x);
      return;
    default:
      static_cast<__nv_fp8_e5m2*>(data)[i] = __nv_fp8_e5m2(x);
      return;
  }
}

// A view with what a kernel needs of it.
struct Tensor {
  const void* data;
  DType dtype;
  std::int64_t row, column, batch;  // strides

  __device__ float at(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return load(data, dtype, b * batch + i * row + j * column);
  }
};

Tensor tensor(const MatrixView& v) {
  return {v.data, v.dtype, v.row_stride, v.column_stride, v.batch > 1 ? v.batch_stride : 0};
}

// An 8- or 16-bit operand and what its elements are multiplied by.
struct Operand {
  Tensor values;
  Tensor scales;
  int row_group;  // rows that share a scale: 1, 128, or 0 for all of them
  int k_group;    // likewise along K

  __device__ double at(std::int64_t b, std::int64_t i, std::int64_t k) const {
    const double x = values.at(b, i, k);
    if (scales.data == nullptr) return x;
    return x * scales.at(b, row_group == 0 ? 0 : i / row_group, k_group == 0 ? 0 : k / k_group);
  }
};

Operand operand(const MatrixView& values, const MatrixView& scales, Scaling how, bool is_b) {
  Operand o{tensor(values), tensor(scales), 0, 0};
  if (how == Scaling::none) o.scales.data = nullptr;
  if (how == Scaling::row_column) o.row_group = 1;
  if (how == Scaling::block) {
    o.row_group = is_b ? 128 : 1;
    o.k_group = 128;
  }
  return o;
}

__global__ void normal_kernel(void* data, DType t, std::int64_t count, std::uint64_t seed,
                              std::uint64_t stream) {
  const std::uint64_t base = mix(mix(seed) ^ stream);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    store(data, t, i, normal(mix(base + static_cast<std::uint64_t>(i))));
  }
}

__global__ void scales_kernel(void* data, DType t, std::int64_t count, std::uint64_t seed,
                              std::uint64_t stream) {
  const std::uint64_t base = mix(mix(seed) ^ stream);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const std::uint64_t word = mix(base + static_cast<std::uint64_t>(i));
    store(data, t, i, exp2f(static_cast<float>(word >> 40) * 0x1p-23F - 1.0F));
  }
}

// The largest of 128 normal weights is some 2.7 of their deviations, and its code 7.
__device__ int random_code(std::uint64_t word) {
  return max(-8, min(7, __float2int_rn(2.6F * normal(word))));
}

__global__ void codes_kernel(std::uint8_t* codes, std::int64_t bytes, int least, std::uint64_t seed,
                             std::uint64_t stream) {
  const std::uint64_t base = mix(mix(seed) ^ stream);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < bytes;
       i += step) {
    const int low = max(least, random_code(mix(base + 2 * static_cast<std::uint64_t>(i))));
    const int high = max(least, random_code(mix(base + 2 * static_cast<std::uint64_t>(i) + 1)));
    codes[i] = static_cast<std::uint8_t>((low & 15) | (high & 15) << 4);
  }
}

__global__ void values_kernel(const std::uint8_t* codes, const void* scales, DType t, int group,
                              std::int64_t count, float* values) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const int four = codes[i / 2] >> i % 2 * 4 & 15;
    values[i] = static_cast<float>((four ^ 8) - 8) * load(scales, t, i / group);
  }
}

__global__ void relay_kernel(Tensor from, std::int64_t rows, std::int64_t columns, float* to,
                             std::int64_t pitch) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < rows * columns; i += step) {
    const std::int64_t row = i % rows;
    const std::int64_t column = i / rows;
    to[row + column * pitch] = from.at(0, row, column);
  }
}

struct Linear {
  float alpha, beta;
  Tensor c, bias;
  Bias along;
  std::int64_t m, n, k;
};

constexpr int kTile = 64;   // of the reference product, in rows and columns
constexpr int kDepth = 16;  // and along K
constexpr int kEach = 4;    // rows and columns of a thread

__device__ double finish(const Linear& p, std::int64_t b, std::int64_t i, std::int64_t j,
                         double sum) {
  double x = p.alpha * sum;
  if (p.beta != 0.0F) x += static_cast<double>(p.beta) * p.c.at(b, i, j);
  if (p.along == Bias::rows) x += p.bias.at(0, i, 0);
  if (p.along == Bias::columns) x += p.bias.at(0, j, 0);
  return x;
}

// 256 threads make a tile of 64 x 64, each 4 x 4 of it.
__global__ void product_kernel(Operand a, Operand b, Linear p, float* product) {
  __shared__ double as[kDepth][kTile + 1];
  __shared__ double bs[kDepth][kTile + 1];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t batch = blockIdx.z;
  const int ti = static_cast<int>(threadIdx.x) / (kTile / kEach);
  const int tj = static_cast<int>(threadIdx.x) % (kTile / kEach);
  double sums[kEach][kEach] = {};
  for (std::int64_t k = 0; k < p.k; k += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth;
         i += static_cast<int>(blockDim.x)) {
      const int r = i / kDepth;
      const int d = i % kDepth;
      const bool inside = k + d < p.k;
      as[d][r] = inside && row + r < p.m ? a.at(batch, row + r, k + d) : 0.0;
      bs[d][r] = inside && column + r < p.n ? b.at(batch, column + r, k + d) : 0.0;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          sums[i][j] += as[d][ti * kEach + i] * bs[d][tj * kEach + j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t r = row + ti * kEach + i;
      const std::int64_t c = column + tj * kEach + j;
      if (r >= p.m || c >= p.n) continue;
      product[(batch * p.m + r) * p.n + c] = static_cast<float>(finish(p, batch, r, c, sums[i][j]));
    }
  }
}

// The norm of each scaled row: one block a row.
__global__ void norm_kernel(Operand o, std::int64_t k, float* norms) {
  __shared__ float parts[32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t batch = blockIdx.y;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < k; i += blockDim.x) {
    const auto x = static_cast<float>(o.at(batch, row, i));
    sum += x * x;
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += parts[w];
  norms[batch * gridDim.x + row] = sqrtf(sum);
}

struct Verdict {
  unsigned long long wrong;
  unsigned long long first;  // of the wrong ones, the lowest position
  double difference;         // sums of squares
  double size;
};

struct CompareInput {
  Tensor ours, theirs;
  const float* product;  // the reference before its epilogue, or null
  const float* norms_a;
  const float* norms_b;
  Linear linear;
  Epilogue epilogue;
  Tensor scale_d;
  std::int64_t columns;  // of D
  DType dtype;
  float loss;
};

__device__ float activate(Activation how, float x) {
  switch (how) {
    case Activation::relu:
      return fmaxf(x, 0.0F);
    case Activation::gelu:
      return 0.5F * x * (1.0F + tanhf(0.7978845608F * (x + 0.044715F * x * x * x)));
    case Activation::silu:
      return x / (1.0F + expf(-x));
    case Activation::quick_gelu:
      return x / (1.0F + expf(-1.702F * x));
    default:
      return x;
  }
}

// The largest finite value and the spacing of a result's type.
__device__ float largest(DType t) {
  return t == DType::e4m3 ? 448.0F : t == DType::e5m2 ? 57344.0F : INFINITY;
}
__device__ float spacing(DType t, float x) {
  const float size = fabsf(x);
  switch (t) {
    case DType::f32:
      return size * 0x1p-23F;
    case DType::f16:
      return size * 0x1p-10F + 0x1p-24F;
    case DType::bf16:
      return size * 0x1p-7F;
    case DType::e4m3:
      return size * 0x1p-3F + 0x1p-9F;
    default:
      return size * 0x1p-2F + 0x1p-16F;
  }
}

// What D should be, and by how much it may differ.
struct Expected {
  float value;
  float bound;
};

__device__ Expected expected(const CompareInput& in, std::int64_t b, std::int64_t i,
                             std::int64_t j) {
  const Linear& p = in.linear;
  const auto sum_bound = [&](std::int64_t column) {
    float size = fabsf(p.alpha) * in.norms_a[b * p.m + i] * in.norms_b[b * p.n + column] * in.loss;
    if (p.beta != 0.0F) size += fabsf(p.beta * p.c.at(b, i, column)) * 0x1p-22F;
    return size;
  };
  // No activation is steeper than this.
  const float slope = in.epilogue.activation == Activation::none ? 1.0F : 1.13F;
  float bound = slope * sum_bound(j);
  float value = 0;
  if (in.product == nullptr) {
    value = in.theirs.at(b, i, j);
  } else {
    const float* row = in.product + (b * p.m + i) * p.n;
    value = activate(in.epilogue.activation, row[j]);
    if (in.epilogue.gated) {
      const float gate = row[j + in.columns];
      const float gate_bound = sum_bound(j + in.columns);
      bound = bound * (fabsf(gate) + gate_bound) + fabsf(value) * gate_bound;
      value *= gate;
    }
  }
  if (in.scale_d.data != nullptr) {
    const float scale = in.scale_d.at(0, 0, 0);
    bound *= fabsf(scale);
    if (in.product != nullptr) value *= scale;
  }
  if (in.product != nullptr) {
    value = fminf(fmaxf(value, -largest(in.dtype)), largest(in.dtype));
    bound += fabsf(value) * 0x1p-20F;  // the functions of the epilogue
  }
  return {value, bound};
}

__global__ void compare_kernel(CompareInput in, std::int64_t total, Verdict* verdict) {
  double difference = 0;
  double size = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       at < total; at += step) {
    const std::int64_t j = at % in.columns;
    const std::int64_t i = at / in.columns % in.linear.m;
    const std::int64_t b = at / in.columns / in.linear.m;
    const float x = in.ours.at(b, i, j);
    const Expected want = expected(in, b, i, j);
    if (isnan(x) && isnan(want.value)) continue;  // a file's operands may hold NaN
    if (x == want.value) {
      size += static_cast<double>(want.value) * static_cast<double>(want.value);
      continue;
    }
    const float gap = fabsf(x - want.value);
    const float widest = fmaxf(fabsf(x), fabsf(want.value));
    // Written so that a NaN is wrong.
    if (!(gap <= want.bound + spacing(in.dtype, widest))) {
      atomicAdd(&verdict->wrong, 1ULL);
      atomicMin(&verdict->first, static_cast<unsigned long long>(at));
    }
    difference += static_cast<double>(gap) * static_cast<double>(gap);
    size += static_cast<double>(want.value) * static_cast<double>(want.value);
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    difference += __shfl_xor_sync(0xffffffffU, difference, lane);
    size += __shfl_xor_sync(0xffffffffU, size, lane);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&verdict->difference, difference);
    atomicAdd(&verdict->size, size);
  }
}

__global__ void delay_kernel(unsigned long long nanoseconds) {
  unsigned long long begin = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  unsigned long long now = begin;
  while (now - begin < nanoseconds) {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  }
}

__global__ void mark_kernel() {}  // kMarkKernel

__global__ void expected_kernel(CompareInput in, std::int64_t at, float* pair) {
  const std::int64_t j = at % in.columns;
  const std::int64_t i = at / in.columns % in.linear.m;
  const std::int64_t b = at / in.columns / in.linear.m;
  pair[0] = in.ours.at(b, i, j);
  pair[1] = expected(in, b, i, j).value;
}

unsigned blocks(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + 255) / 256, 1, 4096));
}

Linear linear_of(const GemmOperands& o) {
  Linear p{};
  p.alpha = o.alpha;
  p.beta = beta_of(o);
  p.c = tensor(o.c);
  p.bias = tensor(o.bias);
  p.along = o.epilogue.bias;
  p.m = o.a.rows;
  p.n = o.b.rows;
  p.k = o.a.columns;
  return p;
}

}  // namespace

std::int64_t span_elements(const MatrixView& v) {
  if (v.rows == 0 || v.columns == 0 || v.batch == 0) return 0;
  return (v.batch - 1) * v.batch_stride + (v.rows - 1) * v.row_stride +
         (v.columns - 1) * v.column_stride + 1;
}

std::int64_t span_bytes(const MatrixView& v) {
  return span_elements(v) * (numeric::bits(v.dtype) / 8);
}

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Failure{std::string(what) + " failed: " + cudaGetErrorString(error)};
}

void require(const std::optional<Refusal>& refusal) {
  if (refusal) throw Failure{refusal->reason};
}

std::shared_ptr<device::CudaBuffer> filled_memory(std::int64_t bytes, int value) {
  const auto made = device::CudaBuffer::make(bytes, value);
  if (!made) throw Failure{made.reason()};
  return *made;
}

void fill_normal(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                 std::uint64_t stream, cudaStream_t on) {
  if (count == 0) return;
  normal_kernel<<<blocks(count), 256, 0, on>>>(data, dtype, count, seed, stream);
  require(cudaGetLastError(), "making random operands");
}

void fill_scales(void* data, DType dtype, std::int64_t count, std::uint64_t seed,
                 std::uint64_t stream, cudaStream_t on) {
  if (count == 0) return;
  scales_kernel<<<blocks(count), 256, 0, on>>>(data, dtype, count, seed, stream);
  require(cudaGetLastError(), "making random scales");
}

void fill_codes(std::uint8_t* codes, std::int64_t count, int least, std::uint64_t seed,
                std::uint64_t stream, cudaStream_t on) {
  codes_kernel<<<blocks(count / 2), 256, 0, on>>>(codes, count / 2, least, seed, stream);
  require(cudaGetLastError(), "making random weights");
}

void int4_values(const std::uint8_t* codes, const void* scales, DType scale, int group,
                 std::int64_t count, float* values, cudaStream_t on) {
  values_kernel<<<blocks(count), 256, 0, on>>>(codes, scales, scale, group, count, values);
  require(cudaGetLastError(), "making the values of weights");
}

void relay_column_major(const MatrixView& from, float* to, std::int64_t pitch, cudaStream_t on) {
  relay_kernel<<<blocks(from.rows * from.columns), 256, 0, on>>>(tensor(from), from.rows,
                                                                 from.columns, to, pitch);
  require(cudaGetLastError(), "laying scales out for cuBLASLt");
}

void delay(double seconds, cudaStream_t on) {
  delay_kernel<<<1, 1, 0, on>>>(static_cast<unsigned long long>(seconds * 1e9));
  require(cudaGetLastError(), "waiting on the GPU");
}

void mark(int number, cudaStream_t on) {
  mark_kernel<<<static_cast<unsigned>(number), 1, 0, on>>>();
  require(cudaGetLastError(), "marking a launch");
}

void reference_product(const GemmOperands& o, float* product, cudaStream_t on) {
  const Linear p = linear_of(o);
  const auto tiles = [](std::int64_t extent) {
    return static_cast<unsigned>((extent + kTile - 1) / kTile);
  };
  const dim3 grid(tiles(p.m), tiles(p.n), static_cast<unsigned>(o.d.batch));
  if (grid.y > 65535 || grid.z > 65535) {
    throw Failure{"N or the batch is too long for the reference product of the bench"};
  }
  product_kernel<<<grid, 256, 0, on>>>(operand(o.a, o.scale_a, o.scaling, false),
                                       operand(o.b, o.scale_b, o.scaling, true), p, product);
  require(cudaGetLastError(), "the reference product");
}

Comparison compare(const GemmOperands& ours, const MatrixView& theirs, const float* product,
                   const Tolerance& tolerance, cudaStream_t on) {
  const Linear p = linear_of(ours);
  const std::int64_t batch = ours.d.batch;
  const auto memory =
      filled_memory((p.m + p.n) * batch * 4 + static_cast<std::int64_t>(sizeof(Verdict)) + 32);
  auto* verdict = static_cast<Verdict*>(memory->data());
  auto* pair = reinterpret_cast<float*>(verdict + 1);
  float* norms_a = pair + 2;
  float* norms_b = norms_a + p.m * batch;
  norm_kernel<<<dim3(static_cast<unsigned>(p.m), static_cast<unsigned>(batch)), 256, 0, on>>>(
      operand(ours.a, ours.scale_a, ours.scaling, false), p.k, norms_a);
  norm_kernel<<<dim3(static_cast<unsigned>(p.n), static_cast<unsigned>(batch)), 256, 0, on>>>(
      operand(ours.b, ours.scale_b, ours.scaling, true), p.k, norms_b);
  require(cudaGetLastError(), "taking norms");

  CompareInput in{};
  in.ours = tensor(ours.d);
  in.theirs = tensor(theirs);
  in.product = product;
  in.norms_a = norms_a;
  in.norms_b = norms_b;
  in.linear = p;
  in.epilogue = ours.epilogue;
  in.scale_d = tensor(ours.scale_d);
  in.columns = ours.d.columns;
  in.dtype = ours.d.dtype;
  in.loss = static_cast<float>(2 * tolerance.loss);
  const std::int64_t total = batch * ours.d.rows * ours.d.columns;
  Verdict found{0, ~0ULL, 0, 0};
  require(cudaMemcpyAsync(verdict, &found, sizeof found, cudaMemcpyHostToDevice, on), "comparing");
  compare_kernel<<<blocks(total), 256, 0, on>>>(in, total, verdict);
  require(cudaGetLastError(), "comparing");
  require(cudaStreamSynchronize(on), "comparing");
  require(cudaMemcpy(&found, verdict, sizeof found, cudaMemcpyDeviceToHost), "comparing");
  Comparison result;
  result.wrong = static_cast<std::int64_t>(found.wrong);
  // NaN in D makes the first sum NaN, which no limit passes.
  result.relative = found.size > 0 ? std::sqrt(found.difference / found.size)
                                   : (found.difference > 0 ? INFINITY : 0.0);
  if (found.wrong == 0) return result;
  const auto at = static_cast<std::int64_t>(found.first);
  result.column = at % in.columns;
  result.row = at / in.columns % p.m;
  result.batch = at / in.columns / p.m;
  float values[2] = {};
  expected_kernel<<<1, 1, 0, on>>>(in, at, pair);
  require(cudaStreamSynchronize(on), "comparing");
  require(cudaMemcpy(values, pair, sizeof values, cudaMemcpyDeviceToHost), "comparing");
  result.ours = static_cast<double>(values[0]);
  result.theirs = static_cast<double>(values[1]);
  return result;
}

}  // namespace warpwright::bench
