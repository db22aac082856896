// Tiles split along K through the workspace: who stores a tile, and how it gets the others' parts
// of the sums. They are added up in the order of the CTAs, so that the result is the same every
// time.
#pragma once

#include <cstdint>

#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/params.h"
#include "warpwright/kernel/sum_parts.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// Bytes of the workspace: a flag for every warp that stores, then the sums of every CTA.
constexpr std::int64_t split_flag_bytes(const EpilogueShape& c, int ctas) {
  return (std::int64_t{4} * c.warps * ctas + 255) / 256 * 256;
}
constexpr std::int64_t split_workspace_bytes(const EpilogueShape& c, int ctas) {
  return split_flag_bytes(c, ctas) + 4 * part_floats(c) * ctas;
}

/// A CTA has all of a tile's sums.
template <EpilogueShape Shape>
struct WholeSums {
  WW_DEVICE WholeSums(const WalkParams& /*p*/, int /*rank*/, int /*warp*/) {}
  WW_DEVICE bool stores(const tile::Work& /*work*/) const { return true; }
  template <class Sums, class Walk>
  WW_DEVICE CompleteSums finish(Sums& /*sums*/, const tile::Work& /*work*/, const Walk& /*walk*/,
                                int /*columns*/ = Shape.tile_n) const {
    return {true, 0, Shape.tile_n};
  }
  WW_DEVICE void drain() const {}
};

/// Parts go through the workspace to the CTA that has the tile's last k_tile. Warp talks to warp,
/// each about its own 16 rows of every atom: no barrier of the CTA is needed. `Narrows`: tiles may
/// be narrower than a part, and have no more sums in it.
template <EpilogueShape Shape, bool Narrows = false>
class StreamKFixup {
  using Parts = SumParts<Shape>;

 public:
  static constexpr int atoms = Parts::atoms;
  static constexpr int words = Parts::words;
  static constexpr int together = 3;  // parts that are read at once

  /// For the warp `warp` of those that store, in the CTA of rank `rank` of its cluster.
  WW_DEVICE StreamKFixup(const WalkParams& p, int rank, int warp)
      : p_(p), rank_(rank), warp_(warp) {}

  /// Does this CTA store the tile?
  WW_DEVICE bool stores(const tile::Work& work) const { return work.end == p_.k_tiles; }

  /// Completes the sums, of `columns` columns, or gives them away. `walk` is the one that gave
  /// `work` last.
  template <class Sums, class Walk>
  WW_DEVICE CompleteSums finish(Sums& sums, const tile::Work& work, const Walk& walk,
                                int columns = Shape.tile_n) const {
    // One way out for both, not two: the registers are all taken, and the epilogue follows.
    const bool here = stores(work);
    if (here && work.first > 0) take(sums, walk.scheduler().sharers_from(), columns);
    if (!here) give(sums, columns);
    return {here, 0, Shape.tile_n};
  }
  WW_DEVICE void drain() const {}

 private:
  /// Leaves this CTA's part for the CTA that stores the tile.
  template <class Sums>
  WW_DEVICE void give(Sums& sums, int columns) const {
    const int cta = isa::cta_index();
    if constexpr (Narrows) {
      Parts::leave(part(cta), sums, columns / 8);
    } else {
      Parts::leave(part(cta), sums);
    }
    isa::sync_warp();
    if (isa::lane_index() == 0) isa::flag_set(flag(cta), 1);
  }

  /// Adds the parts of the clusters from `first` to before this one.
  template <class Sums>
  WW_DEVICE void take(Sums& sums, int first, int columns) const {
    // All of them first: one wait after the other would add up their latencies.
    for (int c = first; c < isa::cluster_index(); ++c) {
      if (isa::lane_index() == 0) isa::flag_wait(flag(cta_of(c)), 1);
    }
    isa::sync_warp();
    for (int c = first; c < isa::cluster_index(); c += together) add(sums, c, columns);
    isa::sync_warp();
    // As it was before the launch, for the next one.
    for (int c = first; c < isa::cluster_index(); ++c) {
      if (isa::lane_index() == 0) isa::flag_clear(flag(cta_of(c)));
    }
  }

  /// Adds the parts of `together` clusters from `c`, as far as they come before this one. Their
  /// loads are all on their way before the first is used.
  template <class Sums>
  WW_DEVICE void add(Sums& sums, int c, int columns) const {
    constexpr int batch = words < 4 ? words : 4;
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int first = 0; first < words; first += batch) {
        if (!is_there(first, columns)) continue;
        isa::Words<4> w[together][batch];
        WW_UNROLL for (int part = 0; part < together; ++part) {
          const auto from = this->part(cta_of(c + part));
          WW_UNROLL for (int j = 0; j < batch; ++j) {
            w[part][j] = {};
            if (first + j < words && is_there(first + j, columns) &&
                c + part < isa::cluster_index()) {
              w[part][j] = from.load(Parts::place(i, first + j));
            }
          }
        }
        isa::keep_order();
        WW_UNROLL for (int part = 0; part < together; ++part) {
          WW_UNROLL for (int j = 0; j < batch; ++j) {
            if (first + j >= words) continue;
            WW_UNROLL for (int v = 0; v < 4; ++v) {
              sums[i][4 * (first + j) + v] += isa::float_of(w[part][j].word[v]);
            }
          }
        }
      }
    }
  }
  /// Has a tile of so many columns this word of an atom?
  WW_DEVICE static bool is_there(int word, int columns) { return !Narrows || 8 * word < columns; }

  /// The CTA of this one's rank in cluster `c`.
  WW_DEVICE int cta_of(int c) const { return c * atom::cluster_size(p_.cluster) + rank_; }
  WW_DEVICE std::uint32_t* flag(int cta) const { return p_.flags + cta * Shape.warps + warp_; }
  WW_DEVICE auto part(int cta) const { return Parts::part(p_.partials, cta, warp_); }

  const WalkParams& p_;
  int rank_;
  int warp_;
};

}  // namespace warpwright::kernel
