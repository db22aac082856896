#include "warpwright/weights/pack_e2m1.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <mutex>

#include "warpwright/facts/micro_scale.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/tiles.h"

namespace warpwright::weights {
namespace {

using packed::kTileK;
using packed::kTileRows;

std::uint32_t code_at(const std::byte* codes, std::int64_t at) {
  return static_cast<std::uint32_t>(codes[at / 2] >> at % 2 * 4) & 15U;
}

// The scales of a row, as they are in the source.
struct ScaleRow {
  const MicroSource& s;
  const MicroSource::Matrix& m;
  std::int64_t n;

  [[nodiscard]] int block() const { return micro_block(s.format->scale); }
  [[nodiscard]] std::int64_t scales() const { return s.extents.k / block(); }
  [[nodiscard]] int scale(std::int64_t i) const {
    return static_cast<int>(m.scales[n * scales() + i]);
  }
  [[nodiscard]] std::uint32_t code(std::int64_t k) const {
    return code_at(m.codes, n * s.extents.k + k);
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
  [[nodiscard]] bool fits(DType tokens) const {
    const int unit = packed::unit_of_largest(tokens, largest);
    const int most = packed::exponent_range(tokens).most;
    return packed::exponent_under(tokens, unit, least) >= 0 &&
           packed::exponent_under(tokens, unit, largest) <= most;
  }
};

// Makes the bytes of the tiles of 64 rows.
class RowPacker {
 public:
  RowPacker(const MicroSource& source, const PackedFormat& format) : s_(source), f_(format) {}

  // `out` is where the first of the row tile's tiles goes.
  void pack(std::int64_t row_tile, std::byte* out) const {
    const std::int64_t row_tiles = packed::row_tiles(s_.extents);
    const MicroSource::Matrix& m = s_.experts[static_cast<std::size_t>(row_tile / row_tiles)];
    const std::int64_t n0 = row_tile % row_tiles * kTileRows;
    int units[kTileRows] = {};
    for (int row = 0; row < kTileRows; ++row) {
      units[row] = 127;
      if (f_.exponents == Exponents::of_rows && n0 + row < s_.extents.n) {
        units[row] = packed::unit_of_largest(f_.tokens, ScaleSpan({s_, m, n0 + row}).largest);
      }
    }
    for (std::int64_t k_tile = 0; k_tile < packed::k_tiles(s_.extents); ++k_tile) {
      pack_tile(m, n0, k_tile * kTileK, units, out + k_tile * packed::tile_bytes(f_));
    }
  }

 private:
  void pack_tile(const MicroSource::Matrix& m, std::int64_t n0, std::int64_t k0,
                 const int (&units)[kTileRows], std::byte* out) const {
    std::memset(out, 0, static_cast<std::size_t>(packed::tile_bytes(f_)));
    packed::TileCodes codes = {};
    for (int row = 0; row < kTileRows; ++row) {
      const ScaleRow of{s_, m, n0 + row};
      for (int slice = 0; slice < packed::slices(f_); ++slice) {
        const std::int64_t k = k0 + slice * f_.group;
        const bool is_there = of.n < s_.extents.n && k < s_.extents.k;
        const bool counts = is_there && !of.is_zero(k / f_.group);
        out[packed::scales_begin() + packed::scale_byte(f_, row, slice)] = static_cast<std::byte>(
            scale_byte(units[row], slice, counts ? of.scale(k / f_.group) : -1));
        if (!is_there) continue;
        const bool is_nothing = f_.scale == DType::ue4m3 && of.scale(k / f_.group) == 0;
        for (int i = 0; i < f_.group && !is_nothing; ++i) {
          codes[row][slice * f_.group + i] = static_cast<std::uint8_t>(of.code(k + i));
        }
      }
    }
    packed::put_codes(codes, f_, out);
  }

  // What is stored for a scale, or for -1: of codes that are all 0, or of none.
  [[nodiscard]] std::uint32_t scale_byte(int unit, int slice, int scale) const {
    if (f_.scale == DType::ue4m3) {
      return scale < 0 ? 0 : packed::stored_ue4m3(static_cast<std::uint32_t>(scale));
    }
    if (f_.exponents == Exponents::own) return scale < 0 ? 127 : static_cast<std::uint32_t>(scale);
    const int exponent = scale < 0 ? packed::exponent_range(f_.tokens).bias
                                   : packed::exponent_under(f_.tokens, unit, scale);
    return packed::exponent_byte(exponent, unit, slice);
  }

  const MicroSource& s_;
  PackedFormat f_;
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

}  // namespace

std::optional<WideRow> wide_row(const MicroSource& source, DType tokens, const Work& work) {
  const packed::Extents& e = source.extents;
  std::mutex mutex;
  std::optional<WideRow> found;
  share(e.experts * e.n, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t row) {
      const ScaleSpan span(
          {source, source.experts[static_cast<std::size_t>(row / e.n)], row % e.n});
      if (span.fits(tokens)) return;
      const std::lock_guard lock(mutex);
      if (found && found->expert * e.n + found->row < row) return;
      found = WideRow{row / e.n, row % e.n, span.least, span.largest};
    };
  });
  return found;
}

Result<PackedFormat> packed_format(const MicroSource& source, const E2m1Options& options,
                                   const Work& work) {
  const packed::WeightFormat* const format =
      packed::weight_format(source.format->element, source.format->scale);
  if (format == nullptr) {
    return refuse(RefusalCode::unsupported, "These are ", source.format->word, "; ",
                  as_rule("what is packed for tokens are ", packed::format_words(", ", " and "),
                          ", and fp8 is multiplied as it is"),
                  ".");
  }
  const packed::WeightForm* const usual =
      options.tokens ? packed::usual_form(*format, *options.tokens) : &packed::usual_form(*format);
  PackedFormat f = packed::packed_format(usual != nullptr ? *usual : packed::usual_form(*format));
  f.tokens = options.tokens.value_or(f.tokens);
  f.exponents = options.exponents.value_or(f.exponents);
  if (const std::string fault = packed::format_fault(f); !fault.empty()) {
    return refuse(RefusalCode::unsupported, "These cannot be packed: ", fault, ".");
  }
  if (f.exponents == Exponents::own) return f;
  const auto wide = wide_row(source, f.tokens, work);
  if (!wide) return f;
  if (options.exponents || packed::is_wide(f)) return wide_refusal(*wide, f.tokens);
  f.exponents = Exponents::own;
  return f;
}

Result<std::vector<std::byte>> pack_e2m1(const MicroSource& source, const E2m1Options& options,
                                         const Work& work) {
  const auto format = packed_format(source, options, work);
  if (!format) return format.refusal();
  const RowPacker packer(source, *format);
  Header header{*format, source.extents, source.origin};
  if (packed::has_factor(*format)) {
    const float first = source.experts.front().tensor;
    const bool alike = std::ranges::all_of(
        source.experts, [&](const MicroSource::Matrix& m) { return m.tensor == first; });
    header.factor = alike ? first : kFactorEach;
  }
  return pack_tiles(header, work, [&](std::int64_t row_tile, std::byte* out) {
    packer.pack(row_tile, out);
    return std::optional<Refusal>();
  });
}

namespace {

// The ue4m3 whose stored form this is; for 0 the least, for a scale of 0 has codes 0.
std::uint8_t ue4m3_of(std::uint32_t stored) {
  for (std::uint32_t code = 1; code < 0x7f; ++code) {
    if (packed::stored_ue4m3(code) == stored) return static_cast<std::uint8_t>(code);
  }
  return 0;
}

// The scale of a row and a slice, as it was before it was packed.
std::uint32_t plain_scale(const PackedFormat& f, const std::byte* tile, int row, int slice) {
  static const auto numbers = [] {
    std::array<std::uint8_t, 256> all{};
    for (std::uint32_t stored = 0; stored < 256; ++stored) all[stored] = ue4m3_of(stored);
    return all;
  }();
  const std::byte* const bytes = tile + packed::scales_begin() + packed::scale_byte(f, row, 0);
  const auto stored = static_cast<std::uint32_t>(bytes[slice]);
  if (f.scale == DType::ue4m3) return numbers[stored];
  if (f.exponents == Exponents::own) return stored;
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, 4);
  const int x = static_cast<int>(stored & packed::kExponentMask);
  const int unit = static_cast<int>(packed::unit_in(word));
  return static_cast<std::uint32_t>(
      std::clamp(x - packed::exponent_range(f.tokens).bias + unit, 0, 254));
}

}  // namespace

Result<E2m1Weights> unpack_e2m1(std::span<const std::byte> bytes, const Work& work,
                                const std::string& name) {
  const auto header = parse_packed(bytes, name);
  if (!header) return header.refusal();
  const PackedFormat& f = header->format;
  if (!packed::has_float_codes(f)) {
    return refuse(RefusalCode::unsupported, name, " holds ", packed::weights_word(f),
                  " weights: ", as_rule("these are unpacked as what they are"), ".");
  }
  const packed::Extents& e = header->extents;
  E2m1Weights w{e, micro_format(f.code, f.scale), header->source, {}, {}};
  w.codes.resize(static_cast<std::size_t>(e.experts * e.n * e.k / 2));
  w.scales.resize(static_cast<std::size_t>(e.experts * e.n * (e.k / f.group)));
  unpack_tiles(
      *header, bytes, work.threads, w.codes, [](unsigned code) { return code; },
      [&](const std::byte* tile, int row, int slice, std::int64_t at) {
        w.scales[static_cast<std::size_t>(at)] =
            static_cast<std::byte>(plain_scale(f, tile, row, slice));
      },
      [] {});
  return w;
}

Result<std::vector<float>> packed_values(std::span<const std::byte> bytes, const Work& work,
                                         const std::string& name) {
  const auto header = parse_header(bytes, name);
  if (!header) return header.refusal();
  const auto values = [&work](const auto& weights) -> Result<std::vector<float>> {
    if (!weights) return weights.refusal();
    return values_of(*weights, work);
  };
  return packed::has_float_codes(header->format) ? values(unpack_e2m1(bytes, work, name))
                                                 : values(unpack(bytes, work, name));
}

MicroSource source_of(const E2m1Weights& w, std::span<const float> factors) {
  MicroSource source{w.origin, w.format, w.extents, {}};
  const std::int64_t codes = w.extents.n * w.extents.k / 2;
  const std::int64_t scales = w.extents.n * (w.extents.k / micro_block(w.format->scale));
  for (std::int64_t e = 0; e < w.extents.experts; ++e) {
    source.experts.push_back({w.codes.data() + e * codes, w.scales.data() + e * scales,
                              factors.empty() ? 1 : factors[static_cast<std::size_t>(e)]});
  }
  return source;
}

std::vector<float> values_of(const E2m1Weights& w, const Work& work) {
  const packed::Extents& e = w.extents;
  const std::int64_t block = micro_block(w.format->scale);
  std::vector<float> values(static_cast<std::size_t>(e.experts * e.n * e.k));
  share(e.experts * e.n, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t row) {
      for (std::int64_t k = 0; k < e.k; ++k) {
        const std::int64_t at = row * e.k + k;
        const auto scale =
            static_cast<std::uint32_t>(w.scales[static_cast<std::size_t>(at / block)]);
        values[static_cast<std::size_t>(at)] =
            static_cast<float>(numeric::to_double(w.format->element, code_at(w.codes.data(), at)) *
                               static_cast<double>(micro::value(w.format->scale, scale)));
      }
    };
  });
  return values;
}

}  // namespace warpwright::weights
