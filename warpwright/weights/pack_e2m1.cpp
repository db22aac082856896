#include "warpwright/weights/pack_e2m1.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "warpwright/facts/micro_scale.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/facts/packed_places.h"
#include "warpwright/facts/share.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"

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
    std::uint8_t codes[kTileRows][kTileK] = {};
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
    for (int word = 0; word < packed::kTileCodeBytes / 4; ++word) {
      const auto [row, k] = packed::word_place(f_, word);
      std::uint32_t bits = 0;
      for (int i = 0; i < 4; ++i) {
        const int at = k + packed::quad_step(f_, i);
        bits |= static_cast<std::uint32_t>(codes[row][at] | codes[row + 8][at] << 4) << 8 * i;
      }
      bits = packed::word_of(f_, bits);
      std::memcpy(out + 4 * word, &bits, 4);
    }
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
  if (source.format->element != DType::e2m1) {
    return refuse(RefusalCode::unsupported, "These are ", source.format->word, "; ",
                  as_rule("what is packed for tokens are mxf4 and nvf4, and fp8 is multiplied as "
                          "it is"),
                  ".");
  }
  const DType scale = source.format->scale;
  const DType usual = scale == DType::ue4m3 ? DType::bf16 : DType::e4m3;
  PackedFormat f = packed::e2m1_format(scale, options.tokens.value_or(usual));
  f.exponents = options.exponents.value_or(f.exponents);
  if (const char* fault = packed::format_fault(f)) {
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
  const packed::Extents& e = source.extents;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(packed::kHeaderBytes + packed::data_bytes(*format, e)));
  const auto data = std::span(bytes).subspan(packed::kHeaderBytes);
  const RowPacker packer(source, *format);
  const std::int64_t pieces = e.experts * packed::row_tiles(e);
  const std::int64_t piece_bytes = packed::k_tiles(e) * packed::tile_bytes(*format);
  std::mutex mutex;
  std::int64_t done = 0;
  share(pieces, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t piece) {
      packer.pack(piece, data.data() + piece * piece_bytes);
      if (!work.progress) return;
      const std::lock_guard lock(mutex);
      work.progress(static_cast<double>(++done) / static_cast<double>(pieces));
    };
  });
  Header header{*format, e, source.origin, sum_of(data, work.threads)};
  if (Header::has_factor(*format)) {
    const float first = source.experts.front().tensor;
    const bool alike = std::ranges::all_of(
        source.experts, [&](const MicroSource::Matrix& m) { return m.tensor == first; });
    header.factor = alike ? first : kFactorEach;
  }
  const HeaderBytes written = header_bytes(header);
  std::copy(written.begin(), written.end(), bytes.begin());
  return bytes;
}

namespace {

// The ue4m3 whose stored form this is; for 0 the least, for a scale of 0 has codes 0.
std::uint8_t ue4m3_of(std::uint32_t stored) {
  for (std::uint32_t code = 1; code < 0x7f; ++code) {
    if (packed::stored_ue4m3(code) == stored) return static_cast<std::uint8_t>(code);
  }
  return 0;
}

// Unpacks the tiles of 64 rows.
class RowUnpacker {
 public:
  RowUnpacker(const PackedFormat& format, E2m1Weights& to) : f_(format), to_(to) {
    for (std::uint32_t stored = 0; stored < 256; ++stored) numbers_[stored] = ue4m3_of(stored);
  }

  // `tiles` is where the first of the row tile's tiles lies.
  void unpack(std::int64_t row_tile, const std::byte* tiles) const {
    const packed::Extents& e = to_.extents;
    const std::int64_t row_tiles = packed::row_tiles(e);
    const std::int64_t n0 = row_tile % row_tiles * kTileRows;
    const std::int64_t first = row_tile / row_tiles * e.n + n0;
    const int rows = static_cast<int>(std::min<std::int64_t>(kTileRows, e.n - n0));
    for (std::int64_t k_tile = 0; k_tile < packed::k_tiles(e); ++k_tile) {
      const std::byte* const tile = tiles + k_tile * packed::tile_bytes(f_);
      unpack_codes(tile, first, rows, k_tile * kTileK);
      unpack_scales(tile + packed::scales_begin(), first, rows, k_tile * kTileK);
    }
  }

 private:
  void unpack_codes(const std::byte* tile, std::int64_t first, int rows, std::int64_t k0) const {
    const std::int64_t columns = to_.extents.k - k0;
    for (int word = 0; word < packed::kTileCodeBytes / 4; ++word) {
      const auto [upper, k] = packed::word_place(f_, word);
      std::uint32_t stored = 0;
      std::memcpy(&stored, tile + 4 * word, 4);
      const std::uint32_t bits = packed::bits_of(f_, stored);
      for (int below = 0; below < 2; ++below) {
        const int row = upper + 8 * below;
        if (row >= rows) continue;
        for (int i = 0; i < 4; i += 2) {  // neighbours along K
          const int at = k + packed::quad_step(f_, i);
          if (at >= columns) continue;
          const std::uint32_t low = bits >> (8 * i + 4 * below) & 15U;
          const std::uint32_t high = bits >> (8 * i + 8 + 4 * below) & 15U;
          to_.codes[static_cast<std::size_t>(((first + row) * to_.extents.k + k0 + at) / 2)] =
              static_cast<std::byte>(low | high << 4);
        }
      }
    }
  }

  void unpack_scales(const std::byte* scales, std::int64_t first, int rows, std::int64_t k0) const {
    const std::int64_t of_row = to_.extents.k / f_.group;
    for (int row = 0; row < rows; ++row) {
      const std::byte* const bytes = scales + packed::scale_byte(f_, row, 0);
      std::uint32_t word = 0;
      std::memcpy(&word, bytes, 4);
      const auto unit = static_cast<int>(packed::unit_in(word));
      for (int slice = 0; slice < packed::slices(f_); ++slice) {
        const std::int64_t at = k0 / f_.group + slice;
        if (at >= of_row) break;
        const auto stored = static_cast<std::uint32_t>(bytes[slice]);
        to_.scales[static_cast<std::size_t>((first + row) * of_row + at)] =
            static_cast<std::byte>(scale(stored, unit));
      }
    }
  }

  [[nodiscard]] std::uint32_t scale(std::uint32_t stored, int unit) const {
    if (f_.scale == DType::ue4m3) return numbers_[stored];
    if (f_.exponents == Exponents::own) return stored;
    const int x = static_cast<int>(stored & packed::kExponentMask);
    return static_cast<std::uint32_t>(
        std::clamp(x - packed::exponent_range(f_.tokens).bias + unit, 0, 254));
  }

  PackedFormat f_;
  E2m1Weights& to_;
  std::uint8_t numbers_[256] = {};
};

}  // namespace

Result<E2m1Weights> unpack_e2m1(std::span<const std::byte> bytes, const Work& work,
                                const std::string& name) {
  const auto header = parse_packed(bytes, name);
  if (!header) return header.refusal();
  const PackedFormat& f = header->format;
  if (f.code != DType::e2m1) {
    return refuse(RefusalCode::unsupported, name,
                  " holds int4 weights: ", as_rule("these are unpacked as what they are"), ".");
  }
  const packed::Extents& e = header->extents;
  E2m1Weights w{e, micro_format(f.code, f.scale), header->source, {}, {}};
  w.codes.resize(static_cast<std::size_t>(e.experts * e.n * e.k / 2));
  w.scales.resize(static_cast<std::size_t>(e.experts * e.n * (e.k / f.group)));
  const RowUnpacker unpacker(f, w);
  const std::int64_t piece_bytes = packed::k_tiles(e) * packed::tile_bytes(f);
  share(e.experts * packed::row_tiles(e), work.threads, [&](int /*worker*/) {
    return [&](std::int64_t piece) {
      unpacker.unpack(piece, bytes.data() + packed::kHeaderBytes + piece * piece_bytes);
    };
  });
  return w;
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
            static_cast<float>(numeric::to_double(DType::e2m1, code_at(w.codes.data(), at)) *
                               static_cast<double>(micro::value(w.format->scale, scale)));
      }
    };
  });
  return values;
}

}  // namespace warpwright::weights
