// Weights of 4 bits that lie on a device, before they are packed: a grid looks at them, because the
// form follows from what there is, and the host refuses what is at fault.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/facts/micro_scale.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/facts/stored_scale.h"
#include "warpwright/isa/atomic.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// What may be seen in weights.
enum class Sight : std::uint8_t {
  unusual,     ///< what the host refuses, or may refuse
  least_code,  ///< a code of -8
  zero_point,  ///< one that is not 8
  wide,        ///< a row with scales that are not folded for these tokens
};
inline constexpr int sights = 4;

/// What is told of weights: what was seen in them, and the sum of their tiles.
struct PackingNotes {
  std::uint64_t sum = 0;
  std::uint64_t lacks[sights] = {1, 1, 1, 1};  ///< 0: it was seen

  [[nodiscard]] bool has(Sight sight) const { return lacks[static_cast<int>(sight)] == 0; }
};

/// The part of an offset that is due to the index along an axis: a mode of a layout.
struct AxisOffsets {
  std::int64_t shape[2] = {1, 1};
  std::int64_t stride[3] = {};

  WW_DEVICE std::int64_t operator()(std::int64_t i) const {
    const std::int64_t above = quotient(i, shape[0]);
    const std::int64_t top = quotient(above, shape[1]);
    return (i - above * shape[0]) * stride[0] + (above - top * shape[1]) * stride[1] +
           top * stride[2];
  }
};
struct PlaceOffsets {
  AxisOffsets n;
  AxisOffsets group;

  WW_DEVICE std::int64_t operator()(std::int64_t row, std::int64_t g) const {
    return n(row) + group(g);
  }
};

/// Weights as they lie, experts one behind the other, and the form they get.
struct PackWeightsParams {
  packed::Extents extents;
  PackedFormat format;
  int group = 128;          ///< along K that share a scale, as they lie
  std::int64_t groups = 0;  ///< along K
  DType scale = DType::bf16;
  int slice_bits = 7;  ///< 2 to it is the group of `format`
  bool is_unsigned = false;
  int zero_bias = 0;
  int most_scale = 0xff;  ///< the largest code of a scale that is surely legal, of float codes
  const unsigned char* codes = nullptr;
  const unsigned char* scales = nullptr;
  const unsigned char* zeros = nullptr;  ///< or null
  std::int64_t zeros_pitch = 0;          ///< bytes from expert to expert
  std::int64_t n_step = 0;               ///< words of eight codes from one to the next along N
  std::int64_t k_step = 0;               ///< and along K
  PlaceOffsets scale_places = {};        ///< of int4; those of float codes lie row by row
  PlaceOffsets zero_places = {};         ///< four bits each
  unsigned char* tiles = nullptr;
  PackingNotes* notes = nullptr;
};

/// What both kernels read.
struct PlainWeightsThere {
  const PackWeightsParams& p;

  WW_DEVICE std::uint32_t scale_code(std::int64_t at) const {
    const int bits = numeric::bits(p.scale);
    if (bits == 8) return isa::GlobalView<const unsigned char>{p.scales}.load(at);
    return bits == 16 ? isa::global_view<const std::uint16_t>(p.scales).load(at)
                      : isa::global_view<const std::uint32_t>(p.scales).load(at);
  }
  WW_DEVICE int zero_point(std::int64_t expert, std::int64_t n, std::int64_t g) const {
    const std::int64_t at = p.zero_places(n, g);
    const unsigned two =
        isa::GlobalView<const unsigned char>{p.zeros}.load(expert * p.zeros_pitch + at / 2);
    return static_cast<int>(two >> at % 2 * 4 & 15) + p.zero_bias;
  }
  /// Are the float codes of a scale, the `at`-th of all, all 0?
  WW_DEVICE bool is_zero(std::int64_t at) const {
    const auto pairs = isa::global_view<const isa::Words<2>>(p.codes);
    std::uint32_t all = 0;
    for (int i = 0; i < p.group / 16; ++i) {
      const isa::Words<2> codes = pairs.load(at * (p.group / 16) + i);
      all |= codes.word[0] | codes.word[1];
    }
    return (all & 0x77777777U) == 0;
  }

  /// The least and the largest of a row's ue8m0 scales that count, for all lanes of a warp; where
  /// none does, both 127.
  struct Span {
    int least = 255;
    int largest = -1;
  };
  WW_DEVICE Span span_of_row(std::int64_t row) const {
    Span span;
    for (std::int64_t i = isa::lane_index(); i < p.groups; i += 32) {
      if (is_zero(row * p.groups + i)) continue;
      const int scale = static_cast<int>(scale_code(row * p.groups + i));
      span.least = scale < span.least ? scale : span.least;
      span.largest = scale > span.largest ? scale : span.largest;
    }
    for (int far = 16; far > 0; far /= 2) {
      const int lane = isa::lane_index() ^ far;
      const int least =
          static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(span.least), lane));
      const int largest =
          static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(span.largest), lane));
      span.least = least < span.least ? least : span.least;
      span.largest = largest > span.largest ? largest : span.largest;
    }
    return span.largest < 0 ? Span{127, 127} : span;
  }
};

/// Notes what there is in weights, as far as the form depends on it.
struct LookAtWeights {
  using Params = PackWeightsParams;
  static constexpr int threads = 256;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 4;

  static constexpr int ctas(const Params& p) {
    const std::int64_t rows = p.extents.experts * p.extents.n;
    return static_cast<int>(std::min<std::int64_t>((rows + 7) / 8, 1024));
  }

  WW_DEVICE static void run(const Params& p) {
    isa::set_role("looks at weights");
    const PlainWeightsThere from{p};
    const bool floats = packed::has_float_codes(p.format);
    const std::int64_t rows = p.extents.experts * p.extents.n;
    const std::int64_t scales = rows * p.groups;
    const std::int64_t first = std::int64_t{isa::cta_index()} * threads + isa::thread_index();
    const std::int64_t step = std::int64_t{isa::cta_count()} * threads;
    bool unusual = false;
    for (std::int64_t i = first; i < scales; i += step) {
      const std::uint32_t code = from.scale_code(i);
      unusual |= floats ? is_unusual(p, code) : is_unusual_of_int4(p, code);
    }
    bool zero_point = false;
    if (p.zeros != nullptr) {
      for (std::int64_t i = first; i < scales; i += step) {
        const std::int64_t row = quotient(i, p.groups);
        const std::int64_t expert = quotient(row, p.extents.n);
        const int zero = from.zero_point(expert, row - expert * p.extents.n, i - row * p.groups);
        unusual |= zero > 15;
        zero_point |= zero != 8;
      }
    }
    bool least_code = false;
    if (!floats && p.format.encoding == Int4Encoding::sm) {
      const auto words = isa::global_view<const std::uint32_t>(p.codes);
      for (std::int64_t i = first; i < rows * p.extents.k / 8; i += step) {
        least_code |= packed::has_least_code(words.load(i), p.is_unsigned);
      }
    }
    bool wide = false;
    if (p.format.exponents == Exponents::of_rows) {
      const std::int64_t warps = std::int64_t{isa::cta_count()} * (threads / 32);
      for (std::int64_t row = std::int64_t{isa::cta_index()} * (threads / 32) + isa::warp_index();
           row < rows; row += warps) {
        const PlainWeightsThere::Span span = from.span_of_row(row);
        wide |= !packed::spans(p.format.tokens, span.least, span.largest);
      }
    }
    note(p, Sight::unusual, unusual);
    note(p, Sight::zero_point, zero_point);
    note(p, Sight::least_code, least_code);
    note(p, Sight::wide, wide);
  }

 private:
  WW_DEVICE static bool is_unusual(const Params& p, std::uint32_t code) {
    return code == micro::nan_scale(p.scale) || static_cast<int>(code) > p.most_scale;
  }
  WW_DEVICE_CALLED static bool is_unusual_of_int4(const Params& p, std::uint32_t code) {
    return packed::stored_scale(p.scale, code, p.format).kind > packed::ScaleKind::zero;
  }
  WW_DEVICE static void note(const Params& p, Sight sight, bool seen) {
    if (isa::ballot(seen) != 0 && isa::lane_index() == 0) {
      isa::global_min(&p.notes->lacks[static_cast<int>(sight)], 0);
    }
  }
};

}  // namespace warpwright::kernel
