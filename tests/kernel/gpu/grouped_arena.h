// Products in groups (problem.h) made, multiplied and judged on a GPU: operands by hashing,
// every element of D against a product in float64, and every byte that no group owns.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../problem.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/reference/formulas.h"
#include "warpwright/reference/tolerance.h"

namespace warpwright::tests {

namespace on_gpu {

inline __device__ std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdU;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33);
}

inline __device__ void store(void* data, DType t, std::int64_t i, float x) {
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
    default:
      static_cast<__nv_fp8_e4m3*>(data)[i] = __nv_fp8_e4m3(x);
  }
}

/// Elements of rows [first, end) of every matrix of a batch: from -2 to 2, or scales from 1/4 to 2.
/// What lies between rows and matrices stays as it is.
inline __global__ void fill(MatrixView v, std::int64_t first, std::int64_t end, bool scale,
                            std::uint64_t seed) {
  const std::int64_t rows = end - first;
  const std::int64_t count = v.batch * rows * v.columns;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += step) {
    const std::int64_t column = i % v.columns;
    const std::int64_t row = first + i / v.columns % rows;
    const std::int64_t matrix = i / v.columns / rows;
    const auto draw = static_cast<float>(mix(seed * 0x9e3779b97f4a7c15U + i) >> 40) * 0x1p-24F;
    store(v.data, v.dtype, matrix * v.batch_stride + row * v.row_stride + column * v.column_stride,
          scale ? 0.25F + 1.75F * draw : 4 * draw - 2);
  }
}

/// Up to 16 rows of a group.
struct RowTile {
  int group;
  int first;
  int end;
};

struct Verdict {
  unsigned long long wrong;
  unsigned long long row;  ///< of the first wrong element
};

/// What a judge goes by beside the product.
struct Allowance {
  double loss;      ///< of a sum, as a share of the sum of |a b|
  int result_bits;  ///< of a mantissa with its leading one
};

/// An element of A or B times its scale.
inline __device__ double scaled(const GemmOperands& o, reference::Side side, int group,
                                std::int64_t row, std::int64_t k) {
  const bool of_a = side == reference::Side::a;
  return reference::element(of_a ? o.a : o.b, of_a ? 0 : group, row, k) *
         reference::scale_of(o, side, 0, group, row, k);
}

/// A tile of 16 x 16 elements of D: block x takes rows, block y columns.
inline __global__ void judge(const __grid_constant__ GemmOperands o, Allowance allowance,
                             const RowTile* tiles, Verdict* verdict) {
  constexpr int edge = 16;
  __shared__ double as[edge][edge + 1];
  __shared__ double bs[edge][edge + 1];
  const RowTile tile = tiles[blockIdx.x];
  const int tx = static_cast<int>(threadIdx.x) % edge;
  const int ty = static_cast<int>(threadIdx.x) / edge;
  const std::int64_t row = tile.first + ty;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * edge + tx;
  const std::int64_t b_row = static_cast<std::int64_t>(blockIdx.y) * edge + ty;
  double sum = 0;
  double size = 0;
  for (std::int64_t k = 0; k < o.a.columns; k += edge) {
    const bool inside = k + tx < o.a.columns;
    as[ty][tx] =
        inside && row < tile.end ? scaled(o, reference::Side::a, tile.group, row, k + tx) : 0;
    bs[ty][tx] =
        inside && b_row < o.b.rows ? scaled(o, reference::Side::b, tile.group, b_row, k + tx) : 0;
    __syncthreads();
    for (int d = 0; d < edge; ++d) {
      const double product = as[ty][d] * bs[tx][d];
      sum += product;
      size += fabs(product);
    }
    __syncthreads();
  }
  if (row >= tile.end || column >= o.b.rows) return;
  const double lost =
      allowance.loss * reference::times_alpha(fabs(static_cast<double>(o.alpha)), size);
  sum = reference::before_activation(o, 0, tile.group, row, column, sum);
  const double ulp = exp2(floor(log2(fabs(sum) + lost + 1e-30)) + 1 - allowance.result_bits);
  const double off = fabs(reference::element(o.d, 0, row, column) - sum);
  // Written so that a NaN is wrong. The last term is for subnormal halves.
  if (off <= lost + 0.51 * ulp + 0x1p-24) return;
  atomicAdd(&verdict->wrong, 1ULL);
  atomicMin(&verdict->row, static_cast<unsigned long long>(row));
}

/// Counts bytes of [begin, end) that are not 0xff, but for rows [first, last) of D.
inline __global__ void disturbed(const unsigned char* begin, const unsigned char* end, MatrixView d,
                                 std::int64_t first, std::int64_t last, unsigned long long* count) {
  const std::int64_t bytes = end - begin;
  const std::int64_t width = d.dtype == DType::f32 ? 4 : 2;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < bytes;
       i += step) {
    if (begin[i] == 0xff) continue;
    const std::int64_t at = begin + i - static_cast<const unsigned char*>(d.data);
    const std::int64_t row = at < 0 ? -1 : at / width / d.row_stride;
    const std::int64_t column = at < 0 ? 0 : at / width % d.row_stride;
    if (row >= first && row < last && column < d.columns) continue;
    atomicAdd(count, 1ULL);
  }
}

/// A sum of the words of [begin, end) that tells one change from none.
inline __global__ void checksum(const std::uint64_t* begin, std::int64_t words,
                                unsigned long long* sum) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < words;
       i += step) {
    mine += mix(begin[i] + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(i + 1));
  }
  atomicAdd(sum, mine);
}

}  // namespace on_gpu

/// The tensors of one problem after the other, in one piece of device memory that is otherwise all
/// 0xff: NaN in every floating-point type.
class Arena {
 public:
  explicit Arena(std::int64_t bytes) : bytes_(bytes) {
    require(cudaMalloc(&memory_, static_cast<std::size_t>(bytes)));
    require(cudaMalloc(&answers_, 64));
    require(cudaMalloc(&tiles_, kMaxTiles * sizeof(on_gpu::RowTile)));
    require(cudaMemset(memory_, 0xff, static_cast<std::size_t>(bytes)));
  }
  ~Arena() {
    cudaFree(memory_);
    cudaFree(answers_);
    cudaFree(tiles_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Makes the tensors of `c` for a kernel that is neither gated nor takes packed weights, D after
  /// the others. Tokens in no group, their scales and all that lies between rows are NaN, unless
  /// `all_tokens`. Waits.
  void make(const Instance& instance, const Ask& c, bool all_tokens = false) {
    require(cudaMemset(memory_, 0xff, static_cast<std::size_t>(used_)));
    used_ = 0;
    ask_ = c;
    const kernel::GemmConfig& config = instance.config;
    const DType type = stored_a(config);
    operands_ = {};
    const std::int64_t unit = 128 / numeric::bits(type);  // rows begin at multiples of 16 bytes
    const std::int64_t pitch = ((c.k + unit - 1) / unit + c.apart) * unit;
    operands_.a = {nullptr, type, c.m, c.k, pitch};
    operands_.b = {nullptr, type, c.n,           c.k,
                   pitch,   1,    group_count(), c.shares_b ? 0 : (c.n + 1) * pitch};
    operands_.groups = Groups{nullptr, wide() ? OffsetType::int64 : OffsetType::int32};
    operands_.scaling = c.scaling;
    if (sums_of(config) == kernel::Sums::promoted) operands_.accumulation = Accumulation::promoted;
    operands_.alpha = c.alpha;
    scales_of(c, kernel::scale_block(config));
    const std::int64_t first = all_tokens ? 0 : c.offsets.front();
    const std::int64_t end = all_tokens ? c.m : c.offsets.back();
    place(operands_.a, first, end, false, 1);
    place(operands_.b, 0, c.n, false, 2);
    if (c.scaling != Scaling::none) {
      const bool by_token = c.scaling == Scaling::row_column || c.scaling == Scaling::blockwise;
      place(operands_.scale_a, by_token ? first : 0, by_token ? end : operands_.scale_a.rows, true,
            3);
      place(operands_.scale_b, 0, operands_.scale_b.rows, true, 4);
    }
    operands_.groups->offsets = take((group_count() + 1) * 8);
    write_offsets(offsets(), c.offsets);
    used_ += kGuard;
    d_begin_ = used_;
    operands_.d = {nullptr, config.result, c.m, c.n,
                   c.padding == 0 ? (c.n + 7) / 8 * 8 : c.n + c.padding};
    const std::int64_t width = numeric::bits(config.result) / 8;
    operands_.d.data = take((c.m * operands_.d.row_stride + c.shift) * width) + width * c.shift;
    used_ = (used_ + 2 * kGuard) / 8 * 8;
    ASSERT_LE(used_, bytes_);
    require(cudaDeviceSynchronize());
    before_ = checksum();
  }

  [[nodiscard]] const GemmOperands& operands() const { return operands_; }
  /// Are they of 64 bits?
  [[nodiscard]] bool wide() const { return ask_.seed % 2 == 1; }
  /// Where they are read.
  [[nodiscard]] void* offsets() const { return const_cast<void*>(operands_.groups->offsets); }

  /// Other offsets for the same tensors, whose tokens were all made. They are what is judged by.
  void set_offsets(const std::vector<std::int64_t>& offsets) {
    ask_.offsets = offsets;
    write_offsets(this->offsets(), offsets);
    before_ = checksum();
  }
  /// Offsets at any place of the device, in the product's type.
  void write_offsets(void* to, const std::vector<std::int64_t>& offsets) const {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    require(cudaMemcpy(to, wide() ? static_cast<const void*>(offsets.data()) : narrow.data(),
                       offsets.size() * (wide() ? 8 : 4), cudaMemcpyHostToDevice));
  }

  void poison_d() const {
    require(cudaMemset(memory_ + d_begin_, 0xff, static_cast<std::size_t>(used_ - d_begin_)));
  }

  /// Waits, and expects every element of the groups to be right, and all else untouched.
  void expect_product() const {
    SCOPED_TRACE(text(ask_));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<on_gpu::RowTile> tiles;
    for (std::size_t g = 0; g + 1 < ask_.offsets.size(); ++g) {
      const auto end = static_cast<int>(ask_.offsets[g + 1]);
      for (int row = static_cast<int>(ask_.offsets[g]); row < end; row += 16) {
        tiles.push_back({static_cast<int>(g), row, std::min(row + 16, end)});
      }
    }
    ASSERT_LE(tiles.size(), kMaxTiles);
    on_gpu::Verdict verdict{0, ~0ULL};
    require(cudaMemcpy(answers_, &verdict, sizeof verdict, cudaMemcpyHostToDevice));
    if (!tiles.empty()) {
      require(
          cudaMemcpy(tiles_, tiles.data(), tiles.size() * sizeof tiles[0], cudaMemcpyHostToDevice));
      const dim3 grid(static_cast<unsigned>(tiles.size()),
                      static_cast<unsigned>((ask_.n + 15) / 16));
      on_gpu::judge<<<grid, 256>>>(operands_, allowance(), tiles_,
                                   static_cast<on_gpu::Verdict*>(answers_));
      require(cudaGetLastError());
    }
    require(cudaMemcpy(&verdict, answers_, sizeof verdict, cudaMemcpyDeviceToHost));
    EXPECT_EQ(verdict.wrong, 0U) << "elements of D, the first in row " << verdict.row;
    expect_untouched(ask_.offsets.front(), ask_.offsets.back());
  }

  /// Waits, and expects everything but rows [first, end) of D to be as it was made.
  void expect_untouched(std::int64_t first, std::int64_t end) const {
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    unsigned long long count = 0;
    require(cudaMemset(answers_, 0, 8));
    on_gpu::disturbed<<<1024, 256>>>(memory_ + d_begin_ - kGuard, memory_ + used_, operands_.d,
                                     first, end, static_cast<unsigned long long*>(answers_));
    require(cudaGetLastError());
    require(cudaMemcpy(&count, answers_, 8, cudaMemcpyDeviceToHost));
    EXPECT_EQ(count, 0U) << "bytes around D's groups";
    EXPECT_EQ(checksum(), before_) << "something beside D has changed";
  }

 private:
  static constexpr std::int64_t kGuard = 512;
  static constexpr std::size_t kMaxTiles = 1 << 17;

  static void require(cudaError_t error) {
    ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
  }

  unsigned char* take(std::int64_t bytes) {
    used_ = (used_ + kGuard + 255) / 256 * 256;
    unsigned char* at = memory_ + used_;
    used_ += bytes;
    return at;
  }

  [[nodiscard]] std::int64_t group_count() const {
    return static_cast<std::int64_t>(ask_.offsets.size()) - 1;
  }

  void place(MatrixView& v, std::int64_t first, std::int64_t end, bool scale, unsigned stream) {
    const std::int64_t last = (v.rows - 1) * v.row_stride + (v.columns - 1) * v.column_stride +
                              (v.batch - 1) * v.batch_stride + 1;
    v.data = take(std::max<std::int64_t>(last, 0) * numeric::bits(v.dtype) / 8);
    if (end <= first || used_ > bytes_) return;
    MatrixView written = v;
    if (v.batch_stride == 0) written.batch = 1;
    on_gpu::fill<<<1024, 256>>>(written, first, end, scale, ask_.seed * 8ULL + stream);
    require(cudaGetLastError());
  }

  void scales_of(const Ask& c, int block) {
    const std::int64_t blocks = (c.k + block - 1) / block;
    const std::int64_t stride = 1 + c.seed % 3;
    MatrixView& a = operands_.scale_a;
    MatrixView& b = operands_.scale_b;
    switch (c.scaling) {
      case Scaling::tensor:
        a = b = {nullptr, DType::f32, 1, 1, 1};
        return;
      case Scaling::group:
        b = {nullptr, DType::f32, group_count(), 1, stride};
        a = c.seed % 4 < 2 ? MatrixView{nullptr, DType::f32, 1, 1, 1} : b;
        return;
      case Scaling::row_column:
        a = {nullptr, DType::f32, c.m, 1, stride};
        b = {nullptr, DType::f32, c.n,           1,
             stride,  1,          group_count(), c.shares_b ? 0 : c.n * stride + 3};
        return;
      case Scaling::blockwise: {
        const std::int64_t rows = (c.n + block - 1) / block;
        a = {nullptr, DType::f32, c.m, blocks, 1, (c.m + 3) / 4 * 4};
        if (c.seed % 2 == 1) a = {nullptr, DType::f32, c.m, blocks, blocks};
        b = {nullptr, DType::f32, rows,          blocks,
             blocks,  1,          group_count(), c.shares_b ? 0 : rows * blocks + 1};
        return;
      }
      default:
        return;
    }
  }

  [[nodiscard]] on_gpu::Allowance allowance() const {
    return {reference::lost_share(operands_, 16), operands_.d.dtype == DType::f16 ? 11 : 8};
  }

  // For all but D and its guards.
  [[nodiscard]] unsigned long long checksum() const {
    unsigned long long sum = 0;
    require(cudaMemset(answers_, 0, 8));
    on_gpu::checksum<<<1024, 256>>>(reinterpret_cast<const std::uint64_t*>(memory_), d_begin_ / 8,
                                    static_cast<unsigned long long*>(answers_));
    require(cudaGetLastError());
    require(cudaMemcpy(&sum, answers_, 8, cudaMemcpyDeviceToHost));
    return sum;
  }

  std::int64_t bytes_;
  std::int64_t used_ = 0;
  std::int64_t d_begin_ = 0;
  unsigned char* memory_ = nullptr;
  void* answers_ = nullptr;
  on_gpu::RowTile* tiles_ = nullptr;
  Ask ask_;
  GemmOperands operands_;
  unsigned long long before_ = 0;
};

}  // namespace warpwright::tests
