// Tiles split along K over many CTAs, all of which add up: each leaves its part of the sums in the
// workspace, waits for the others', and adds up some columns of all parts. The parts are added in
// the order of the CTAs, whoever does it, so that the result is the same every time.
//
// Who waits must know that those it waits for run. A warp counts in a word of its tile when it
// begins, and again when its part is there. The word says to who comes with a part whether all have
// begun; if not, it leaves its columns to the others and goes. So nobody ever waits for a CTA that
// has not begun, and a grid ends on whatever SMs there are: one at a time on a single SM, where the
// last CTA adds up all columns.
#pragma once

#include <cstdint>

#include "warpwright/isa/draw.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/params.h"
#include "warpwright/kernel/sum_parts.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/split.h"

namespace warpwright::kernel {

/// Bytes of the workspace: a line of words for every tile, two a warp that stores, so that tiles do
/// not meet in a line; then the sums of every CTA.
inline constexpr int slice_flag_bytes = 128;
constexpr std::int64_t sliced_flag_bytes(int tiles) {
  return (std::int64_t{slice_flag_bytes} * tiles + 255) / 256 * 256;
}
constexpr std::int64_t sliced_workspace_bytes(const EpilogueShape& c, int tiles, int ctas) {
  return sliced_flag_bytes(tiles) + 4 * part_floats(c) * ctas;
}

/// The first word of a warp of a tile: three counts, of CTAs, 255 at most. The second counts those
/// that have added up, and comes back to 0 by itself.
enum class SliceCount : std::uint8_t {
  begun = 0,  ///< that run or have run
  there = 8,  ///< whose part is there
  gone = 16,  ///< of these, that went before all had begun
};
constexpr std::uint32_t one_of(SliceCount which) {
  return 1U << static_cast<int>(which);
}
constexpr int count_of(std::uint32_t word, SliceCount which) {
  return static_cast<int>(word >> static_cast<int>(which) & 0xffU);
}

/// For one warp of those that store.
template <EpilogueShape Shape>
class SlicedFixup {
  using Parts = SumParts<Shape>;

 public:
  static constexpr int atoms = Parts::atoms;
  static constexpr int words = Parts::words;
  static_assert(8 * Shape.warps <= slice_flag_bytes);

  /// For the warp `warp` of those that store, before the main loop.
  WW_DEVICE SlicedFixup(const WalkParams& p, int warp, const isa::Prerequisites& ready)
      : p_(p), ready_(ready), tile_(tile::tile_of(p.slices, isa::cta_index())), warp_(warp) {
    static_assert(one_of(SliceCount::begun) == 1);
    // Nobody stands still for the answer before it is used. (For a limit that no number reaches,
    // but for only that, ptxas makes an addition, and then a shuffle behind it.)
    constexpr std::uint32_t never = 0x7fffffff;
    if (shares() && isa::lane_index() == 0) begun_ = isa::draw(counts(), never, ready);
  }

  WW_DEVICE bool stores(const tile::Work& /*work*/) const { return true; }

  /// Gives the sums away, and comes back with complete ones of some columns.
  template <class Sums, class Walk>
  WW_DEVICE CompleteSums finish(Sums& sums, const tile::Work& /*work*/, const Walk& /*walk*/) {
    if (!shares()) return {true, 0, Shape.tile_n};
    const int sharers = p_.slices.sharers;
    Parts::leave(part(tile::sharer_of(p_.slices, isa::cta_index())), sums);
    isa::sync_warp();
    std::uint32_t came = 0;
    std::uint32_t all = 0;
    if (isa::lane_index() == 0) arrive(came, all);
    came = isa::shuffle(came, 0);
    all = isa::shuffle(all, 0);
    if (count_of(came, SliceCount::begun) < sharers) return {};
    isa::sync_warp();  // what a lane has acquired, all have
    const int gone = count_of(all, SliceCount::gone);
    const int adders = sharers - gone;
    const int each = (words + adders - 1) / adders;
    // In the order in which they came, for each warp from another one on: who came first would have
    // the columns of all warps.
    int turn = count_of(came, SliceCount::there) - gone + warp_ * adders / Shape.warps;
    if (turn >= adders) turn -= adders;
    const int first = turn * each;
    const int end = first + each < words ? first + each : words;
    if (each == 1) {
      add<1, 32>(sums, first, end);
    } else {
      add<4, 8>(sums, first, end);
    }
    adders_ = adders;
    if (isa::lane_index() == 0) ended_ = isa::draw(ends(), last(), ready_);
    return {first < end, 8 * first, 8 * end};
  }

  /// Who is the last to have added up leaves the word as it was before the launch, for the next
  /// one.
  WW_DEVICE void drain() const {
    if (adders_ > 0 && isa::lane_index() == 0 && ended_ == last()) isa::flag_clear(counts());
  }

 private:
  WW_DEVICE bool shares() const { return p_.slices.sharers > 1; }
  /// What the last of those that add up finds in the second word.
  WW_DEVICE std::uint32_t last() const { return static_cast<std::uint32_t>(adders_ - 1); }

  /// One lane, when the part is there: `came` is the word before, and `all` as it is when all parts
  /// are, where all have begun.
  WW_DEVICE void arrive(std::uint32_t& came, std::uint32_t& all) const {
    const int sharers = p_.slices.sharers;
    // Whoever was the last to begin knows how many had gone.
    const int gone = count_of(begun_, SliceCount::there);
    if (gone > 0 && count_of(begun_, SliceCount::begun) + 1 == sharers) {
      isa::flag_count(counts(), static_cast<std::uint32_t>(gone) * one_of(SliceCount::gone));
    }
    came = isa::flag_count(counts(), one_of(SliceCount::there));
    all = came + one_of(SliceCount::there);
    if (count_of(came, SliceCount::begun) < sharers) return;
    if (count_of(all, SliceCount::there) < sharers) {
      all =
          isa::flag_wait(counts(), static_cast<std::uint32_t>(sharers) * one_of(SliceCount::there),
                         0xffU * one_of(SliceCount::there));
    }
  }

  /// The sums of words `first` to before `end` become those of all parts. `columns` words and
  /// `together` parts are on their way at once.
  template <int columns, int together, class Sums>
  WW_DEVICE void add(Sums& sums, int first, int end) const {
    WW_NO_UNROLL for (int j = first; j < end; j += columns) {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        float sum[columns][4] = {};
        WW_NO_UNROLL for (int c = 0; c < p_.slices.sharers; c += together) {
          add_parts<columns, together>(sum, i, j, end, c);
        }
        // Registers have no index at run time.
        WW_UNROLL for (int w = 0; w < words; ++w) {
          WW_UNROLL for (int q = 0; q < columns; ++q) {
            if (w != j + q || w >= end) continue;
            WW_UNROLL for (int v = 0; v < 4; ++v) sums[i][4 * w + v] = sum[q][v];
          }
        }
      }
    }
  }

  /// Adds words from `j` on of atom `i` of the parts from `c` on, as far as they are there.
  template <int columns, int together>
  WW_DEVICE void add_parts(float (&sum)[columns][4], int i, int j, int end, int c) const {
    constexpr int stride = static_cast<int>(part_floats(Shape) / 4);
    constexpr int step = 8;  // parts of which one jump decides
    const auto from = part(c);
    const int there = p_.slices.sharers - c;
    isa::Words<4> w[together][columns];
    WW_UNROLL for (int part = 0; part < together; part += step) {
      if (part >= there) break;
      WW_UNROLL for (int s = part; s < part + step; ++s) {
        WW_UNROLL for (int q = 0; q < columns; ++q) {
          w[s][q] = {};
          if (s < there && j + q < end) w[s][q] = from.load(Parts::place(i, j + q) + s * stride);
        }
      }
    }
    isa::keep_order();
    WW_UNROLL for (int part = 0; part < together; part += step) {
      if (part >= there) break;
      WW_UNROLL for (int s = part; s < part + step; ++s) {
        WW_UNROLL for (int q = 0; q < columns; ++q) {
          WW_UNROLL for (int v = 0; v < 4; ++v) sum[q][v] += isa::float_of(w[s][q].word[v]);
        }
      }
    }
  }

  WW_DEVICE std::uint32_t* counts() const {
    return p_.flags + tile_ * (slice_flag_bytes / 4) + warp_;
  }
  WW_DEVICE std::uint32_t* ends() const { return counts() + Shape.warps; }
  /// That of a sharer of the tile.
  WW_DEVICE auto part(int sharer) const {
    return Parts::part(p_.partials, tile_ * p_.slices.sharers + sharer, warp_);
  }

  const WalkParams& p_;
  isa::Prerequisites ready_;
  int tile_;
  int warp_;
  int adders_ = 0;           // where this CTA is one
  std::uint32_t begun_ = 0;  // lane 0: the first word, when this CTA began
  std::uint32_t ended_ = 0;  // the second, when it had added up
};

}  // namespace warpwright::kernel
