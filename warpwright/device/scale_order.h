// The order in which scales of blocks along K lie: in rows, as checkpoints have them, or in tiles
// of 128 rows x 4, which products read (facts/block_scales.h). From one to the other, on the host
// or on a CUDA device.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// How scales lie.
enum class ScaleOrder : std::uint8_t {
  tiles,  ///< 128 x 4: a packed matrix of whole tiles
  rows,   ///< M x ceil(K / block), the scales of a row next to each other
};

/// Rows in groups, whose scales begin at a tile each, one group behind the other.
struct ScaleGroups {
  /// `count` + 1 of them in ascending order, in the memory of the scales; those below 0 or above M
  /// count as 0 and M. Rows in no group have no scales in tiles.
  const void* offsets = nullptr;
  OffsetType type = OffsetType::int32;
  std::int64_t count = 0;  ///< 0: the rows are no groups
};

/// What is put in order. Where the tiles are written, what lies between and behind rows and
/// scales becomes 127 (ue8m0, 1) or 0 (ue4m3).
struct ScaleReordering {
  /// ue8m0 or ue4m3: M x blocks, or a batch of such, each with tiles of its own. On the way into
  /// tiles of ue8m0 also f32, whose values are powers of two: others are refused on the host, and
  /// become NaN on a device, as a D that is NaN says more than one that is nearly right.
  MatrixView rows = {};
  /// M rounded up to 128 (with groups: block_scales::grouped_rows) x the blocks rounded up to 4.
  MatrixView tiles = {};
  ScaleOrder to = ScaleOrder::tiles;
  ScaleGroups groups = {};
  /// Rows of M, and blocks of 32 of K, that one of `rows` serves, only into tiles: 1 and 4 for the
  /// 1 x 128 of fp8 tokens, 128 and 4 for the 128 x 128 of weights. `rows` then has ceil(M /
  /// rows_each) x ceil(blocks / blocks_each). In groups rows_each is 1.
  int rows_each = 1;
  int blocks_each = 1;
};

/// Why it cannot be carried out, or nothing.
[[nodiscard]] std::optional<Refusal> fault(const ScaleReordering& what);

/// The shape of the tiles for rows x blocks scales.
MatrixView scale_tiles_of(DType scale, std::int64_t rows, std::int64_t blocks,
                          const ScaleGroups& groups = {}, std::int64_t batch = 1);

/// Why these are no such tiles (but for overlap), or nothing. `need` says what they belong to.
[[nodiscard]] std::optional<Refusal> tiles_fault(const MatrixView& tiles, const MatrixView& want,
                                                 const std::string& need);
/// Why there can be no such groups of `rows` rows, or nothing.
[[nodiscard]] std::optional<Refusal> groups_fault(const ScaleGroups& groups);

/// Carries it out in host memory.
[[nodiscard]] std::optional<Refusal> reorder_scales_on_host(const ScaleReordering& what);

namespace device {

/// Puts it on `stream` (a cudaStream_t) of the current CUDA device. Takes no memory, does not wait,
/// legal in a graph capture.
[[nodiscard]] std::optional<Refusal> reorder_scales_on_cuda(const ScaleReordering& what,
                                                            void* stream);

}  // namespace device
}  // namespace warpwright
