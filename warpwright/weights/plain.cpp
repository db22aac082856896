#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "warpwright/layout/layout.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/weights/pack.h"
#include "warpwright/weights/tiles.h"

namespace warpwright::weights {
namespace {

// Codes and scales of the plain layout.
struct PlainPlaces {
  std::int64_t row_codes;   // bytes
  std::int64_t row_scales;  // elements
  explicit PlainPlaces(const PlainWeights& w)
      : row_codes(w.extents.k / 2), row_scales(w.extents.k / w.group) {}
};

std::int64_t scale_index(const PlainWeights& w, std::int64_t expert, std::int64_t n,
                         std::int64_t k) {
  return (expert * w.extents.n + n) * PlainPlaces(w).row_scales + k / w.group;
}

PlainWeights empty_weights(const packed::Extents& e, int group, DType scale, std::string origin,
                           bool has_zeros) {
  PlainWeights w{e, group, scale, std::move(origin), {}, {}, {}};
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

double code_of(const PlainWeights& w, std::int64_t expert, std::int64_t n, std::int64_t k) {
  const int bits = nibble(w.codes.data(), (expert * w.extents.n + n) * w.extents.k + k);
  return w.code == DType::s4 ? (bits ^ 8) - 8
                             : numeric::to_double(w.code, static_cast<std::uint32_t>(bits));
}

double scale_of(const PlainWeights& w, std::int64_t expert, std::int64_t n, std::int64_t k) {
  const int bits = numeric::bits(w.scale);
  return numeric::to_double(
      w.scale, load(w.scales.data() + scale_index(w, expert, n, k) * (bits / 8), bits));
}

int zero_point_of(const PlainWeights& w, std::int64_t expert, std::int64_t n, std::int64_t k) {
  if (w.zeros.empty()) return 8;
  return static_cast<int>(w.zeros[static_cast<std::size_t>(scale_index(w, expert, n, k))]);
}

std::vector<float> values_of(const PlainWeights& w, const Work& work) {
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

Source plain_source(const packed::Extents& e, int group, DType scale, std::string origin,
                    const std::byte* codes, const std::byte* scales, const std::byte* zeros,
                    DType code) {
  const std::int64_t groups = e.k / group;
  using layout::make_layout;
  using layout::tuple;
  Source s;
  s.origin = std::move(origin);
  s.extents = e;
  if (code != DType::s4) s.format = micro_format(code, scale);
  s.group = group;
  s.scale = scale;
  s.has_zero_points = zeros != nullptr;
  s.codes = make_layout(tuple(e.n, e.k), tuple(e.k, 1));
  s.scales = make_layout(tuple(e.n, groups), tuple(groups, 1));
  s.zeros = make_layout(tuple(e.n, groups), tuple(2 * groups, 2));
  for (std::int64_t i = 0; i < e.experts; ++i) {
    const std::int64_t first = i * e.n * groups;
    s.experts.push_back({codes + i * e.n * e.k / 2, scales + first * numeric::bits(scale) / 8,
                         zeros == nullptr ? nullptr : zeros + first, 1});
  }
  return s;
}

Source source_of(const PlainWeights& w, std::span<const float> factors) {
  Source s = plain_source(w.extents, w.group, w.scale, w.origin, w.codes.data(), w.scales.data(),
                          w.zeros.empty() ? nullptr : w.zeros.data(), w.code);
  for (std::size_t e = 0; e < factors.size(); ++e) s.experts[e].tensor = factors[e];
  return s;
}

Result<PlainWeights> quantise(std::span<const MatrixView> weights, const QuantiseOptions& options,
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
  PlainWeights result = empty_weights(extents, options.group, options.scale,
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

Result<PlainWeights> unpack(std::span<const std::byte> bytes, const Work& work,
                            const std::string& name) {
  const auto header = parse_packed(bytes, name);
  if (!header) return header.refusal();
  const PackedFormat& f = header->format;
  const packed::Extents& e = header->extents;
  const bool floats = packed::has_float_codes(f);
  const bool has_zeros = f.zero_points == ZeroPoints::groups;
  PlainWeights w = empty_weights(e, f.group, f.scale, header->source, has_zeros);
  w.code = f.code;
  const int bits = numeric::bits(f.scale);
  Teller teller(work, e.experts * packed::row_tiles(e));
  unpack_tiles(
      *header, bytes, work.threads, w.codes,
      [&](unsigned code) {
        return floats ? code : static_cast<unsigned>(packed::code_of(code, f.encoding)) & 15U;
      },
      [&](const std::byte* tile, int row, int slice, std::int64_t at) {
        store(w.scales.data() + at * (bits / 8),
              floats ? plain_scale(f, tile, row, slice)
                     : numeric::from_double(f.scale, packed::scale_in(tile, f, row, slice)),
              bits);
        if (!has_zeros) return;
        w.zeros[static_cast<std::size_t>(at)] =
            static_cast<std::byte>(packed::zero_point_in(tile, f, row, slice));
      },
      [&] { teller.tell(); });
  return w;
}

}  // namespace warpwright::weights
