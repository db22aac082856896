// Rows that become codes (device/quantise.h): how the kernels that quantise read them, share them
// out and store codes. Their work is memory's: x is read once (twice, mostly out of a cache, where
// a scale reaches farther than a CTA's registers), codes and scales are written once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/atomic.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/e4m3_divisor.h"
#include "warpwright/kernel/quantise/codes.h"
#include "warpwright/kernel/quantise/row_pieces.h"

namespace warpwright::kernel {

/// Rows to quantise, and where codes and scales of float32 go.
struct QuantisedRows {
  const unsigned char* x = nullptr;
  unsigned char* codes = nullptr;
  float* scales = nullptr;
  std::int64_t x_pitch = 0;      ///< bytes
  std::int64_t codes_pitch = 0;  ///< bytes
  std::int64_t scale_pitch = 0;  ///< elements from row to row
  std::int64_t scale_step = 0;   ///< elements from block to block
  int rows = 0;
  int k = 0;        ///< elements of a row
  int block = 128;  ///< of Scaling::blockwise: elements that share a scale, 128, 64 or 32
  int across = 1;   ///< CTAs that share a row: QuantiseShape::ctas_across
};

/// A kernel that quantises: CTAs with 8 neighbours along K a thread at a time.
struct QuantiseShape {
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 4;
  static constexpr int each = 8;  ///< elements of a thread: 16 bytes of 16-bit ones
  static constexpr int piece = threads * each;
  static constexpr int at_once = 4;  ///< pieces of a thread that are on their way

  static constexpr int ctas_across(int k) { return std::clamp((k + piece - 1) / piece, 1, 1024); }
  /// CTAs of a launch: enough for every SM of a large device, with several rows each where there
  /// are so many.
  static constexpr int ctas(const QuantisedRows& r) {
    return r.across * std::clamp(r.rows, 1, std::max(1, 4096 / r.across));
  }
};

/// Elements of a row from `k` on; those behind the last count as 0. `whole`: rows of x begin at
/// multiples of 8 elements.
template <DType type, bool whole>
WW_DEVICE void load_values(const QuantisedRows& r, int row, int k, float (&value)[8]) {
  const unsigned char* const from = r.x + row * r.x_pitch;
  if constexpr (type == DType::f32) {
    const auto element = isa::global_view<const float>(from + std::int64_t{k} * 4);
    if (whole && k + 8 <= r.k) {
      WW_UNROLL
      for (int i = 0; i < 2; ++i) {
        const Eight four = isa::global_view<const Eight>(from + std::int64_t{k} * 4).load(i);
        WW_UNROLL
        for (int j = 0; j < 4; ++j) value[4 * i + j] = isa::float_of(four.word[j]);
      }
      return;
    }
    WW_UNROLL
    for (int i = 0; i < 8; ++i) value[i] = k + i < r.k ? element.load(i) : 0.0F;
  } else {
    const Eight eight = load_eight(from, k, r.k, whole);
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const isa::Pair pair = isa::unpack<type>(&eight.word[i]);
      value[2 * i] = pair.low;
      value[2 * i + 1] = pair.high;
    }
  }
}

/// x / by.scale, as IEEE 754 rounds it, as far as codes can tell; NaN of an infinity.
WW_DEVICE void divide(const E4m3Divisor& by, const float (&value)[8], float (&quotient)[8]) {
  const bool usual =
      by.scale > 0x1p-60F && by.scale < 0x1p60F && largest_magnitude(value) * by.inverse < 0x1p60F;
  if (usual) {
    WW_UNROLL
    for (int i = 0; i < 8; ++i) quotient[i] = by.usual_quotient(value[i]);
  } else {
    WW_UNROLL
    for (int i = 0; i < 8; ++i) quotient[i] = unless_infinite(value[i] / by.scale, value[i]);
  }
}

/// The elements of x in a grid of QuantiseShape::ctas: each row is shared by r.across CTAs, which
/// take every so manieth row. Calls load(row, k, values) for `at_once` rows, then use(row, k,
/// values), by all lanes of a warp, also where k is behind the row; `use` for `rows` rows, which
/// may be more.
template <int at_once, class Load, class Use>
WW_DEVICE void for_each_piece(const QuantisedRows& r, int rows, const Load& load, const Use& use) {
  const auto across = static_cast<unsigned>(r.across);
  const unsigned down = static_cast<unsigned>(isa::cta_count()) / across;
  const unsigned first_row = static_cast<unsigned>(isa::cta_index()) / across;
  const unsigned column = static_cast<unsigned>(isa::cta_index()) - first_row * across;
  constexpr std::int64_t piece = QuantiseShape::piece;
  for (std::int64_t begin = column * piece; begin < r.k; begin += across * piece) {
    const int k = static_cast<int>(begin) + isa::thread_index() * QuantiseShape::each;
    for (std::int64_t first = first_row; first < rows; first += std::int64_t{at_once} * down) {
      float value[at_once][QuantiseShape::each] = {};
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        const std::int64_t row = first + std::int64_t{i} * down;
        if (row < r.rows && k < r.k) load(static_cast<int>(row), k, value[i]);
      }
      WW_UNROLL
      for (int i = 0; i < at_once; ++i) {
        const std::int64_t row = first + std::int64_t{i} * down;
        if (row < rows) use(static_cast<int>(row), k, value[i]);
      }
    }
  }
}

/// The largest that the threads of a CTA hold, none of them negative. Takes shared memory of
/// kLargestBytes, once.
inline constexpr int kLargestBytes = 4 * QuantiseShape::warps;
WW_DEVICE float largest_of_cta(float largest) {
  const float mine = largest_of_lanes<1, 32>(largest);
  if (isa::lane_index() == 0) {
    isa::SharedView<float>{isa::shared_base()}.store(isa::thread_index() / 32, mine);
  }
  isa::sync_threads(QuantiseShape::threads);
  float all = 0;
  WW_UNROLL
  for (int i = 0; i < QuantiseShape::warps / 4; ++i) {
    const auto four = isa::SharedView<isa::Words<4>>{isa::shared_base()}.load(i);
    WW_UNROLL
    for (int j = 0; j < 4; ++j) all = isa::larger_magnitude(all, isa::float_of(four.word[j]));
  }
  return all;
}

/// The largest finite magnitude of all, in r.scales, which was 0.
template <DType type, bool whole>
struct FindLargest : QuantiseShape {
  using Params = QuantisedRows;
  static constexpr int shared_bytes = kLargestBytes;
  static constexpr int ctas_an_sm = 5;  // it waits for memory: at most 48 registers

  WW_DEVICE static void run(const Params& r) {
    isa::set_role("finds the largest");
    float largest = 0;
    for_each_piece<at_once>(
        r, r.rows,
        [&](int row, int k, float(&value)[each]) { load_values<type, whole>(r, row, k, value); },
        [&](int /*row*/, int /*k*/, const float(&value)[each]) {
          largest = larger_finite(largest, value);
        });
    const float of_cta = largest_of_cta(largest);
    if (isa::thread_index() == 0) isa::global_max(r.scales, of_cta);
  }
};

}  // namespace warpwright::kernel
