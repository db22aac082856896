// What the producer of a Hopper kernel fills a stage with, as types. The source of an operand has
//
//   of(cta)                        made for one CTA
//   prefetch_map(p)                before the CTA is ready: fetches its map, if it has one
//   prefetch_guessed(p, at)        before its first tile is known: asks L2 for what it guesses
//   prefetch(work)                 before the CTA is ready: asks L2 for the first tile's
//   place(p, work)                 looks where its part of a tile lies
//   more()                         bytes of a stage beside those that the configuration tells
//   load(p, stage, k_tile, full)   starts the loads of a k_tile, which signal the barrier `full`
//
// Weights lie in a matrix with a map, or packed (packed.h); tokens have a map, in tiles of one
// width or of several, or are read by index, which is other warps' work (token_rows.h).
#pragma once

#include <type_traits>

#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/hopper/cta.h"
#include "warpwright/kernel/hopper/packed.h"

namespace warpwright::kernel {

/// L2 is asked for nothing.
struct NothingAhead {
  WW_DEVICE static void prefetch_guessed(const GemmParams& /*p*/, atom::ClusterCoord /*at*/) {}
  WW_DEVICE void prefetch(const tile::Work& /*work*/) const {}
};

/// A or B by its map: a slice of the tile's rows, for all CTAs that share them. What can be worked
/// out once is: a k_tile is short.
template <class Tag, bool is_a>
class MappedOperand : public NothingAhead {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr atom::OperandTile tile = is_a ? tile_a(config) : tile_b(config);
  static constexpr int span = atom::span_bytes(tile.swizzle);

  MappedOperand() = default;
  WW_DEVICE static MappedOperand of(const Cta<Tag>& cta) {
    MappedOperand slice;
    const OperandParams& p = cta.p.operands;
    const atom::ClusterShape& cluster = cta.p.walk.cluster;
    const std::uint16_t ctas = is_a ? p.a_ctas(cta.at) : p.b_ctas(cta.at, cluster);
    slice.in_tile_ = is_a ? cta.at.y * p.a_slice_rows : cta.at.x * p.b_slice_rows;
    slice.to_ = cta.base + (is_a ? smem_map(config).a : smem_map(config).b) + slice.in_tile_ * span;
    slice.ctas_ = (is_a ? cluster.n : cluster.m) > 1 ? ctas : std::uint16_t{0};
    return slice;
  }

  WW_DEVICE static void prefetch_map(const OperandParams& p) {
    isa::prefetch_map(is_a ? p.a : p.b);
  }
  WW_DEVICE void place(const OperandParams& p, const tile::Work& work) {
    row_ = (is_a ? work.row : work.column) + in_tile_;
    batch_ = work.tile.batch * (is_a ? p.a_batch : p.b_batch);
  }
  [[nodiscard]] WW_DEVICE int more() const { return 0; }
  WW_DEVICE void load(const OperandParams& p, int stage, int k_tile,
                      isa::SharedAddress full) const {
    load_by(p, is_a ? p.a : p.b, stage, k_tile, full);
  }

 protected:
  /// A box of each part and span along K, or K-deep boxes of a span of rows.
  WW_DEVICE void load_by(const OperandParams& p, const isa::TensorMap& map, int stage, int k_tile,
                         isa::SharedAddress full) const {
    constexpr int parts = (is_a ? gated_rows(config) : gated_columns(config)) ? 2 : 1;
    const isa::SharedAddress to = to_ + stage * atom::tile_bytes(tile);
    const int k = k_tile * tile_k(config);
    WW_UNROLL for (int part = 0; part < parts; ++part) {
      const isa::SharedAddress at = to + part * (tile.rows / parts) * span;
      // The part is a dimension of weights that are gates and ups.
      const auto load_box = [&](isa::SharedAddress box, int inner, int outer) {
        if constexpr (parts == 2) {
          isa::tensor_load_to(ctas_, box, map, full, isa::Coords{inner, outer, part, batch_});
        } else {
          isa::tensor_load_to(ctas_, box, map, full, isa::Coords{inner, outer, batch_});
        }
      };
      if constexpr (tile.major == atom::Major::k) {
        WW_UNROLL for (int s = 0; s < atom::box_count(tile); ++s) {
          load_box(at + s * atom::box_bytes(tile), k + s * span_k(config), row_);
        }
      } else {
        // A box is `span` rows wide and tile_k deep, as many bytes as a K-major box of them.
        constexpr int box = atom::span_elements(tile);
        static_assert(atom::box_bytes(tile) == box * span);
        const int rows = is_a ? p.a_slice_rows : p.b_slice_rows;
        for (int r = 0; r < rows; r += box) load_box(at + r * span, row_ + r, k);
      }
    }
  }

  isa::SharedAddress to_ = 0;  // in stage 0
  int in_tile_ = 0;            // its first row
  std::uint16_t ctas_ = 0;     // to whom it goes, or 0: only to this CTA
  int row_ = 0;                // in the map, of the tile at hand
  int batch_ = 0;
};

/// Tokens of tiles of several widths, as B. A narrower one leaves the end of a stage's part as it
/// is.
template <class Tag>
class TokensInWidths : public MappedOperand<Tag, false> {
  using Mapped = MappedOperand<Tag, false>;
  using Mapped::config;
  using Mapped::in_tile_;

 public:
  WW_DEVICE static TokensInWidths of(const Cta<Tag>& cta) { return TokensInWidths(cta); }
  WW_DEVICE explicit TokensInWidths(const Cta<Tag>& cta)
      : Mapped(Mapped::of(cta)),
        all_(cta.p),
        x_(cta.at.x),
        stages_(cta.base + smem_map(config).b) {}

  WW_DEVICE void place(const OperandParams& p, const tile::Work& work) {
    Mapped::place(p, work);
    constexpr tile::TileWidths widths = tile_widths(config);
    number_ = work.width;
    const int width = tile::width_of(widths, tile::count(widths), number_);
    missing_ = (config.tile_n - width) * (atom::tile_bytes(Mapped::tile) / config.tile_n);
    const int before = in_tile_;
    in_tile_ = x_ * all_.walk.cluster_m.quotient(width);
    this->to_ = stages_ + in_tile_ * Mapped::span;
    this->row_ += in_tile_ - before;
  }
  [[nodiscard]] WW_DEVICE int more() const { return -missing_; }
  WW_DEVICE void load(const OperandParams& p, int stage, int k_tile,
                      isa::SharedAddress full) const {
    constexpr int last = tile::count(tile_widths(config)) - 1;
    this->load_by(p, number_ == last ? p.b : all_.narrower[number_], stage, k_tile, full);
  }

 private:
  const WidthsGemmParams& all_;
  int x_;
  isa::SharedAddress stages_;
  int missing_ = 0;  // bytes of a stage of the tile at hand
  int number_ = 0;   // of its width
};

/// Tokens that other warps copy. They have their place in the tile as others.
template <class Tag>
struct TokensByIndex : MappedOperand<Tag, !is_swapped(Tag::config)> {
  using Mapped = MappedOperand<Tag, !is_swapped(Tag::config)>;
  WW_DEVICE explicit TokensByIndex(const Mapped& m) : Mapped(m) {}
  WW_DEVICE static TokensByIndex of(const Cta<Tag>& cta) { return TokensByIndex(Mapped::of(cta)); }
  WW_DEVICE static void prefetch_map(const OperandParams& /*p*/) {}
  [[nodiscard]] WW_DEVICE int more() const { return 0; }
  WW_DEVICE void load(const OperandParams& /*p*/, int /*stage*/, int /*k_tile*/,
                      isa::SharedAddress /*full*/) const {}
};

template <class Tag>
using TokenSource =
    std::conditional_t<gathers(Tag::config), TokensByIndex<Tag>,
                       std::conditional_t<has_widths(Tag::config), TokensInWidths<Tag>,
                                          MappedOperand<Tag, !is_swapped(Tag::config)>>>;
template <class Tag>
using WeightSource = std::conditional_t<packed_a(Tag::config), PackedWeights<Tag>,
                                        MappedOperand<Tag, is_swapped(Tag::config)>>;

/// The scales of a tile's tokens, where the launch has them copied.
template <class Tag>
struct CopiedScales {
  static constexpr GemmConfig config = Tag::config;

  WW_DEVICE explicit CopiedScales(const Cta<Tag>& /*cta*/) {}

  WW_DEVICE static bool are_copied(const ScaleParams& p) {
    return copies_scales(config) && p.copies_tokens;
  }
  WW_DEVICE static void prefetch_map(const GemmParams& p) {
    if (are_copied(p.scales)) isa::prefetch_map(p.operands.token_scales);
  }
  WW_DEVICE static int more(const ScaleParams& p) {
    return are_copied(p) ? 4 * copied_scales(config) : 0;
  }
  /// To `to`, for a k_tile of `work`.
  WW_DEVICE static void load(const OperandParams& operands, const ScaleParams& p,
                             isa::SharedAddress to, const tile::Work& work, int k_tile,
                             isa::SharedAddress full) {
    if (!are_copied(p)) return;
    // One matrix serves groups, and may serve a whole batch.
    const int matrix = p.tokens.batch_stride > 0 ? work.tile.batch : 0;
    isa::tensor_load(to, operands.token_scales, full,
                     isa::Coords{work.row - work.row % 4, k_tile, matrix});
  }
};

}  // namespace warpwright::kernel
