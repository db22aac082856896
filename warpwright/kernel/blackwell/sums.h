// The epilogue warps of a Blackwell kernel whose sums pass through registers: k_tiles that are
// added up there, times the scales of their block, and tiles that clusters share along K.
#pragma once

#include <type_traits>

#include "warpwright/isa/call.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/kernel/blackwell/block_scales.h"
#include "warpwright/kernel/blackwell/columns.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/epilogue.h"
#include "warpwright/kernel/stream_k_fixup.h"

namespace warpwright::kernel::blackwell {

/// A thread's sums of a tile, spread as those of a wgmma.
template <class Tag>
class TileSums {
 public:
  static constexpr int atoms = warp_row_atoms(Tag::config);
  static constexpr int values = Tag::config.tile_n / 2;  // of an atom

  /// `tmem` is the address of the warp's lanes in the first accumulator.
  WW_DEVICE TileSums(const BlackwellCta<Tag>& cta, isa::TmemAddress tmem)
      : cta_(cta), tmem_(tmem), scales_(cta.p.scales, cta.p.operands.gate) {}

  float sums[atoms][values];

  /// The sums of `work`, of the warp's rows from `row` on.
  WW_DEVICE void collect(const tile::Work& work, int row) {
    constexpr BlackwellConfig cfg = Tag::config;
    if (work.first == work.end) return;
    const int columns = columns_of<Tag>(work);
    if constexpr (cfg.blockwise) {
      scales_.begin(work, row);
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        WW_UNROLL for (int v = 0; v < values; ++v) sums[i][v] = 0;
      }
      WW_NO_UNROLL for (int k_tile = work.first; k_tile < work.end; ++k_tile) {
        const isa::Mark mark("k_tile %", k_tile);
        scales_.next(k_tile);
        FactorsOf<Tag> factors(scales_);
        take(
            columns, [&](int first) { factors.template at<part>(first); },
            [&](float& sum, float value, int atom, int v) { sum += value * factors.of(atom, v); });
      }
    } else {
      take(
          columns, [](int /*first*/) {},
          [](float& sum, float value, int /*atom*/, int /*v*/) { sum = value; });
    }
  }

 private:
  static constexpr int part =
      Tag::config.swap_ab ? 8 : 16;  // values of a load, of twice the columns
  static constexpr int parts = atoms * values / part;

  /// use(sum, value, atom, v) for all values of the next accumulator, a few columns of all atoms at
  /// a time, before which begin(v) is called. The accumulator is given back when all of it is in
  /// registers. While a part is used, the next one is on its way. A tile may be narrower than most.
  template <class Begin, class Use>
  WW_DEVICE void take(int columns, const Begin& begin, const Use& use,
                      isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    constexpr BlackwellConfig cfg = Tag::config;
    const auto is_there = [&](int i) {
      return i < parts && (!has_widths(cfg) || i / atoms * (2 * part) < columns);
    };
    cta_.accumulators.wait(state_);
    if constexpr (has_half_steps(cfg)) {
      if (columns < width_step(cfg)) return take_half(use);
    }
    isa::Fragment<float, part> loaded[2];
    load(loaded[0], 0);
    WW_UNROLL for (int i = 0; i < parts; ++i) {
      if (is_there(i)) {
        isa::tcgen05_wait_load(loaded[i % 2]);
        if (is_there(i + 1)) {
          load(loaded[(i + 1) % 2], i + 1);
        } else {
          cta_.accumulators.release(state_);
        }
        const int first = i / atoms * part;
        if (i % atoms == 0) begin(first);
        WW_UNROLL for (int v = 0; v < part; ++v) {
          use(sums[i % atoms][first + v], loaded[i % 2][v], i % atoms, v);
        }
      }
    }
    state_.advance(cfg.accumulators);
  }

  /// The same of an accumulator of 8 columns, which is there. (Without factors: those are of
  /// k_tiles that are added up, whose tiles are not so narrow.)
  template <class Use>
  WW_DEVICE void take_half(const Use& use) {
    static_assert(!Tag::config.blockwise);
    WW_UNROLL for (int atom = 0; atom < atoms; ++atom) {
      float value[part];
      fetch_half(tmem_ + state_.stage * accumulator_columns(Tag::config) +
                     atom::tmem_address(warp_rows * atom, 0),
                 value);
      WW_UNROLL for (int v = 0; v < part; ++v) use(sums[atom][v], value[v], atom, v);
    }
    cta_.accumulators.release(state_);
    state_.advance(Tag::config.accumulators);
  }

  WW_DEVICE void load(isa::Fragment<float, part>& to, int i) const {
    isa::tcgen05_load<isa::TmemShape::lanes16>(
        to, tmem_ + state_.stage * accumulator_columns(Tag::config) +
                atom::tmem_address(warp_rows * (i % atoms), i / atoms * (2 * part)));
  }

  const BlackwellCta<Tag>& cta_;
  isa::TmemAddress tmem_;
  FetchedScales<Tag> scales_;
  pipeline::PipelineState state_;
};

/// Four warps: each adds up its 32 rows of tile after tile, or of shares of them, and takes those
/// that are complete to D.
template <class Tag>
WW_DEVICE void store_sums(const BlackwellCta<Tag>& cta, const isa::Prerequisites& ready) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  constexpr EpilogueShape shape = cfg;
  using Fixup =
      std::conditional_t<cfg.splits_k, StreamKFixup<shape, has_widths(cfg)>, WholeSums<shape>>;
  isa::set_role("epilogue");
  const int warp = isa::warp_index() - first_epilogue_warp;
  const int first_row = result_rows(cfg) / epilogue_warps * warp;
  TileSums<Tag> tile(cta, cta.published_tmem() + atom::tmem_address(32 * warp, 0));
  Epilogue<Tag> epilogue(cta.p.output, cta.p.scales, cta.base + smem.epilogue,
                         cta.base + smem.c_barriers, warp);
  const Fixup share(cta.p.walk, cta.rank, warp);
  auto tiles = cta.template tiles<pipeline::Reader::warp>(ready);
  tile::Work work;
  while (tiles.next(work)) {
    const TileMark<Tag::config.grouped, Tag::config.swap_ab> tile_mark(work.tile);
    if (share.stores(work)) epilogue.begin(work, first_row);
    tile.collect(work, work.row + first_row);
    if (const CompleteSums complete = share.finish(tile.sums, work, tiles, columns_of<Tag>(work))) {
      epilogue.write(tile.sums, complete);
      if (isa::thread_index() == 32 * first_epilogue_warp) isa::count_tile();
    }
  }
  epilogue.drain();
}

}  // namespace warpwright::kernel::blackwell
