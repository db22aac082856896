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
// All eight warps do the same. Each copies weights to its own stages (cp.async; a lane reads what
// it has copied itself), ahead of what it multiplies: through the CTA's next item, and before the
// rows are there that they meet. A lane of the second draws items for the CTA, the first before the
// sort, each other while the one before is worked on.
//
// What crosses CTAs are the rows between the products: stored by lanes, counted at the expert's
// flag by each warp that has some, read behind a wait for all of the expert's. Who has waited for
// all experts counts at `done`; who is last there sets all flags back to 0.
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
#include "warpwright/kernel/hopper/layer.h"
#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/kernel/hopper/layer_units.h"
#include "warpwright/kernel/roles.h"
#include "warpwright/kernel/tile_mark.h"

namespace warpwright::kernel {

/// An item: a block of the first product with the tokens of an expert, or a block of the second.
struct WarpItem {
  bool is_second = false;
  int block = 0;
  int expert = 0;
  int row = 0;        ///< the first of its tokens' rows
  int rows = 0;       ///< of them, block_tokens at most
  int tiles = 0;      ///< of tokens, of the expert
  int last_rows = 0;  ///< of the last of these
};

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
  using Slots = SlotTiles<block_tokens>;
  using Numbers = TileRingOf<Tag, tile::DynamicNumbers>;
  using Tickets = tile::TicketNumbers<Numbers, pipeline::Reader::warp>;
  using Adder = SlotAdder<SharedRows>;
  static constexpr int workers = config.warps;
  static constexpr int stages = config.first.stages;
  static constexpr int drawing_thread = 32;

  WW_DEVICE explicit WarpLayerKernel(const Params& p)
      : p_(p),
        base_(isa::shared_base()),
        warp_(isa::warp_index()),
        slots_(p.slots, base_ + smem.tables),
        numbers_(base_ + smem.numbers, {}) {}

  WW_DEVICE void run() const {
    if (warp_ == 0) initialise_barriers([&] { numbers_.initialise({}); });
    isa::set_role("workers");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    tile::TicketScheduler tickets(p_.flags, ready);
    // (Not of the warp that sorts: it would wait for the number.)
    const bool draws = isa::thread_index() == drawing_thread;
    if (draws) first().store(0, tickets.begin());
    slots_.template fill<true>(ready, base_ + smem.sums);
    const bool more = draws && tickets.limit(count());
    work(ready, tickets, more);
    isa::launch_dependents();
  }

  [[nodiscard]] WW_DEVICE static int of(const tile::Divisor& items) {
    return static_cast<int>(items.value);
  }
  /// Items of the first product, and of both.
  [[nodiscard]] WW_DEVICE int firsts() const { return slots_.tiles() * of(p_.first_items); }
  [[nodiscard]] WW_DEVICE int count() const { return firsts() + p_.second_items; }

  /// The first number of this CTA, which is drawn before it sorts; other roles see it behind that.
  [[nodiscard]] WW_DEVICE isa::SharedView<int> first() const { return {base_ + smem.first}; }
  /// The items of the CTA, for this warp.
  [[nodiscard]] WW_DEVICE Tickets items() const {
    const int number = first().load();
    return {numbers_, number < count() ? number : pipeline::no_tile};
  }

  /// The tokens of tile `i`.
  WW_DEVICE void place_tokens(WarpItem& item, int i) const {
    const ExpertTiles e = slots_.expert_of(i);
    item.expert = e.expert;
    item.row = e.first_row + (i - e.first_tile) * block_tokens;
    const int left = e.end_row - item.row;
    item.rows = left < block_tokens ? left : block_tokens;
    item.tiles = e.tiles;
    item.last_rows = e.end_row - e.first_row - (e.tiles - 1) * block_tokens;
  }

  /// The next item; false when there is none.
  WW_DEVICE bool next(Tickets& items, WarpItem& item) const {
    const int number = items.number();
    if (number == pipeline::no_tile) return false;
    const int before = firsts();
    item.is_second = number >= before;
    if (item.is_second) {
      item.block = number - before;
    } else {
      const int tile = p_.first_items.quotient(number);
      item.block = number - tile * of(p_.first_items);
      place_tokens(item, tile);
    }
    return true;
  }

  /// What a warp multiplies without a break: units of one block, or of gates and ups.
  struct Job {
    typename Units::Block block[2];
    int scales_at = 0;  ///< from where blocks begin
    int unit = 0;
    int end = 0;
    int part = 0;  ///< of K
    bool is_second = false;
  };

  [[nodiscard]] WW_DEVICE typename Units::Form form_of(bool second) const {
    return second ? Units::form(p_.second) : Units::form(p_.first);
  }

  /// A share of K, in units.
  WW_DEVICE static void share(Job& job, int part, const WarpProduct& p) {
    job.part = part;
    job.unit = part * p.share;
    job.end = job.unit + p.share < p.k_units ? job.unit + p.share : p.k_units;
  }

  /// The `turn`-th job of this warp in an item; false when it has none.
  WW_DEVICE bool find(WarpItem& item, int turn, Job& job) const {
    job.is_second = item.is_second;
    if (!item.is_second) {
      if (turn > 0) return false;
      job.scales_at = Units::scales_at(Units::form(p_.first), item.block);
      share(job, warp_, p_.first);
      WW_UNROLL for (int part = 0; part < 2; ++part) {
        job.block[part] = Units::block(p_.first, item.expert, item.block * block_rows, part);
      }
      return true;
    }
    const int at = warp_ + turn * workers;
    const int tile = p_.by_parts.quotient(at);
    if (tile >= slots_.tiles()) return false;
    place_tokens(item, tile);
    job.scales_at = Units::scales_at(Units::form(p_.second), item.block);
    share(job, at - tile * of(p_.by_parts), p_.second);
    job.block[0] = job.block[1] = Units::block(p_.second, item.expert, item.block * block_rows, 0);
    return true;
  }

  /// The CTA's next number: one thread draws it when an item begins, and tells it when it is asked
  /// for.
  class Draws {
   public:
    WW_DEVICE Draws(const Numbers& numbers, tile::TicketScheduler& tickets, bool more)
        : numbers_(numbers), tickets_(tickets), more_(more) {}

    WW_DEVICE void draw() {
      if (!more_) return;
      tickets_.draw_ahead();
      is_untold_ = true;
    }
    WW_DEVICE void tell(isa::Site site = isa::Site::sync()) {
      if (!is_untold_) return;
      numbers_.tell(tickets_, state_, site);
      state_.advance(Numbers::shape.answers);
      is_untold_ = false;
      more_ = tickets_.is_tile();
    }

   private:
    const Numbers& numbers_;
    tile::TicketScheduler& tickets_;
    pipeline::PipelineState state_;
    bool more_;
    bool is_untold_ = false;
  };

  /// The weights of this warp, on their way: a line of stages over all its jobs, of which each has
  /// two units' bytes.
  class Stream {
   public:
    WW_DEVICE Stream(const WarpLayerKernel& kernel, Draws& draws, isa::SharedAddress stages_at)
        : kernel_(kernel), draws_(draws), items_(kernel.items()), at_(stages_at) {}

    /// The CTA has begun its next item: the one behind it may be asked for.
    WW_DEVICE void begin() {
      --ahead_;
      fill();
    }
    /// Asks for as much as there is room for.
    WW_DEVICE void fill() {
      while (flying_ < stages - 1 && has_job()) {
        const int behind = oldest_ + flying_;
        const int stage = behind < stages ? behind : behind - stages;
        const isa::SharedAddress to = at_ + static_cast<isa::SharedAddress>(stage * stage_bytes);
        const typename Units::Form form =
            Units::keeps_form ? form_ : kernel_.form_of(job_.is_second);
        WW_UNROLL for (int half = 0; half < 2; ++half) {
          const int unit = job_.unit + (job_.is_second ? half : 0);
          if (unit < job_.end) {
            Units::copy(form, job_.block[half], job_.scales_at, unit, to + half * Units::bytes);
          }
        }
        job_.unit += job_.is_second ? 2 : 1;
        isa::copy_async_commit();
        ++flying_;
      }
    }

    /// Waits for the oldest stage: where it lies.
    WW_DEVICE isa::SharedAddress arrive() {
      wait<stages - 2>();
      // Lanes of four share scales.
      if constexpr (Units::packed) isa::sync_warp();
      return at_ + static_cast<isa::SharedAddress>(oldest_ * stage_bytes);
    }
    /// It has been read.
    WW_DEVICE void release() {
      if constexpr (Units::packed) isa::sync_warp();
      oldest_ = oldest_ + 1 == stages ? 0 : oldest_ + 1;
      --flying_;
      fill();
    }

   private:
    static constexpr int stage_bytes = 2 * Units::bytes;

    template <int newer>
    WW_DEVICE void wait() const {
      if constexpr (newer == 0) {
        isa::copy_async_wait<0>();
      } else if (flying_ > newer) {
        isa::copy_async_wait<newer>();
      } else {
        wait<newer - 1>();
      }
    }

    WW_DEVICE bool has_job() {
      while (job_.unit >= job_.end) {
        if (has_item_ && kernel_.find(item_, turn_, job_)) {
          ++turn_;
          form_ = kernel_.form_of(job_.is_second);
          continue;
        }
        // No further than one item ahead: so that numbers are read which all may need.
        if (ahead_ > 0) return false;
        if (!items_.knows_first()) draws_.tell();
        ++ahead_;
        has_item_ = kernel_.next(items_, item_);
        if (!has_item_) ahead_ = 0x7fffffff;
        turn_ = 0;
      }
      return true;
    }

    const WarpLayerKernel& kernel_;
    Draws& draws_;
    Tickets items_;
    isa::SharedAddress at_;
    WarpItem item_;
    Job job_;
    [[no_unique_address]] typename Units::Form form_ = {};
    int turn_ = 0;
    bool has_item_ = false;
    int ahead_ = 0;   // items that were taken here, less those that the CTA has begun
    int oldest_ = 0;  // the stage to read
    int flying_ = 0;
  };

  WW_DEVICE void work(const isa::Prerequisites& ready, tile::TicketScheduler& tickets,
                      bool more) const {
    Draws draws(numbers_, tickets, more);
    Stream stream(
        *this, draws,
        base_ + smem.stages + static_cast<isa::SharedAddress>(warp_ * stages * 2 * Units::bytes));
    Tickets walk = items();
    WarpItem item;
    int buffer = 0;
    for (bool is_behind = false;; is_behind = true) {
      draws.tell();
      draws.draw();
      stream.begin();
      if (!next(walk, item)) break;
      mark_tile<true, true>({item.block, item.row, item.expert});
      // Others may wait for the next number before they come to where all meet.
      if (!item.is_second) {
        multiply_first(stream, item, buffer);
        draws.tell();
        isa::sync_threads(threads);
        gate(item, buffer);
        buffer ^= 1;
      } else {
        // Its sums lie where those of the item before did.
        if (is_behind) {
          draws.tell();
          isa::sync_threads(threads);
        }
        multiply_second(stream, item);
        draws.tell();
        isa::sync_threads(threads);
        add_up(ready, item.block);
        if (warp_ == workers - 1) count_done();
      }
      if (isa::thread_index() == 0) isa::count_tile();
      isa::mark_end();
    }
  }

  /// Sums of a warp, part and row of a block, for all tokens.
  [[nodiscard]] WW_DEVICE isa::SharedAddress partial(int buffer, int warp, int part) const {
    return base_ + smem.sums +
           static_cast<isa::SharedAddress>(((buffer * workers + warp) * 2 + part) * block_bytes);
  }
  static constexpr int block_bytes = 4 * block_rows * block_tokens;

  /// This lane's row of tokens among an item's: one of those behind the last is the last.
  [[nodiscard]] WW_DEVICE int own_row(const WarpItem& item) const {
    const int at = isa::lane_index() / 4;
    return item.row + (at < item.rows ? at : item.rows - 1);
  }

  /// This lane's row of tokens, of either product.
  class Tokens {
   public:
    WW_DEVICE Tokens(const WarpProduct& p, int row, bool is_second)
        : row_(p.tokens.data + row * p.tokens.pitch_pieces * 16),
          bytes_(static_cast<int>(p.tokens.row_bytes)),
          is_second_(is_second) {}

    WW_DEVICE void load(int unit, std::uint32_t (&to)[Units::words]) const {
      with([&](const auto& row) { row.load(unit, to); });
    }
    WW_DEVICE void cut(int unit, std::uint32_t (&words)[Units::words]) const {
      with([&](const auto& row) { row.cut(unit, words); });
    }

   private:
    template <class Body>
    WW_DEVICE void with(const Body& body) const {
      if constexpr (Units::first_tokens != Units::second_tokens) {
        if (!is_second_) {
          return body(TokenRow<Units::first_tokens, Units::step, Units::packed>(row_, bytes_));
        }
      }
      body(TokenRow<Units::second_tokens, Units::step, Units::packed>(row_, bytes_));
    }

    const std::byte* row_;
    int bytes_;
    bool is_second_;
  };

  /// A job, of which a stage has gates and ups of a unit, or two units: the sums of either half.
  WW_DEVICE void multiply(Stream& stream, const Job& job, const Tokens& tokens,
                          BlockSums (&sums)[2]) const {
    // A unit has few words: those of the next stage are on their way while this one's are waited
    // for. Else there are registers for one unit only.
    constexpr bool ahead = Units::words <= 8;
    const typename Units::Form form = form_of(job.is_second);
    std::uint32_t next[ahead ? 2 : 1][Units::words];
    const auto load = [&](int unit) {
      tokens.load(unit, next[0]);
      if (ahead && job.is_second) tokens.load(unit + 1, next[ahead ? 1 : 0]);
    };
    if (job.unit < job.end) load(job.unit);
    const int step = job.is_second ? 2 : 1;
    WW_NO_UNROLL for (int unit = job.unit; unit < job.end; unit += step) {
      const isa::Mark mark("unit %", unit);
      const bool is_last = unit + step >= job.end;
      std::uint32_t now[2][Units::words];
      if constexpr (ahead) {
        WW_UNROLL for (int i = 0; i < Units::words; ++i) {
          now[0][i] = next[0][i];
          now[1][i] = job.is_second ? next[1][i] : next[0][i];
        }
        if (!is_last) load(unit + step);
      }
      const isa::SharedAddress at = stream.arrive();
      const isa::SharedAddress other = at + Units::bytes;
      if constexpr (ahead) {
        Units::multiply(form, at, now[0], sums[0]);
        if (!job.is_second || unit + 1 < job.end) Units::multiply(form, other, now[1], sums[1]);
      } else {
        tokens.cut(unit, next[0]);
        Units::multiply(form, at, next[0], sums[0]);
        if (!job.is_second) {
          Units::multiply(form, other, next[0], sums[1]);
        } else if (unit + 1 < job.end) {
          tokens.load(unit + 1, next[0]);
          tokens.cut(unit + 1, next[0]);
          Units::multiply(form, other, next[0], sums[1]);
        }
        if (!is_last) load(unit + step);
      }
      if (is_last) {
        const BlockFactors by = Units::factors(form, at);
        scale(sums[0], by);
        scale(sums[1], job.is_second ? by : Units::factors(form, other));
      }
      stream.release();
    }
  }

  WW_DEVICE void multiply_first(Stream& stream, WarpItem& item, int buffer) const {
    Job job;
    BlockSums sums[2] = {};
    if (find(item, 0, job)) {
      multiply(stream, job, Tokens(p_.first, slots_.token(own_row(item)), false), sums);
    }
    const int lane = isa::lane_index();
    WW_UNROLL for (int part = 0; part < 2; ++part) {
      const isa::SharedView<isa::Words<2>> to{partial(buffer, warp_, part)};
      WW_UNROLL for (int i = 0; i < 2; ++i) {
        to.store((lane / 4 + 8 * i) * (block_tokens / 2) + lane % 4,
                 {{isa::float_bits(sums[part][2 * i]), isa::float_bits(sums[part][2 * i + 1])}});
      }
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
      const int at = Units::second_tokens == TokenWords::pairs ? place_in_pairs(column) : column;
      isa::global_view<std::uint16_t>(p_.inner).store(
          (item.row + token) * p_.inner_pitch + at,
          static_cast<std::uint16_t>(isa::pack<type>(sum[0][0], 0)));
    }
    isa::sync_warp();
    if (isa::lane_index() == 0) isa::flag_add(p_.expert_flag(item.expert));
  }
  /// How often warps count for the rows of an expert.
  [[nodiscard]] WW_DEVICE std::uint32_t counts(const WarpItem& item) const {
    const int pairs = (item.tiles - 1) * (block_tokens / 2) + (item.last_rows + 1) / 2;
    return static_cast<std::uint32_t>(pairs * of(p_.first_items));
  }

  /// The sums of this warp's experts, to shared memory.
  WW_DEVICE void multiply_second(Stream& stream, WarpItem& item) const {
    const int lane = isa::lane_index();
    Job job;
    for (int turn = 0; find(item, turn, job); ++turn) {
      BlockSums sums[2] = {};
      await_rows(item);
      multiply(stream, job, Tokens(p_.second, own_row(item), true), sums);
      const isa::SharedView<float> to{base_ + smem.sums};
      WW_UNROLL for (int i = 0; i < 4; ++i) {
        const int token = lane % 4 * 2 + i % 2;
        const int row = lane / 4 + i / 2 * 8;
        if (token >= item.rows) continue;
        const int column = item.block * block_rows + row;
        const float scaled =
            column < p_.sum.k ? (sums[0][i] + sums[1][i]) * scale_of(p_.second, item.expert, column)
                              : 0.0F;
        to.store((job.part * p_.slots.count() + item.row + token) * block_rows + row, scaled);
      }
    }
  }

  /// The warp: until all rows of an expert are there.
  WW_DEVICE void await_rows(const WarpItem& item, isa::Site site = isa::Site::sync()) const {
    if (isa::lane_index() == 0) {
      isa::flag_wait(p_.expert_flag(item.expert), counts(item), 0xffffffffU, site);
    }
    isa::sync_warp();
  }

  /// All workers: the columns of a block, of all tokens.
  WW_DEVICE void add_up(const isa::Prerequisites& ready, int block) const {
    constexpr int lanes = block_rows / Adder::each;
    const Adder adder(p_.sum, {base_ + smem.sums, of(p_.by_parts), p_.slots.count(), p_.bias,
                               p_.bias_pitch, p_.bias_is_wide, block * block_rows});
    const int column = block * block_rows + isa::lane_index() % lanes * Adder::each;
    WW_NO_UNROLL for (int token = warp_ * (32 / lanes) + isa::lane_index() / lanes;
                      token < p_.sum.tokens; token += workers * (32 / lanes)) {
      adder.template add<type>(ready, slots_, token, column);
    }
  }

  /// The warp, once all workers of an item of the second product have waited for their experts:
  /// counts it. The last of all sets the flags back to 0.
  WW_DEVICE void count_done() const {
    std::uint32_t before = 0;
    if (isa::lane_index() == 0) before = isa::flag_count(p_.done_flag());
    before = isa::shuffle(before, 0);
    if (static_cast<int>(before) + 1 != p_.second_items) return;
    WW_NO_UNROLL for (int i = isa::lane_index(); i < slots_.tiles(); i += 32) {
      const ExpertTiles e = slots_.expert_of(i);
      if (e.first_tile == i) isa::flag_clear(p_.expert_flag(e.expert));
    }
    if (isa::lane_index() == 0) isa::flag_clear(p_.done_flag());
  }

  const Params& p_;
  isa::SharedAddress base_;
  int warp_;
  Slots slots_;
  Numbers numbers_;
};

/// The kernel of a configuration.
template <class Tag>
using LayerKernelOf =
    std::conditional_t<by_warps(Tag::config), WarpLayerKernel<Tag>, LayerKernel<Tag>>;

}  // namespace warpwright::kernel
