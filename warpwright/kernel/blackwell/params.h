// What a launch of the Blackwell GEMM kernel takes, on the GPU and on the model.
#pragma once

#include <cstdint>

#include "warpwright/kernel/params.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// Parameters of one launch: those of all kernels (the maps of A and B have boxes of a 128-byte
/// span x the rows of a slice, and `row_mask` holds the CTAs of parity 0 alone with pairs), and
/// what an MMA issuer must know.
struct BlackwellGemmParams : GemmParams {
  std::uint32_t instruction = 0;  ///< descriptor of the MMA: its shape and types
  /// The CTAs whose loads an MMA reads: by the MMA's column of the cluster (of x = 0, and of x = 1
  /// too with pairs; shift by x of its first CTA), and by its row (as `row_mask`, all parities).
  std::uint16_t commit_column_mask = 1;
  std::uint16_t commit_row_mask = 1;
  tile::Divisor cluster_size;  ///< divides by the CTAs of a cluster
};

/// Those of a kernel whose tensor core multiplies scales.
struct BlackwellScaledParams : BlackwellGemmParams, ScaleMaps {
  /// That the copies of a stage signal, of a pair those of both CTAs: it depends on the types.
  int full_bytes = 0;
};

}  // namespace warpwright::kernel
