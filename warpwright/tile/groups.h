// Grouped products: which tile of which group next. Rows of the token matrix fall into groups, each
// with weights of its own, and how long the groups are is known only on the device: offsets in
// global memory that an earlier kernel may have written.
//
// The tiles of all groups form one line: group after group, and within a group as `in_group` says.
// A cluster takes those of its numbers (tile/numbers.h), which go up. The schedulers differ in how
// they find the group of a tile; they agree on everything else.
//   linear_scan    one group after the other, by every thread for itself
//   warp_scan      a warp together, 32 groups at a step
//   binary_search  the CTA first adds up the tiles of all groups, into a table in shared memory,
//                  where binary search finds the tile's part of it
//
// Offsets that are not in order do no harm: they are clamped to the tensor, and tiles past the
// number that offsets in order can give are left out.
#pragma once

#include <cstdint>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/tile/raster.h"
#include "warpwright/tile/slot_ids.h"

namespace warpwright::tile {

/// The rows of the token matrix that belong to a group.
struct GroupSpan {
  int first = 0;
  int end = 0;

  friend constexpr bool operator==(const GroupSpan&, const GroupSpan&) = default;
};

/// The span between two offsets, inside a matrix of `total` rows whatever they are.
constexpr GroupSpan clamped(std::int64_t first, std::int64_t end, int total) {
  const std::int64_t from = first < 0 ? 0 : (first > total ? total : first);
  const std::int64_t to = end < from ? from : (end > total ? total : end);
  return {static_cast<int>(from), static_cast<int>(to)};
}

/// Are two offsets in order?
constexpr bool in_order(std::int64_t first, std::int64_t end, int total) {
  return 0 <= first && first <= end && end <= total;
}

/// The offsets of the groups, in global memory. They may be the work of the grid before: reading
/// them takes the proof that it has ended.
class GroupOffsets {
 public:
  constexpr GroupOffsets() = default;
  /// `groups` + 1 integers of 4 bytes, or of 8 when `wide`, for a matrix of `total` rows.
  constexpr GroupOffsets(const void* data, bool wide, int groups, int total)
      : data_(data), groups_(groups), total_(total), wide_(wide) {}

  [[nodiscard]] constexpr int groups() const { return groups_; }
  [[nodiscard]] constexpr int total() const { return total_; }

  /// Offset `i`, as it is.
  WW_DEVICE std::int64_t load(const isa::Prerequisites& /*ready*/, int i) const {
    if (wide_) {
      return isa::GlobalView<const std::int64_t>{static_cast<const std::int64_t*>(data_)}.load(i);
    }
    return isa::GlobalView<const std::int32_t>{static_cast<const std::int32_t*>(data_)}.load(i);
  }

  /// The rows of group `g`, inside the matrix.
  WW_DEVICE GroupSpan span(const isa::Prerequisites& ready, int g) const {
    return clamped(load(ready, g), load(ready, g + 1), total_);
  }

 private:
  const void* data_ = nullptr;
  int groups_ = 0;
  int total_ = 0;
  bool wide_ = false;
};

/// How the groups of a product are cut into cluster tiles: what the host knows.
struct GroupedTiles {
  GroupOffsets offsets;
  int tokens = 1;        ///< of a cluster tile
  int limit = 0;         ///< token tiles that offsets in order can give, at most
  int band = 1;          ///< token tiles of a group that are taken together
  bool swap_ab = false;  ///< the tokens are the product's columns
  Divisor by_tokens;
  Divisor by_weights;  ///< divides by the cluster tiles along the weights
  Divisor by_band;
  Divisor by_band_tiles;  ///< divides by tiles of a whole band

  constexpr GroupedTiles() = default;
  /// A grid that has more than `max_index` cluster tiles cannot be numbered: see `tiles_fit`.
  constexpr GroupedTiles(const GroupOffsets& o, int cluster_tokens, int weight_tiles,
                         int band_tiles, bool is_swapped)
      : offsets(o),
        tokens(cluster_tokens),
        limit(static_cast<int>(most_token_tiles(o.total(), o.groups(), cluster_tokens))),
        band(band_tiles),
        swap_ab(is_swapped),
        by_tokens(cluster_tokens),
        by_weights(weight_tiles),
        by_band(band_tiles),
        by_band_tiles(band_tiles * weight_tiles) {}

  /// Token tiles that groups of `total` tokens in all can have: every group may waste a part of
  /// its last one.
  static constexpr std::int64_t most_token_tiles(std::int64_t total, std::int64_t groups,
                                                 std::int64_t tokens) {
    const std::int64_t tiles = total / tokens + groups;
    return total < tiles ? total : tiles;
  }
};

/// Token tiles of a group.
constexpr int token_tiles(const GroupedTiles& t, const GroupSpan& span) {
  return t.by_tokens.quotient(span.end - span.first + t.tokens - 1);
}

/// The sum of two numbers of token tiles. All sums stop at the limit, in whatever order they are
/// made.
constexpr int sum_of_tiles(const GroupedTiles& t, int a, int b) {
  const std::uint32_t sum = static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b);
  return sum < static_cast<std::uint32_t>(t.limit) ? static_cast<int>(sum) : t.limit;
}

/// A tile of a group: which of its token tiles, and which along the weights.
struct TileOfGroup {
  int token = 0;
  int weight = 0;

  friend constexpr bool operator==(const TileOfGroup&, const TileOfGroup&) = default;
};

/// The tile that comes `index`-th of a group with `tiles` token tiles. Token tiles are taken in
/// bands; inside a band a tile of weights meets all its tokens before the next one's turn, so that
/// tiles in flight together share what they read in the L2 cache.
constexpr TileOfGroup in_group(const GroupedTiles& t, int tiles, int index) {
  const int band = t.by_band_tiles.quotient(index);
  const int start = band * t.band;
  const int rest = index - band * static_cast<int>(t.by_band_tiles.value);
  if (tiles - start >= t.band) {
    const int weight = t.by_band.quotient(rest);
    return {start + rest - weight * t.band, weight};
  }
  const int width = tiles - start;
  const int weight = width == 1 ? rest : rest / width;
  return {start + rest - weight * width, weight};
}

/// The cluster tile `index` of the line, of `k_tiles` k_tiles, which lies in group `g` with
/// `tiles` token tiles, `before` of them in earlier groups.
constexpr Work whole_tile(const GroupedTiles& t, int g, const GroupSpan& span, int before,
                          int tiles, int index, int k_tiles) {
  const TileOfGroup at = in_group(t, tiles, index - before * static_cast<int>(t.by_weights.value));
  const TilePosition tile =
      t.swap_ab ? TilePosition{at.weight, at.token, g} : TilePosition{at.token, at.weight, g};
  return {tile, 0, k_tiles, span.first, span.end, before};
}

/// The last i with values(i) <= value, where values do not decrease, values(from) <= value, and
/// value < values(to).
template <class Values>
constexpr int last_not_above(int from, int to, int value, const Values& values) {
  while (to - from > 1) {
    const int middle = from + (to - from) / 2;
    if (values(middle) <= value) {
      from = middle;
    } else {
      to = middle;
    }
  }
  return from;
}

/// One group after the other. Every thread may have its own.
template <class Numbers = StaticNumbers>
class LinearScanGroups {
 public:
  /// Tiles of `k_tiles` k_tiles. Keeps a reference to `tiles`.
  WW_DEVICE LinearScanGroups(const GroupedTiles& tiles, int k_tiles,
                             const isa::Prerequisites& ready, const Numbers& numbers = {})
      : t_(tiles), ready_(ready), blocks_(k_tiles), numbers_(numbers) {}

  /// The cluster's next tile; false when there is none.
  WW_DEVICE bool next(Work& work) {
    const int number = numbers_.number();
    const int wanted = t_.by_weights.quotient(number);
    while (wanted >= upto_) {
      if (group_ + 1 >= t_.offsets.groups()) return false;
      ++group_;
      before_ = upto_;
      span_ = t_.offsets.span(ready_, group_);
      upto_ = sum_of_tiles(t_, before_, token_tiles(t_, span_));
    }
    work = whole_tile(t_, group_, span_, before_, upto_ - before_, number, blocks_);
    numbers_.take();
    return true;
  }

 private:
  const GroupedTiles& t_;
  isa::Prerequisites ready_;
  int blocks_;
  Numbers numbers_;
  int group_ = -1;
  GroupSpan span_;
  int before_ = 0;  // token tiles of the groups before, and with it
  int upto_ = 0;
};

/// The rows of groups, as memory says.
class SpansInMemory {
 public:
  WW_DEVICE SpansInMemory(const GroupOffsets& offsets, const isa::Prerequisites& ready)
      : offsets_(offsets), ready_(ready) {}

  [[nodiscard]] WW_DEVICE GroupSpan of(int g) const { return offsets_.span(ready_, g); }

 private:
  const GroupOffsets& offsets_;
  isa::Prerequisites ready_;
};

/// The rows of groups as a warp has counted them ahead (OffsetsAhead), until memory says the same.
class SpansAhead {
 public:
  /// Counts them into `table`, where they are given. All lanes of a warp make one together.
  WW_DEVICE SpansAhead(const GroupOffsets& offsets, const isa::Prerequisites& ready,
                       const OffsetsAhead& ahead, isa::SharedAddress table)
      : memory_(offsets, ready),
        total_(offsets.total()),
        table_{table},
        counted_(ahead.are_given()) {
    if (counted_) ahead.offsets_to(table);
  }

  [[nodiscard]] WW_DEVICE GroupSpan of(int g) const {
    if (counted_) return clamped(table_.load(g), table_.load(g + 1), total_);
    return memory_.of(g);
  }
  /// From now on memory says it, and the table may become something else.
  WW_DEVICE void written() { counted_ = false; }

 private:
  SpansInMemory memory_;
  int total_;
  isa::SharedView<std::int32_t> table_;
  bool counted_;
};

/// 32 groups at a step: lane l of a warp knows group l of them. All lanes of a warp have one
/// together.
template <class Numbers = StaticNumbers, class Spans = SpansInMemory>
class WarpScanGroups {
 public:
  /// As LinearScanGroups.
  WW_DEVICE WarpScanGroups(const GroupedTiles& tiles, int k_tiles, const isa::Prerequisites& ready,
                           const Numbers& numbers = {})
      : WarpScanGroups(tiles, k_tiles, Spans(tiles.offsets, ready), numbers) {}
  /// The same of groups whose rows are `spans`.
  WW_DEVICE WarpScanGroups(const GroupedTiles& tiles, int k_tiles, const Spans& spans,
                           const Numbers& numbers = {})
      : t_(tiles), spans_(spans), blocks_(k_tiles), numbers_(numbers) {
    look();
  }

  /// The cluster's next tile, the same in all lanes; false when there is none.
  WW_DEVICE bool next(Work& work) {
    const int number = numbers_.number();
    const int wanted = t_.by_weights.quotient(number);
    std::uint32_t behind = isa::ballot(wanted < upto_);
    while (behind == 0) {
      if (first_group_ + 32 >= t_.offsets.groups()) return false;
      first_group_ += 32;
      before_ = of(upto_, 31);
      look();
      behind = isa::ballot(wanted < upto_);
    }
    const int lane = isa::lowest_lane(behind);
    const int below = of(upto_, lane - 1);
    const int before = lane == 0 ? before_ : below;
    const int tiles = of(upto_, lane) - before;
    // Read once more, not kept: registers are dear.
    const GroupSpan span = spans_.of(first_group_ + lane);
    work = whole_tile(t_, first_group_ + lane, span, before, tiles, number, blocks_);
    numbers_.take();
    return true;
  }

  WW_DEVICE Spans& spans() { return spans_; }

 private:
  /// Loads this lane's group and adds up.
  WW_DEVICE void look() {
    const int lane = isa::lane_index();
    const int group = first_group_ + lane;
    upto_ = 0;
    if (group < t_.offsets.groups()) upto_ = token_tiles(t_, spans_.of(group));
    for (int d = 1; d < 32; d *= 2) {
      const int below = of(upto_, lane - d);
      if (lane >= d) upto_ = sum_of_tiles(t_, upto_, below);
    }
    upto_ = sum_of_tiles(t_, before_, upto_);
  }

  /// Lane `lane`'s value.
  WW_DEVICE static int of(int value, int lane) {
    return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(value), lane & 31));
  }

  const GroupedTiles& t_;
  Spans spans_;
  int blocks_;
  Numbers numbers_;
  int first_group_ = 0;
  int before_ = 0;  // token tiles of groups before the 32
  int upto_ = 0;    // with this lane's
};

/// The table of a CTA: the groups in as many pieces as it has threads, and the token tiles before
/// every piece.
class GroupTable {
 public:
  /// Bytes in shared memory for a CTA of `threads`.
  static constexpr int bytes(int threads) { return (threads + 1 + threads / 32) * 4; }

  WW_DEVICE GroupTable(const GroupedTiles& tiles, isa::SharedAddress address, int threads)
      : t_(tiles), table_{address}, threads_(threads) {}

  /// Adds up. All threads of the CTA call it and may then read the table; it takes their named
  /// barrier 1.
  WW_DEVICE void fill(const isa::Prerequisites& ready) const {
    const int thread = isa::thread_index();
    const int lane = isa::lane_index();
    int own = 0;
    for (int g = thread * piece(); g < (thread + 1) * piece() && g < groups(); ++g) {
      own = sum_of_tiles(t_, own, token_tiles(t_, t_.offsets.span(ready, g)));
    }
    for (int d = 1; d < 32; d *= 2) {
      const int below = of(own, lane - d);
      if (lane >= d) own = sum_of_tiles(t_, own, below);
    }
    const int below = of(own, lane - 1);
    const int totals = threads_ + 1;  // of the warps
    if (lane == 31) table_.store(totals + thread / 32, own);
    isa::named_barrier_sync(1, threads_);
    int before = 0;
    for (int w = 0; w < thread / 32; ++w) {
      before = sum_of_tiles(t_, before, table_.load(totals + w));
    }
    table_.store(thread, lane == 0 ? before : sum_of_tiles(t_, before, below));
    if (thread + 1 == threads_) table_.store(threads_, sum_of_tiles(t_, before, own));
    isa::named_barrier_sync(1, threads_);
  }

  [[nodiscard]] WW_DEVICE int groups() const { return t_.offsets.groups(); }
  /// Groups of a piece.
  [[nodiscard]] WW_DEVICE int piece() const { return (groups() + threads_ - 1) / threads_; }
  [[nodiscard]] WW_DEVICE int pieces() const { return threads_; }
  /// Token tiles before piece `i`; for `pieces()`: all.
  [[nodiscard]] WW_DEVICE int before(int i) const { return table_.load(i); }

 private:
  WW_DEVICE static int of(int value, int lane) {
    return static_cast<int>(isa::shuffle(static_cast<std::uint32_t>(value), lane & 31));
  }

  const GroupedTiles& t_;
  isa::SharedView<int> table_;
  int threads_;
};

/// Binary search over the table. Every thread may have its own.
template <class Numbers = StaticNumbers>
class BinarySearchGroups {
 public:
  /// As LinearScanGroups; `table` is filled.
  WW_DEVICE BinarySearchGroups(const GroupedTiles& tiles, const GroupTable& table, int k_tiles,
                               const isa::Prerequisites& ready, const Numbers& numbers = {})
      : t_(tiles),
        table_(table),
        ready_(ready),
        blocks_(k_tiles),
        numbers_(numbers),
        all_(table.before(table.pieces())) {}

  /// The cluster's next tile; false when there is none.
  WW_DEVICE bool next(Work& work) {
    const int number = numbers_.number();
    const int wanted = t_.by_weights.quotient(number);
    if (wanted >= all_) return false;
    piece_ =
        last_not_above(piece_, table_.pieces(), wanted, [&](int i) { return table_.before(i); });
    int upto = table_.before(piece_);
    int before = upto;
    int group = piece_ * table_.piece() - 1;
    GroupSpan span;
    while (wanted >= upto) {
      ++group;
      before = upto;
      span = t_.offsets.span(ready_, group);
      upto = sum_of_tiles(t_, before, token_tiles(t_, span));
    }
    work = whole_tile(t_, group, span, before, upto - before, number, blocks_);
    numbers_.take();
    return true;
  }

 private:
  const GroupedTiles& t_;
  GroupTable table_;
  isa::Prerequisites ready_;
  int blocks_;
  Numbers numbers_;
  int all_;        // token tiles
  int piece_ = 0;  // of the tile before
};

/// One warp: the cluster tiles of all groups, in all lanes.
WW_DEVICE
int tile_count(const GroupedTiles& tiles, const isa::Prerequisites& ready) {
  int sum = 0;
  for (int g = isa::lane_index(); g < tiles.offsets.groups(); g += 32) {
    sum = sum_of_tiles(tiles, sum, token_tiles(tiles, tiles.offsets.span(ready, g)));
  }
  for (int d = 16; d > 0; d /= 2) {
    const std::uint32_t other =
        isa::shuffle(static_cast<std::uint32_t>(sum), isa::lane_index() ^ d);
    sum = sum_of_tiles(tiles, sum, static_cast<int>(other));
  }
  return sum * static_cast<int>(tiles.by_weights.value);
}

/// One warp: leaves in `status` one more than the first group whose offsets are not in order, or 0.
WW_DEVICE
void check_offsets(const GroupOffsets& offsets, const isa::Prerequisites& ready,
                   std::uint32_t* status) {
  const int lane = isa::lane_index();
  std::uint32_t first = 0xffffffff;
  for (int g = lane; g < offsets.groups(); g += 32) {
    const bool right =
        in_order(offsets.load(ready, g), offsets.load(ready, g + 1), offsets.total());
    if (!right && first == 0xffffffff) first = static_cast<std::uint32_t>(g);
  }
  for (int d = 16; d > 0; d /= 2) {
    const std::uint32_t other = isa::shuffle(first, lane ^ d);
    first = other < first ? other : first;
  }
  if (lane == 0) isa::GlobalView<std::uint32_t>{status}.store(0, first + 1);
}

}  // namespace warpwright::tile
