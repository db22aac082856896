// What a launch of the Blackwell GEMM kernel takes, on the GPU and on the model.
#pragma once

#include <cstdint>

#include "warpwright/isa/tensor_map.h"
#include "warpwright/kernel/params.h"
#include "warpwright/tile/even_tiles.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// How a launch's operand lies in a stage, for kernels that take any major.
struct StagedOperand {
  bool mn_major = false;    ///< a stage has boxes of a span of rows x tile_k, one behind the other
  std::uint64_t words = 0;  ///< the matrix descriptor of one that begins at 0
  std::uint32_t step = 0;   ///< bytes from k_block to k_block
};

/// Parameters of one launch: those of all kernels (the maps of A and B have boxes of a 128-byte
/// span x the rows of a slice, or, MN-major, of a span of rows x tile_k; `row_mask` holds the CTAs
/// with pairs only of parity 0), and what an MMA issuer must know.
struct BlackwellGemmParams : GemmParams {
  std::uint32_t instruction = 0;  ///< descriptor of the MMA: its shape and types
  /// The CTAs whose loads an MMA reads: by the MMA's column of the cluster (of x = 0, and of x = 1
  /// too with pairs; shift by x of its first CTA), and by its row (as `row_mask`, all parities).
  std::uint16_t commit_column_mask = 1;
  std::uint16_t commit_row_mask = 1;
  tile::Divisor cluster_size;  ///< divides by the CTAs of a cluster
  StagedOperand staged_a;
  StagedOperand staged_b;
};

/// Those of a kernel whose tiles have several widths.
struct BlackwellWidthsParams : BlackwellGemmParams {
  /// For the tokens, as `operands.b`: of the widths but the widest, each with a box of its rows.
  isa::TensorMap narrower[tile::TileWidths::most - 1];
};

/// Those of a kernel whose tensor core multiplies scales.
struct BlackwellScaledParams : BlackwellGemmParams, ScaleMaps {
  /// How many bytes the copies of a stage signal in a CTA beyond what the configuration says: of
  /// types of 4 and 6 bits they are less.
  int more_bytes = 0;
  int token_bytes = 0;  ///< swapped: those of a token's part of a stage
  /// Where either format will do: the scales of A and B, and those of D, are ue8m0, of 32 each.
  bool scales_of_32 = false;
  bool codes_of_32 = false;
};

/// Those of one that has both.
struct BlackwellScaledWidthsParams : BlackwellScaledParams {
  isa::TensorMap narrower[tile::TileWidths::most - 1];
};

}  // namespace warpwright::kernel
