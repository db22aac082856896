#include "warpwright/weights/pack.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "warpwright/facts/format.h"
#include "warpwright/layout/layout.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/tiles.h"

namespace warpwright::weights {
namespace {

using layout::offset_of;
using packed::kTileK;
using packed::kTileRows;
using packed::largest_scale;
using packed::ScaleKind;
using packed::StoredScale;

// Offsets along both axes of a layout, which is the sum of a part for each.
struct Offsets {
  std::vector<std::int64_t> n;
  std::vector<std::int64_t> x;

  Offsets() = default;
  Offsets(const layout::Layout& places, std::int64_t extent_n, std::int64_t extent_x)
      : n(static_cast<std::size_t>(extent_n)), x(static_cast<std::size_t>(extent_x)) {
    for (std::int64_t i = 0; i < extent_n; ++i) n[static_cast<std::size_t>(i)] = places(i, 0);
    for (std::int64_t i = 0; i < extent_x; ++i) x[static_cast<std::size_t>(i)] = places(0, i);
  }
  [[nodiscard]] std::int64_t operator()(std::int64_t i, std::int64_t j) const {
    return n[static_cast<std::size_t>(i)] + x[static_cast<std::size_t>(j)];
  }
};

// The scales of a row, as they are in the source.
struct ScaleRow {
  const Source& s;
  const Source::Matrix& m;
  std::int64_t n;

  [[nodiscard]] int block() const { return micro_block(s.format->scale); }
  [[nodiscard]] std::int64_t scales() const { return s.extents.k / block(); }
  [[nodiscard]] int scale(std::int64_t i) const {
    return static_cast<int>(m.scales[n * scales() + i]);
  }
  [[nodiscard]] std::uint32_t code(std::int64_t k) const {
    return static_cast<std::uint32_t>(nibble(m.codes, n * s.extents.k + k));
  }
  // Are the codes of a scale all 0?
  [[nodiscard]] bool is_zero(std::int64_t i) const {
    const std::byte* const first = m.codes + (n * s.extents.k + i * block()) / 2;
    return std::all_of(first, first + block() / 2,
                       [](std::byte two) { return (two & std::byte{0x77}) == std::byte{0}; });
  }
};

// The least and the largest of a row's ue8m0 scales that count; where none does, both 127.
struct ScaleSpan {
  int least = std::numeric_limits<int>::max();
  int largest = -1;

  explicit ScaleSpan(const ScaleRow& row) {
    for (std::int64_t i = 0; i < row.scales(); ++i) {
      if (row.is_zero(i)) continue;
      least = std::min(least, row.scale(i));
      largest = std::max(largest, row.scale(i));
    }
    if (largest < 0) least = largest = 127;
  }
};

// Why such a scale is not packed.
Refusal scale_refusal(ScaleKind kind, const PackedFormat& stored, std::int64_t expert,
                      std::int64_t n, std::int64_t group) {
  std::string what = "NaN: no weight has a value";
  if (kind == ScaleKind::infinite) what = "infinite: no weight has a value";
  if (kind == ScaleKind::too_large) {
    const double of_type = numeric::format_of(stored.scale).max() / packed::kScaleFactor;
    const bool by_sums = largest_scale(stored) < of_type;
    what =
        format("too large: %s times 512, and %s %s the largest is %.6g",
               by_sums ? "sums are kept" : "scales are stored", by_sums ? "beside tokens of" : "as",
               std::string(numeric::word(by_sums ? stored.tokens : stored.scale)).c_str(),
               largest_scale(stored));
  }
  return refuse(RefusalCode::bad_value, "The scale of ", place(expert, n), ", group ", group,
                ", is ", what, ".");
}

// Why a code of -8 is not packed as sm.
Refusal code_refusal(std::int64_t expert, std::int64_t n, std::int64_t k) {
  return refuse(RefusalCode::bad_value, "The code of ", place(expert, n), ", k = ", k,
                ", is -8, which the encoding sm does not have: ", as_rule("pack as ex"), ".");
}

// Makes the bytes of the tiles of 64 rows.
class Packer {
 public:
  Packer(const Source& source, const PackedFormat& format)
      : s_(source), f_(format), groups_(source.extents.k / source.group) {
    if (packed::has_float_codes(format)) return;
    const packed::Extents& e = source.extents;
    const bool zeros = format.zero_points == ZeroPoints::groups;
    codes_ = Offsets(source.codes, e.n, e.k);
    scales_ = Offsets(source.scales, e.n, groups_);
    zeros_ = Offsets(source.zeros, zeros ? e.n : 0, zeros ? groups_ : 0);
    for (int i = 0; i < 16; ++i) {
      const int code = source.is_unsigned ? i - 8 : (i ^ 8) - 8;
      bits_[i] = code < packed::least_code(format.encoding)
                     ? 16  // there is none
                     : static_cast<std::uint8_t>(packed::code_bits(code, format.encoding));
    }
  }

  // `out` is where the first of the row tile's tiles goes.
  std::optional<Refusal> pack(std::int64_t row_tile, std::byte* out) const {
    const std::int64_t expert = row_tile / packed::row_tiles(s_.extents);
    const std::int64_t n0 = row_tile % packed::row_tiles(s_.extents) * kTileRows;
    const Source::Matrix& m = s_.experts[static_cast<std::size_t>(expert)];
    int units[kTileRows];
    for (int row = 0; row < kTileRows; ++row) {
      const bool folds = f_.exponents == Exponents::of_rows && n0 + row < s_.extents.n;
      units[row] =
          folds ? packed::unit_of_largest(f_.tokens, ScaleSpan({s_, m, n0 + row}).largest) : 127;
    }
    for (std::int64_t k0 = 0; k0 < s_.extents.k; k0 += kTileK, out += packed::tile_bytes(f_)) {
      std::memset(out, 0, static_cast<std::size_t>(packed::tile_bytes(f_)));
      packed::TileCodes codes = {};  // those of 0 are 0
      for (int row = 0; row < kTileRows; ++row) {
        for (int slice = 0; slice < packed::slices(f_); ++slice) {
          const std::int64_t n = n0 + row < s_.extents.n ? n0 + row : -1;
          const std::int64_t k = k0 + slice * f_.group;
          std::uint8_t* const to = &codes[row][slice * f_.group];
          if (packed::has_float_codes(f_)) {
            pack_floats(m, n, k, units[row], row, slice, out, to);
          } else if (auto fault = pack_int4(m, expert, n, k, row, slice, out, to)) {
            return fault;
          }
        }
      }
      packed::put_codes(codes, f_, out);
    }
    return std::nullopt;
  }

 private:
  // A row's scale of one slice goes to its place, its codes to `codes`. A row of -1 is padding; so
  // is a k behind the last one.
  void pack_floats(const Source::Matrix& m, std::int64_t n, std::int64_t k, int unit, int row,
                   int slice, std::byte* out, std::uint8_t* codes) const {
    const ScaleRow of{s_, m, n};
    const bool is_there = n >= 0 && k < s_.extents.k;
    const int scale = is_there ? of.scale(k / f_.group) : 0;
    const bool counts = is_there && !of.is_zero(k / f_.group);
    out[packed::scales_begin() + packed::scale_byte(f_, row, slice)] =
        static_cast<std::byte>(packed::stored_byte(f_, unit, slice, counts ? scale : -1));
    if (!is_there || (f_.scale == DType::ue4m3 && scale == 0)) return;
    for (int i = 0; i < f_.group; ++i) codes[i] = static_cast<std::uint8_t>(of.code(k + i));
  }

  // The same, and a zero point.
  std::optional<Refusal> pack_int4(const Source::Matrix& m, std::int64_t expert, std::int64_t n,
                                   std::int64_t k, int row, int slice, std::byte* out,
                                   std::uint8_t* codes) const {
    const int bits = numeric::bits(f_.scale);
    std::byte* const to =
        out + packed::scales_begin() + offset_of<packed::kScales>(row, slice) * (bits / 8);
    store(to, numeric::from_double(f_.scale, packed::kScaleFactor), bits);
    int zero_point = 8;
    if (n >= 0) {
      const std::int64_t group = k / s_.group;
      const int source_bits = numeric::bits(s_.scale);
      const auto scale_of = [&](std::int64_t g) {
        const std::byte* const at = m.scales + scales_(n, g) * (source_bits / 8);
        return packed::stored_scale(s_.scale, load(at, source_bits), f_);
      };
      const StoredScale stored = packed::packed_scale(scale_of, group, groups_);
      if (stored.kind > ScaleKind::zero) {
        return scale_refusal(stored.kind, f_, expert, n, group);
      }
      store(to, stored.code, bits);
      if (stored.kind == ScaleKind::good) {
        if (auto fault = codes_of(m, expert, n, k, codes)) return fault;
        if (f_.zero_points == ZeroPoints::groups && m.zeros != nullptr) {
          zero_point = nibble(m.zeros, zeros_(n, group)) + s_.zero_bias;
        }
      }
    }
    if (f_.zero_points == ZeroPoints::groups) {
      const int at = offset_of<packed::kZeroPoints>(row, slice);
      out[packed::zero_points_begin(f_) + at / 2] |=
          static_cast<std::byte>(zero_point << at % 2 * 4);
    }
    return std::nullopt;
  }

  std::optional<Refusal> codes_of(const Source::Matrix& m, std::int64_t expert, std::int64_t n,
                                  std::int64_t k, std::uint8_t* codes) const {
    const std::int64_t at_n = codes_.n[static_cast<std::size_t>(n)];
    const std::int64_t* const at_k = codes_.x.data() + k;
    unsigned all = 0;
    for (int i = 0; i < f_.group; ++i) {
      codes[i] = bits_[nibble(m.codes, at_n + at_k[i])];
      all |= codes[i];
    }
    if (all < 16) return std::nullopt;
    const std::uint8_t* const least = std::max_element(codes, codes + f_.group);
    return code_refusal(expert, n, k + (least - codes));
  }

  const Source& s_;
  PackedFormat f_;
  std::uint8_t bits_[16] = {};  // of an int4 code, by its four bits in the source
  std::int64_t groups_;
  Offsets codes_;
  Offsets scales_;
  Offsets zeros_;
};

Refusal wide_refusal(const WideRow& wide, DType tokens) {
  return refuse(RefusalCode::unsupported, "The scales of row ", wide.row, " of expert ",
                wide.expert, " are 2^", wide.least - 127, " to 2^", wide.largest - 127, "; ",
                as_rule("for tokens of ", type_name(tokens),
                        " those of a row are folded into the "
                        "codes where they span at most ",
                        packed::exponent_range(tokens).most + 1, " powers of two"),
                tokens == DType::e4m3
                    ? ": the nearest is to leave exponents to pack, which keeps them"
                : tokens == DType::f16 ? ": the nearest are tokens of bf16"
                                       : ": the nearest are tokens of e4m3",
                ".");
}

// Null for those of a format that is not packed.
const packed::WeightFormat* format_of(const Source& source) {
  const MicroFormat* const micro = source.format;
  return micro != nullptr ? packed::weight_format(micro->element, micro->scale)
                          : packed::weight_format(DType::s4, source.scale);
}

}  // namespace

std::optional<Refusal> form_fault(const Source& source, const packed::WeightForm* form) {
  const packed::WeightFormat* const has = format_of(source);
  if (form == nullptr || has == nullptr || &packed::format_of(*form) == has) return std::nullopt;
  const packed::WeightForm& usual = packed::usual_form(*has);
  return refuse(RefusalCode::bad_value, "encoding is of ", packed::format_of(*form).word,
                " weights, and ", source.origin, " has ", has->word, ": the nearest legal is ",
                as_nearest(usual.word, " (", usual.number, ")"));
}

std::optional<WideRow> wide_row(const Source& source, DType tokens, const Work& work) {
  if (source.seen) return source.seen->wide ? std::optional<WideRow>(WideRow{}) : std::nullopt;
  const packed::Extents& e = source.extents;
  std::mutex mutex;
  std::optional<WideRow> found;
  share(e.experts * e.n, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t row) {
      const ScaleSpan span(
          {source, source.experts[static_cast<std::size_t>(row / e.n)], row % e.n});
      if (packed::spans(tokens, span.least, span.largest)) return;
      const std::lock_guard lock(mutex);
      if (found && found->expert * e.n + found->row < row) return;
      found = WideRow{row / e.n, row % e.n, span.least, span.largest};
    };
  });
  return found;
}

Result<PackedFormat> packed_format(const Source& source, const PackOptions& options,
                                   const Work& work) {
  const packed::WeightFormat* const format = format_of(source);
  if (format == nullptr) {
    return refuse(RefusalCode::unsupported, "These are ", source.format->word, "; ",
                  as_rule("what is packed for tokens are ", packed::format_words(", ", " and "),
                          ", and fp8 is multiplied as it is"),
                  ".");
  }
  const packed::WeightForm* const usual =
      options.tokens ? packed::usual_form(*format, *options.tokens) : nullptr;
  PackedFormat f = packed::packed_format(usual != nullptr ? *usual : packed::usual_form(*format));
  f.tokens = options.tokens.value_or(f.tokens);
  f.encoding = options.encoding.value_or(f.encoding);
  f.exponents = options.exponents.value_or(f.exponents);
  if (source.format == nullptr) {
    f.group = std::min(source.group, kTileK);
    f.scale = options.scale.value_or(source.scale);
    f.zero_points = source.has_zero_points ? ZeroPoints::groups : ZeroPoints::none;
    if (!options.encoding && f.tokens == DType::e4m3 && !source.has_zero_points &&
        !has_least_code(source)) {
      f.encoding = Int4Encoding::sm;
    }
  }
  if (const std::string fault = packed::format_fault(f); !fault.empty()) {
    return refuse(RefusalCode::unsupported, "These cannot be packed: ", fault, ".");
  }
  if (const std::int64_t k = source.extents.k; k % f.group != 0) {
    return refuse(RefusalCode::bad_shape, "K is ", k, "; ",
                  as_rule("that of packed ", format->word, " weights is a multiple of ", f.group),
                  ": the nearest legal value is ",
                  as_nearest((k + f.group - 1) / f.group * f.group), zeros_behind, ".");
  }
  if (f.exponents == Exponents::own) return f;
  const auto wide = wide_row(source, f.tokens, work);
  if (!wide) return f;
  if (options.exponents || packed::is_wide(f)) return wide_refusal(*wide, f.tokens);
  f.exponents = Exponents::own;
  return f;
}

Header header_of(const Source& source, const PackedFormat& format) {
  Header header{format, source.extents, source.origin};
  if (packed::has_factor(format)) {
    const float first = source.experts.front().tensor;
    const bool alike = std::ranges::all_of(
        source.experts, [&](const Source::Matrix& m) { return m.tensor == first; });
    header.factor = alike ? first : kFactorEach;
  }
  return header;
}

Result<std::vector<std::byte>> pack(const Source& source, const PackOptions& options,
                                    const Work& work) {
  const auto format = packed_format(source, options, work);
  if (!format) return format.refusal();
  const Packer packer(source, *format);
  return pack_tiles(header_of(source, *format), work, [&](std::int64_t row_tile, std::byte* out) {
    return packer.pack(row_tile, out);
  });
}

}  // namespace warpwright::weights
