// Operands with a scale for every few elements along K (mxf8, nvf4), made of wider ones.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/files/host_tensor.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// Codes, row by row, two of e2m1 in a byte; and their scales, of every matrix, in tiles
/// (facts/block_scales.h).
struct MicroTensor {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
};

/// Rounds rows x K matrices of f32 to `type`, e4m3 or e2m1, with scales by which the largest of
/// each block fits: for e4m3 the power of two below it, over 2^8, for e2m1 a sixth of it. What is
/// not finite becomes a largest number.
MicroTensor quantise(const HostTensor& values, DType type);

/// The scales as GemmOperands takes them, of an operand of that shape.
MatrixView scales_view(MicroTensor& of, const HostTensor& values, DType type);

}  // namespace warpwright::cli
