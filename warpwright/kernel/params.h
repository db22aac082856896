// What a launch of a GEMM kernel takes, on the GPU and on the model: a struct for each part of the
// kernel that reads it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpwright/atom/cluster.h"
#include "warpwright/isa/tma.h"
#include "warpwright/numeric/types.h"
#include "warpwright/tile/even_tiles.h"
#include "warpwright/tile/groups.h"
#include "warpwright/tile/numbers.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/slot_ids.h"
#include "warpwright/tile/split.h"
#include "warpwright/tile/token_index.h"

namespace warpwright::kernel {

/// One value for each row or column of the product, in global memory: of f32, or of bf16 or f16.
/// Data null: there is none.
struct Vector {
  const void* data = nullptr;
  std::int64_t batch_stride = 0;  ///< elements
  DType dtype = DType::f32;
  std::int64_t stride = 1;  ///< elements, from value to value
};

/// Which of them a launch has: those of columns are `scales.columns`.
enum class VectorUse : std::uint8_t { none, column_scales, all };

/// Float32 scales of blocks: element (i, block of K).
struct ScaleMatrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;    ///< elements
  std::int64_t block_stride = 0;  ///< from one block of K to the next
  std::int64_t batch_stride = 0;
  int rows = 0;

  /// The row that serves `row`: past the last one that one, whose products are never stored.
  [[nodiscard]] constexpr int within(int row) const { return row < rows ? row : rows - 1; }
  /// Where a block's scale lies, of a row of one matrix.
  [[nodiscard]] constexpr const float* at(int batch, int row, int block) const {
    return data + batch * batch_stride + row * row_stride + block * block_stride;
  }
};

/// Where the scales of a quantised D go: float32, element (row, block of 128 columns); or of fewer
/// columns, a byte each, in tiles of 128 rows x 4 (facts/block_scales.h).
struct ScalesOfD {
  void* data = nullptr;
  std::int64_t row_stride = 0;  ///< elements; for tiles the columns of scales, whole tiles
  std::int64_t block_stride = 0;
  std::int64_t batch_stride = 0;
};

/// The activation, as numbers: relu cuts at 0, and squares what it leaves; the smooth ones are
/// x * sigmoid(x * (slope + cubic * x^2)). For gated kernels it is that of the gate, and D has
/// activation(min(gate, limit)) * (clamp(up, -limit, limit) + offset).
struct ActivationParams {
  bool relu = false;
  bool smooth = false;
  bool squares = false;
  bool by_erf = false;  ///< x * share_below(x), which only the launch that gates apart has
  float slope = 0;
  float cubic = 0;  ///< of a smooth one more than 0: times an infinite x^2 it is infinite
  float limit = 0;  ///< 0: none, and no offset
  float offset = 0;
};

/// Where the caller's rows of B (columns of P) are of row (column) i of a gated kernel's product:
/// its gate's at i * step, and apart from it that which the gate is for. Without a gate 1 and 0.
struct GateParams {
  int step = 1;
  int apart = 0;

  /// For row i of `part`, 0 the gates.
  [[nodiscard]] constexpr int row(int i, int part) const { return i * step + part * apart; }
};

/// Weights in their packed form (facts/packed_weights.h).
struct PackedParams {
  const std::byte* data = nullptr;  ///< the first tile
  int tile_bytes = 0;
  int row_tiles = 0;  ///< of one matrix
  int k_tiles = 0;
  int group = 128;            ///< weights along K that share a scale
  int slice_bytes = 0;        ///< of a tile's scales: those of one group
  std::uint32_t carries = 0;  ///< how the encoding is converted (packed::carries_of)
  DType scale = DType::bf16;
  int zero_points = 0;  ///< where in a tile they begin, where it has some
  int ahead = 0;        ///< k_tiles that L2 is asked for before tiles are looked for
};

/// Tokens by index, which are copied row by row.
struct TokenParams {
  const std::byte* data = nullptr;  ///< the first row; a multiple of 16 bytes
  std::int64_t pitch_pieces = 0;    ///< from row to row, in 16 bytes; all rows are below 2^32 - 1
  std::int64_t row_bytes = 0;       ///< of a row's elements
};

// Rows and columns are the kernel's (see GemmConfig): the product is
// P[row, column] = sum over k of A[row, k] * B[column, k].
//
// The maps stand at both ends of all parameters, so that the numbers lie side by side: every line
// of the constant bank that a role reads first is a miss of some 100 ns, one after the other.

/// What the loads read.
struct OperandParams {
  isa::TensorMap a;  ///< K-major box: tile_k x rows of a slice; MN-major: span x tile_k
  isa::TensorMap b;
  isa::TensorMap token_scales;  ///< of ScaleParams::tokens, where TMA brings them
  int a_batch = 1;  ///< 0 where one matrix serves the whole batch, as tokens serve all groups
  int b_batch = 1;
  int a_slice_rows = 0;  ///< rows of A's box that a CTA loads: a cluster.n-th
  int b_slice_rows = 0;
  std::uint16_t column_mask = 1;  ///< CTAs with x = 0, who share one A tile; for x: shifted by x
  std::uint16_t row_mask = 1;  ///< CTAs with y = 0, who share one B tile; for y: by y * cluster.m
  int k = 0;                   ///< 0: nobody reads A or B
  GateParams gate;             ///< of scales; the map of B has a dimension of its two parts
  PackedParams packed;         ///< A, where its source is registers; it has no map then
  TokenParams tokens;          ///< where they are read by index; they have no map then

  /// The CTAs that share the A, or the B, of the one at `at`. (The masks come ready from the host:
  /// the first load should not wait for arithmetic.)
  [[nodiscard]] constexpr std::uint16_t a_ctas(atom::ClusterCoord at) const {
    return static_cast<std::uint16_t>(column_mask << at.x);
  }
  [[nodiscard]] constexpr std::uint16_t b_ctas(atom::ClusterCoord at,
                                               atom::ClusterShape cluster) const {
    return static_cast<std::uint16_t>(row_mask << (at.y * cluster.m));
  }
};

/// Bytes of the counter from which tiles are dynamic persistent: a line of its own, so that nothing
/// else waits.
inline constexpr int counter_bytes = 128;

/// Which tiles, or shares of tiles, a CTA works on, and with whom.
struct WalkParams {
  atom::ClusterShape cluster;  ///< CTAs that share operands; 1 x 1 where they share tiles along K
  tile::Divisor cluster_m;     ///< divides by cluster.m
  int cluster_k = 1;           ///< CTAs that share a tile along K
  int k_tiles = 0;
  tile::PreparedRaster raster;
  tile::SplitPlan split;           ///< when the kernel splits K
  tile::SlicePlan slices;          ///< when it adds up parts of tiles in slices
  float* partials = nullptr;       ///< workspace: sums of CTAs, tile_m x tile_n floats each
  std::uint32_t* flags = nullptr;  ///< of consumer warps; all 0 between launches
  tile::GroupedTiles groups;       ///< when the kernel is grouped
  /// In the workspace: tiles drawn, 0 between launches; null: the walk is static.
  std::uint32_t* counter = nullptr;
  /// Where to say whether the offsets are in order, or null.
  std::uint32_t* offsets_status = nullptr;
  /// Offsets and weights are complete when the grid starts: kernels that ask early (asks_early)
  /// read both before they wait for the grid before.
  bool weights_early = false;
  /// With weights_early, where the grid before writes the offsets: from which slots it makes them.
  tile::OffsetsAhead ahead;

  /// Where the CTA of this rank stands among those that share operands.
  [[nodiscard]] constexpr atom::ClusterCoord coord_of(int rank) const {
    const int y = cluster_m.quotient(rank);
    return {rank - y * cluster.m, y};
  }
};

/// C, D, and what becomes of the sums on the way, but for scales.
struct OutputParams {
  const void* c_data = nullptr;
  void* d_data = nullptr;
  std::int64_t c_pitch = 0;  ///< elements from row to row
  std::int64_t d_pitch = 0;
  std::int64_t c_batch = 0;  ///< elements from matrix to matrix
  std::int64_t d_batch = 0;
  int d_rows = 0;  ///< of one matrix
  int d_columns = 0;
  int c_map_batch = 1;  ///< 0 where one matrix serves the whole batch
  float alpha = 1.0F;
  float beta = 0.0F;
  bool reads_c = false;    ///< beta is not 0
  bool c_by_tma = false;   ///< base and pitch of C are multiples of 16 bytes; no groups
  bool d_aligned = false;  ///< those of D are
  bool has_sums = true;    ///< k is not 0
  /// D = alpha * P, by 16 bytes: there are sums, no C, activation or vectors, and D is aligned.
  bool is_plain = false;
  /// D = scales * P + biases: there are sums, no C and no activation.
  bool is_linear = false;
  /// Scales and biases of rows and columns: there is none; columns have scales in float32, and rows
  /// may have biases; or any of them may be.
  VectorUse vectors = VectorUse::all;
  ActivationParams activation;
  GateParams gate;  ///< of vectors
  Vector row_bias;
  Vector column_bias;
  const float* result_scale = nullptr;  ///< multiplied to D's elements
  ScalesOfD d_scales;                   ///< of a D that is quantised
  isa::TensorMap c;                     ///< box: chunk_inner x chunk_outer; when c_by_tma
  isa::TensorMap d;  ///< the same box; when d_aligned and the kernel stores by copies
};

/// Scales of the operands.
struct ScaleParams {
  const float* tensor_a = nullptr;  ///< one float each, multiplied to alpha; null is 1
  const float* tensor_b = nullptr;
  int tensor_a_stride = 0;  ///< from group to group, in floats; 0: one for all
  int tensor_b_stride = 0;
  Vector rows;
  Vector columns;
  ScaleMatrix tokens;   ///< of blocks of 1 x 128, or what the kernel has (scale_block)
  ScaleMatrix weights;  ///< likewise, of 128 x 128
  bool copies_tokens = false;
  tile::TokenIndex index;  ///< of the tokens and their scales, where the kernel gathers them
};

/// Parameters of one launch.
struct GemmParams {
  OperandParams operands;
  WalkParams walk;
  ScaleParams scales;
  OutputParams output;
};

/// Maps of the scales that the tensor core multiplies, A's and B's: their rows of atoms of 128 x 4
/// (facts/block_scales.h) as rows of float32 words.
struct ScaleMaps {
  isa::TensorMap sfa;
  isa::TensorMap sfb;
  int sfa_batch = 0;  ///< 0 where one matrix serves the whole batch
  int sfb_batch = 0;
};

/// Those of a kernel whose tiles have several widths.
struct WidthsGemmParams : GemmParams {
  /// For the tokens, as `operands.b`: for the widths but the widest, each with a box of its rows.
  isa::TensorMap narrower[tile::TileWidths::most - 1];
};

}  // namespace warpwright::kernel
