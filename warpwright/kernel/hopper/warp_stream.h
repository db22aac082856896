// The weights of a warp of a layer in one launch (warp_layer.h), on their way to its stages: ahead
// of what it multiplies, through the CTA's next item; and who draws the numbers of items.
#pragma once

#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/hopper/warp_items.h"
#include "warpwright/pipeline/tile_ring.h"
#include "warpwright/tile/numbers.h"

namespace warpwright::kernel {

/// The CTA's next number: one thread draws it when an item begins, and tells it when it is asked
/// for.
template <class Numbers>
class NumberDraws {
 public:
  /// `more`: this thread draws, and there is something to draw. Keeps references.
  WW_DEVICE NumberDraws(const Numbers& numbers, tile::TicketScheduler& tickets, bool more)
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

/// A line of `stages` stages over all jobs of a warp; each stage has two units' bytes.
template <class Units, int stages, class Tickets, class Draws>
class WarpStream {
 public:
  static constexpr int stage_bytes = 2 * Units::bytes;
  using Items = WarpItems<Units>;

  /// Keeps references to `p` and `draws`.
  WW_DEVICE WarpStream(const WarpLayerParams& p, const Items& items, const Tickets& tickets,
                       Draws& draws, isa::SharedAddress at)
      : p_(p), items_(items), tickets_(tickets), draws_(draws), at_(at) {}

  /// The CTA begins its next item, which this is; the one behind it may be asked for. False when
  /// there is none.
  WW_DEVICE bool begin(WarpItem& item) {
    if (--ahead_ < 0) take();
    item = item_;
    return has_item_;
  }
  /// Asks for as much as there is room for.
  WW_DEVICE void fill() {
    while (flying_ < stages - 1 && has_job()) {
      const int behind = oldest_ + flying_;
      const int stage = behind < stages ? behind : behind - stages;
      const isa::SharedAddress to = at_ + static_cast<isa::SharedAddress>(stage * stage_bytes);
      const bool second = job_.is_second;
      const typename Units::Form form = Units::form(second ? p_.second : p_.first);
      // Behind the last unit it is the last again, which meets tokens of zeros.
      const int other = job_.unit + 1 < job_.end ? job_.unit + 1 : job_.unit;
      Units::copy(form, job_.source, !second, job_.unit, other, to);
      job_.unit += second ? 2 : 1;
      isa::copy_async_commit();
      ++flying_;
    }
  }

  /// Waits for the oldest stage: where it lies.
  WW_DEVICE isa::SharedAddress arrive() {
    wait<stages - 2>();
    if constexpr (Units::shares_scales) isa::sync_warp();
    return at_ + static_cast<isa::SharedAddress>(oldest_ * stage_bytes);
  }
  /// It has been read.
  WW_DEVICE void release() {
    if constexpr (Units::shares_scales) isa::sync_warp();
    oldest_ = oldest_ + 1 == stages ? 0 : oldest_ + 1;
    --flying_;
  }

 private:
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
      if (has_jobs_ && items_.find(item_, turn_, job_)) {
        ++turn_;
        continue;
      }
      has_jobs_ = false;
      // No further than one item ahead: so that numbers are read which all may need.
      if (ahead_ > 0 || !has_item_) return false;
      take();
    }
    return true;
  }

  WW_DEVICE void take() {
    if (!tickets_.knows_first()) draws_.tell();
    ++ahead_;
    has_item_ = items_.next(tickets_, item_);
    has_jobs_ = has_item_;
    turn_ = 0;
  }

  const WarpLayerParams& p_;
  Items items_;
  Tickets tickets_;
  Draws& draws_;
  isa::SharedAddress at_;
  WarpItem item_;
  WarpJob<Units> job_;
  int turn_ = 0;
  bool has_item_ = true;
  bool has_jobs_ = false;
  int ahead_ = 0;   // items that were taken here, less those that the CTA has begun
  int oldest_ = 0;  // the stage to read
  int flying_ = 0;
};

}  // namespace warpwright::kernel
