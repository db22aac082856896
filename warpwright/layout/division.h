// Complement, inverses, and what is built of them: division by tiles, and products.
#pragma once

#include "warpwright/layout/algebra.h"

namespace warpwright::layout {

// ---------------------------------------------------------------- complement and inverses

namespace detail {

/// The leaves of a coalesced layout in the order of their strides, ties in place.
struct Sorted {
  int count = 0;
  int at[kMaxLeaves] = {};
  explicit constexpr Sorted(const Layout& flat) : count(flat.count) {
    for (int i = 0; i < count; ++i) {
      int j = i;
      for (; j > 0 && flat.stride[at[j - 1]].value > flat.stride[i].value; --j) at[j] = at[j - 1];
      at[j] = i;
    }
  }
};

constexpr Layout flat_layout(const Builder<Layout>& builder) {
  return coalesce(builder.tuple());
}

}  // namespace detail

/// The ordered layout whose offsets fill what `l` leaves free of [0, product(cotarget)): the
/// offsets l(i) + result(j) are all distinct and result is increasing. Where a stride of l is not a
/// multiple of what the smaller ones fill (a padded row), the padding stays free.
constexpr Layout complement(const Layout& l, const Tuple& cotarget) {
  detail::require_plain(l, "complement({}) is not defined for strides along a basis.");
  for (int i = 0; i < cotarget.count; ++i)
    if (cotarget.leaf[i].value <= 0)
      refuse("complement({}, n) needs a positive n, and here it is {}.", l, cotarget.leaf[i].value);
  const Layout flat = filter(l);
  if (detail::is_leaf(flat) && flat.stride[0].value == 0)
    return coalesce(make_layout(product(cotarget)));
  const detail::Sorted sorted(flat);
  detail::Builder<Layout> builder;
  std::int64_t filled = 1;  // [0, filled) is covered so far
  for (int k = 0; k < sorted.count; ++k) {
    const std::int64_t d = flat.stride[sorted.at[k]].value;
    if (d < 0) refuse("complement({}) is not defined: the stride {} is negative.", l, d);
    if (d < filled)
      refuse(
          "complement({}) has no layout: the stride {} is less than {}, the extent that the "
          "smaller strides fill, so its modes interleave or repeat offsets.",
          l, d, filled);
    builder.add(detail::single(d / filled, {filled, -1}));
    filled = detail::multiply(d, flat.shape[sorted.at[k]]);
  }
  // What is left of the target, taken extent by extent as its shape is written.
  std::int64_t rest = 1;
  std::int64_t divisor = filled;
  for (int i = 0; i < cotarget.count; ++i) {
    const std::int64_t extent = cotarget.leaf[i].value;
    rest = detail::multiply(rest, detail::ceil_div(extent, divisor));
    divisor = detail::ceil_div(divisor, extent);
  }
  builder.add(detail::single(rest, {filled, -1}));
  return detail::flat_layout(builder);
}

/// The complement up to the codomain of l itself.
constexpr Layout complement(const Layout& l) {
  return complement(l, cosize(filter(l)));
}

/// The longest layout r with l(r(i)) == i for all i < size(r); `1:0` when there is none longer.
constexpr Layout right_inverse(const Layout& l) {
  detail::require_plain(l, "right_inverse({}) is not defined for strides along a basis.");
  const Layout flat = coalesce(l);
  const detail::Sorted sorted(flat);
  std::int64_t before[kMaxLeaves] = {};  // what one step of a leaf counts in the index
  std::int64_t n = 1;
  for (int i = 0; i < flat.count; ++i) {
    before[i] = n;
    n = detail::multiply(n, flat.shape[i]);
  }
  detail::Builder<Layout> builder;
  builder.add(Layout{});
  std::int64_t reached = 1;
  for (int k = 0; k < sorted.count; ++k) {
    const int i = sorted.at[k];
    if (flat.stride[i].value != reached) continue;
    builder.add(detail::single(flat.shape[i], {before[i], -1}));
    reached = detail::multiply(flat.shape[i], reached);
  }
  return detail::flat_layout(builder);
}

/// The layout r with l(r(l(i))) == l(i) for all i, hence r(l(i)) == i when l is injective.
constexpr Layout left_inverse(const Layout& l) {
  detail::require_plain(l, "left_inverse({}) is not defined for strides along a basis.");
  const Layout flat = coalesce(l);
  const detail::Sorted sorted(flat);
  std::int64_t before[kMaxLeaves] = {};
  std::int64_t n = 1;
  for (int i = 0; i < flat.count; ++i) {
    before[i] = n;
    n = detail::multiply(n, flat.shape[i]);
  }
  detail::Builder<Layout> builder;
  std::int64_t step = 0;    // the index step of the leaf before
  std::int64_t filled = 1;  // its stride
  bool injective = true;
  std::int64_t reach = 0;
  for (int k = 0; k < sorted.count; ++k) {
    const int i = sorted.at[k];
    const std::int64_t d = flat.stride[i].value;
    if (d < 0) refuse("left_inverse({}) is not defined: the stride {} is negative.", l, d);
    if (d == 0) continue;
    if (d % filled != 0)
      refuse(
          "left_inverse({}) has no layout: the stride {} is not a multiple of the stride {} "
          "below it.",
          l, d, filled);
    injective = injective && d >= reach;
    builder.add(detail::single(d / filled, {step, -1}));
    step = before[i];
    filled = d;
    reach = detail::multiply(d, flat.shape[i]);
  }
  builder.add(detail::single(flat.shape[sorted.at[sorted.count - 1]], {step, -1}));
  const Layout result = detail::flat_layout(builder);
  if (!injective) {
    bool holds = n <= detail::kProofLimit;
    for (std::int64_t i = 0; holds && i < n; ++i) {
      const std::int64_t x = detail::evaluate(flat, i, -1);
      const std::int64_t back = detail::evaluate(result, x, -1);
      holds = back < n && detail::evaluate(flat, back, -1) == x;
    }
    if (!holds)
      refuse("left_inverse({}) has no layout: offsets repeat, and {} does not lead back to them.",
             l, result);
  }
  return result;
}

// ---------------------------------------------------------------- divide

/// Cuts l into tiles: mode 0 of the result is the tile, mode 1 walks over the tiles.
constexpr Layout logical_divide(const Layout& l, const Layout& tile) {
  const Layout rest = complement(tile, shape(coalesce(l)));
  if (detail::multiply(size(filter(tile)), size(rest)) < size(l))
    refuse(
        "logical_divide({}, {}): a division must reach each of the {} elements, but the strides "
        "of the tile leave gaps, and it reaches {}.",
        l, tile, size(l), size(filter(tile)) * size(rest));
  return composition(l, make_layout(tile, rest));
}

/// Divides mode by mode; modes past the tiler stay.
constexpr Layout logical_divide(const Layout& l, const Tiler& tiler) {
  return detail::by_mode(l, tiler, true,
                         [](const Layout& a, const Layout& t) { return logical_divide(a, t); });
}

namespace detail {

/// ((A,a),(B,b),c) becomes ((A,B),(a,b,c)).
constexpr Layout unzip(const Layout& l, const Tiler& tiler) {
  Builder<Layout> tiles;
  Builder<Layout> rest;
  for (int m = 0; m < rank_of(l); ++m) {
    const Layout part = mode_of(l, m);
    if (m >= tiler.count) {
      rest.add(part);
      continue;
    }
    if (rank_of(part) != 2)
      refuse("mode {} of {} stays whole under `_`, so it has no tile and rest to gather.", m, l);
    tiles.add(mode_of(part, 0));
    rest.add(mode_of(part, 1));
  }
  return make_layout(tiles.tuple(), rest.tuple());
}

/// (A,(b,c)) becomes (A,b,c); a mode of rank 1 stays as it is written.
constexpr Layout unpack_second(const Layout& l) {
  Builder<Layout> builder;
  builder.add(mode_of(l, 0));
  const Layout rest = mode_of(l, 1);
  if (rank_of(rest) == 1)
    builder.add(rest);
  else
    builder.add_modes_of(rest);
  return builder.tuple();
}

}  // namespace detail

/// ((tile), (rest)): as logical_divide, tiles of all modes gathered first.
constexpr Layout zipped_divide(const Layout& l, const Layout& tile) {
  return logical_divide(l, tile);
}
constexpr Layout zipped_divide(const Layout& l, const Tiler& tiler) {
  return detail::unzip(logical_divide(l, tiler), tiler);
}

/// ((tile), rest...): as zipped_divide, with the modes of the rest side by side.
constexpr Layout tiled_divide(const Layout& l, const Layout& tile) {
  return detail::unpack_second(zipped_divide(l, tile));
}
constexpr Layout tiled_divide(const Layout& l, const Tiler& tiler) {
  return detail::unpack_second(zipped_divide(l, tiler));
}

/// A tensor cut into tiles, and the coordinate of some of them: what local_tile is a slice of.
struct TilePlace {
  Layout tiles;  ///< ((tile), (tiles))
  Tuple at;
};

/// The tile at a coordinate of a tensor cut into tiles: its modes, then those modes of tiles that
/// the coordinate leaves whole (kAll). With a `projection` tile and coordinate are those of more
/// modes than the tensor has, and it says which are meant: A of (M, N, K) is (1, 0, 1).
constexpr TilePlace tile_place(const Layout& tensor, const Tuple& tile, const Tuple& at) {
  if (rank(tile) != rank(at) || detail::is_leaf(tile))
    refuse("local_tile: a tile of {} modes needs a coordinate of as many, and it has {}.",
           rank(tile), rank(at));
  if (rank(tile) > rank(tensor))
    refuse(
        "local_tile: a tile of {} modes does not fit {} of rank {}; a projection such as (1,X,1) "
        "says which of the tile's modes are the tensor's.",
        rank(tile), tensor, rank(tensor));
  const Layout tiles = zipped_divide(tensor, make_tiler(tile));
  detail::Builder<Tuple> all;
  for (int m = 0; m < rank(tile); ++m) all.add(kAll);
  detail::Builder<Tuple> places;
  places.add_modes_of(at);
  for (int m = 0; m < rank(at); ++m) {
    const std::int64_t count = size(mode(mode(tiles, 1), m));
    const Tuple place = mode(at, m);
    if (!detail::is_leaf(place) || place.leaf[0].value == kAll) continue;
    if (place.leaf[0].value < 0 || place.leaf[0].value >= count)
      refuse("local_tile: there are {} tiles along mode {} of {}, and tile {} is asked for.", count,
             m, tensor, place.leaf[0].value);
  }
  while (places.modes < rank(mode(tiles, 1))) places.add(kAll);
  return {tiles, tuple(all.tuple(), places.tuple())};
}
constexpr TilePlace tile_place(const Layout& tensor, const Tuple& tile, const Tuple& at,
                               const Tuple& projection) {
  if (rank(projection) != rank(tile) || rank(projection) != rank(at))
    refuse("local_tile: a projection of {} modes does not fit a tile of {}.", rank(projection),
           rank(tile));
  detail::Builder<Tuple> kept_tile;
  detail::Builder<Tuple> kept_at;
  for (int m = 0; m < rank(projection); ++m) {
    if (product(mode(projection, m)) == 0) continue;
    kept_tile.add(mode(tile, m));
    kept_at.add(mode(at, m));
  }
  return tile_place(tensor, kept_tile.tuple(), kept_at.tuple());
}

template <class... Projection>
constexpr Slice local_tile(const Layout& tensor, const Tuple& tile, const Tuple& at,
                           const Projection&... projection) {
  const TilePlace place = tile_place(tensor, tile, at, projection...);
  return slice(place.tiles, place.at);
}

// ---------------------------------------------------------------- product

/// Repeats `block` as `tiler` says: mode 0 of the result is the block, mode 1 walks over copies.
constexpr Layout logical_product(const Layout& block, const Layout& tiler) {
  const std::int64_t copies = cosize(tiler);
  Layout places = complement(block, detail::multiply(size(block), copies));
  if (size(places) < copies) {
    // A padded block covers more than its size: its places end before the last copy has one.
    const Layout between = complement(block, 1);
    std::int64_t period = 1;
    for (int i = 0; i < block.count; ++i) {
      const std::int64_t reach = detail::multiply(block.stride[i].value, block.shape[i]);
      if (reach > period) period = reach;
    }
    places = complement(block, detail::multiply(period, detail::ceil_div(copies, size(between))));
  }
  return make_layout(block, composition(places, tiler));
}

constexpr Layout logical_product(const Layout& block, const Tiler& tiler) {
  return detail::by_mode(block, tiler, true,
                         [](const Layout& a, const Layout& t) { return logical_product(a, t); });
}

/// l with modes `1:0` added up to rank n.
constexpr Layout append(const Layout& l, int n) {
  if (rank(l) >= n) return l;
  detail::Builder<Layout> builder;
  builder.add_modes_of(l);
  while (builder.modes < n) builder.add(Layout{});
  return builder.tuple();
}

namespace detail {

constexpr Layout zipped_product(const Layout& block, const Layout& tiler, bool block_first) {
  const int n = rank_of(block) > rank_of(tiler) ? rank_of(block) : rank_of(tiler);
  const Layout blocks = append(block, n);
  const Layout tiles = append(tiler, n);
  const Layout both = logical_product(blocks, tiles);
  const Layout in_block = mode_of(both, 0);
  const Layout in_tiles = mode_of(both, 1);
  // Integers pair up as they are, and so does a `(8)` behind an integer, as in CuTe.
  const bool whole = is_leaf(block_first ? in_block : in_tiles);
  Builder<Layout> builder;
  for (int m = 0; m < n; ++m) {
    const Layout b = whole || is_leaf(blocks) ? in_block : mode_of(in_block, m);
    const Layout t = whole || is_leaf(tiles) ? in_tiles : mode_of(in_tiles, m);
    builder.add(block_first ? make_layout(b, t) : make_layout(t, b));
  }
  return builder.tuple();
}

}  // namespace detail

/// Repeats `block` so that copies lie side by side in each mode: ((block, tiler), ...).
constexpr Layout blocked_product(const Layout& block, const Layout& tiler) {
  return detail::zipped_product(block, tiler, true);
}

/// Repeats `block` with its copies interleaved in each mode: ((tiler, block), ...).
constexpr Layout raked_product(const Layout& block, const Layout& tiler) {
  return detail::zipped_product(block, tiler, false);
}

/// The compact layout of a flat shape in which mode order[0]... vary in the order of their rank
/// numbers: (1,0) makes the second mode the fastest.
constexpr Layout make_ordered_layout(const Tuple& shape, const Tuple& order) {
  if (!congruent(shape, order)) refuse("the order of modes is not congruent with the shape.");
  Tuple stride = shape;
  for (int i = 0; i < shape.count; ++i) {
    std::int64_t step = 1;
    for (int j = 0; j < shape.count; ++j) {
      const std::int64_t oi = order.leaf[i].value;
      const std::int64_t oj = order.leaf[j].value;
      if (oj < oi || (oj == oi && j < i)) step = detail::multiply(step, shape.leaf[j].value);
    }
    stride.leaf[i] = {shape.leaf[i].value == 1 ? 0 : step, -1};
  }
  return make_layout(shape, stride);
}

/// Repeats `block` until the result has the target shape; modes are filled in `order`.
constexpr Layout tile_to_shape(const Layout& block, const Tuple& target, const Tuple& order) {
  const int n = rank(target);
  if (rank(block) > n)
    refuse("tile_to_shape: {} has a rank above {}, the rank of the target.", block, n);
  const Layout padded = append(block, n);
  Tuple repeats = order;
  if (rank(order) != n || order.count != n)
    refuse("tile_to_shape: the order must name each of the {} modes.", n);
  for (int m = 0; m < n; ++m) {
    const std::int64_t have = size(mode(padded, m));
    const std::int64_t want = product(mode(target, m));
    if (want <= 0 || want % have != 0)
      refuse("tile_to_shape: the target extent {} of mode {} is not a multiple of {}.", want, m,
             have);
    repeats.leaf[m] = {want / have, -1};
  }
  return blocked_product(padded, make_ordered_layout(repeats, order));
}

constexpr Layout tile_to_shape(const Layout& block, const Tuple& target) {
  Tuple order = Tuple(0);
  if (!detail::is_leaf(target)) {
    order.count = rank(target);
    for (int m = 0; m < order.count; ++m) order.leaf[m] = {m, -1};
    order.open[0] = order.close[order.count - 1] = 1;
  }
  return tile_to_shape(block, target, order);
}

}  // namespace warpwright::layout
