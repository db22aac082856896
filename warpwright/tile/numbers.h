// The numbers of a cluster's tiles in the line of all of them: a policy of the walks over that line
// (tile/raster.h, tile/groups.h). A walk asks for the next `number`, once, and says when it has
// taken it: one that is behind the last tile is not taken.
#pragma once

#include <cstdint>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/draw.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/pipeline/tile_ring.h"

namespace warpwright::tile {

/// Static persistent tiles: cluster c of C has c, c + C, c + 2C, ...
class StaticNumbers {
 public:
  WW_DEVICE int number() const { return next_; }
  WW_DEVICE void take() { next_ += isa::cluster_count(); }

 private:
  int next_ = isa::cluster_index();
};

/// The own index, then the answers of a pipeline::TileRing. `Who` this role
/// is, a thread or all lanes of a warp; it reads every answer, up to the one that says no_tile.
template <class Ring, pipeline::Reader Who>
class ClcNumbers {
 public:
  WW_DEVICE explicit ClcNumbers(const Ring& ring) : ring_(ring) {}

  WW_DEVICE int number() {
    if (next_ < 0) return next_ == own ? isa::cluster_index() : pipeline::no_tile;
    constexpr int answers = Ring::shape.answers;
    const int number = ring_.template read<Who>({next_ % answers, next_ / answers % 2});
    next_ = number == pipeline::no_tile ? none : next_ + 1;
    return number;
  }
  WW_DEVICE void take() {
    if (next_ == own) next_ = 0;
  }

 private:
  static constexpr int own = -1;
  static constexpr int none = -2;

  Ring ring_;
  int next_ = own;  // or the next answer: one register, for consumers have no more to spare
};

/// Answers for a TileRing that are numbers drawn from a counter in global memory, so that no
/// cluster waits while there are tiles. They are written by st.async, of the generic proxy: a read
/// that is over needs no more than an arrival at CTA scope, as in pipeline::TmaPipeline; one at
/// cluster scope would cost a memory barrier for every reader and tile.
struct DynamicNumbers {
  static constexpr isa::Scope reading = isa::Scope::cta;

  WW_DEVICE static int load(isa::SharedAddress answer, isa::Site site) {
    return isa::SharedView<int>{answer}.load(0, site);
  }
};

/// The first number, which is known, then those from the answers of a pipeline::TileRing. `Who`
/// this role is; it reads every answer, up to the one that says no_tile.
template <class Ring, pipeline::Reader Who>
class TicketNumbers {
 public:
  WW_DEVICE TicketNumbers(const Ring& ring, int first) : ring_(ring), first_(first) {}

  /// Is the next number the first?
  [[nodiscard]] WW_DEVICE bool knows_first() const { return first_ != asked; }
  WW_DEVICE int number() {
    if (first_ != asked) {
      const int number = first_;
      first_ = asked;
      return number;
    }
    const int number = ring_.template read<Who>(state_);
    state_.advance(Ring::shape.answers);
    return number;
  }

 private:
  static constexpr int asked = -1;

  Ring ring_;
  int first_;
  pipeline::PipelineState state_;
};

/// An answer for all CTAs of a cluster: a number, or no_tile.
WW_DEVICE
void answer_all(int number, int ctas, isa::SharedAddress answer, isa::SharedAddress full,
                isa::Site site) {
  WW_NO_UNROLL for (int rank = 0; rank < ctas; ++rank) {
    isa::store_async(isa::map_rank(answer, rank), {{static_cast<std::uint32_t>(number)}},
                     isa::map_rank(full, rank), site);
  }
}

/// Draws them, for a cluster that has the tile of its own index. Whoever has a tile draws once
/// for it, so of `count` tiles the last draw gets number `count` - 1, and leaves the counter 0.
struct DrawingScheduler {
  std::uint32_t* counter;  ///< null: as StaticNumbers
  int count;
  int ctas;  ///< of a cluster
  const isa::Prerequisites& ready;
  int at = isa::cluster_index();

  /// The next number, to `answer` and `full` of all CTAs of the cluster.
  WW_DEVICE void ask(isa::SharedAddress answer, isa::SharedAddress full, isa::Site site) {
    if (counter == nullptr) {
      at += isa::cluster_count();
    } else {
      const std::uint32_t drawn =
          isa::draw(counter, static_cast<std::uint32_t>(count - 1), ready, site);
      at = isa::cluster_count() + static_cast<int>(drawn);
    }
    answer_all(at < count ? at : pipeline::no_tile, ctas, answer, full, site);
  }
};

/// Draws all numbers, the first too, for CTAs without clusters. So the CTAs that have drawn the
/// numbers before one have all started.
class TicketScheduler {
 public:
  WW_DEVICE TicketScheduler(std::uint32_t* counter, const isa::Prerequisites& ready)
      : counter_(counter), ready_(ready) {}

  /// Draws the first, while nobody knows yet how many there are.
  WW_DEVICE int begin() {
    drawn_ = draw();
    return static_cast<int>(drawn_);
  }
  /// Those below `count` are tiles: is the first one? Else no other is asked for.
  WW_DEVICE bool limit(int count) {
    count_ = static_cast<std::uint32_t>(count);
    leave();
    return is_tile();
  }
  /// Is the number that was drawn last?
  [[nodiscard]] WW_DEVICE bool is_tile() const { return drawn_ < count_; }

  /// The next number, to `answer` and `full` of this CTA.
  WW_DEVICE void ask(isa::SharedAddress answer, isa::SharedAddress full, isa::Site site) {
    draw_ahead();
    tell(answer, full, site);
  }
  /// The same in two steps: who draws need not wait for the number.
  WW_DEVICE void draw_ahead() { drawn_ = draw(); }
  WW_DEVICE void tell(isa::SharedAddress answer, isa::SharedAddress full, isa::Site site) const {
    leave();
    answer_all(drawn_ < count_ ? static_cast<int>(drawn_) : pipeline::no_tile, 1, answer, full,
               site);
  }

 private:
  WW_DEVICE std::uint32_t draw() const { return isa::draw(counter_, no_limit, ready_); }
  /// A number that none is. Not the largest: ptxas makes an addition of that draw, whose sum lanes
  /// would share, so that all wait for it at once.
  static constexpr std::uint32_t no_limit = 0xfffffffeU;
  /// Each CTA draws one number that is none. Who has the last of these leaves the counter 0.
  WW_DEVICE void leave() const {
    const std::uint32_t all = count_ + static_cast<std::uint32_t>(isa::cta_count());
    if (drawn_ + 1 == all) isa::draw(counter_, all, ready_);
  }

  std::uint32_t* counter_;
  const isa::Prerequisites& ready_;
  std::uint32_t drawn_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace warpwright::tile
