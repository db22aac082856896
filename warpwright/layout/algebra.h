// The algebra: flattening, coalescing, slicing, grouping, and composition.
#pragma once

#include "warpwright/layout/value.h"

namespace warpwright::layout {

// ---------------------------------------------------------------- coalesce, flatten, slice

/// All leaves side by side in one tuple; an integer stays one.
constexpr Layout flatten(const Layout& l) {
  if (detail::is_leaf(l)) return l;
  Layout out = l;
  for (int i = 0; i < l.count; ++i) out.open[i] = out.close[i] = 0;
  out.open[0] = out.close[l.count - 1] = 1;
  return out;
}

namespace detail {

/// Merges neighbouring leaves that continue each other. With `beyond` the function is kept past
/// the domain as well, where a trailing extent of 1 still has a stride.
constexpr Layout coalesce(const Layout& l, bool beyond) {
  std::int64_t shape[kMaxLeaves] = {};
  Leaf stride[kMaxLeaves] = {};
  int n = 1;  // leaves kept, last one first
  shape[0] = l.shape[l.count - 1];
  stride[0] = l.stride[l.count - 1];
  if (beyond && shape[0] == 1) shape[0] = 2;
  for (int i = l.count - 2; i >= 0; --i) {
    if (l.shape[i] == 1) continue;
    const bool only_one = n == 1 && shape[0] == 1;
    if (only_one) {
      shape[0] = l.shape[i];
      stride[0] = l.stride[i];
    } else if (scale(l.stride[i], l.shape[i]) == stride[n - 1]) {
      shape[n - 1] = multiply(shape[n - 1], l.shape[i]);
      stride[n - 1] = l.stride[i];
    } else {
      shape[n] = l.shape[i];
      stride[n] = l.stride[i];
      ++n;
    }
  }
  if (n == 1 && shape[0] == 1) return Layout{};
  Layout out;
  out.count = n;
  for (int i = 0; i < n; ++i) {
    out.shape[i] = shape[n - 1 - i];
    out.stride[i] = stride[n - 1 - i];
  }
  if (n > 1) out.open[0] = out.close[n - 1] = 1;
  return out;
}

}  // namespace detail

/// The simplest layout that is the same function of the index: flat, and without extents of 1.
constexpr Layout coalesce(const Layout& l) {
  return detail::coalesce(l, false);
}

/// Coalesces the parts of the layout that stand at the leaves of `profile`; modes past it stay.
constexpr Layout coalesce(const Layout& l, const Tuple& profile) {
  if (detail::is_leaf(profile)) return coalesce(l);
  if (rank(profile) > rank(l)) refuse("a profile of rank {} does not fit {}.", rank(profile), l);
  detail::Builder<Layout> builder;
  for (int m = 0; m < rank(l); ++m)
    builder.add(m < rank(profile) ? coalesce(mode(l, m), mode(profile, m)) : mode(l, m));
  return builder.tuple();
}

/// The layout without the modes that repeat: extents of stride 0 and extents of 1 are dropped.
constexpr Layout filter(const Layout& l) {
  Layout out = l;
  for (int i = 0; i < l.count; ++i)
    if (l.stride[i].value == 0) out.shape[i] = 1;
  return coalesce(out);
}

/// Modes [first, last) as one mode.
constexpr Layout group_modes(const Layout& l, int first, int last) {
  if (first < 0 || first >= last || last > rank(l))
    refuse("modes [{}, {}) of {} cannot be grouped.", first, last, l);
  detail::Builder<Layout> all;
  detail::Builder<Layout> grouped;
  for (int m = 0; m < rank(l); ++m) {
    if (m >= first && m < last)
      grouped.add(mode(l, m));
    else
      all.add(mode(l, m));
    if (m == last - 1) all.add(grouped.tuple());
  }
  return all.tuple();
}

/// A part of a layout, and the offset at which it begins.
struct Slice {
  Layout layout;
  std::int64_t offset = 0;
};

namespace detail {

constexpr void collect_slice(Builder<Layout>& builder, const Layout& l, const Tuple& c) {
  if (is_leaf(c)) {
    if (c.leaf[0].value == kAll) builder.add(l);
    return;
  }
  if (is_leaf(l) || rank_of(c) != rank_of(l))
    refuse("a coordinate of rank {} does not fit {}.", rank_of(c), l);
  for (int m = 0; m < rank_of(l); ++m) collect_slice(builder, mode_of(l, m), mode_of(c, m));
}

}  // namespace detail

/// Fixes the modes that have a number in `coordinate` and keeps those marked kAll, side by side.
constexpr Slice slice(const Layout& l, const Tuple& coordinate) {
  const std::int64_t offset = l(coordinate);
  if (detail::is_leaf(coordinate) && coordinate.leaf[0].value == kAll) return {l, 0};
  detail::Builder<Layout> builder;
  detail::collect_slice(builder, l, coordinate);
  return {builder.modes == 0 ? Layout{} : builder.tuple(), offset};
}

// ---------------------------------------------------------------- composition

namespace detail {

/// Sizes up to this are proven element by element where the rules cannot decide.
inline constexpr std::int64_t kProofLimit = std::int64_t{1} << 20;

/// Whether r(i) == a(b(i)) over the whole domain of b, element by element.
constexpr bool is_composition(const Layout& a, const Layout& b, const Layout& r) {
  for (int i = 0; i < a.count; ++i) {
    const std::int32_t basis = a.stride[i].basis;
    bool seen = false;
    for (int j = 0; j < i; ++j) seen = seen || a.stride[j].basis == basis;
    if (seen) continue;
    for (std::int64_t x = 0; x < size(b); ++x)
      if (evaluate(r, x, basis) != evaluate(a, evaluate(b, x, -1), basis)) return false;
  }
  return true;
}

/// The leaves of a(i * step), i < extent, read off the function itself. Longest equal runs first,
/// so a layout is found whenever there is one.
constexpr bool fit(const Layout& a, std::int64_t extent, std::int64_t step,
                   Builder<Layout>& builder) {
  for (int i = 0; i < a.count; ++i)
    if (a.stride[i].basis != a.stride[0].basis) return false;
  if (extent > kProofLimit) return false;
  const std::int32_t basis = a.stride[0].basis;
  while (extent > 1) {
    const std::int64_t d = evaluate(a, step, basis);
    std::int64_t run = 2;
    while (run < extent && evaluate(a, multiply(run, step), basis) == multiply(run, d)) ++run;
    if (extent % run != 0) return false;
    for (std::int64_t j = 0; j < extent; j += run)
      for (std::int64_t i = 1; i < run; ++i)
        if (evaluate(a, multiply(j + i, step), basis) !=
            add(evaluate(a, multiply(j, step), basis), multiply(i, d)))
          return false;
    builder.add(single(run, {d, basis}));
    extent /= run;
    step = multiply(step, run);
  }
  return true;
}

/// Composes layouts mode by mode and keeps the books that prove the result.
struct Composer {
  const Layout& whole_a;
  const Layout& whole_b;
  std::int64_t used[kMaxLeaves] = {};  // the largest coordinate b reaches in each mode of a
  bool positive = false;               // some stride of b is positive
  bool negative = false;
  bool fitted = false;  // the rules did not decide some leaf; it was read off the function
  bool failed = false;  // some leaf has no layout: where it stopped follows
  std::int64_t at_extent = 1;
  std::int64_t at_step = 1;
  std::int64_t at_rest = 1;

  /// `a` is flat. A leaf extent:step of b walks through the modes of a: it skips a mode that
  /// divides its step and takes from a mode that its step divides.
  constexpr Layout leaf(const Layout& a, std::int64_t extent, std::int64_t step) {
    if (step == 0) return single(extent, {});
    if (extent > 1) (step > 0 ? positive : negative) = true;
    if (is_leaf(a)) return single(extent, scale(a.stride[0], step));
    const int last = a.count - 1;
    Builder<Layout> taken;
    std::int64_t rest = extent;
    std::int64_t d = step;
    for (int i = 0; i < last; ++i) {
      const std::int64_t s = a.shape[i];
      const std::int64_t available = ceil_div(s, abs(d));
      const std::int64_t next = ceil_div(abs(d), s) * (d < 0 ? -1 : 1);
      if (available == 1 || rest == 1) {
        if (rest != 1 && d % s != 0) return undecided(a, extent, step, s, d, rest);
        d = next;
        continue;
      }
      const std::int64_t now = available < rest ? available : rest;
      const bool stays = rest <= available;
      if (!stays && (s % d != 0 || rest % now != 0)) return undecided(a, extent, step, s, d, rest);
      used[i] = add(used[i], multiply(now - 1, abs(d)));
      taken.add(single(now, scale(a.stride[i], d)));
      rest /= now;
      d = next;
    }
    if (taken.modes == 0 || rest != 1) taken.add(single(rest, scale(a.stride[last], d)));
    return taken.unwrapped();
  }

  constexpr Layout undecided(const Layout& a, std::int64_t extent, std::int64_t step,
                             std::int64_t s, std::int64_t d, std::int64_t rest) {
    Builder<Layout> builder;
    if (fit(a, extent, step, builder)) {
      fitted = true;
      return builder.unwrapped();
    }
    if (!failed) at_extent = s, at_step = d, at_rest = rest;
    failed = true;
    return Layout{};
  }

  /// Throws what stopped the first leaf, or that leaves carry into each other.
  [[noreturn]] void refuse_all(const Layout& result) const {
    if (!failed)
      refuse(
          "composition({}, {}) has no layout: mode by mode it gives {}, but the modes of the "
          "second carry into each other, so that sum is not the function a(b(c)).",
          whole_a, whole_b, result);
    if (at_step % at_extent != 0 && at_extent % at_step != 0)
      refuse(
          "composition({}, {}) has no layout: by the stride divisibility law one of the extent "
          "{} of a mode and the step {} must divide the other.",
          whole_a, whole_b, at_extent, at_step);
    refuse(
        "composition({}, {}) has no layout: by the shape divisibility law {} elements must be a "
        "multiple of the {} that one mode gives.",
        whole_a, whole_b, at_rest, ceil_div(at_extent, abs(at_step)));
  }

  /// Composes whole_b after `flat` and proves the result; false when there is no layout.
  constexpr bool run(const Layout& flat, Layout& result) {
    result = tree(flat, whole_b);
    if (failed) return false;
    const bool mixed = positive && negative && !is_leaf(flat);
    if (is_leaf(whole_b) || !(fitted || mixed || carries(flat))) return true;
    return size(whole_b) <= kProofLimit && is_composition(flat, whole_b, result);
  }

  /// `flat` is a, coalesced for any index; b is a tree of plain strides.
  constexpr Layout tree(const Layout& flat, const Layout& b) {
    if (is_leaf(b)) return leaf(flat, b.shape[0], b.stride[0].value);
    Builder<Layout> builder;
    for (int m = 0; m < rank_of(b); ++m) builder.add(tree(flat, mode_of(b, m)));
    return builder.tuple();
  }

  /// Leaf-wise results add up to a(b(c)) when no mode of a overflows into the next one.
  constexpr bool carries(const Layout& flat) const {
    for (int i = 0; i + 1 < flat.count; ++i)
      if (used[i] >= flat.shape[i]) return true;
    return false;
  }
};

/// The part of `a` that a basis of b selects: mode k, then mode j of that, and so on.
constexpr Layout select(Layout a, std::int32_t basis) {
  a = mode_of(a, basis & 31);
  for (std::int32_t rest = basis >> 5; rest != 0; rest >>= 5) a = mode_of(a, (rest & 31) - 1);
  return a;
}

}  // namespace detail

namespace detail {

/// The composition where strides of b lie along a basis: each such leaf walks its own mode of a.
constexpr Layout compose_along_bases(const Layout& a, const Layout& b) {
  for (int i = 0; i < b.count; ++i) {
    const std::int32_t basis = b.stride[i].basis;
    if (basis == -1) {
      if (b.stride[i].value != 0)
        refuse("composition({}, {}): a plain stride of {} stands beside a basis.", a, b,
               b.stride[i].value);
      continue;
    }
    const Layout walked = select(a, basis);
    const Layout flat = coalesce(walked, true);
    Composer composer{walked, b};
    for (int j = 0; j < b.count; ++j)
      if (b.stride[j].basis == basis) composer.leaf(flat, b.shape[j], b.stride[j].value);
    if (composer.failed) composer.refuse_all(Layout{});
    if (composer.carries(flat) || composer.fitted || (composer.positive && composer.negative))
      refuse("composition({}, {}) has no layout: the modes of the second overlap inside {}.", a, b,
             walked);
  }
  struct Walk {
    const Layout& a;
    constexpr Layout operator()(const Layout& part) const {
      if (is_leaf(part)) {
        const Leaf d = part.stride[0];
        if (d.basis == -1) return single(part.shape[0], {});
        const Layout walked = select(a, d.basis);
        return Composer{walked, part}.leaf(coalesce(walked, true), part.shape[0], d.value);
      }
      Builder<Layout> builder;
      for (int m = 0; m < rank_of(part); ++m) builder.add((*this)(mode_of(part, m)));
      return builder.tuple();
    }
  };
  return Walk{a}(b);
}

}  // namespace detail

/// a after b: result(c) = a(b(c)) for every coordinate c of b, with the nesting of b refined.
/// Refused where no such layout exists. Past the domain of a its last mode goes on.
constexpr Layout composition(const Layout& a, const Layout& b) {
  if (has_basis(b)) return detail::compose_along_bases(a, b);
  const Layout flat = detail::coalesce(a, true);
  detail::Composer composer{a, b};
  Layout result;
  if (composer.run(flat, result)) return result;
  // A trailing extent of 1 says how a goes on past its domain; that may be dropped.
  const Layout inside = coalesce(a);
  if (inside != flat && size(b) <= detail::kProofLimit) {
    if (!composer.failed && detail::is_composition(inside, b, result)) return result;
    Layout second;
    if (detail::Composer{a, b}.run(inside, second)) return second;
  }
  composer.refuse_all(result);
}

/// A tiler by mode: one layout for each leading mode, `_` (kept) for some. CuTe's `<4:1,8:2>`.
struct Tiler {
  int count = 0;
  Layout tile[8] = {};
  bool keep[8] = {};

  constexpr Tiler() = default;
  template <class... L>
  explicit constexpr Tiler(const Layout& first, const L&... more) {
    add(first);
    (add(Layout(more)), ...);
  }
  constexpr void add(const Layout& layout, bool kept = false) {
    if (count == 8) refuse("a tiler has at most 8 modes.");
    tile[count] = layout;
    keep[count++] = kept;
  }
};

/// The tiler that cuts mode i into runs of shape[i].
constexpr Tiler make_tiler(const Tuple& shape) {
  Tiler tiler;
  for (int m = 0; m < rank(shape); ++m) {
    const Tuple extent = mode(shape, m);
    if (!detail::is_leaf(extent)) refuse("the shape of a tiler must be flat.");
    tiler.add(make_layout(extent));
  }
  return tiler;
}

namespace detail {

/// Applies a function to each pair (mode of l, tile); modes past the tiler stay or go.
template <class F>
constexpr Layout by_mode(const Layout& l, const Tiler& tiler, bool keep_rest, F function) {
  if (tiler.count == 0 || tiler.count > rank_of(l))
    refuse("a tiler of {} modes does not fit {} of rank {}.", tiler.count, l, rank_of(l));
  Builder<Layout> builder;
  for (int m = 0; m < rank_of(l); ++m) {
    if (m < tiler.count)
      builder.add(tiler.keep[m] ? mode_of(l, m) : function(mode_of(l, m), tiler.tile[m]));
    else if (keep_rest)
      builder.add(mode_of(l, m));
  }
  return builder.tuple();
}

}  // namespace detail

/// Composes mode by mode; modes of a past the tiler are dropped.
constexpr Layout composition(const Layout& a, const Tiler& tiler) {
  return detail::by_mode(a, tiler, false,
                         [](const Layout& l, const Layout& t) { return composition(l, t); });
}

/// Composes with runs of neighbours: an extent n stands for n:1, a flat tuple goes mode by mode.
constexpr Layout composition(const Layout& a, const Tuple& extents) {
  if (detail::is_leaf(extents)) return composition(a, make_layout(extents, Tuple(1)));
  Tiler tiler;
  for (int m = 0; m < rank(extents); ++m) {
    const Tuple extent = mode(extents, m);
    if (!detail::is_leaf(extent)) refuse("the shape of a tiler must be flat.");
    tiler.add(make_layout(extent, Tuple(1)));
  }
  return composition(a, tiler);
}

}  // namespace warpwright::layout
