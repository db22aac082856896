// Rows of tokens, and rows between two products, as codes with a scale for each few elements, which
// the tensor core multiplies (docs/low_precision.md). Scales lie in tiles of 128 rows x 4, in which
// every expert begins with a tile of its own (facts/block_scales.h).
//
// A warp takes a part of a token's row. It first finds where the rows of the token's slots have
// their scales: lanes have an expert each, 32 at a step, and every slot's lane looks for its own
// among them.
#pragma once

#include <cstdint>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/moe/token_pieces.h"
#include "warpwright/kernel/quantise/codes.h"
#include "warpwright/kernel/quotient.h"

namespace warpwright::kernel {

/// What RowForm::micro takes beside TokenRows, whose scales are not used. A row outside of all
/// experts is left out.
struct MicroRows {
  DType element = DType::e4m3;  ///< e4m3 or e2m1
  DType scale = DType::ue8m0;
  std::uint8_t* tiles = nullptr;  ///< the scales, by rows of the result in the order of experts
  int columns = 0;                ///< of them, whole tiles
  const float* tensor = nullptr;  ///< the scale of the whole tensor; null: 1
  const std::int32_t* offsets = nullptr;  ///< the sort's: where the rows of an expert begin
  int experts = 0;
  bool by_token = false;  ///< codes are stored once, in the row of the token
  int parts = 1;          ///< of a row, for a warp each
};

/// Formats that rows can be made of.
constexpr bool makes_micro_rows(DType element, DType scale) {
  return (element == DType::e4m3 && scale == DType::ue8m0) ||
         (element == DType::e2m1 && is_micro_scale(scale));
}

/// A warp that moves them.
template <class Slots>
class MicroRowsMover : private TokenPieces<Slots, ReadTokens> {
  using Pieces = TokenPieces<Slots, ReadTokens>;
  using Pieces::each;
  using Pieces::lane_;
  using Pieces::load;
  using Pieces::made;
  using Pieces::p_;
  using Pieces::piece;
  using Pieces::row_of_lane;
  using Pieces::slots_;
  using Pieces::widen;

 public:
  WW_DEVICE MicroRowsMover(const TokenRows& p, const MicroRows& m, const Slots& slots,
                           const isa::Prerequisites& ready)
      : Pieces(p, slots, ReadTokens(p), ready),
        m_(m),
        whole_to_(begin_at_multiples<8>(p.to, p.to_pitch)) {
    if (m.tensor != nullptr) tensor_ = isa::GlobalView<const float>{m.tensor}.load();
  }

  WW_DEVICE void take(const WarpShare& share) const {
    const int end = m_.columns * micro_block(m_.scale);  // with the padding of the scales
    const int step = m_.parts * piece;
    WW_NO_UNROLL
    for (std::int64_t item = share.first; item < share.end; item += share.step) {
      const int token = static_cast<int>(quotient(item, m_.parts));
      const int first =
          static_cast<int>(item - std::int64_t{token} * m_.parts) * piece + lane_ * each;
      Eight next = load_or_zero(token, first);
      const LaneSlot slots = slots_of(token, 0);
      WW_NO_UNROLL
      for (int column = first; column - lane_ * each < end; column += step) {
        const Eight chunk = next;
        next = load_or_zero(token, column + step);
        put(token, slots, column, chunk);
      }
    }
  }

 private:
  WW_DEVICE Eight load_or_zero(int token, int column) const {
    return column < p_.k ? made(token, load(token, column)) : Eight{};
  }

  // --- rows of the result -----------------------------------------------------------------------

  /// A lane's slot of a token: its row, and the row of its scales. Negative: none.
  struct LaneSlot {
    int row = -1;
    int place = -1;
  };

  WW_DEVICE LaneSlot slots_of(int token, int first) const {
    LaneSlot s;
    s.row = slots_.have_rows() ? row_of_lane(token, first) : (first + lane_ == 0 ? token : -1);
    s.place = place_of(s.row);
    if (s.place < 0) s.row = -1;
    return s;
  }

  /// All lanes, each of a row of its own: the row of its scales, or -1.
  WW_DEVICE int place_of(int row) const {
    const auto theirs = [](int value, int lane) {
      return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(value), lane));
    };
    int place = -1;
    int before = 0;  // tiles of the experts before these
    WW_NO_UNROLL
    for (int first = 0; first < m_.experts; first += 32) {
      const int expert = first + lane_;
      const int begin = slots_.offset(expert < m_.experts ? expert : m_.experts);
      const int end = slots_.offset(expert < m_.experts ? expert + 1 : m_.experts);
      const int tiles = (end - begin + block_scales::kTileRows - 1) / block_scales::kTileRows;
      const int up_to = isa::sum_up_to_lane(tiles, lane_);
      // The last of them that begins at or before the row: of those that begin together the others
      // are empty.
      int last = 0;
      WW_UNROLL
      for (int far = 16; far > 0; far /= 2) {
        if (theirs(begin, last + far) <= row) last += far;
      }
      const int from = theirs(begin, last);
      const int tile = before + theirs(up_to - tiles, last);
      if (theirs(end, last) > row && from <= row) {
        place = tile * block_scales::kTileRows + row - from;
      }
      before += theirs(up_to, 31);
    }
    return place;
  }

  /// All lanes: every row of the token, and that of its scales.
  template <class Use>
  WW_DEVICE void for_each_slot(int token, const LaneSlot& first_slots, const Use& use) const {
    LaneSlot slots = first_slots;
    for (int first = 0;;) {
      std::uint32_t left = isa::ballot(slots.row >= 0);
      while (left != 0) {
        const int lane = isa::lowest_lane(left);
        left &= left - 1;
        use(static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(slots.row), lane)),
            static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(slots.place), lane)));
      }
      first += 32;
      if (!slots_.have_rows() || first >= p_.top_k) return;
      slots = slots_of(token, first);
    }
  }

  // --- codes and scales -------------------------------------------------------------------------

  /// What eight elements become: codes, and the four scales that theirs is of.
  struct Coded {
    std::uint64_t codes = 0;
    std::uint32_t scales = 0;
  };

  WW_DEVICE void put(int token, const LaneSlot& slots, int column, const Eight& chunk) const {
    const int block = micro_block(m_.scale);
    const bool is_e2m1 = m_.element == DType::e2m1;
    const Coded coded = m_.scale == DType::ue4m3 ? code<DType::e2m1, DType::ue4m3>(column, chunk)
                        : is_e2m1                ? code<DType::e2m1, DType::ue8m0>(column, chunk)
                                                 : code<DType::e4m3, DType::ue8m0>(column, chunk);
    const int number = column / block;
    const bool has_scales = column % (4 * block) == 0 && number < m_.columns;
    if (m_.by_token) store_codes(token, column, is_e2m1, coded.codes);
    for_each_slot(token, slots, [&](int row, int place) {
      if (!m_.by_token) store_codes(row, column, is_e2m1, coded.codes);
      if (!has_scales) return;
      isa::global_view<std::uint32_t>(m_.tiles + block_scales::place(place, number, m_.columns))
          .store(0, coded.scales);
    });
  }

  template <DType element, DType scale>
  WW_DEVICE Coded code(int column, const Eight& chunk) const {
    using Block = MicroBlock<element, scale>;
    float value[each];
    widen(chunk, value);
    const auto by = micro::Block<element, scale>::of(Block::largest(value), tensor_);
    Coded coded;
    coded.scales = Block::word_of_scales(by.scale, column / Block::size);
    if (by.clears()) return coded;
    WW_UNROLL
    for (int i = 0; i < each; ++i) value[i] = by.scaled(value[i]);
    coded.codes = codes_of<element>(value);
    return coded;
  }

  WW_DEVICE void store_codes(int row, int column, bool is_e2m1, std::uint64_t codes) const {
    if (column >= p_.k) return;
    unsigned char* const at = p_.to + row * p_.to_pitch + (column >> (is_e2m1 ? 1 : 0));
    is_e2m1 ? kernel::store_codes<4>(at, codes, p_.k - column, whole_to_)
            : kernel::store_codes<8>(at, codes, p_.k - column, whole_to_);
  }

  const MicroRows& m_;
  bool whole_to_;
  float tensor_ = 1;
};

/// Moves them, by warps of any number.
struct MicroRowsWork {
  /// Parts of a row where `warps` are wanted: as few as give each of them one.
  static constexpr int parts_of(const TokenRows& p, int warps) {
    const int pieces = TokenPieceShape::pieces(p);
    const int wanted = p.tokens > 0 ? (warps + p.tokens - 1) / p.tokens : 1;
    return wanted < pieces ? wanted : (pieces > 0 ? pieces : 1);
  }
  /// What warps can share out.
  static constexpr std::int64_t items(const TokenRows& p, const MicroRows& m) {
    return std::int64_t{p.tokens} * m.parts;
  }

  /// A warp's share.
  template <class Slots>
  WW_DEVICE static void run(const TokenRows& p, const MicroRows& m, const Slots& slots,
                            const isa::Prerequisites& ready, const WarpShare& share) {
    MicroRowsMover<Slots>(p, m, slots, ready).take(share);
  }
};

}  // namespace warpwright::kernel
