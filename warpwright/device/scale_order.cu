// Scales of blocks put into tiles, or back into rows, on a CUDA device.
#include <algorithm>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/scale_rows.cuh"
#include "warpwright/facts/micro_scale.h"

namespace warpwright::device {
namespace {

struct Reordering {
  void* rows;
  std::uint8_t* tiles;
  std::int64_t pitch;
  std::int64_t batch_pitch;
  std::int64_t count;  // rows of a matrix, and blocks of a row, in tiles
  std::int64_t blocks;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t batch;
  ScaleGroups groups;
  bool to_tiles;
  bool is_f32;
  int rows_each;
  int blocks_each;
};

// A warp takes a row, a lane four of its scales: a word of a tile.
__global__ void reorder(const Reordering r) {
  const std::int64_t warps = std::int64_t{gridDim.x} * (blockDim.x / 32);
  const std::int64_t first = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  for (std::int64_t piece = first; piece < r.batch * r.count; piece += warps) {
    const std::int64_t batch = piece / r.count;
    const std::int64_t row = piece % r.count;
    const std::int64_t place = scale_row(r.groups, row, r.count);
    if (place < 0 || place >= r.tile_rows) continue;
    const std::int64_t first_of_row = batch * r.batch_pitch + row / r.rows_each * r.pitch;
    std::uint8_t* const plain = static_cast<std::uint8_t*>(r.rows) + first_of_row;
    const auto* const bits = static_cast<const std::uint32_t*>(r.rows) + first_of_row;
    std::uint8_t* const tiles = r.tiles + batch * r.tile_rows * r.tile_columns;
    for (std::int64_t block = threadIdx.x % 32 * 4; block < r.blocks; block += 128) {
      std::uint8_t* const word = tiles + block_scales::place(place, block, r.tile_columns);
      for (std::int64_t i = 0; i < 4 && block + i < r.blocks; ++i) {
        const std::int64_t from = (block + i) / r.blocks_each;
        if (r.is_f32) {
          word[i] = power_code(bits[from]);
        } else if (r.to_tiles) {
          word[i] = plain[from];
        } else {
          plain[block + i] = word[i];
        }
      }
    }
  }
}

}  // namespace

std::optional<Refusal> reorder_scales_on_cuda(const ScaleReordering& what, void* stream) {
  if (auto r = fault(what)) return r;
  auto* const on = static_cast<cudaStream_t>(stream);
  const MatrixView& rows = what.rows;
  const Reordering r{rows.data,
                     static_cast<std::uint8_t*>(what.tiles.data),
                     rows.row_stride,
                     rows.batch_stride,
                     rows.rows * what.rows_each,
                     rows.columns * what.blocks_each,
                     what.tiles.rows,
                     what.tiles.columns,
                     rows.batch,
                     what.groups,
                     what.to == ScaleOrder::tiles,
                     rows.dtype == DType::f32,
                     what.rows_each,
                     what.blocks_each};
  const std::int64_t bytes = r.batch * r.tile_rows * r.tile_columns;
  if (bytes == 0) return std::nullopt;
  cudaError_t error = cudaSuccess;
  if (r.to_tiles) {
    error = cudaMemsetAsync(r.tiles, static_cast<int>(micro::neutral_scale(what.tiles.dtype)),
                            static_cast<std::size_t>(bytes), on);
  }
  if (error == cudaSuccess && rows.rows > 0) {
    const std::int64_t ctas = std::clamp<std::int64_t>((r.batch * r.count + 7) / 8, 1, 4096);
    reorder<<<static_cast<unsigned>(ctas), 256, 0, on>>>(r);
    error = cudaGetLastError();
  }
  return cuda_refusal(error, "putting scales in order");
}

}  // namespace warpwright::device
