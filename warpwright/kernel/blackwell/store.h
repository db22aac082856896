// The epilogue warps of a Blackwell kernel: from tensor memory to D.
#pragma once

#include "warpwright/isa/call.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/kernel/blackwell/columns.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/epilogue.h"

namespace warpwright::kernel::blackwell {

/// A thread's accumulator values of a subtile of 16 rows, which begins at that column, of a tile of
/// `columns` columns. The registers of a load are spread like those of a wgmma, which is what the
/// epilogue expects.
template <class Tag>
WW_DEVICE void fetch(isa::TmemAddress from, int row_atom, int column, [[maybe_unused]] int columns,
                     float (&value)[Epilogue<Tag>::values], isa::Site site = isa::Site::here()) {
  using Epilogue = kernel::Epilogue<Tag>;
  const isa::Call call(site);
  const isa::TmemAddress at = from + atom::tmem_address(warp_rows * row_atom, column);
  if constexpr (has_half_steps(Tag::config)) {
    // (Only the first columns: behind them such a tile has none.)
    if (column == 0 && columns < Epilogue::columns) return fetch_half(at, value);
  }
  isa::Fragment<float, Epilogue::values> loaded;
  isa::tcgen05_load<isa::TmemShape::lanes16>(loaded, at);
  isa::tcgen05_wait_load(loaded);
  WW_UNROLL for (int i = 0; i < Epilogue::values; ++i) value[i] = loaded[i];
}

/// Four warps: each takes its 32 lanes of tile after tile to D.
template <class Tag>
WW_DEVICE void store(const BlackwellCta<Tag>& cta, const isa::Prerequisites& ready) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  using Epilogue = kernel::Epilogue<Tag>;
  const auto& p = cta.p;
  isa::set_role("epilogue");
  const int warp = isa::warp_index() - first_epilogue_warp;
  const isa::TmemAddress tmem = cta.published_tmem() + atom::tmem_address(32 * warp, 0);
  Epilogue epilogue(p.output, p.scales, cta.base + smem.epilogue, cta.base + smem.c_barriers, warp);
  auto tiles = cta.template tiles<pipeline::Reader::warp>(ready);
  tile::Work work;
  pipeline::PipelineState accumulator;
  while (tiles.next(work)) {
    const TileMark<Tag::config.grouped, Tag::config.swap_ab> tile_mark(work.tile);
    // The first accumulator shares its last columns, the second its first.
    if constexpr (overlaps(cfg)) epilogue.order.backwards = accumulator.parity == 0;
    epilogue.begin(work, result_rows(cfg) / epilogue_warps * warp);
    if (p.operands.k > 0) cta.accumulators.wait(accumulator);
    const isa::TmemAddress from = tmem + cta.accumulator_column(accumulator);
    bool is_given_back = false;
    epilogue.write_from([&](int subtile, int half, float(&value)[Epilogue::values]) {
      const auto& order = epilogue.order;
      // A gate and what it is for are rows of one accumulator, or have one each.
      constexpr bool apart = halves(Tag::config) > 1;
      fetch<Tag>(apart ? from + half * half_columns(Tag::config) : from,
                 order.atom(subtile) + (apart ? 0 : half * Epilogue::Order::atoms),
                 order.column(subtile) * Epilogue::columns, columns_of<Tag>(work), value);
      if constexpr (overlaps(Tag::config)) {
        constexpr int shared =
            shared_columns(Tag::config) / Epilogue::columns * Epilogue::Order::atoms;
        if (is_given_back || subtile + 1 < shared) return;
        cta.accumulators.release(accumulator);
        is_given_back = true;
      }
    });
    if (p.operands.k > 0) {
      if (!is_given_back) cta.accumulators.release(accumulator);
      accumulator.advance(accumulator_slots(cfg));
    }
    if (isa::thread_index() == 32 * first_epilogue_warp) isa::count_tile();
  }
  if constexpr (overlaps(cfg)) cta.accumulators.consumer_tail();
  epilogue.drain();
}

}  // namespace warpwright::kernel::blackwell
