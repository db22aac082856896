#include "warpwright/weights/fp8.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "warpwright/facts/format.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/tiles.h"

namespace warpwright::weights {
namespace {

constexpr std::int64_t block = scale_block;
constexpr double largest_e4m3 = 448;

std::int64_t fp8_blocks(std::int64_t extent) {
  return (extent + block - 1) / block;
}

// A weight that e4m3 does not have in its block's unit.
struct Unfit {
  std::int64_t expert, row, k;
  double value, unit;
};

// The weights of an expert.
struct ExpertValues {
  const Source& s;
  const Source::Matrix& m;

  [[nodiscard]] double value(std::int64_t n, std::int64_t k) const {
    const std::int64_t at = n * s.extents.k + k;
    const std::uint32_t code = static_cast<std::uint32_t>(m.codes[at / 2]) >> at % 2 * 4 & 15U;
    const auto scale = static_cast<std::uint32_t>(m.scales[at / micro_block(s.format->scale)]);
    return numeric::to_double(DType::e2m1, code) *
           static_cast<double>(micro::value(s.format->scale, scale));
  }
};

// The least power of two over which the largest of all is a number of e4m3's.
double unit_for(double largest) {
  if (largest == 0) return 1;
  int exponent = 0;
  const double fraction = std::frexp(largest / largest_e4m3, &exponent);  // of 0.5 to 1
  return std::ldexp(1, fraction == 0.5 ? exponent - 1 : exponent);
}

// Converts a block of an expert; what does not fit, or nothing.
std::optional<Unfit> convert_block(const ExpertValues& from, std::int64_t expert, std::int64_t n0,
                                   std::int64_t k0, Fp8Weights& to) {
  const packed::Extents& e = to.extents;
  const std::int64_t n1 = std::min(e.n, n0 + block);
  const std::int64_t k1 = std::min(e.k, k0 + block);
  double largest = 0;
  for (std::int64_t n = n0; n < n1; ++n) {
    for (std::int64_t k = k0; k < k1; ++k) {
      largest = std::max(largest, std::abs(from.value(n, k)));
    }
  }
  const double unit = unit_for(largest);
  const auto scale = static_cast<float>(unit * static_cast<double>(from.m.tensor));
  for (std::int64_t n = n0; n < n1; ++n) {
    for (std::int64_t k = k0; k < k1; ++k) {
      const double value = from.value(n, k);
      const std::uint64_t code = numeric::from_double(DType::e4m3, value / unit);
      if (numeric::to_double(DType::e4m3, code) * unit != value) {
        return Unfit{expert, n, k, value, unit};
      }
      to.codes[static_cast<std::size_t>((expert * e.n + n) * e.k + k)] =
          static_cast<std::byte>(code);
    }
  }
  const std::int64_t at = (expert * fp8_blocks(e.n) + n0 / block) * fp8_blocks(e.k) + k0 / block;
  to.scales[static_cast<std::size_t>(at)] = scale;
  return std::nullopt;
}

Refusal unfit_refusal(const Unfit& u, const MicroFormat& format) {
  const auto text = [](double x) { return warpwright::format("%.6g", x); };
  return refuse(
      RefusalCode::unsupported, "The weight of row ", u.row, " and k = ", u.k, " of expert ",
      u.expert, " is ", text(u.value), ", and the scale of its block of 128 x 128 in e4m3 ",
      text(u.unit), "; ",
      format.scale == DType::ue8m0
          ? as_rule("none is rounded where the scales of a block span at most 15 powers of two")
          : as_rule("none is rounded where scales are powers of two, as those of mxf4 are"),
      ": the nearest is to keep them packed.");
}

}  // namespace

Result<Fp8Weights> as_fp8(const Source& source, const Work& work) {
  if (source.format == nullptr) {
    return refuse(RefusalCode::unsupported, "These are int4 weights: ",
                  as_rule("those of mxf4 become fp8 without being rounded"), ".");
  }
  if (source.format->element != DType::e2m1) {
    return refuse(RefusalCode::unsupported, "These weights are fp8 already (", source.format->word,
                  "): ", as_rule("they are multiplied as they are"), ".");
  }
  const packed::Extents& e = source.extents;
  Fp8Weights w{e, {}, {}};
  w.codes.resize(static_cast<std::size_t>(e.experts * e.n * e.k));
  w.scales.resize(static_cast<std::size_t>(e.experts * fp8_blocks(e.n) * fp8_blocks(e.k)));
  const std::int64_t lines = e.experts * fp8_blocks(e.n);
  Teller teller(work, lines);
  FirstFault first;
  share(lines, work.threads, [&](int /*worker*/) {
    return [&](std::int64_t line) {
      const std::int64_t expert = line / fp8_blocks(e.n);
      const ExpertValues from{source, source.experts[static_cast<std::size_t>(expert)]};
      std::optional<Unfit> unfit;
      for (std::int64_t k0 = 0; k0 < e.k && !unfit; k0 += block) {
        unfit = convert_block(from, expert, line % fp8_blocks(e.n) * block, k0, w);
      }
      if (unfit) first.add(line, unfit_refusal(*unfit, *source.format));
      teller.tell();
    };
  });
  if (first.refusal()) return *first.refusal();
  const auto is_number = [](float scale) { return std::isfinite(scale) && scale > 0; };
  if (!std::ranges::all_of(w.scales, is_number)) {
    return refuse(RefusalCode::unsupported, "The scale of a block times the factor of the tensor ",
                  "is no positive float32: ", as_rule("the nearest is to keep them packed"), ".");
  }
  return w;
}

}  // namespace warpwright::weights
