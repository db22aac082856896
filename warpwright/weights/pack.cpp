#include "warpwright/weights/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "warpwright/facts/format.h"
#include "warpwright/layout/layout.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/weights/tiles.h"

namespace warpwright::weights {
namespace {

using layout::offset_of;
using packed::kTileK;
using packed::kTileRows;
using packed::largest_scale;
using packed::ScaleKind;
using packed::StoredScale;

// Bytes of a float and its code.
std::uint64_t load(const void* at, int bits) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, static_cast<std::size_t>(bits) / 8);
  return word;
}

void store(std::byte* at, std::uint64_t code, int bits) {
  const auto word = static_cast<std::uint32_t>(code);
  std::memcpy(at, &word, static_cast<std::size_t>(bits) / 8);
}

int nibble(const std::byte* bytes, std::int64_t at) {
  return static_cast<int>(bytes[at / 2] >> at % 2 * 4) & 15;
}

std::string place(std::int64_t expert, std::int64_t row) {
  return "row " + std::to_string(row) + " of expert " + std::to_string(expert);
}

// Offsets along both axes of a layout, which is the sum of a part for each.
struct Offsets {
  std::vector<std::int64_t> n;
  std::vector<std::int64_t> x;

  Offsets(const layout::Layout& places, std::int64_t extent_n, std::int64_t extent_x)
      : n(static_cast<std::size_t>(extent_n)), x(static_cast<std::size_t>(extent_x)) {
    for (std::int64_t i = 0; i < extent_n; ++i) n[static_cast<std::size_t>(i)] = places(i, 0);
    for (std::int64_t i = 0; i < extent_x; ++i) x[static_cast<std::size_t>(i)] = places(0, i);
  }
  [[nodiscard]] std::int64_t operator()(std::int64_t i, std::int64_t j) const {
    return n[static_cast<std::size_t>(i)] + x[static_cast<std::size_t>(j)];
  }
};

// Makes the bytes of tiles, one at a time.
class Packer {
 public:
  Packer(const Source& source, const PackedFormat& format)
      : s_(source),
        f_(format),
        groups_(source.extents.k / source.group),
        codes_(source.codes, source.extents.n, source.extents.k),
        scales_(source.scales, source.extents.n, groups_),
        zeros_(source.zeros, format.zero_points == ZeroPoints::groups ? source.extents.n : 0,
               format.zero_points == ZeroPoints::groups ? groups_ : 0) {
    for (int i = 0; i < 16; ++i) {
      const int code = source.is_unsigned ? i - 8 : (i ^ 8) - 8;
      bits_[i] = code < packed::least_code(format.encoding)
                     ? 16  // there is none
                     : static_cast<std::uint8_t>(packed::code_bits(code, format.encoding));
    }
  }

  std::optional<Refusal> pack(std::int64_t tile, std::byte* out) const {
    const std::int64_t k_tiles = packed::k_tiles(s_.extents);
    const std::int64_t row_tiles = packed::row_tiles(s_.extents);
    const std::int64_t expert = tile / k_tiles / row_tiles;
    const std::int64_t n0 = tile / k_tiles % row_tiles * kTileRows;
    const std::int64_t k0 = tile % k_tiles * kTileK;
    std::memset(out, 0, static_cast<std::size_t>(packed::tile_bytes(f_)));
    packed::TileCodes codes = {};  // those of 0 are 0
    for (int row = 0; row < kTileRows; ++row) {
      for (int slice = 0; slice < packed::slices(f_); ++slice) {
        const std::int64_t n = n0 + row;
        const std::int64_t k = k0 + slice * f_.group;
        if (auto fault = slice_of(expert, n < s_.extents.n ? n : -1, k, row, slice, out,
                                  &codes[row][slice * f_.group])) {
          return fault;
        }
      }
    }
    packed::put_codes(codes, f_, out);
    return std::nullopt;
  }

 private:
  // A row's scale and zero point of one slice go to their places, its codes to `codes`. A row of
  // -1 is padding; so is a k behind the last one.
  std::optional<Refusal> slice_of(std::int64_t expert, std::int64_t n, std::int64_t k, int row,
                                  int slice, std::byte* out, std::uint8_t* codes) const {
    const int bits = numeric::bits(f_.scale);
    std::byte* const to =
        out + packed::scales_begin() + offset_of<packed::kScales>(row, slice) * (bits / 8);
    store(to, numeric::from_double(f_.scale, packed::kScaleFactor), bits);
    int zero_point = 8;
    if (n >= 0) {
      const Source::Matrix& m = s_.experts[static_cast<std::size_t>(expert)];
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
  std::uint8_t bits_[16];  // of a code, by its four bits in the source
  std::int64_t groups_;
  Offsets codes_;
  Offsets scales_;
  Offsets zeros_;
};

// Codes and scales of the plain layout.
struct PlainPlaces {
  std::int64_t row_codes;   // bytes
  std::int64_t row_scales;  // elements
  explicit PlainPlaces(const Int4Weights& w)
      : row_codes(w.extents.k / 2), row_scales(w.extents.k / w.group) {}
};

std::int64_t scale_index(const Int4Weights& w, std::int64_t expert, std::int64_t n,
                         std::int64_t k) {
  return (expert * w.extents.n + n) * PlainPlaces(w).row_scales + k / w.group;
}

Int4Weights empty_weights(const packed::Extents& e, int group, DType scale, std::string origin,
                          bool has_zeros) {
  Int4Weights w{e, group, scale, std::move(origin), {}, {}, {}};
  const auto rows = static_cast<std::size_t>(e.experts * e.n);
  const auto scales = rows * static_cast<std::size_t>(PlainPlaces(w).row_scales);
  w.codes.resize(rows * static_cast<std::size_t>(PlainPlaces(w).row_codes));
  w.scales.resize(scales * static_cast<std::size_t>(numeric::bits(scale)) / 8);
  if (has_zeros) w.zeros.resize(scales);
  return w;
}

// The integer nearest to a small number, to even: beyond 2^23 a float has no fraction.
int nearest(float x) {
  constexpr float shift = 12582912;  // 1.5 * 2^23
  return static_cast<int>(x + shift - shift);
}

// Quantises a row: `values` are its weights. Zero points go to `zeros`, where it is not null. Gives
// the place of a weight that is no number.
std::optional<std::int64_t> quantise_row(const std::vector<float>& values, const QuantiseOptions& o,
                                         std::byte* codes, std::byte* scales, std::byte* zeros) {
  const int bits = numeric::bits(o.scale);
  const auto group = static_cast<std::size_t>(o.group);
  const float least = static_cast<float>(packed::least_code(o.encoding));
  for (std::size_t first = 0; first < values.size(); first += group) {
    const float* const x = values.data() + first;
    float high = 0;
    float low = 0;
    float sum = 0;  // NaN or infinite where one of them is
    for (std::size_t i = 0; i < group; ++i) {
      high = std::max(high, x[i]);
      low = std::min(low, x[i]);
      sum += 0 * x[i];
    }
    if (!(sum == 0)) {
      const float* const bad =
          std::find_if(x, x + group, [](float v) { return !std::isfinite(v); });
      return bad - values.data();
    }
    const double exact =
        zeros != nullptr
            ? (static_cast<double>(high) - static_cast<double>(low)) / 15
            : std::max(static_cast<double>(high) / 7, static_cast<double>(low) / least);
    const std::uint64_t code = numeric::from_double(o.scale, exact);
    store(scales, code, bits);
    scales += bits / 8;
    const auto scale = static_cast<float>(numeric::to_double(o.scale, code));
    int offset = 0;  // the zero point less 8
    if (zeros != nullptr) {
      if (scale != 0) offset = nearest(std::clamp(-low / scale, 0.0F, 15.0F)) - 8;
      *zeros++ = static_cast<std::byte>(offset + 8);
    }
    const float lowest = least - static_cast<float>(offset);
    const float highest = 7 - static_cast<float>(offset);
    for (std::size_t i = 0; i < group; i += 2) {
      int pair[2] = {0, 0};
      if (scale != 0) {
        for (std::size_t j = 0; j < 2; ++j) {
          pair[j] = nearest(std::clamp(x[i + j] / scale, lowest, highest)) + offset;
        }
      }
      *codes++ = static_cast<std::byte>((pair[0] & 15) | (pair[1] & 15) << 4);
    }
  }
  return std::nullopt;
}

std::optional<Refusal> weights_fault(const MatrixView& v, const MatrixView& first,
                                     const QuantiseOptions& o) {
  if (v.data == nullptr) return refuse(RefusalCode::bad_pointer, "The weights have no address.");
  if (v.dtype != DType::f32 && v.dtype != DType::bf16 && v.dtype != DType::f16) {
    return refuse(RefusalCode::bad_type, "Weights of ", numeric::word(v.dtype),
                  " are not quantised: ", as_rule("those of f32, bf16 and fp16 are"), ".");
  }
  if (v.rows < 1 || v.columns < 1 || v.batch < 1 || v.rows != first.rows ||
      v.columns != first.columns) {
    return refuse(RefusalCode::bad_shape, "Weights of ", v.batch, " experts are ", v.rows, " x ",
                  v.columns, " where the first are ", first.rows, " x ", first.columns, ": ",
                  as_rule("all experts have one N and K"), ".");
  }
  if (v.column_stride != 1 || v.row_stride < v.columns) {
    return refuse(RefusalCode::bad_stride,
                  "Weights are quantised row by row: ", as_rule("K lies side by side"), ".");
  }
  if (v.columns % o.group != 0) {
    std::int64_t group = 0;
    for (const std::int64_t each : {32, 64, 128}) group = v.columns % each == 0 ? each : group;
    return refuse(RefusalCode::bad_shape, "K = ", v.columns, " is no multiple of the group of ",
                  o.group, ": the nearest legal ", group > 0 ? "group" : "K", " is ",
                  as_nearest(group > 0 ? group : (v.columns + o.group - 1) / o.group * o.group),
                  group > 0 ? "" : zeros_behind, ".");
  }
  return std::nullopt;
}

}  // namespace

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

Refusal code_refusal(std::int64_t expert, std::int64_t n, std::int64_t k) {
  return refuse(RefusalCode::bad_value, "The code of ", place(expert, n), ", k = ", k,
                ", is -8, which the encoding sm does not have: ", as_rule("pack as ex"), ".");
}

int code_of(const Int4Weights& w, std::int64_t expert, std::int64_t n, std::int64_t k) {
  return (nibble(w.codes.data(), (expert * w.extents.n + n) * w.extents.k + k) ^ 8) - 8;
}

double scale_of(const Int4Weights& w, std::int64_t expert, std::int64_t n, std::int64_t k) {
  const int bits = numeric::bits(w.scale);
  return numeric::to_double(
      w.scale, load(w.scales.data() + scale_index(w, expert, n, k) * (bits / 8), bits));
}

int zero_point_of(const Int4Weights& w, std::int64_t expert, std::int64_t n, std::int64_t k) {
  if (w.zeros.empty()) return 8;
  return static_cast<int>(w.zeros[static_cast<std::size_t>(scale_index(w, expert, n, k))]);
}

std::vector<float> values_of(const Int4Weights& w, const Work& work) {
  const std::int64_t rows = w.extents.experts * w.extents.n;
  std::vector<float> values(static_cast<std::size_t>(rows * w.extents.k));
  Teller teller(work, rows);
  share(rows, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t row) {
      float* to = values.data() + row * w.extents.k;
      for (std::int64_t k = 0; k < w.extents.k; k += w.group) {
        const double scale = scale_of(w, 0, row, k);  // rows of all experts, one after the other
        const int zero = zero_point_of(w, 0, row, k) - 8;
        for (std::int64_t i = k; i < k + w.group; ++i) {
          *to++ = static_cast<float>(scale * (code_of(w, 0, row, i) - zero));
        }
      }
      teller.tell();
    };
  });
  return values;
}

Source source_of(const Int4Weights& w) {
  const std::int64_t n = w.extents.n;
  const std::int64_t k = w.extents.k;
  const std::int64_t groups = k / w.group;
  using layout::make_layout;
  using layout::tuple;
  Source s;
  s.origin = w.origin;
  s.extents = w.extents;
  s.group = w.group;
  s.scale = w.scale;
  s.has_zero_points = !w.zeros.empty();
  s.codes = make_layout(tuple(n, k), tuple(k, 1));
  s.scales = make_layout(tuple(n, groups), tuple(groups, 1));
  s.zeros = make_layout(tuple(n, groups), tuple(2 * groups, 2));
  for (std::int64_t e = 0; e < w.extents.experts; ++e) {
    const std::int64_t scales = e * n * groups;
    s.experts.push_back({w.codes.data() + e * n * k / 2,
                         w.scales.data() + scales * numeric::bits(w.scale) / 8,
                         w.zeros.empty() ? nullptr : w.zeros.data() + scales});
  }
  return s;
}

Result<Int4Weights> quantise(std::span<const MatrixView> weights, const QuantiseOptions& options,
                             const Work& work) {
  const PackedFormat format{options.encoding, options.group, options.scale, options.zero_points};
  if (const std::string fault = packed::format_fault(format); !fault.empty()) {
    return refuse(RefusalCode::unsupported, "These cannot be packed: ", fault, ".");
  }
  if (weights.empty()) return refuse(RefusalCode::bad_shape, "There are no weights to quantise.");
  packed::Extents extents{0, weights.front().rows, weights.front().columns};
  std::vector<std::pair<const MatrixView*, std::int64_t>> experts;
  for (const MatrixView& v : weights) {
    if (auto fault = weights_fault(v, weights.front(), options)) return *fault;
    for (std::int64_t b = 0; b < v.batch; ++b) experts.emplace_back(&v, b);
  }
  extents.experts = static_cast<std::int64_t>(experts.size());
  Int4Weights result = empty_weights(extents, options.group, options.scale,
                                     std::string(numeric::word(weights.front().dtype)),
                                     options.zero_points == ZeroPoints::groups);
  const PlainPlaces places(result);
  const std::int64_t rows = extents.experts * extents.n;
  Teller teller(work, rows);
  FirstFault first;
  share(rows, work.threads, [&](int /*worker*/) {
    return [&, values = std::vector<float>(static_cast<std::size_t>(extents.k))](
               std::int64_t row) mutable {
      const auto& [view, matrix] = experts[static_cast<std::size_t>(row / extents.n)];
      const std::int64_t element = matrix * view->batch_stride + row % extents.n * view->row_stride;
      numeric::widen_from(
          static_cast<const std::byte*>(view->data) + element * (numeric::bits(view->dtype) / 8),
          values.data(), values.size(), view->dtype);
      const auto bad = quantise_row(
          values, options, result.codes.data() + row * places.row_codes,
          result.scales.data() + row * places.row_scales * numeric::bits(options.scale) / 8,
          result.zeros.empty() ? nullptr : result.zeros.data() + row * places.row_scales);
      if (bad) {
        first.add(row, refuse(RefusalCode::bad_value, "The weight of ",
                              place(row / extents.n, row % extents.n), ", k = ", *bad,
                              ", is NaN or infinite, which no code stands for."));
      }
      teller.tell();
    };
  });
  if (first.refusal()) return *first.refusal();
  return result;
}

Result<PackedFormat> packed_format(const Source& source, const PackOptions& options) {
  PackedFormat format;
  format.group = std::min(source.group, kTileK);
  format.scale = options.scale.value_or(source.scale);
  format.zero_points = source.has_zero_points ? ZeroPoints::groups : ZeroPoints::none;
  format.tokens = options.tokens;
  if (options.encoding) {
    format.encoding = *options.encoding;
  } else if (format.tokens == DType::e4m3 && !source.has_zero_points && !has_least_code(source)) {
    format.encoding = Int4Encoding::sm;
  }
  if (const std::string fault = packed::format_fault(format); !fault.empty()) {
    return refuse(RefusalCode::unsupported, "These cannot be packed: ", fault, ".");
  }
  return format;
}

Result<std::vector<std::byte>> pack(const Source& source, const PackOptions& options,
                                    const Work& work) {
  const auto format = packed_format(source, options);
  if (!format) return format.refusal();
  const Packer packer(source, *format);
  const std::int64_t k_tiles = packed::k_tiles(source.extents);
  return pack_tiles({*format, source.extents, source.origin}, work,
                    [&](std::int64_t row_tile, std::byte* out) -> std::optional<Refusal> {
                      for (std::int64_t k_tile = 0; k_tile < k_tiles; ++k_tile) {
                        std::byte* const to = out + k_tile * packed::tile_bytes(*format);
                        if (auto fault = packer.pack(row_tile * k_tiles + k_tile, to)) return fault;
                      }
                      return std::nullopt;
                    });
}

Result<Int4Weights> unpack(std::span<const std::byte> bytes, const Work& work,
                           const std::string& name) {
  const auto header = parse_packed(bytes, name);
  if (!header) return header.refusal();
  const PackedFormat& f = header->format;
  if (packed::has_float_codes(f)) {
    return refuse(RefusalCode::unsupported, name, " holds ", numeric::word(f.code),
                  " weights: ", as_rule("only int4 weights are unpacked"), ".");
  }
  const packed::Extents& e = header->extents;
  const bool has_zeros = f.zero_points == ZeroPoints::groups;
  Int4Weights w = empty_weights(e, f.group, f.scale, header->source, has_zeros);
  const int bits = numeric::bits(f.scale);
  Teller teller(work, e.experts * packed::row_tiles(e));
  unpack_tiles(
      *header, bytes, work.threads, w.codes,
      [&](unsigned code) { return static_cast<unsigned>(packed::code_of(code, f.encoding)) & 15U; },
      [&](const std::byte* tile, int row, int slice, std::int64_t at) {
        store(w.scales.data() + at * (bits / 8),
              numeric::from_double(f.scale, packed::scale_in(tile, f, row, slice)), bits);
        if (!has_zeros) return;
        w.zeros[static_cast<std::size_t>(at)] =
            static_cast<std::byte>(packed::zero_point_in(tile, f, row, slice));
      },
      [&] { teller.tell(); });
  return w;
}

}  // namespace warpwright::weights
