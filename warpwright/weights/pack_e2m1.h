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
  /// The type that the weights are multiplied by: e4m3, which only mxf4 takes, or bf16. Not given:
  /// e4m3 for mxf4, bf16 for nvf4.
  std::optional<DType> tokens = {};
  /// Not given: of rows where scales fit, else, for tokens of e4m3, the scales' own.
  std::optional<Exponents> exponents = {};
};

/// The format that `pack_e2m1` gives. Refuses scales that the wanted one has no place for.
Result<PackedFormat> packed_format(const MicroSource& source, const E2m1Options& options = {},
                                   const Work& work = {});

/// A packed tensor, header and tiles. The factor of nvf4 is in the header where all experts have
/// the same, else the header says that they have one each, which lie beside: a product takes them
/// as `alpha` or `scale_b`.
Result<std::vector<std::byte>> pack_e2m1(const MicroSource& source, const E2m1Options& options = {},
                                         const Work& work = {});

/// E2m1 weights with their scales, in the plain layout: row-major, of each expert [N, K] codes, two
/// a byte, the even k in the low bits, and [N, K / 32] ue8m0 or [N, K / 16] ue4m3.
struct E2m1Weights {
  packed::Extents extents = {};
  const MicroFormat* format = nullptr;
  std::string origin;
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
};

/// A packed tensor of e2m1 back in that layout, without padding. Values are those that were packed,
/// to the bit; the scale of codes that are all 0 is any.
Result<E2m1Weights> unpack_e2m1(std::span<const std::byte> bytes, const Work& work = {},
                                const std::string& name = "The packed tensor");

/// The weights as a source of `pack_e2m1`, with a factor for each expert's tensor, or 1. It points
/// to them.
MicroSource source_of(const E2m1Weights& w, std::span<const float> factors = {});

/// All values, [experts, N, K], without factors of tensors: exactly, but for those of scales below
/// 2^-126, whose products may be rounded.
std::vector<float> values_of(const E2m1Weights& w, const Work& work = {});

/// All values of a packed tensor of any form, [experts, N, K], without factors of tensors.
Result<std::vector<float>> packed_values(std::span<const std::byte> bytes, const Work& work = {},
                                         const std::string& name = "The packed tensor");

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
