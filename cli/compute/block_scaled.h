// Operands with a scale for every few elements along K (mxf8, mxf6, mxf4, nvf4), made of wider
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "cli/files/host_tensor.h"
#include "warpwright/facts/micro_format.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// Memory where copies that pad may begin (padded_copy_bytes), as a standard allocator.
template <class T>
struct PaddedCopyMemory {
  using value_type = T;
  static constexpr std::align_val_t at{padded_copy_bytes};
  PaddedCopyMemory() = default;
  template <class U>
  PaddedCopyMemory(const PaddedCopyMemory<U>& /*other*/) {}  // NOLINT: as allocators do
  static T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), at));
  }
  static void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, at); }
  friend bool operator==(const PaddedCopyMemory&, const PaddedCopyMemory&) { return true; }
};
using MicroCodes = std::vector<std::byte, PaddedCopyMemory<std::byte>>;

/// Codes, row by row, those of 4 and 6 bits densely; and their scales, a byte each, row by row.
struct MicroTensor {
  MicroCodes codes;
  std::vector<std::byte> scales;
};

/// Rounds rows x K matrices of f32 to a format, K a multiple of whole bytes, by the recipe `floor`
/// for ue8m0 and `nested` for ue4m3, without a scale of the tensor (device/quantise.h).
MicroTensor quantise(const HostTensor& values, const MicroFormat& format);

/// Rows [begin, end) of a product that form a group.
struct ScaleRows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The scales of a product's A or B in the tiles that kernels read (facts/block_scales.h), for
/// `view`, their shape, one matrix behind the other. `rows` of each are there, one behind the
/// other; with `groups` each of these begins at a tile. Row r of a matrix is row `index[r]` of the
/// tensor's, where there is an index, which is none outside. What is no row's scale is NaN.
std::vector<std::byte> scale_tiles(const MicroTensor& of, const MatrixShape& view,
                                   std::int64_t rows, std::int64_t blocks,
                                   const std::vector<ScaleRows>& groups = {},
                                   const std::vector<std::int64_t>& index = {});

/// Multiplies every 32 of K of a row of f32 by a power of two from 1/8 to 8, drawn by seed: so that
/// scales of random matrices differ.
void spread_blocks(HostTensor& values, std::uint64_t seed);

}  // namespace warpwright::cli
