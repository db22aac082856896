// The columns of a Blackwell kernel's tile, as its load warp brings them: B by a box of as many
// rows as the tile is wide.
#pragma once

#include <cstdint>

#include "warpwright/isa/call.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/blackwell/slice.h"

namespace warpwright::kernel::blackwell {

/// Columns of the tile at hand that its MMAs compute.
template <class Tag>
WW_DEVICE int columns_of(const tile::Work& work) {
  constexpr BlackwellConfig cfg = Tag::config;
  if constexpr (has_widths(cfg)) {
    return tile::width_of(cfg.widths, tile::count(cfg.widths), work.width);
  } else {
    return cfg.tile_n;
  }
}

/// What a thread has of a tile of 8 columns, 16 rows of it; zeros in the place of the next 8, which
/// no MMA has written.
template <int values>
WW_DEVICE void fetch_half(isa::TmemAddress from, float (&value)[values],
                          isa::Site site = isa::Site::here()) {
  const isa::Call call(site);
  isa::Fragment<float, 4> loaded;
  isa::tcgen05_load<isa::TmemShape::lanes16>(loaded, from);
  isa::tcgen05_wait_load(loaded);
  WW_UNROLL for (int i = 0; i < values; ++i) value[i] = i < 4 ? loaded[i] : 0;
}

/// Where this CTA's part of them lies: of a pair's B each CTA has half, which CTAs or pairs along M
/// share in slices.
template <class Tag>
class ColumnSlice {
 public:
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr int ctas = ctas_of_mma(config);
  static constexpr atom::OperandTile tile = tile_b(config);
  static constexpr int span = atom::span_bytes(tile.swizzle);

  WW_DEVICE explicit ColumnSlice(const BlackwellCta<Tag>& cta)
      : p_(cta.p),
        half_(config.pair ? cta.at.x & 1 : 0),
        mma_(config.pair ? cta.at.x / 2 : cta.at.x),
        stages_(cta.base + smem_map(config).b),
        to_(static_cast<std::uint16_t>(
            p_.walk.cluster.m > ctas ? p_.operands.b_ctas(cta.at, p_.walk.cluster) << half_ : 0)) {}

  /// Bytes that a stage of the tile at hand has less than one of the widest.
  [[nodiscard]] WW_DEVICE int missing() const { return missing_; }

 private:
  /// For a row of a stage, as its copies signal them.
  [[nodiscard]] WW_DEVICE int row_bytes() const {
    if constexpr (is_scaled(config)) {
      return p_.token_bytes;
    } else {
      return span;
    }
  }

 protected:
  /// For a tile of `width` columns.
  WW_DEVICE void place_slice(const tile::Work& work, int width) {
    rows_ = has_widths(config) ? p_.walk.cluster_m.quotient(width) : p_.operands.b_slice_rows;
    const int in_tile = mma_ * rows_;
    row_ = work.column + half_ * (width / ctas) + in_tile;
    offset_ = in_tile * span;
    missing_ = (config.tile_n - width) / ctas * row_bytes();
  }
  [[nodiscard]] WW_DEVICE isa::SharedAddress place(int stage) const {
    return stages_ + stage * atom::tile_bytes(tile) + offset_;
  }

  const BlackwellParamsOf<Tag>& p_;
  int half_;  // which half of B, and which of the MMAs that share it along M
  int mma_;
  isa::SharedAddress stages_;
  std::uint16_t to_;  // the CTAs that it goes to, or 0: only to this CTA
  int rows_ = 0;      // of the slice
  int row_ = 0;       // where it begins, in the map
  int offset_ = 0;    // and in the stage
  int missing_ = 0;
};

/// By boxes: one thread loads.
template <class Tag>
class BoxColumns : public ColumnSlice<Tag> {
 public:
  using Slice = ColumnSlice<Tag>;
  using Slice::Slice;

  WW_DEVICE void place(const tile::Work& work) { Slice::place_slice(work, columns_of<Tag>(work)); }

  /// k_tile `k_tile` into `stage`.
  WW_DEVICE void load(bool mine, isa::SharedAddress full, const tile::Work& work, int stage,
                      int k_tile) const {
    if (!mine) return;
    const OperandParams& operands = Slice::p_.operands;
    load_slice<Tag>(Slice::p_.staged_b, Slice::to_, Slice::place(stage), map(work), full,
                    k_tile * tile_k(Tag::config), Slice::row_, Slice::rows_,
                    work.tile.batch * operands.b_batch);
  }

 private:
  [[nodiscard]] WW_DEVICE const isa::TensorMap& map([[maybe_unused]] const tile::Work& work) const {
    if constexpr (has_widths(Tag::config)) {
      constexpr int last = tile::count(Tag::config.widths) - 1;
      return work.width == last ? Slice::p_.operands.b : Slice::p_.narrower[work.width];
    } else {
      return Slice::p_.operands.b;
    }
  }
};

}  // namespace warpwright::kernel::blackwell
