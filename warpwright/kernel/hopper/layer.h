// A whole layer of experts in one launch, for few tokens: both products, the gate between them and
// the sum over top-k. One source for the GPU and the model.
//
// A persistent grid, of two CTAs an SM where weights are decoded, else of one.
// Its items are tiles: first all of the first product, of all experts that are hit, then all of the
// second. CTAs draw their numbers (tile/numbers.h). An item waits only for items with smaller
// numbers, which CTAs that have started hold, and a CTA does its items in the order of their
// numbers. So the smallest that is not done is always some CTA's current one, and the grid ends on
// any number of SMs. No barrier reaches over it.
//
//   role                   warps   does
//   producer               0       one lane: loads weights of either product into the ring. It
//                                  waits for no other CTA: weights are on their way before the
//                                  rows that they meet are there
//   scheduler              1       one lane: draws items for the CTA, the first before the sort
//   tokens                 2, 3    rows of tokens, by number, or rows between the products, by
//                                  cp.async. The latter wait for their expert's flag
//   consumer               4..7    wgmma, the epilogue of its rows, the sum of tokens. Each warp
//                                  tells by itself that its rows between the products are there
//
// Tiles of the second product may be cut along K, so that few of them keep all SMs busy. Parts are
// added up in float32, in order, and rounded as a whole tile's sums would be: with one part the
// bits are those of a launch for each step.
//
// Before, all warps sort the slots together (slot_tiles.h), each CTA for itself.
//
//   what crosses CTAs   written by             told by                    read by
//   rows between        the epilogue's lanes   each warp's count of the   cp.async, behind a wait
//                                              expert's flag              for all tiles
//   sums of slots, by   the same               count of the token's       the warp that counted
//   parts of K                                 flag in the columns        last: it adds up
//
// All of it is generic: no proxy is crossed. Counts acquire and release at the scope of the GPU.
// Who is last sets a flag back to 0, for the next launch: it has seen all others.
#pragma once

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/epilogue.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/hopper/scales.h"
#include "warpwright/kernel/hopper/sources.h"
#include "warpwright/kernel/hopper/tile_sums.h"
#include "warpwright/kernel/hopper/token_rows.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/kernel/tile_mark.h"

namespace warpwright::kernel {

/// A tile of one of the products.
struct LayerItem : tile::Work {
  bool is_second = false;
  int part = 0;    ///< along K
  ExpertTiles of;  ///< its expert's
};

/// The items of a CTA, for a role that is `Who`.
template <class Tag, pipeline::Reader Who>
class LayerWalk {
 public:
  static constexpr LayerConfig config = Tag::config;
  static constexpr int tokens = tile_tokens(config);
  using Slots = SlotTiles<tokens>;
  using Ring = TileRingOf<Tag, tile::DynamicNumbers>;

  /// Once the slots are sorted.
  WW_DEVICE LayerWalk(const LayerParams& p, const Slots& slots, const Ring& ring, int first)
      : p_(p), slots_(slots), numbers_(ring, first), firsts_(slots.tiles() * of(p.first_tiles)) {}

  WW_DEVICE static int of(const tile::Divisor& items) { return static_cast<int>(items.value); }
  /// Items of both products.
  WW_DEVICE static int count(const LayerParams& p, const Slots& slots) {
    return slots.tiles() * (of(p.first_tiles) + of(p.second_items));
  }

  /// The CTA's next item; false when there is none.
  WW_DEVICE bool next(LayerItem& item) {
    const int number = numbers_.number();
    if (number == pipeline::no_tile) return false;
    item.is_second = number >= firsts_;
    const tile::Divisor& items = item.is_second ? p_.second_items : p_.first_tiles;
    const int index = number - (item.is_second ? firsts_ : 0);
    const ExpertTiles e = slots_.expert_of(items.quotient(index));
    // Weights meet all tokens of their expert before the next ones' turn.
    const int rest = index - e.first_tile * of(items);
    const int weights = e.tiles == 1 ? rest : rest / e.tiles;
    const int token = rest - weights * e.tiles;
    const int k_parts = item.is_second ? p_.k_parts : 1;
    const int weight = k_parts == 1 ? weights : weights / k_parts;
    item.part = weights - weight * k_parts;
    item.tile = {weight, token, e.expert};
    const int k_tiles = item.is_second ? p_.second.walk.k_tiles : p_.first.walk.k_tiles;
    item.first = item.part * p_.part_k_tiles;
    item.end = k_parts == 1 ? k_tiles : item.first + p_.part_k_tiles;
    if (item.end > k_tiles) item.end = k_tiles;
    item.first_token = e.first_row;
    item.end_token = e.end_row;
    item.tiles_before = e.first_tile;
    item.row = weight * (item.is_second ? result_rows(config.second) : result_rows(config.first));
    item.column = e.first_row + token * tokens;
    item.of = e;
    return true;
  }

 private:
  const LayerParams& p_;
  const Slots& slots_;
  tile::TicketNumbers<Ring, Who> numbers_;
  int firsts_;  // items of the first product
};

/// The kernel for `Tag::config`, a static constexpr LayerConfig.
template <class Tag>
class LayerKernel {
 public:
  using Params = LayerParams;
  static constexpr LayerConfig config = Tag::config;
  static constexpr LayerMap smem = layer_map(config);
  static constexpr int threads = kernel::threads(config);
  static constexpr int shared_bytes = smem.bytes;
  static constexpr int ctas_per_sm = config.first.ctas_per_sm;
  static_assert(config_fault(config) == nullptr);
  static_assert(signals_match(config.first) && signals_match(config.second));

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) { LayerKernel(p).run(); }

 private:
  struct First {
    static constexpr GemmConfig config = Tag::config.first;
  };
  struct Second {
    static constexpr GemmConfig config = Tag::config.second;
  };
  using Ring = MainloopPipeline<First>;
  template <pipeline::Reader Who>
  using Walk = LayerWalk<Tag, Who>;
  using ByWarp = Walk<pipeline::Reader::warp>;
  using Slots = typename ByWarp::Slots;
  using Numbers = typename ByWarp::Ring;
  using Adder = SlotAdder<PartialRows>;
  static constexpr int consumers = 32 * consumer_warps(config.first);
  /// Named barriers; 0 is that of all threads.
  static constexpr int stored = 1;

  WW_DEVICE explicit LayerKernel(const Params& p)
      : p_(p),
        base_(isa::shared_base()),
        warp_(isa::warp_index()),
        slots_(p.slots, base_ + smem.tables),
        numbers_(base_ + smem.numbers, {}) {}

  WW_DEVICE void run() const {
    if (warp_ == first_row_warp) {
      initialise_barriers([&] {
        Ring(base_ + smem.product.barriers, {}).initialise();
        numbers_.initialise({});
      });
    }
    const bool mine = warp_ < first_row_warp && isa::elect_one();
    if (warp_ == 0 && mine) {
      WeightSource<First>::prefetch_map(p_.first.operands);
      WeightSource<Second>::prefetch_map(p_.second.operands);
    }
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    tile::TicketScheduler tickets(p_.flags, ready);
    if (warp_ == ticket_warp && mine) first().store(0, tickets.begin());
    slots_.fill(ready, base_ + smem.product.epilogue);
    if (warp_ >= loading_warps) {
      isa::set_role(role_of_warp(config.first, loading_warps));
      take_registers<Tag>();
      return consume(ready);
    }
    isa::set_role(warp_ == 0 ? "producer" : warp_ == ticket_warp ? "scheduler" : "tokens");
    give_registers<Tag>();
    if (warp_ == 0) {
      if (mine) produce();
    } else if (warp_ == ticket_warp) {
      if (mine && tickets.limit(ByWarp::count(p_, slots_))) numbers_.schedule(tickets, 0);
    } else {
      copy_rows();
    }
  }

  /// The first number of this CTA, which is drawn before it sorts; other roles see it behind that.
  [[nodiscard]] WW_DEVICE isa::SharedView<int> first() const { return {base_ + smem.first}; }
  /// The items of a role, whose first number is a tile's or no_tile.
  template <pipeline::Reader Who>
  [[nodiscard]] WW_DEVICE Walk<Who> walk_of() const {
    const int number = first().load();
    return {p_, slots_, numbers_,
            number < Walk<Who>::count(p_, slots_) ? number : pipeline::no_tile};
  }

  /// One thread: loads weights.
  WW_DEVICE void produce() const {
    const Ring ring(base_ + smem.product.barriers, {});
    auto of_first = weights_of<First>(p_.first);
    auto of_second = weights_of<Second>(p_.second);
    auto walk = walk_of<pipeline::Reader::thread>();
    pipeline::PipelineState state;
    LayerItem item;
    while (walk.next(item)) {
      mark_tile<true, true>(item.tile);
      if (item.is_second) {
        load(ring, of_second, p_.second.operands, item, state);
      } else {
        load(ring, of_first, p_.first.operands, item, state);
      }
      isa::mark_end();
    }
    isa::launch_dependents();
  }

  template <class Product>
  WW_DEVICE WeightSource<Product> weights_of(const GemmParams& p) const {
    const isa::SharedAddress barriers = base_ + smem.product.barriers;
    return WeightSource<Product>::of(
        Cta<Product>{p, base_, 0, {0, 0}, isa::Prerequisites::of_earlier_grids(), {barriers, {}}});
  }

  /// All weights of an item.
  template <class Source>
  WW_DEVICE static void load(const Ring& ring, Source& source, const OperandParams& p,
                             const LayerItem& item, pipeline::PipelineState& state) {
    source.place(p, item);
    WW_NO_UNROLL for (int k_tile = item.first; k_tile != item.end; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      const isa::SharedAddress full = ring.acquire(state, source.more());
      source.load(p, state.stage, k_tile, full);
      state.advance(config.first.stages);
    }
  }

  /// One of the warps that copy rows.
  WW_DEVICE void copy_rows() const {
    const Ring ring(base_ + smem.product.barriers, {});
    RowCopier<First> rows(base_, warp_ - first_row_warp);
    auto walk = walk_of<pipeline::Reader::warp>();
    pipeline::PipelineState state;
    LayerItem item;
    while (walk.next(item)) {
      const TokenParams& from =
          item.is_second ? p_.second.operands.tokens : p_.first.operands.tokens;
      if (item.is_second) {
        if (isa::lane_index() == 0) await_rows(item);
        isa::sync_warp();
      }
      rows.place(from, item.column, item.end_token,
                 [&](int row) { return item.is_second ? row : slots_.token(row); });
      rows.run(ring, from, item, state);
    }
    rows.drain();
  }

  /// One thread: until all rows of an item's expert are there.
  WW_DEVICE void await_rows(const LayerItem& item, isa::Site site = isa::Site::sync()) const {
    isa::flag_wait(p_.expert_flag(item.of.expert),
                   static_cast<std::uint32_t>(item.of.tiles * ByWarp::of(p_.first_tiles) * warps),
                   Params::seen - 1, site);
  }

  /// A warp's buffers are the same of both products: no warp waits for another between its items.
  template <class Product>
  WW_DEVICE Epilogue<Product> epilogue_of(const GemmParams& p, int warp) const {
    constexpr int all = smem.product.scales - smem.product.epilogue;
    constexpr int others = (all - epilogue_bytes(Product::config)) / warps;
    return {p.output, p.scales, base_ + smem.product.epilogue + warp * others,
            base_ + smem.product.c_barriers, warp};
  }

  /// The consumer warpgroup: multiplies, stores, and adds up what is complete.
  WW_DEVICE void consume(const isa::Prerequisites& ready) const {
    const int warp = warp_ - loading_warps;
    const bool counts = isa::thread_index() == 32 * loading_warps;
    const Adder adder(p_.sum, {p_.k_parts, p_.slots.count() * p_.sum.x_pitch, p_.bias,
                               p_.bias_pitch, p_.bias_is_wide});
    const Ring ring(base_ + smem.product.barriers, {}, 1);
    pipeline::PipelineState state;
    TileSums<First> sums;
    auto gated = epilogue_of<First>(p_.first, warp);
    auto plain = epilogue_of<Second>(p_.second, warp);
    auto walk = walk_of<pipeline::Reader::warp>();
    LayerItem item;
    for (int rest = 0;; rest += 32) {
      Complete complete;
      if (rest < p_.sum.tokens) {
        complete = without_slot(rest, warp);
      } else {
        if (!walk.next(item)) break;
        mark_tile<true, true>(item.tile);
        if (item.is_second) {
          // No copy hands on that the tokens have been read, over which results may be written.
          if (counts) await_rows(item);
          plain.begin(partial(item, item.part), warp_rows * warp);
        } else {
          gated.begin(item, warp_rows * warp);
        }
        multiply(ring, ready, item, sums, state);
        const CompleteSums all{true, 0, tile_tokens(config)};
        if (item.is_second) {
          plain.write(sums.values(), all);
          isa::named_barrier_sync(stored, consumers);
          complete = count_rows(item, warp);
        } else {
          gated.write(sums.values(), all);
          isa::sync_warp();
          if (isa::lane_index() == 0) isa::flag_count(p_.expert_flag(item.of.expert));
        }
        if (counts) isa::count_tile();
        isa::mark_end();
      }
      add(adder, ready, complete);
    }
  }

  /// Where the sums of a part along K go: a part has all rows.
  WW_DEVICE tile::Work partial(tile::Work work, int part) const {
    work.column += part * p_.slots.count();
    work.end_token += part * p_.slots.count();
    return work;
  }

  /// The sums of a tile. Once in the code: tiles of both products are alike but for their
  /// parameters.
  WW_DEVICE void multiply(const Ring& ring, const isa::Prerequisites& ready, const LayerItem& item,
                          TileSums<First>& sums, pipeline::PipelineState& state) const {
    const Cta<First> cta{item.is_second ? p_.second : p_.first, base_, 0, {0, 0}, ready, ring};
    MainloopOf<First> mainloop(cta, 0);
    mainloop.state = state;
    sums.run(mainloop, item, [] {});
    state = mainloop.state;
  }

  /// What a warp adds up: columns from `first` to before `end`, each `step`, of the tokens of some
  /// lanes.
  struct Complete {
    std::uint32_t lanes = 0;
    int token = 0;  ///< this lane's
    int first = 0;
    int end = 0;
    int step = 1;
  };
  static constexpr int warps = consumers / 32;

  /// All lanes: the tokens from `first` on, one a lane, that have no slot. No tile completes them,
  /// and nobody reads them, so that d may be x. All consumers of the grid share their columns out.
  WW_DEVICE Complete without_slot(int first, int warp) const {
    constexpr int piece = 32 * Adder::each;
    const int token = first + isa::lane_index();
    const bool is_so = token < p_.sum.tokens && slots_.rows_of(token) == 0;
    return {isa::ballot(is_so), token, (isa::cta_index() * warps + warp) * piece, p_.sum.k,
            isa::cta_count() * warps * piece};
  }

  /// All lanes: counts the rows of a tile of the second product for their tokens. Each warp has
  /// every fourth row, and adds up the tokens that it has completed.
  WW_DEVICE Complete count_rows(const LayerItem& item, int warp) const {
    constexpr int watcher = 31;  // the lane that counts for the expert
    static_assert(tile_tokens(config) / warps < watcher);
    const int lane = isa::lane_index();
    const int at = warps * lane + warp;
    const int row = item.column + at;
    const bool has_row = at < tile_tokens(config) && row < item.end_token;
    const bool watches = lane == watcher && warp == 0;
    const int token = has_row ? slots_.token(row) : 0;
    bool is_last = false;
    if (has_row || watches) {
      std::uint32_t* const flag =
          watches ? p_.expert_flag(item.of.expert) : p_.token_flag(token, item.tile.m);
      const std::uint32_t before = isa::flag_count(flag, watches ? Params::seen : 1);
      const int all = watches ? item.of.tiles * ByWarp::of(p_.second_items)
                              : slots_.rows_of(token) * p_.k_parts;
      const int counted = static_cast<int>(watches ? before / Params::seen : before) + 1;
      is_last = counted == all;
      if (is_last) isa::flag_clear(flag);
    }
    isa::sync_warp();
    const int end = item.row + result_rows(config.second);
    return {isa::ballot(is_last && has_row), token, item.row, end < p_.sum.k ? end : p_.sum.k,
            p_.sum.k};
  }

  /// All lanes.
  WW_DEVICE void add(const Adder& adder, const isa::Prerequisites& ready,
                     const Complete& complete) const {
    WW_NO_UNROLL for (std::uint32_t lanes = complete.lanes; lanes != 0; lanes &= lanes - 1) {
      const std::uint32_t token =
          isa::shuffle(static_cast<std::uint32_t>(complete.token), isa::lowest_lane(lanes));
      WW_NO_UNROLL for (int first = complete.first; first < complete.end; first += complete.step) {
        const int column = first + isa::lane_index() * Adder::each;
        adder.add<config.first.result>(ready, slots_, static_cast<int>(token),
                                       column < complete.end ? column : p_.sum.k);
      }
    }
  }

  const Params& p_;
  isa::SharedAddress base_;
  int warp_;
  Slots slots_;
  Numbers numbers_;
};

}  // namespace warpwright::kernel
