// Packing weights of 4 bits, and looking into what is packed: int4, and e2m1 (mxf4, nvf4) for
// Hopper's tensor cores, which have no such operands.
//
//   const auto quantised = weights::quantise(views, {.group = 128});   // or read_checkpoint
//   if (!quantised) return fail(quantised.reason());
//   const auto packed = weights::pack(weights::source_of(*quantised));
//
// All of it runs on the host, on as many threads as are asked for, and gives the same bytes on any
// number of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "warpwright/facts/stored_scale.h"
#include "warpwright/weights/header.h"
#include "warpwright/weights/source.h"

namespace warpwright::weights {

/// Who does the work, and who is told how far it has come: a share from 0 to 1, from any of the
/// threads but one at a time.
struct Work {
  int threads = 0;  ///< 0: as many as the machine has
  std::function<void(double)> progress = {};
};

/// Weights of 4 bits with their scales, in the plain layout: row-major, of each expert [N, K] codes
/// and [N, K / group] scales and zero points.
struct PlainWeights {
  packed::Extents extents = {};
  int group = 128;
  DType scale = DType::bf16;
  std::string origin;
  std::vector<std::byte> codes;   ///< s4 (two's complement) or e2m1, two a byte, the even k low
  std::vector<std::byte> scales;  ///< of type `scale`
  std::vector<std::byte> zeros;   ///< a byte each, 0..15; empty where there are none
  DType code = DType::s4;
};

/// The code of a weight, as a number.
double code_of(const PlainWeights& w, std::int64_t expert, std::int64_t n, std::int64_t k);
/// The scale of a weight, exactly.
double scale_of(const PlainWeights& w, std::int64_t expert, std::int64_t n, std::int64_t k);
/// The zero point of a weight; 8 where there are none.
int zero_point_of(const PlainWeights& w, std::int64_t expert, std::int64_t n, std::int64_t k);
/// All values, [experts, N, K], without factors of tensors: scale * (code + 8 - zero point), exact
/// but where scales are f32 or below 2^-126, whose products are rounded once.
std::vector<float> values_of(const PlainWeights& w, const Work& work = {});

/// Weights in the plain layout as a source of `pack`, from addresses, on a device too; `zeros` null
/// where there are none.
Source plain_source(const packed::Extents& extents, int group, DType scale, std::string origin,
                    const std::byte* codes, const std::byte* scales, const std::byte* zeros,
                    DType code = DType::s4);
/// The weights as a source of `pack`, with a factor for each expert's tensor, or 1. It points to
/// them.
Source source_of(const PlainWeights& w, std::span<const float> factors = {});

/// How weights are quantised to int4: every scale is the least with which no weight of its group
/// lies beyond the codes, rounded to its type, and every code the one nearest to weight / scale.
/// With zero points the scale is a fifteenth of what lies between the group's least and largest
/// weight (and 0), and the zero point the code of 0.
struct QuantiseOptions {
  Int4Encoding encoding = Int4Encoding::ex;   ///< whose codes are used: -8..7 or -7..7
  int group = 128;                            ///< 32, 64 or 128
  DType scale = DType::bf16;                  ///< bf16, f16 or f32
  ZeroPoints zero_points = ZeroPoints::none;  ///< only groups with ex
};

/// Quantises weights of f32, bf16 or f16, each view an expert or a batch of them, N x K, row-major.
/// A group of zeros has a scale of 0. Refuses NaN and infinities.
Result<PlainWeights> quantise(std::span<const MatrixView> weights, const QuantiseOptions& options,
                              const Work& work = {});

/// What a source leaves open.
struct PackOptions {
  /// Not given: for int4 and tokens of e4m3 sm where no code is -8 and there are no zero points,
  /// else ex.
  std::optional<Int4Encoding> encoding = {};
  /// Only for int4. Not given: the source's. Scales of another type are rounded to nearest even.
  std::optional<DType> scale = {};
  /// What the weights are multiplied by. Not given: the format's usual tokens.
  std::optional<DType> tokens = {};
  /// Only for mxf4. Not given: of rows where scales fit, else, for tokens of e4m3, the scales' own.
  std::optional<Exponents> exponents = {};
};

/// Why these weights are not packed as that form (null: any), or nothing: they are of another
/// format.
std::optional<Refusal> form_fault(const Source& source, const packed::WeightForm* form);

/// The format that `pack` gives. Refuses scales that the wanted one has no place for.
Result<PackedFormat> packed_format(const Source& source, const PackOptions& options = {},
                                   const Work& work = {});

/// The header of the packed tensor, but for the sum.
Header header_of(const Source& source, const PackedFormat& format);

/// A packed tensor, header and tiles.
///
/// Int4: a scale of 0 stands for weights of 0: they are packed as codes 0 with the scale before
/// (the first with 1). Refuses scales that are NaN, infinite or, times 512, beyond their type, and
/// a code of -8 where the encoding is sm.
///
/// The factor of nvf4 is in the header where all experts have the same, else the header says that
/// they have one each, which lie beside: a product takes them as `alpha` or `scale_b`.
Result<std::vector<std::byte>> pack(const Source& source, const PackOptions& options = {},
                                    const Work& work = {});

/// The first row whose scales of ue8m0 span more powers of two than kernels fold for such tokens;
/// nothing where all fit. Scales of 32 zeros do not count.
struct WideRow {
  std::int64_t expert;
  std::int64_t row;
  int least;    ///< ue8m0 of the scales
  int largest;  ///< these two
};
std::optional<WideRow> wide_row(const Source& source, DType tokens, const Work& work = {});

/// A packed tensor back in the plain layout, without padding. The header's `source` is its origin.
/// Values are those that were packed, to the bit; the scale of codes that are all 0 is any.
Result<PlainWeights> unpack(std::span<const std::byte> bytes, const Work& work = {},
                            const std::string& name = "The packed tensor");

}  // namespace warpwright::weights
