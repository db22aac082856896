// Whose turn it is to multiply, as a consumer warpgroup asks: its walk goes over all tiles of the
// CTA, of which it may have to leave some to the other one. For every family with a producer.
#pragma once

#include <type_traits>

#include "warpwright/facts/kernel.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// All warpgroups multiply every tile.
template <class Tag>
struct NoOrder {
  WW_DEVICE NoOrder(isa::SharedAddress /*base*/, int /*warpgroup*/) {}
  WW_DEVICE static void initialise(isa::SharedAddress /*base*/) {}
  template <class Walk, class State>
  WW_DEVICE void begin(Walk& /*walk*/, State& /*state*/) const {}
  WW_DEVICE void enter() const {}
  WW_DEVICE void leave() const {}
  template <class Walk, class State>
  WW_DEVICE void skip(Walk& /*walk*/, State& /*state*/) const {}
};

/// Two warpgroups take whole tiles in turn.
template <class Tag>
class PingPong {
 public:
  /// `base` is where shared memory begins.
  WW_DEVICE PingPong(isa::SharedAddress base, int warpgroup)
      : sequence_(base + smem_map(Tag::config).turns, warpgroup), warpgroup_(warpgroup) {}

  /// One thread of the CTA calls it, before the CTA barrier.
  WW_DEVICE static void initialise(isa::SharedAddress base) {
    pipeline::OrderedSequence::initialise(base + smem_map(Tag::config).turns);
  }

  /// The first tile is warpgroup 0's. `state` is where the walk's next k_tile lies in the ring.
  template <class Walk, class State>
  WW_DEVICE void begin(Walk& walk, State& state) const {
    if (warpgroup_ == 1) skip(walk, state);
  }
  /// Before the first wgmma of a tile.
  WW_DEVICE void enter() { sequence_.enter(); }
  /// After the last: the other warpgroup may queue its own behind them.
  WW_DEVICE void leave() const { sequence_.leave(); }
  /// Goes past the other's tile.
  template <class Walk, class State>
  WW_DEVICE void skip(Walk& walk, State& state) const {
    tile::Work others;
    walk.next(others);
    state.skip(others.end, Tag::config.stages);
  }

 private:
  pipeline::OrderedSequence sequence_;
  int warpgroup_;
};

template <class Tag>
using Turns = std::conditional_t<takes_turns(Tag::config), PingPong<Tag>, NoOrder<Tag>>;

}  // namespace warpwright::kernel
