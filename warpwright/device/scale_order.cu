// Scales of blocks put into tiles, or back into rows, on a CUDA device.
#include <algorithm>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/device/scale_rows.cuh"
#include "warpwright/facts/micro_scale.h"

namespace warpwright::device {
namespace {

struct Reordering {
  std::uint8_t* rows;
  std::uint8_t* tiles;
  std::int64_t pitch;
  std::int64_t batch_pitch;
  std::int64_t count;  // rows of a matrix
  std::int64_t blocks;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t batch;
  ScaleGroups groups;
  bool to_tiles;
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
    std::uint8_t* const plain = r.rows + batch * r.batch_pitch + row * r.pitch;
    std::uint8_t* const tiles = r.tiles + batch * r.tile_rows * r.tile_columns;
    for (std::int64_t block = threadIdx.x % 32 * 4; block < r.blocks; block += 128) {
      std::uint8_t* const word = tiles + block_scales::place(place, block, r.tile_columns);
      for (std::int64_t i = 0; i < 4 && block + i < r.blocks; ++i) {
        if (r.to_tiles) {
          word[i] = plain[block + i];
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
  const Reordering r{static_cast<std::uint8_t*>(rows.data),
                     static_cast<std::uint8_t*>(what.tiles.data),
                     rows.row_stride,
                     rows.batch_stride,
                     rows.rows,
                     rows.columns,
                     what.tiles.rows,
                     what.tiles.columns,
                     rows.batch,
                     what.groups,
                     what.to == ScaleOrder::tiles};
  const std::int64_t bytes = r.batch * r.tile_rows * r.tile_columns;
  if (bytes == 0) return std::nullopt;
  cudaError_t error = cudaSuccess;
  if (r.to_tiles) {
    error = cudaMemsetAsync(r.tiles, static_cast<int>(micro::neutral_scale(rows.dtype)),
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
