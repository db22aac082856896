#include "bench/device_math.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "warpwright/facts/packed_places.h"
#include "warpwright/reference/formulas.h"

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
                              std::uint64_t stream, float times) {
  const std::uint64_t base = mix(mix(seed) ^ stream);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const std::uint64_t word = mix(base + static_cast<std::uint64_t>(i));
    store(data, t, i, times * exp2f(static_cast<float>(word >> 40) * 0x1p-23F - 1.0F));
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
    values[i] = static_cast<float>(
        reference::packed_value((four ^ 8) - 8, reference::read(scales, t, i / group)));
  }
}

// The scale of a row and a slice, as it is stored: around 1/16, so that the hidden values of a
// mixture are in the range of f16.
__device__ std::uint32_t random_scale(const PackedFormat& f, int slice, std::uint64_t word) {
  if (f.scale == DType::ue4m3) return packed::stored_ue4m3(0x10U + (word & 15U));
  const int scale = 121 + static_cast<int>(word & 3U);
  if (f.exponents == Exponents::own) return static_cast<std::uint32_t>(scale);
  const int unit = packed::unit_of_largest(f.tokens, 124);  // of all rows
  return packed::exponent_byte(packed::exponent_under(f.tokens, unit, scale), unit, slice);
}

__global__ void e2m1_tiles_kernel(PackedFormat f, std::int64_t tiles, std::byte* to,
                                  std::uint64_t seed, std::uint64_t stream) {
  const std::uint64_t base = mix(mix(seed) ^ stream);
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    std::byte* const at = to + tile * packed::tile_bytes(f);
    for (int word = static_cast<int>(threadIdx.x); word < packed::kTileCodeBytes / 4;
         word += static_cast<int>(blockDim.x)) {
      reinterpret_cast<std::uint32_t*>(at)[word] = static_cast<std::uint32_t>(
          mix(base + static_cast<std::uint64_t>(tile * (packed::kTileCodeBytes / 4) + word)));
    }
    for (int i = static_cast<int>(threadIdx.x); i < packed::kTileRows * packed::slices(f);
         i += static_cast<int>(blockDim.x)) {
      const int row = i / packed::slices(f);
      const int slice = i % packed::slices(f);
      const std::uint64_t word =
          mix(~base + static_cast<std::uint64_t>(tile * packed::kTileRows * 8 + i));
      at[packed::scales_begin() + packed::scale_byte(f, row, slice)] =
          static_cast<std::byte>(random_scale(f, slice, word));
    }
  }
}

__global__ void e2m1_values_kernel(PackedFormat f, packed::Extents e, const std::byte* tiles,
                                   float* values) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t count = e.experts * e.n * e.k;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const std::int64_t k = i % e.k;
    const std::int64_t n = i / e.k % e.n;
    const std::byte* const tile =
        tiles + packed::tile_index(e, i / e.k / e.n, n / packed::kTileRows, k / packed::kTileK) *
                    packed::tile_bytes(f);
    const int row = static_cast<int>(n % packed::kTileRows);
    const int in_tile = static_cast<int>(k % packed::kTileK);
    const std::int64_t place = row + packed::kTileRows * in_tile;
    const int nibble =
        static_cast<int>(packed::is_wide(f) ? layout::offset_of<packed::kNibbles16>(place)
                                            : layout::offset_of<packed::kNibbles>(place));
    const std::uint32_t bits =
        packed::bits_of(f, reinterpret_cast<const std::uint32_t*>(tile)[nibble / 8]);
    const std::byte* const scales = tile + packed::scales_begin() + packed::scale_byte(f, row, 0);
    std::uint32_t first = 0;
    for (int j = 0; j < 4; ++j) first |= static_cast<std::uint32_t>(scales[j]) << 8 * j;
    const std::uint32_t unit = f.exponents == Exponents::of_rows ? packed::unit_in(first) : 0;
    const double scale =
        packed::scale_value(f, static_cast<std::uint32_t>(scales[in_tile / f.group]), unit);
    values[i] =
        static_cast<float>(scale * numeric::to_double(f.code, bits >> nibble % 8 * 4 & 15U));
  }
}

__global__ void relay_kernel(MatrixView from, float* to, std::int64_t pitch) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < from.rows * from.columns; i += step) {
    const std::int64_t row = i % from.rows;
    const std::int64_t column = i / from.rows;
    to[row + column * pitch] = static_cast<float>(reference::element(from, 0, row, column));
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

unsigned blocks(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + 255) / 256, 1, 4096));
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
                 std::uint64_t stream, cudaStream_t on, float times) {
  if (count == 0) return;
  scales_kernel<<<blocks(count), 256, 0, on>>>(data, dtype, count, seed, stream, times);
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

void fill_e2m1(const PackedFormat& format, const packed::Extents& extents, void* tiles,
               float* values, std::uint64_t seed, std::uint64_t stream, cudaStream_t on) {
  auto* const to = static_cast<std::byte*>(tiles);
  const std::int64_t count = packed::tiles(extents);
  e2m1_tiles_kernel<<<static_cast<unsigned>(std::min<std::int64_t>(count, 65535)), 256, 0, on>>>(
      format, count, to, seed, stream);
  require(cudaGetLastError(), "making random weights");
  e2m1_values_kernel<<<blocks(extents.experts * extents.n * extents.k), 256, 0, on>>>(
      format, extents, to, values);
  require(cudaGetLastError(), "making the values of weights");
}

void relay_column_major(const MatrixView& from, float* to, std::int64_t pitch, cudaStream_t on) {
  relay_kernel<<<blocks(from.rows * from.columns), 256, 0, on>>>(from, to, pitch);
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

}  // namespace warpwright::bench
