// Rows of tokens as the kernels that move them read them: pieces of 32 x 8 elements (of codes 32 x
// 16), which a warp has eight (sixteen) a lane, and the rows of the result that a token becomes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/float_at.h"
#include "warpwright/kernel/quantise/row_pieces.h"

namespace warpwright::kernel {

/// What becomes of a token's row.
enum class RowForm : std::uint8_t {
  none,    ///< nothing: there is nothing to do
  copy,    ///< the same elements
  blocks,  ///< e4m3 with a scale of each 128 elements, or TokenRows::block
  rows,    ///< e4m3 with a scale of the row
  micro,   ///< codes with a scale of each few elements, which lie in tiles (micro_rows.h)
  codes,   ///< e4m3 codes as they are, and their scales
};

/// Rows of tokens and where they go. Addresses and pitches of any multiple of an element are legal;
/// multiples of 16 bytes (8 for codes) are faster.
struct TokenRows {
  const unsigned char* x = nullptr;
  std::int64_t x_pitch = 0;  ///< bytes
  unsigned char* to = nullptr;
  std::int64_t to_pitch = 0;     ///< bytes
  float* scales = nullptr;       ///< of the forms with codes
  std::int64_t scale_pitch = 0;  ///< elements from row to row
  std::int64_t scale_step = 0;   ///< elements from block to block
  /// The sort's: slot -> row, or negative. Null: token t is row t (SlotsInMemory).
  const std::int32_t* rows = nullptr;
  int top_k = 1;  ///< slots of a token, where there are `rows`
  int tokens = 0;
  int k = 0;                 ///< elements of a row
  DType type = DType::bf16;  ///< of x: bf16 or f16, of RowForm::codes e4m3
  RowForm form = RowForm::none;
  int sharers = 1;  ///< warps of a CTA that share a row of RowForm::rows (sharers_of)
  /// What elements of 16 bits are multiplied by, in float32 and rounded to x's type: a weight for
  /// each token. Null: nothing.
  const void* weights = nullptr;
  std::int64_t weight_pitch = 0;   ///< elements from token to token
  DType weight_type = DType::f32;  ///< f32, bf16 or f16
  // For RowForm::codes the scales of x, as `scales` are.
  const float* x_scales = nullptr;
  std::int64_t x_scale_pitch = 0;
  std::int64_t x_scale_step = 0;
  bool scales_blocks = false;  ///< of each `block` elements, else of rows
  int block = 128;  ///< elements with a scale of RowForm::blocks, and of codes: 128, 64 or 32
};

/// How a warp takes rows: pieces of 32 x 8 elements, of codes of twice as many.
struct TokenPieceShape {
  static constexpr int each = 8;           ///< elements of a lane: 16 bytes
  static constexpr int piece = 32 * each;  ///< elements of a warp at a time
  static constexpr int at_once = 2;        ///< pieces of a warp that are on their way

  static constexpr int elements_of_lane(const TokenRows& p) {
    return p.form == RowForm::codes ? 2 * each : each;
  }
  /// For a row.
  static constexpr int pieces(const TokenRows& p) {
    const int elements = 32 * elements_of_lane(p);
    return (p.k + elements - 1) / elements;
  }
};

/// What a warp takes of the items that are shared out: `first` and every `step`-th before `end`.
struct WarpShare {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t end = 0;
  /// Where warps that share a row meet: words_a_warp for each warp of the CTA.
  isa::SharedAddress meeting = 0;
  static constexpr int words_a_warp = 2;
};

/// A launch whose warps do nothing but move rows.
struct RowsLaunch {
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 4 * WarpShare::words_a_warp * warps;
  static constexpr int ctas_an_sm = 4;

 protected:
  /// CTAs for so many items on a device of `sms` SMs; 0: there is nothing to do.
  static int ctas_for(std::int64_t items, int sms) {
    const std::int64_t wanted = (items + warps - 1) / warps;
    return static_cast<int>(std::min<std::int64_t>(wanted, std::int64_t{ctas_an_sm} * sms));
  }
  WW_DEVICE static WarpShare share_of(std::int64_t items) {
    return {isa::cta_index() * warps + isa::warp_index(), isa::cta_count() * warps, items,
            isa::shared_base()};
  }
};

/// The rows of slots, and where those of experts begin, as an earlier grid has left them.
class SlotsInMemory {
 public:
  WW_DEVICE explicit SlotsInMemory(const TokenRows& p, const std::int32_t* offsets = nullptr)
      : rows_(p.rows), offsets_(offsets) {}

  /// Else token t is row t.
  [[nodiscard]] WW_DEVICE bool have_rows() const { return rows_ != nullptr; }
  [[nodiscard]] WW_DEVICE int row(std::int64_t slot) const {
    return isa::GlobalView<const std::int32_t>{rows_}.load(slot);
  }
  [[nodiscard]] WW_DEVICE int offset(int expert) const {
    return isa::GlobalView<const std::int32_t>{offsets_}.load(expert);
  }

 private:
  const std::int32_t* rows_;
  const std::int32_t* offsets_;
};

/// The first values of eight of bf16 or f16 as floats, and back.
template <DType type, int N>
WW_DEVICE void widen(const Eight& chunk, float (&value)[N]) {
  WW_UNROLL
  for (int i = 0; i < N / 2; ++i) {
    const isa::Pair pair = isa::unpack<type>(&chunk.word[i]);
    value[2 * i] = pair.low;
    value[2 * i + 1] = pair.high;
  }
}
template <int N>
WW_DEVICE void widen(const Eight& chunk, DType type, float (&value)[N]) {
  if (type == DType::bf16) {
    widen<DType::bf16>(chunk, value);
    isa::keep_order();  // a jump, not both and a selection
  } else {
    widen<DType::f16>(chunk, value);
  }
}
template <int N>
WW_DEVICE Eight narrowed(const float (&value)[N], DType type) {
  Eight made{};
  WW_UNROLL
  for (int i = 0; i < N / 2; ++i) {
    const float low = value[2 * i];
    const float high = value[2 * i + 1];
    made.word[i] =
        type == DType::bf16 ? isa::pack<DType::bf16>(low, high) : isa::pack<DType::f16>(low, high);
  }
  return made;
}

/// Elements of x as they are, times the token's weight where there are weights. As all that reads
/// rows, in two steps: several loads are on their way before the first is waited for.
class ReadTokens {
 public:
  static constexpr bool has_codes = true;  ///< RowForm::codes
  static constexpr int kept = 4;  ///< pieces of a row with one scale that a warp has in registers
  using Raw = Eight;              ///< what is loaded

  WW_DEVICE explicit ReadTokens(const TokenRows& p)
      : whole_(begin_at_multiples<16>(p.x, p.x_pitch)) {}

  WW_DEVICE Raw load(const TokenRows& p, int token, int column) const {
    return load_eight(p.x + token * p.x_pitch, column, p.k, whole_);
  }
  /// What that becomes.
  WW_DEVICE Eight made(const TokenRows& p, int token, const Raw& chunk) const {
    if (p.weights == nullptr) return chunk;
    return times(p, float_at(p.weights, p.weight_type, token * p.weight_pitch), chunk);
  }
  WW_DEVICE Sixteen load_codes(const TokenRows& p, int token, int column) const {
    return load_sixteen(p.x + token * p.x_pitch, column, p.k, whole_);
  }

 private:
  /// By a loop, which is short: words take turns in the first place.
  WW_DEVICE static Eight times(const TokenRows& p, float weight, Eight chunk) {
    WW_NO_UNROLL
    for (int i = 0; i < 4; ++i) {
      float value[2];
      widen(chunk, p.type, value);
      WW_UNROLL
      for (float& each : value) each *= weight;
      const Eight made = narrowed(value, p.type);
      chunk = {{chunk.word[1], chunk.word[2], chunk.word[3], made.word[0]}};
    }
    return chunk;
  }

  bool whole_;
};

/// A warp's view of them, with the rows of slots as `Slots` has them (SlotsInMemory, or those that
/// a CTA has found itself), and elements as `Read` makes them (ReadTokens, or a gate of two).
/// TokenRowsMover and MicroRowsMover move them.
template <class Slots, class Read>
class TokenPieces : protected TokenPieceShape {
 protected:
  /// Takes the proof that x and the rows are there.
  WW_DEVICE TokenPieces(const TokenRows& p, const Slots& slots, const Read& read,
                        const isa::Prerequisites& /*ready*/)
      : p_(p), slots_(slots), lane_(isa::lane_index()), read_(read) {}

  // --- rows of the result -----------------------------------------------------------------------

  /// For the slot `first` + lane of a token; -1 where there is none.
  WW_DEVICE int row_of_lane(int token, int first) const {
    if (!slots_.have_rows() || first + lane_ >= p_.top_k) return -1;
    return slots_.row(std::int64_t{token} * p_.top_k + first + lane_);
  }

  /// All lanes: the rows that a token becomes. `row` is row_of_lane(token, 0).
  template <class Use>
  WW_DEVICE void for_each_row(int token, int row, const Use& use) const {
    if (!slots_.have_rows()) {
      use(std::int64_t{token});
      return;
    }
    for (int first = 0;;) {
      std::uint32_t left = isa::ballot(row >= 0);
      while (left != 0) {
        const int lane = isa::lowest_lane(left);
        left &= left - 1;
        use(static_cast<std::int64_t>(isa::shuffle(static_cast<std::uint32_t>(row), lane)));
      }
      first += 32;
      if (first >= p_.top_k) return;
      row = row_of_lane(token, first);
    }
  }

  // --- elements ---------------------------------------------------------------------------------

  using Raw = typename Read::Raw;
  WW_DEVICE Raw load(int token, int column) const { return read_.load(p_, token, column); }
  WW_DEVICE Eight made(int token, const Raw& raw) const { return read_.made(p_, token, raw); }
  WW_DEVICE Sixteen load_codes(int token, int column) const {
    return read_.load_codes(p_, token, column);
  }

  WW_DEVICE void widen(const Eight& chunk, float (&value)[each]) const {
    kernel::widen(chunk, p_.type, value);
  }

  const TokenRows& p_;
  Slots slots_;
  int lane_;

 private:
  Read read_;
};

}  // namespace warpwright::kernel
