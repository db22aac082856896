// Packing weights of e2m1 (mxf4, nvf4) for products by Hopper's tensor cores, which have no such
// operands: tiles whose codes become e5m2 or bf16 in registers (facts/packed_e2m1.h).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "warpwright/weights/micro_source.h"
#include "warpwright/weights/pack.h"

namespace warpwright::weights {

/// What a source leaves open.
struct E2m1Options {
  /// Of what the weights are multiplied by: e4m3, which mxf4 alone takes, or bf16. Not given: e4m3
  /// for mxf4, bf16 for nvf4.
  std::optional<DType> tokens = {};
  /// Not given: of rows where scales fit, else, for tokens of e4m3, the scales' own.
  std::optional<Exponents> exponents = {};
};

/// The format that `pack_e2m1` gives. Refuses scales that the wanted one has no place for.
Result<PackedFormat> packed_format(const MicroSource& source, const E2m1Options& options = {},
                                   const Work& work = {});

/// A packed tensor, header and tiles. The factors of the experts' tensors are not in it: a product
/// takes them as `alpha`.
Result<std::vector<std::byte>> pack_e2m1(const MicroSource& source, const E2m1Options& options = {},
                                         const Work& work = {});

/// The first row whose scales span more powers of two than kernels fold for such tokens; nothing
/// where all fit. Scales of 16 or 32 zeros do not count.
struct WideRow {
  std::int64_t expert;
  std::int64_t row;
  int least;    ///< ue8m0 of the scales
  int largest;  ///< these two
};
std::optional<WideRow> wide_row(const MicroSource& source, DType tokens, const Work& work = {});

}  // namespace warpwright::weights
