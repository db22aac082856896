// A whole layer of experts in one launch, for few tokens, by warps that multiply for themselves:
// no ring of stages that roles share, no copy by TMA. One source for the GPU and the model.
//
// A persistent grid, of two CTAs an SM. Its items are blocks of 16 rows of weights: first those of
// the first product, of all experts that are hit, then those of the second. CTAs draw their numbers
// (tile/numbers.h). An item waits only for items with smaller numbers, which CTAs that have started
// hold, and a CTA does its items in the order of their numbers. So the smallest that is not done is
// always some CTA's current one, and the grid ends on any number of SMs.
//
//   item              its warps                       what comes of it
//   first product     share the K of 16 gates and     they add up through shared memory; gates,
//                     16 ups                          rows to L2, a count at the expert's flag
//   second product    each has experts, or parts of   16 columns of all tokens: added up in order,
//                     their K                         from shared memory. No row leaves the CTA
//
// All warps do the same. Each copies weights to its own stages (cp.async; a lane reads what it has
// copied itself), ahead of what it multiplies: through the CTA's next item, and before the rows are
// there that they meet. A lane of the second draws items for the CTA, the first before the sort,
// each other while the one before is worked on. All tokens are brought to shared memory once, while
// the first warp sorts; rows between the products by each warp, when they are there.
//
// What crosses CTAs are the rows between the products: stored by lanes, counted at the expert's
// flag by each warp that has some, read behind a wait for all of the expert's. Each item of the
// second product counts at `done` when its warps have waited for all experts; who has the last item
// waits for all others there, and sets all flags back to 0.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/alpha.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/epilogue_vectors.h"
#include "warpwright/kernel/hopper/column_sums.h"
#include "warpwright/kernel/hopper/layer.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/hopper/layer_units.h"
#include "warpwright/kernel/hopper/staged_rows.h"
#include "warpwright/kernel/hopper/warp_items.h"
#include "warpwright/kernel/hopper/warp_stream.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/kernel/tile_mark.h"

namespace warpwright::kernel {

/// The kernel for `Tag::config`, a static constexpr LayerConfig.
template <class Tag>
class WarpLayerKernel {
 public:
  using Params = WarpLayerParams;
  static constexpr LayerConfig config = Tag::config;
  static constexpr WarpLayerMap smem = warp_layer_map(config);
  static constexpr int threads = kernel::threads(config);
  static constexpr int shared_bytes = smem.bytes;
  static constexpr int ctas_per_sm = config.first.ctas_per_sm;
  static_assert(config_fault(config) == nullptr);

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) { WarpLayerKernel(p).run(); }

 private:
  struct First {
    static constexpr GemmConfig config = Tag::config.first;
  };
  using Units = UnitsOf<First>;
  static_assert(Units::bytes == unit_bytes(config) && Units::step == unit_k(config));
  static constexpr DType type = config.first.result;
  static constexpr int workers = config.warps;
  static constexpr int stages = config.first.stages;
  using Items = WarpItems<Units>;
  using Slots = typename Items::Slots;
  using Job = typename Items::Job;
  using Numbers = TileRingOf<Tag, tile::DynamicNumbers>;
  using Tickets = tile::TicketNumbers<Numbers, pipeline::Reader::lanes>;
  using Draws = NumberDraws<Numbers>;
  using Stream = WarpStream<Units, stages, Tickets, Draws>;
  static constexpr int drawing_thread = 32;

  WW_DEVICE explicit WarpLayerKernel(const Params& p)
      : p_(p),
        base_(isa::shared_base()),
        warp_(isa::warp_index()),
        slots_(p.slots, base_ + smem.tables),
        items_(p, slots_, warp_, workers),
        numbers_(base_ + smem.numbers, {}) {}

  WW_DEVICE void run() const {
    if (warp_ == 0) initialise_barriers([&] { numbers_.initialise({}); });
    isa::set_role("workers");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    tile::TicketScheduler tickets(p_.flags, ready);
    const bool draws = isa::thread_index() == drawing_thread;
    int number = 0;
    if (draws) number = tickets.begin();
    if (warp_ == 0) {
      slots_.fill_by_warp(ready);
    } else if (!p_.in_place) {
      bring_tokens(ready);
    }
    if (draws) first().store(0, number);
    isa::sync_threads(threads);
    if (p_.in_place) {
      // Where the result takes the tokens' place, only who has an item that needs them may read.
      if (warp_ != 0 && first().load() < items_.firsts()) bring_tokens(ready);
      isa::sync_threads(threads);
    }
    work(ready, tickets, draws && tickets.limit(items_.count()));
    isa::launch_dependents();
  }

  /// The first number of this CTA, which is drawn before it sorts.
  [[nodiscard]] WW_DEVICE isa::SharedView<int> first() const { return {base_ + smem.first}; }
  /// The numbers of the CTA, for this warp.
  [[nodiscard]] WW_DEVICE Tickets tickets_of_warp() const {
    const int number = first().load();
    return {numbers_, number < items_.count() ? number : pipeline::no_tile};
  }

  /// All tokens of the launch.
  [[nodiscard]] WW_DEVICE StagedRows<Units> all_tokens() const {
    return {base_ + smem.tokens, p_.first.k_units * Units::step, p_.token_pitch};
  }
  /// Warps but the first: this one's part of them.
  WW_DEVICE void bring_tokens(const isa::Prerequisites& /*ready*/) const {
    const TokenParams& x = p_.first.tokens;
    all_tokens().bring(
        p_.slots.tokens, static_cast<int>(x.row_bytes / 2),
        [&](int i) { return x.data + i * x.pitch_pieces * 16; }, warp_ - 1, workers - 1);
  }

  WW_DEVICE void work(const isa::Prerequisites& ready, tile::TicketScheduler& tickets,
                      bool more) const {
    Draws draws(numbers_, tickets, more);
    Stream stream(p_, items_, tickets_of_warp(), draws,
                  base_ + smem.stages +
                      static_cast<isa::SharedAddress>(warp_ * stages * Stream::stage_bytes));
    WarpItem item;
    int buffer = 0;
    for (bool is_behind = false;; is_behind = true) {
      draws.tell();
      draws.draw();
      if (!stream.begin(item)) break;
      mark_tile<true, true>({item.block, item.row, item.expert});
      // The sums of the second product lie where those of the item before did.
      if (item.is_second && is_behind) meet(draws);
      multiply(stream, item, buffer);
      meet(draws);
      if (!item.is_second) {
        gate(item, buffer);
        buffer ^= 1;
      } else {
        count_done(item.block);
        add_up(ready, item.block);
      }
      if (isa::thread_index() == 0) isa::count_tile();
      isa::mark_end();
    }
  }

  /// All warps. Others may wait for the next number before they come here.
  WW_DEVICE void meet(Draws& draws, isa::Site site = isa::Site::sync()) const {
    draws.tell(site);
    isa::sync_threads(threads, site);
  }

  /// Sums of a warp, part and row of a block, for all tokens.
  [[nodiscard]] WW_DEVICE isa::SharedAddress partial(int buffer, int warp, int part) const {
    return base_ + smem.sums +
           static_cast<isa::SharedAddress>(((buffer * workers + warp) * 2 + part) * block_bytes);
  }
  static constexpr int block_bytes = 4 * block_rows * block_tokens;

  /// Where this lane finds an item's tokens, `place` the row in `rows` of the i-th of them.
  template <class PlaceOf>
  WW_DEVICE static TokenPlace token_place(const StagedRows<Units>& rows, const WarpItem& item,
                                          const PlaceOf& place) {
    // Any of them for one behind the last: what comes of it is not stored.
    const auto of = [&](int i) { return place(i < item.rows ? i : item.rows - 1); };
    const int lane = isa::lane_index();
    TokenPlace at = {rows.row(of(lane / 4)), {}};
    if constexpr (Units::quantises) {
      WW_UNROLL for (int i = 0; i < 2; ++i) at.scales[i] = rows.scales(of(lane % 4 * 2 + i));
    }
    return at;
  }

  /// This warp's jobs of an item, and their sums to shared memory.
  WW_DEVICE void multiply(Stream& stream, WarpItem& item, int buffer) const {
    Job job;
    for (int turn = 0;; ++turn) {
      const bool has_job = items_.find(item, turn, job);
      if (!has_job) {
        if (turn > 0) break;
        job.unit = job.end = 0;  // weights of what comes next are asked for all the same
      }
      BlockSums sums[2] = {};
      multiply(stream, item, job, sums);
      if (!has_job) break;
      if (item.is_second) {
        store_second(item, job.part, sums);
      } else {
        store_first(buffer, sums);
      }
    }
  }

  /// A job: a stage has gates and ups of a unit, or two units. The sums are those of either half.
  WW_DEVICE void multiply(Stream& stream, const WarpItem& item, const Job& job,
                          BlockSums (&sums)[2]) const {
    const bool second = job.is_second;
    const int step = second ? 2 : 1;
    const typename Units::Form form = Units::form(second ? p_.second : p_.first);
    const auto token = [&](int i) { return slots_.token(item.row + i); };
    // All tokens of the first product are there; rows of the second come some units at a time.
    TokenPlace tokens = second ? TokenPlace{} : token_place(all_tokens(), item, token);
    int from = 0;
    int to = second ? job.unit : job.end;
    for (int unit = job.unit;; unit += step) {
      const isa::Mark mark("unit %", unit);
      stream.fill();
      if (unit >= job.end) break;
      if (unit == to) {
        from = unit;
        to = bring_rows(item, job, unit, tokens);
      }
      const typename Units::Tokens now = Units::load(tokens, unit - from, unit - from + step - 1);
      const isa::SharedAddress stage = stream.arrive();
      Units::multiply(form, stage, now, sums);
      if (unit + step >= job.end) {
        const BlockFactors by = Units::factors(form, stage);
        scale(sums[0], by);
        scale(sums[1], second ? by : Units::factors(form, stage + Units::bytes));
      }
      stream.release();
    }
  }

  /// The warp: rows between the products that a job needs from `unit` on, to this warp's place, and
  /// where lanes find them. Returns up to which unit.
  WW_DEVICE int bring_rows(const WarpItem& item, const Job& job, int unit, TokenPlace& at) const {
    if (unit == job.unit) await_rows(item);
    isa::sync_warp();  // those before have been read
    const WarpLayerParams::Chunk chunk = p_.chunks[item.rows - 1];
    const StagedRows<Units> rows(
        base_ + smem.tokens + static_cast<isa::SharedAddress>(warp_ * own_token_bytes),
        chunk.units * Units::step, chunk.pitch);
    const TokenParams& inner = p_.second.tokens;
    const int first = unit * Units::step;
    rows.bring(
        item.rows, static_cast<int>(inner.row_bytes / 2) - first,
        [&](int i) { return inner.data + (item.row + i) * inner.pitch_pieces * 16 + 2 * first; }, 0,
        1);
    isa::sync_warp();
    at = token_place(rows, item, [](int i) { return i; });
    return unit + chunk.units;
  }
  static constexpr int own_token_bytes = token_bytes(config) / config.warps;
  static_assert(own_token_bytes % 128 == 0);

  WW_DEVICE void store_first(int buffer, const BlockSums (&sums)[2]) const {
    const int lane = isa::lane_index();
    if (lane % 4 >= block_tokens / 2) return;
    WW_UNROLL for (int part = 0; part < 2; ++part) {
      const isa::SharedView<isa::Words<2>> to{partial(buffer, warp_, part)};
      WW_UNROLL for (int i = 0; i < 2; ++i) {
        to.store((lane / 4 + 8 * i) * (block_tokens / 2) + lane % 4,
                 {{isa::float_bits(sums[part][2 * i]), isa::float_bits(sums[part][2 * i + 1])}});
      }
    }
  }
  WW_DEVICE void store_second(const WarpItem& item, int k_part, const BlockSums (&sums)[2]) const {
    const int lane = isa::lane_index();
    const isa::SharedView<float> to{base_ + smem.sums};
    WW_UNROLL for (int i = 0; i < 4; ++i) {
      const int token = lane % 4 * 2 + i % 2;
      const int row = lane / 4 + i / 2 * 8;
      if (token >= item.rows) continue;
      const int column = item.block * block_rows + row;
      const float scaled =
          column < p_.sum.k ? (sums[0][i] + sums[1][i]) * scale_of(p_.second, item.expert, column)
                            : 0.0F;
      to.store((k_part * p_.slots.count() + item.row + token) * block_rows + row, scaled);
    }
  }

  WW_DEVICE static void scale(BlockSums& sums, const BlockFactors& by) {
    WW_UNROLL for (int i = 0; i < 4; ++i) sums[i] *= i < 2 ? by.low : by.high;
  }

  /// Scale and bias of a row of weights, for what comes of it.
  WW_DEVICE static float finished(const WarpProduct& p, int expert, int row, float sum) {
    return isa::multiply_add(sum, scale_of(p, expert, row), value_at(p.biases, expert, row, 0));
  }
  /// All that its sums are multiplied by.
  WW_DEVICE static float scale_of(const WarpProduct& p, int expert, int row) {
    return p.alpha * float_or_one(p.factors[0], expert * p.factor_strides[0]) *
           float_or_one(p.factors[1], expert * p.factor_strides[1]) *
           value_at(p.scales, expert, row, 1);
  }
  WW_DEVICE static float value_at(const Vector& v, int batch, int i, float otherwise) {
    std::uint32_t bits = 0;
    load_element(v, batch, i, true, bits);
    return element_of(v, bits, otherwise);
  }

  /// The first half of the workers, a warp for two tokens each: adds up the shares of an item,
  /// gates, and stores rows.
  WW_DEVICE void gate(const WarpItem& item, int buffer) const {
    if (warp_ * 2 >= item.rows || warp_ >= block_tokens / 2) return;
    const int token = isa::thread_index() / block_rows;
    const int row = isa::thread_index() % block_rows;
    const int column = item.block * block_rows + row;
    if (token < item.rows && column < p_.inner_columns) {
      float sum[2][1] = {};
      WW_UNROLL for (int warp = 0; warp < workers; ++warp) {
        WW_UNROLL for (int part = 0; part < 2; ++part) {
          const isa::SharedView<float> from{partial(buffer, warp, part)};
          sum[part][0] += from.load(row * block_tokens + token);
        }
      }
      WW_UNROLL for (int part = 0; part < 2; ++part) {
        sum[part][0] =
            finished(p_.first, item.expert, p_.first.gate.row(column, part), sum[part][0]);
      }
      multiply_gate(p_.activation, sum[0], sum[1]);
      isa::global_view<std::uint16_t>(p_.inner).store(
          (item.row + token) * p_.inner_pitch + column,
          static_cast<std::uint16_t>(isa::pack<type>(sum[0][0], 0)));
    }
    isa::sync_warp();
    if (isa::lane_index() == 0) isa::flag_add(p_.expert_flag(item.expert));
  }
  /// The warp: until all rows of an expert are there. Each lane waits: only one would part the
  /// warp.
  WW_DEVICE void await_rows(const WarpItem& item, isa::Site site = isa::Site::sync()) const {
    isa::flag_wait(p_.expert_flag(item.expert), items_.counts(item), 0xffffffffU, site);
  }

  /// All workers: the columns of a block, of all tokens, a thread each.
  WW_DEVICE void add_up(const isa::Prerequisites& ready, int block) const {
    const PartialSums partials{base_ + smem.sums, static_cast<int>(p_.by_parts.value),
                               p_.slots.count(),  p_.bias,
                               p_.bias_pitch,     p_.bias_is_wide};
    const ColumnSums<type> sums(p_.sum, partials);
    const int column = block * block_rows + isa::thread_index() % block_rows;
    WW_NO_UNROLL for (int token = isa::thread_index() / block_rows; token < p_.sum.tokens;
                      token += threads / block_rows) {
      sums.add(ready, slots_.of_token(p_.sum, token), token, column);
    }
  }

  /// Once all warps of an item of the second product have waited for their experts, one counts
  /// that. Who has the last item waits for all others to be counted, and sets all flags back to 0.
  WW_DEVICE void count_done(int block, isa::Site site = isa::Site::sync()) const {
    if (warp_ != workers - 1) return;
    const int lane = isa::lane_index();
    if (block + 1 != p_.second_items) {
      if (lane == 0) isa::flag_add(p_.done_flag());
      return;
    }
    isa::flag_wait(p_.done_flag(), static_cast<std::uint32_t>(block), 0xffffffffU, site);
    isa::sync_warp();  // no lane looks any more for what is cleared
    WW_NO_UNROLL for (int i = lane; i < slots_.tiles(); i += 32) {
      const ExpertTiles e = slots_.expert_of(i);
      if (e.first_tile == i) isa::flag_clear(p_.expert_flag(e.expert));
    }
    if (lane == 0) isa::flag_clear(p_.done_flag());
  }

  const Params& p_;
  isa::SharedAddress base_;
  int warp_;
  Slots slots_;
  Items items_;
  Numbers numbers_;
};

/// The kernel of a configuration.
template <class Tag>
using LayerKernelOf =
    std::conditional_t<by_warps(Tag::config), WarpLayerKernel<Tag>, LayerKernel<Tag>>;

}  // namespace warpwright::kernel
