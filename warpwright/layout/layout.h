#pragma once

#include <cstdint>

/// The layout algebra, as values.
///
/// A layout is a function from a coordinate (or its index, counted first mode fastest) to an
/// offset, written `shape:stride` with congruent trees of integers: `((2,4),8):((1,16),2)`.
/// Everything here is constexpr. A broken law throws layout::Error (error.h) with a sentence at
/// run time; in a constant expression the same line is a compile error.
namespace warpwright::layout {

/// The most leaves one layout may have.
inline constexpr int kMaxLeaves = 24;
/// Magnitudes stay below this, so that one addition never overflows.
inline constexpr std::int64_t kMaxMagnitude = std::int64_t{1} << 62;
/// In a coordinate given to slice(): keep this mode whole (CuTe's `_`).
inline constexpr std::int64_t kAll = INT64_MIN;

/// One leaf of a stride: an integer, or an integer along a basis vector (`64@1`).
///
/// `basis` is -1 for a plain integer, k for `value@k`. A deeper basis `value@j@k` (component j of
/// component k) packs one level every five bits, the outermost lowest: k + ((j + 1) << 5).
struct Leaf {
  std::int64_t value = 0;
  std::int32_t basis = -1;
  friend constexpr bool operator==(const Leaf&, const Leaf&) = default;
};

/// A tree of leaves: a shape, a stride, or a coordinate. The nesting is kept as the number of
/// parentheses that open before, and close after, each leaf.
struct Tuple {
  int count = 0;
  Leaf leaf[kMaxLeaves] = {};
  std::uint8_t open[kMaxLeaves] = {};
  std::uint8_t close[kMaxLeaves] = {};

  constexpr Tuple() = default;
  constexpr Tuple(std::int64_t value) : count(1) { leaf[0].value = value; }
  constexpr void take(const Tuple& from, int i) { leaf[count] = from.leaf[i]; }
  friend constexpr bool operator==(const Tuple&, const Tuple&) = default;
};

/// A layout: congruent trees of extents and strides. A structural type, so it may be a template
/// argument. The default is `1:0`.
struct Layout {
  int count = 1;
  std::int64_t shape[kMaxLeaves] = {1};
  Leaf stride[kMaxLeaves] = {};
  std::uint8_t open[kMaxLeaves] = {};
  std::uint8_t close[kMaxLeaves] = {};

  constexpr void take(const Layout& from, int i) {
    shape[count] = from.shape[i];
    stride[count] = from.stride[i];
  }

  /// The offset of the index-th element, first mode fastest. Past the domain the last mode goes
  /// on, as the algebra needs (a tile may hang over the edge).
  constexpr std::int64_t operator()(std::int64_t index) const;
  /// The offset of a coordinate; a component may be an index into a nested mode.
  constexpr std::int64_t operator()(const Tuple& coordinate) const;
  template <class... I>
  requires(sizeof...(I) >= 2) constexpr std::int64_t operator()(I... coordinate) const;

  friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

/// One value quoted in a refusal.
struct Quote {
  std::int64_t number = 0;
  const Layout* layout = nullptr;
  constexpr Quote(std::int64_t n) : number(n) {}
  constexpr Quote(const Layout& l) : layout(&l) {}
};

/// Throws layout::Error; each `{}` of the sentence is replaced by the next quote.
[[noreturn]] void refuse(const char* sentence, Quote a = 0, Quote b = 0, Quote c = 0, Quote d = 0);

namespace detail {

constexpr std::int64_t abs(std::int64_t a) {
  return a < 0 ? -a : a;
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

constexpr std::int64_t multiply(std::int64_t a, std::int64_t b) {
  if (a != 0 && abs(b) >= kMaxMagnitude / abs(a))
    refuse("the product {} * {} leaves the range of 62 bits.", a, b);
  return a * b;
}

constexpr std::int64_t add(std::int64_t a, std::int64_t b) {
  const std::int64_t sum = a + b;
  if (abs(sum) >= kMaxMagnitude) refuse("the sum {} + {} leaves the range of 62 bits.", a, b);
  return sum;
}

constexpr Leaf scale(Leaf leaf, std::int64_t by) {
  return {multiply(leaf.value, by), leaf.basis};
}

constexpr Layout single(std::int64_t extent, Leaf stride) {
  Layout out;
  out.shape[0] = extent;
  out.stride[0] = stride;
  return out;
}

/// Puts modes side by side; used for layouts and for tuples.
template <class T>
struct Builder {
  T out{};
  int modes = 0;

  constexpr Builder() { clear(out); }
  static constexpr void clear(Tuple&) {}
  static constexpr void clear(Layout& layout) {
    layout.count = 0;
    layout.shape[0] = 0;
  }
  /// Adds leaves [first, last] of `from` as one mode, without `strip_open`/`strip_close` of the
  /// outer parentheses.
  constexpr void add(const T& from, int first, int last, int strip_open, int strip_close) {
    if (out.count + last - first + 1 > kMaxLeaves)
      refuse("the result needs {} leaves or more, and a layout holds at most {}.",
             out.count + last - first + 1, kMaxLeaves);
    for (int i = first; i <= last; ++i) {
      out.take(from, i);
      out.open[out.count] = static_cast<std::uint8_t>(from.open[i] - (i == first ? strip_open : 0));
      out.close[out.count] =
          static_cast<std::uint8_t>(from.close[i] - (i == last ? strip_close : 0));
      ++out.count;
    }
    ++modes;
  }
  constexpr void add(const T& from) { add(from, 0, from.count - 1, 0, 0); }
  constexpr void add_modes_of(const T& from);
  /// All modes in one pair of parentheses.
  constexpr T tuple() const {
    if (modes == 0) refuse("the result would have no mode at all.");
    T result = out;
    if (result.open[0] >= 200) refuse("the nesting is deeper than 200 levels.");
    ++result.open[0];
    ++result.close[result.count - 1];
    return result;
  }
  /// A lone mode as it is, several as a tuple.
  constexpr T unwrapped() const { return modes == 1 ? out : tuple(); }
};

/// Where mode k of a tree begins and ends; `found` is false when there is no such mode.
struct Range {
  int first = 0;
  int last = 0;
  bool found = false;
};

template <class T>
constexpr bool is_leaf(const T& t) {
  return t.count == 1 && t.open[0] == 0;
}

template <class T>
constexpr int rank_of(const T& t) {
  if (is_leaf(t)) return 1;
  int depth = -1;
  int modes = 0;
  for (int i = 0; i < t.count; ++i) {
    depth += t.open[i] - t.close[i];
    if (depth <= 0) ++modes;
  }
  return modes;
}

template <class T>
constexpr Range range_of(const T& t, int mode) {
  if (is_leaf(t)) return {0, 0, mode == 0};
  int depth = -1;
  int modes = 0;
  int first = 0;
  for (int i = 0; i < t.count; ++i) {
    depth += t.open[i] - t.close[i];
    if (depth > 0) continue;
    if (modes++ == mode) return {first, i, true};
    first = i + 1;
  }
  return {};
}

template <class T>
constexpr T mode_of(const T& t, int mode) {
  if (is_leaf(t) && mode == 0) return t;
  const Range r = range_of(t, mode);
  if (!r.found) refuse("there is no mode {} in a tree of rank {}.", mode, rank_of(t));
  Builder<T> builder;
  builder.add(t, r.first, r.last, r.first == 0 ? 1 : 0, r.last == t.count - 1 ? 1 : 0);
  return builder.out;
}

template <class T>
constexpr void Builder<T>::add_modes_of(const T& from) {
  for (int m = 0; m < rank_of(from); ++m) add(mode_of(from, m));
}

template <class T>
constexpr int depth_of(const T& t) {
  int depth = 0;
  int deepest = 0;
  for (int i = 0; i < t.count; ++i) {
    depth += t.open[i];
    if (depth > deepest) deepest = depth;
    depth -= t.close[i];
  }
  return deepest;
}

/// The part of the offset along `basis`; nothing may lie outside the bases when `strict`.
constexpr std::int64_t evaluate(const Layout& layout, std::int64_t index, std::int32_t basis) {
  std::int64_t offset = 0;
  for (int i = 0; i < layout.count; ++i) {
    const bool last = i == layout.count - 1;
    const std::int64_t c = last ? index : index % layout.shape[i];
    index = last ? 0 : index / layout.shape[i];
    if (layout.stride[i].basis == basis) offset = add(offset, multiply(c, layout.stride[i].value));
  }
  return offset;
}

constexpr void require_plain(const Layout& layout, const char* sentence) {
  for (int i = 0; i < layout.count; ++i)
    if (layout.stride[i].basis != -1 && layout.shape[i] != 1) refuse(sentence, layout);
}

}  // namespace detail

// ---------------------------------------------------------------- trees

/// `tuple(8, 16)`, `tuple(tuple(2, 4), 8)`: a tree from integers and trees. `tuple(8)` is `(8)`.
template <class... T>
constexpr Tuple tuple(const T&... part) {
  detail::Builder<Tuple> builder;
  (builder.add(Tuple(part)), ...);
  return builder.tuple();
}

/// The number of top-level modes; an integer counts as one.
constexpr int rank(const Tuple& t) {
  return detail::rank_of(t);
}
constexpr int rank(const Layout& l) {
  return detail::rank_of(l);
}

/// The number of nested parentheses: 0 for an integer.
constexpr int depth(const Tuple& t) {
  return detail::depth_of(t);
}
constexpr int depth(const Layout& l) {
  return detail::depth_of(l);
}

/// Top-level mode i.
constexpr Tuple mode(const Tuple& t, int i) {
  return detail::mode_of(t, i);
}
constexpr Layout mode(const Layout& l, int i) {
  return detail::mode_of(l, i);
}

/// Whether the nesting of two trees is the same.
template <class A, class B>
constexpr bool congruent(const A& a, const B& b) {
  if (a.count != b.count) return false;
  for (int i = 0; i < a.count; ++i)
    if (a.open[i] != b.open[i] || a.close[i] != b.close[i]) return false;
  return true;
}

/// The product of all leaves.
constexpr std::int64_t product(const Tuple& t) {
  std::int64_t n = 1;
  for (int i = 0; i < t.count; ++i) n = detail::multiply(n, t.leaf[i].value);
  return n;
}

/// The shape of a layout.
constexpr Tuple shape(const Layout& l) {
  Tuple t;
  t.count = l.count;
  for (int i = 0; i < l.count; ++i) {
    t.leaf[i].value = l.shape[i];
    t.open[i] = l.open[i];
    t.close[i] = l.close[i];
  }
  return t;
}

/// The stride of a layout.
constexpr Tuple stride(const Layout& l) {
  Tuple t = shape(l);
  for (int i = 0; i < l.count; ++i) t.leaf[i] = l.stride[i];
  return t;
}

// ---------------------------------------------------------------- making layouts

/// A layout from a shape and a congruent stride.
constexpr Layout make_layout(const Tuple& shape, const Tuple& stride) {
  if (shape.count == 0) refuse("a layout needs at least one mode.");
  if (!congruent(shape, stride))
    refuse(
        "the stride is not congruent with the shape: it has {} leaves for {}, or nests them "
        "otherwise.",
        stride.count, shape.count);
  Layout l;
  l.count = shape.count;
  std::int64_t size = 1;
  for (int i = 0; i < shape.count; ++i) {
    const std::int64_t extent = shape.leaf[i].value;
    if (shape.leaf[i].basis != -1) refuse("an extent of a shape cannot lie along a basis.");
    if (extent <= 0) refuse("an extent must be positive, and one here is {}.", extent);
    size = detail::multiply(size, extent);
    l.shape[i] = extent;
    l.stride[i] = stride.leaf[i];
    l.open[i] = shape.open[i];
    l.close[i] = shape.close[i];
  }
  return l;
}

/// The compact layout of a shape, first mode fastest. An extent of 1 gets stride 0.
constexpr Layout make_layout(const Tuple& shape) {
  Tuple stride = shape;
  std::int64_t step = 1;
  for (int i = 0; i < shape.count; ++i) {
    stride.leaf[i] = {shape.leaf[i].value == 1 ? 0 : step, -1};
    step = detail::multiply(step, shape.leaf[i].value);
  }
  return make_layout(shape, stride);
}
constexpr Layout make_layout(std::int64_t extent) {
  return make_layout(Tuple(extent));
}

/// The compact layout of a shape, last mode fastest.
constexpr Layout make_layout_right(const Tuple& shape) {
  Tuple stride = shape;
  std::int64_t step = 1;
  for (int i = shape.count - 1; i >= 0; --i) {
    stride.leaf[i] = {shape.leaf[i].value == 1 ? 0 : step, -1};
    step = detail::multiply(step, shape.leaf[i].value);
  }
  return make_layout(shape, stride);
}

/// A layout whose modes are the given layouts, in one pair of parentheses.
template <class... L>
constexpr Layout make_layout(const Layout& first, const L&... more) {
  detail::Builder<Layout> builder;
  builder.add(first);
  (builder.add(Layout(more)), ...);
  return builder.tuple();
}

// ---------------------------------------------------------------- reading layouts

/// The number of elements of the domain.
constexpr std::int64_t size(const Layout& l) {
  std::int64_t n = 1;
  for (int i = 0; i < l.count; ++i) n = detail::multiply(n, l.shape[i]);
  return n;
}
constexpr std::int64_t size(const Layout& l, int m) {
  return size(mode(l, m));
}

/// One more than the largest offset; strides count by magnitude.
constexpr std::int64_t cosize(const Layout& l) {
  detail::require_plain(l, "cosize({}) is not one number, because strides lie along a basis.");
  std::int64_t n = 1;
  for (int i = 0; i < l.count; ++i)
    n = detail::add(n, detail::multiply(l.shape[i] - 1, detail::abs(l.stride[i].value)));
  return n;
}

/// Whether any stride lies along a basis: then the layout yields coordinates, not offsets.
constexpr bool has_basis(const Layout& l) {
  for (int i = 0; i < l.count; ++i)
    if (l.stride[i].basis != -1) return true;
  return false;
}

constexpr std::int64_t Layout::operator()(std::int64_t index) const {
  detail::require_plain(*this, "{} yields coordinates, not offsets: read it with coordinate().");
  return detail::evaluate(*this, index, -1);
}

/// The index, first mode fastest, of a coordinate whose components may be indices of nested modes.
/// Not defined by clipping: a component past its extent is refused.
constexpr std::int64_t to_index(const Tuple& coordinate, const Tuple& shape) {
  if (detail::is_leaf(coordinate)) {
    const std::int64_t c = coordinate.leaf[0].value;
    const std::int64_t n = product(shape);
    if (c < 0 || c >= n) refuse("the coordinate {} lies outside [0, {}).", c, n);
    return c;
  }
  if (detail::is_leaf(shape) || rank(coordinate) != rank(shape))
    refuse("a coordinate of rank {} does not fit a shape of rank {}.", rank(coordinate),
           rank(shape));
  std::int64_t index = 0;
  std::int64_t step = 1;
  for (int m = 0; m < rank(shape); ++m) {
    const Tuple extent = mode(shape, m);
    index += step * to_index(mode(coordinate, m), extent);
    step *= product(extent);
  }
  return index;
}

/// The coordinate of an index, with the nesting of `shape`; the last leaf takes what is left.
constexpr Tuple to_coordinate(std::int64_t index, const Tuple& shape) {
  Tuple c = shape;
  for (int i = 0; i + 1 < shape.count; ++i) {
    c.leaf[i] = {index % shape.leaf[i].value, -1};
    index /= shape.leaf[i].value;
  }
  c.leaf[shape.count - 1] = {index, -1};
  return c;
}

namespace detail {

constexpr std::int64_t evaluate_at(const Layout& l, const Tuple& c, std::int32_t basis) {
  if (is_leaf(c)) return c.leaf[0].value == kAll ? 0 : evaluate(l, c.leaf[0].value, basis);
  if (is_leaf(l) || rank_of(c) != rank_of(l))
    refuse("a coordinate of rank {} does not fit {}.", rank_of(c), l);
  std::int64_t offset = 0;
  for (int m = 0; m < rank_of(l); ++m)
    offset = add(offset, evaluate_at(mode_of(l, m), mode_of(c, m), basis));
  return offset;
}

/// The number of components of the coordinates a layout yields.
constexpr int basis_count(const Layout& l) {
  int n = 0;
  for (int i = 0; i < l.count; ++i) {
    const Leaf d = l.stride[i];
    if (d.basis >= 32)
      refuse("evaluating a basis of two levels, as in {}, is not defined here.", l);
    if (d.basis == -1 && d.value != 0 && l.shape[i] != 1)
      refuse("{} mixes offsets and coordinates: a plain stride stands beside a basis.", l);
    if (d.basis + 1 > n) n = d.basis + 1;
  }
  return n;
}

}  // namespace detail

constexpr std::int64_t Layout::operator()(const Tuple& coordinate) const {
  detail::require_plain(*this, "{} yields coordinates, not offsets: read it with coordinate().");
  return detail::evaluate_at(*this, coordinate, -1);
}

template <class... I>
requires(sizeof...(I) >= 2) constexpr std::int64_t Layout::operator()(I... coordinate) const {
  return (*this)(tuple(coordinate...));
}

/// What a layout of basis strides yields at a coordinate (or an index): a flat tuple.
constexpr Tuple coordinate(const Layout& l, const Tuple& at) {
  detail::Builder<Tuple> builder;
  for (int b = 0; b < detail::basis_count(l); ++b)
    builder.add(Tuple(detail::evaluate_at(l, at, b)));
  return builder.tuple();
}

namespace detail {

template <Layout L, int Leaf, class I>
constexpr I offset_from_leaf(I index) {
  constexpr I step = static_cast<I>(L.stride[Leaf].value);
  if constexpr (Leaf + 1 == L.count) {
    return index * step;
  } else {
    constexpr I extent = static_cast<I>(L.shape[Leaf]);
    return index % extent * step + offset_from_leaf<L, Leaf + 1>(static_cast<I>(index / extent));
  }
}

template <Layout L, int Mode, class I, class... More>
constexpr I offset_from_mode(I first, More... more) {
  const I offset = offset_from_leaf<mode_of(L, Mode), 0>(first);
  if constexpr (sizeof...(More) == 0)
    return offset;
  else
    return offset + offset_from_mode<L, Mode + 1>(static_cast<I>(more)...);
}

}  // namespace detail

/// L(index) or L(c0, c1, ...) for a layout known while compiling, in the integer type of the first
/// argument and unchecked: what device code calls, since it costs only the multiplications left.
template <Layout L, class I, class... More>
constexpr I offset_of(I first, More... more) {
  static_assert(!has_basis(L), "a layout of basis strides yields coordinates, not offsets");
  static_assert(sizeof...(More) == 0 || sizeof...(More) + 1 == static_cast<unsigned>(rank(L)),
                "one index, or one for each mode");
  if constexpr (sizeof...(More) == 0)
    return detail::offset_from_leaf<L, 0>(first);
  else
    return detail::offset_from_mode<L, 0>(first, more...);
}

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

// ---------------------------------------------------------------- swizzle

/// `Sw<bits,base,shift>`: XORs the `bits` bits at base + shift onto those at base (for a negative
/// shift, the other way up).
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;

  constexpr std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t mask = (std::int64_t{1} << bits) - 1;
    if (shift >= 0) return offset ^ ((offset & (mask << (base + shift))) >> shift);
    return offset ^ ((offset & (mask << base)) << -shift);
  }
  friend constexpr bool operator==(const Swizzle&, const Swizzle&) = default;
};

/// A swizzle whose numbers make sense together.
constexpr Swizzle make_swizzle(std::int64_t bits, std::int64_t base, std::int64_t shift) {
  if (bits < 0 || base < 0)
    refuse("Sw<{},{},{}>: the number of bits and the base must not be negative.", bits, base,
           shift);
  if (bits > 31 || base > 31 || detail::abs(shift) > 31)
    refuse("Sw<{},{},{}> reaches past 31 bits.", bits, base, shift);
  if (detail::abs(shift) < bits)
    refuse("Sw<{},{},{}>: the shift must be at least the number of bits, or the bits overlap.",
           bits, base, shift);
  if (bits + base + detail::abs(shift) > 62)
    refuse("Sw<{},{},{}> reaches past 62 bits.", bits, base, shift);
  return {static_cast<int>(bits), static_cast<int>(base), static_cast<int>(shift)};
}

/// A swizzle after a layout: `Sw<3,4,3> o 0 o (8,64):(64,1)` is swizzle(offset + layout(c)).
struct ComposedLayout {
  Swizzle swizzle;
  std::int64_t offset = 0;
  Layout layout;

  constexpr std::int64_t operator()(std::int64_t index) const {
    return swizzle(offset + layout(index));
  }
  constexpr std::int64_t operator()(const Tuple& coordinate) const {
    return swizzle(offset + layout(coordinate));
  }
  friend constexpr bool operator==(const ComposedLayout&, const ComposedLayout&) = default;
};

constexpr ComposedLayout composition(const Swizzle& swizzle, const Layout& layout) {
  return {swizzle, 0, layout};
}
constexpr ComposedLayout composition(const ComposedLayout& a, const Layout& b) {
  return {a.swizzle, a.offset, composition(a.layout, b)};
}

// ---------------------------------------------------------------- coordinate tensors

/// An origin plus a layout of basis strides: what TMA takes in place of addresses. In text
/// `ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)`.
struct CoordinateTensor {
  Tuple origin;
  Layout layout;

  /// The coordinate in the tensor map of an element.
  constexpr Tuple operator()(const Tuple& at) const {
    Tuple sum = origin;
    if (detail::basis_count(layout) == 0) {
      if (layout(at) != 0) refuse("{} yields offsets, not coordinates.", layout);
      return sum;
    }
    const Tuple step = coordinate(layout, at);
    if (step.count > sum.count)
      refuse("an origin of {} components is too short for {}.", origin.count, layout);
    for (int i = 0; i < step.count; ++i)
      sum.leaf[i].value = detail::add(sum.leaf[i].value, step.leaf[i].value);
    return sum;
  }
  friend constexpr bool operator==(const CoordinateTensor&, const CoordinateTensor&) = default;
};

}  // namespace warpwright::layout
