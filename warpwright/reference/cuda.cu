#include "warpwright/reference/cuda.h"

#include <algorithm>
#include <cmath>

#include "warpwright/device/cuda.h"
#include "warpwright/reference/formulas.h"

namespace warpwright::reference {
namespace {

constexpr int kTile = 64;   // of the product, in rows and columns
constexpr int kDepth = 16;  // and along K
constexpr int kEach = 4;    // rows and columns of a thread

// An element of A or B times its scale.
__device__ double scaled(const GemmOperands& o, Side side, std::int64_t batch, std::int64_t row,
                         std::int64_t k) {
  return element(side == Side::a ? o.a : o.b, batch, row, k) *
         scale_of(o, side, batch, batch, row, k);
}

// Each of the sums in a thread's registers has a copy of what is done to it: here is one for all.
__device__ __noinline__ float before(const GemmOperands& o, std::int64_t batch, std::int64_t row,
                                     std::int64_t column, double sum) {
  return static_cast<float>(before_activation(o, batch, batch, row, column, sum));
}

// 256 threads make a tile of 64 x 64, each 4 x 4 of it.
__global__ void product_kernel(const __grid_constant__ GemmOperands o, float* product) {
  __shared__ double as[kDepth][kTile + 1];
  __shared__ double bs[kDepth][kTile + 1];
  const std::int64_t m = o.a.rows;
  const std::int64_t n = o.b.rows;
  const std::int64_t depth = o.a.columns;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t batch = blockIdx.z;
  const int ti = static_cast<int>(threadIdx.x) / (kTile / kEach);
  const int tj = static_cast<int>(threadIdx.x) % (kTile / kEach);
  double sums[kEach][kEach] = {};
  for (std::int64_t k = 0; k < depth; k += kDepth) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth;
         i += static_cast<int>(blockDim.x)) {
      const int r = i / kDepth;
      const int d = i % kDepth;
      const bool inside = k + d < depth;
      as[d][r] = inside && row + r < m ? scaled(o, Side::a, batch, row + r, k + d) : 0.0;
      bs[d][r] = inside && column + r < n ? scaled(o, Side::b, batch, column + r, k + d) : 0.0;
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
      if (r >= m || c >= n) continue;
      product[(batch * m + r) * n + c] = before(o, batch, r, c, sums[i][j]);
    }
  }
}

// The norm of each scaled row of an operand: one block a row.
__global__ void norm_kernel(const __grid_constant__ GemmOperands o, Side side, float* norms) {
  __shared__ float parts[32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t batch = blockIdx.y;
  float sum = 0;
  for (std::int64_t k = threadIdx.x; k < o.a.columns; k += blockDim.x) {
    const auto x = static_cast<float>(scaled(o, side, batch, row, k));
    sum += x * x;
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned w = 1; w < blockDim.x / 32; ++w) sum += parts[w];
  norms[batch * gridDim.x + row] = sqrtf(sum);
}

// What is compared, on either side.
struct Question {
  GemmOperands ours;
  MatrixView theirs;
  const float* product;  // the reference before its epilogue, or null
  const float* norms_a;
  const float* norms_b;
  float loss;  // of both sides
};

__host__ __device__ Place place_of(const MatrixView& d, std::int64_t at) {
  return {at / d.columns / d.rows, at / d.columns % d.rows, at % d.columns};
}

// What D should be at a place, and by how much it may differ.
__device__ Bounded<float> due(const Question& q, const Place& at) {
  const GemmOperands& o = q.ours;
  const auto part = [&](std::int64_t column) -> Bounded<float> {
    const std::int64_t row = at.batch * o.a.rows + at.row;
    float bound =
        fabsf(o.sum_factor()) * q.norms_a[row] * q.norms_b[at.batch * o.b.rows + column] * q.loss;
    if (o.c.data != nullptr && o.beta != 0) {
      bound +=
          fabsf(o.beta * static_cast<float>(element(o.c, at.batch, at.row, column))) * 0x1p-22F;
    }
    return {q.product == nullptr ? 0 : q.product[row * o.b.rows + column], bound};
  };
  const GatePlaces places = gate_places(o);
  const std::int64_t first = at.column * places.step;
  const Bounded<float> up = o.epilogue.gated ? part(first + places.apart) : Bounded<float>{};
  Bounded<float> x = finished<Roundings::left_out>(o, at, part(first), up);
  if (q.product == nullptr) {
    x.value = static_cast<float>(element(q.theirs, at.batch, at.row, at.column));
    return x;
  }
  x.value = saturated(o.d.dtype, x.value);
  x.bound += fabsf(x.value) * 0x1p-20F;  // the functions of the epilogue
  return x;
}

struct Tally {
  unsigned long long wrong;
  unsigned long long first;  // of the wrong ones, the lowest position
  double difference;         // sums of squares
  double size;
};

__global__ void compare_kernel(const __grid_constant__ Question q, std::int64_t total,
                               Tally* tally) {
  const MatrixView& d = q.ours.d;
  double difference = 0;
  double size = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       at < total; at += step) {
    const Place place = place_of(d, at);
    const auto x = static_cast<float>(element(d, place.batch, place.row, place.column));
    const Bounded<float> want = due(q, place);
    if (isnan(x) && isnan(want.value)) continue;  // a file's operands may hold NaN
    size += static_cast<double>(want.value) * static_cast<double>(want.value);
    if (x == want.value) continue;
    const float gap = fabsf(x - want.value);
    const float widest = fmaxf(fabsf(x), fabsf(want.value));
    // Written so that a NaN is wrong.
    if (!(gap <= want.bound + spacing(d.dtype, widest))) {
      atomicAdd(&tally->wrong, 1ULL);
      atomicMin(&tally->first, static_cast<unsigned long long>(at));
    }
    difference += static_cast<double>(gap) * static_cast<double>(gap);
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    difference += __shfl_xor_sync(0xffffffffU, difference, lane);
    size += __shfl_xor_sync(0xffffffffU, size, lane);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&tally->difference, difference);
    atomicAdd(&tally->size, size);
  }
}

__global__ void due_kernel(const __grid_constant__ Question q, std::int64_t at, float* pair) {
  const Place place = place_of(q.ours.d, at);
  pair[0] = static_cast<float>(element(q.ours.d, place.batch, place.row, place.column));
  pair[1] = due(q, place).value;
}

std::optional<Refusal> fault(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return std::nullopt;
  cudaGetLastError();
  return refuse(RefusalCode::device_error, what, " failed: ", cudaGetErrorString(error));
}

unsigned blocks(std::int64_t count) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + 255) / 256, 1, 4096));
}

std::optional<Refusal> take_norms(const GemmOperands& o, Side side, float* norms, cudaStream_t on) {
  const dim3 rows(static_cast<unsigned>(side == Side::a ? o.a.rows : o.b.rows),
                  static_cast<unsigned>(o.d.batch));
  norm_kernel<<<rows, 256, 0, on>>>(o, side, norms);
  return fault(cudaGetLastError(), "taking norms");
}

}  // namespace

std::optional<Refusal> multiply_on_cuda(const GemmOperands& o, float* product, cudaStream_t on) {
  if (o.groups || o.packed) {
    return refuse(RefusalCode::unsupported,
                  "the reference product multiplies whole matrices of plain elements");
  }
  const auto tiles = [](std::int64_t extent) {
    return static_cast<unsigned>((extent + kTile - 1) / kTile);
  };
  const dim3 grid(tiles(o.a.rows), tiles(o.b.rows), static_cast<unsigned>(o.d.batch));
  if (grid.y > 65535 || grid.z > 65535) {
    return refuse(RefusalCode::unsupported,
                  "N or the batch is too long for the reference product of the bench");
  }
  product_kernel<<<grid, 256, 0, on>>>(o, product);
  return fault(cudaGetLastError(), "the reference product");
}

Result<Comparison> compare_on_cuda(const GemmOperands& ours, const MatrixView& theirs,
                                   const float* product, const Tolerance& tolerance,
                                   cudaStream_t on) {
  const std::int64_t batch = ours.d.batch;
  const std::int64_t rows = ours.a.rows + ours.b.rows;
  const auto memory =
      device::CudaBuffer::make(rows * batch * 4 + static_cast<std::int64_t>(sizeof(Tally)) + 32);
  if (!memory) return memory.refusal();
  auto* const tally = static_cast<Tally*>((*memory)->data());
  auto* const pair = reinterpret_cast<float*>(tally + 1);
  float* const norms_a = pair + 2;
  float* const norms_b = norms_a + ours.a.rows * batch;
  if (auto refused = take_norms(ours, Side::a, norms_a, on)) return *refused;
  if (auto refused = take_norms(ours, Side::b, norms_b, on)) return *refused;

  const Question question{ours,    theirs,  product,
                          norms_a, norms_b, static_cast<float>(2 * tolerance.loss)};
  const std::int64_t total = batch * ours.d.rows * ours.d.columns;
  Tally found{0, ~0ULL, 0, 0};
  const char* const what = "comparing";
  if (auto refused =
          fault(cudaMemcpyAsync(tally, &found, sizeof found, cudaMemcpyHostToDevice, on), what)) {
    return *refused;
  }
  compare_kernel<<<blocks(total), 256, 0, on>>>(question, total, tally);
  if (auto refused = fault(cudaGetLastError(), what)) return *refused;
  if (auto refused = fault(cudaStreamSynchronize(on), what)) return *refused;
  if (auto refused = device::copy_to_host(&found, tally, sizeof found)) return *refused;
  Comparison result;
  result.wrong = static_cast<std::int64_t>(found.wrong);
  // NaN in D makes the first sum NaN, which no limit passes.
  result.relative = found.size > 0 ? std::sqrt(found.difference / found.size)
                                   : (found.difference > 0 ? INFINITY : 0.0);
  if (found.wrong == 0) return result;
  const auto at = static_cast<std::int64_t>(found.first);
  const Place place = place_of(ours.d, at);
  result.batch = place.batch;
  result.row = place.row;
  result.column = place.column;
  float values[2] = {};
  due_kernel<<<1, 1, 0, on>>>(question, at, pair);
  if (auto refused = fault(cudaStreamSynchronize(on), what)) return *refused;
  if (auto refused = device::copy_to_host(values, pair, sizeof values)) return *refused;
  result.ours = static_cast<double>(values[0]);
  result.theirs = static_cast<double>(values[1]);
  return result;
}

}  // namespace warpwright::reference
