#pragma once

#include <cstdint>
#include <utility>

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

/// `value@k`: a stride along basis vector k.
constexpr Tuple along(std::int64_t value, int k) {
  Tuple t(value);
  t.leaf[0].basis = k;
  return t;
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

namespace detail {

/// Refuses what only a coordinate may have.
constexpr void require_numbers(const Tuple& tree) {
  for (int i = 0; i < tree.count; ++i)
    if (tree.leaf[i].value == kAll)
      refuse("a _ by itself keeps a mode of a coordinate whole: it is no extent and no stride.");
}

}  // namespace detail

/// A layout from a shape and a congruent stride.
constexpr Layout make_layout(const Tuple& shape, const Tuple& stride) {
  if (shape.count == 0) refuse("a layout needs at least one mode.");
  detail::require_numbers(shape);
  detail::require_numbers(stride);
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
  detail::require_numbers(shape);
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

/// The part along `basis` of what a layout of basis strides yields, as offsets:
/// component((4,8):(2@1,1@0), 1) is (4,8):(2,0).
constexpr Layout component(Layout l, int basis) {
  for (int i = 0; i < l.count; ++i) {
    l.stride[i] = {l.stride[i].basis == basis ? l.stride[i].value : 0, -1};
  }
  return l;
}

namespace detail {

/// What a leaf adds to an offset: index[mode] / divisor % extent * stride, without the remainder
/// where `extent` is 0.
struct Term {
  int mode;
  std::int64_t divisor, extent, stride;
};

/// That of leaf `leaf`; unless `by_mode` one index counts through all modes.
constexpr Term term_of(const Layout& l, int leaf, bool by_mode) {
  int m = 0;
  Range r{0, l.count - 1, true};
  if (by_mode) {
    for (r = range_of(l, 0); leaf > r.last;) r = range_of(l, ++m);
  }
  Term term{m, 1, leaf == r.last ? 0 : l.shape[leaf], l.stride[leaf].value};
  for (int i = r.first; i < leaf; ++i) term.divisor *= l.shape[i];
  return term;
}

/// The exponent of a power of two; -1 for other numbers.
constexpr int exponent_of(std::int64_t a) {
  for (int e = 0; e < 62; ++e)
    if (a == std::int64_t{1} << e) return e;
  return -1;
}

/// With shifts and masks where they do: compilers do not know that an index is not negative.
template <Term T, class I>
constexpr I value_of(const I* index) {
  if constexpr (T.stride == 0 || T.extent == 1) {
    return 0;
  } else {
    constexpr int shift = exponent_of(T.divisor);
    I i = index[T.mode];
    if constexpr (shift >= 0) {
      i >>= shift;
    } else {
      i /= static_cast<I>(T.divisor);
    }
    if constexpr (exponent_of(T.extent) >= 0) {
      i &= static_cast<I>(T.extent - 1);
    } else if constexpr (T.extent != 0) {
      i %= static_cast<I>(T.extent);
    }
    return i * static_cast<I>(T.stride);
  }
}

template <Layout L, bool by_mode, class I, int... leaf>
constexpr I sum_of(const I* index, std::integer_sequence<int, leaf...> /*leaves*/) {
  return (... + value_of<term_of(L, leaf, by_mode)>(index));
}

}  // namespace detail

/// L(index) or L(c0, c1, ...) for a layout known while compiling, in the integer type of the first
/// argument and unchecked: what device code calls, since it costs only the multiplications left.
template <Layout L, class I, class... More>
constexpr I offset_of(I first, More... more) {
  static_assert(!has_basis(L), "a layout of basis strides yields coordinates, not offsets");
  static_assert(sizeof...(More) == 0 || sizeof...(More) + 1 == static_cast<unsigned>(rank(L)),
                "one index, or one for each mode");
  const I index[] = {first, static_cast<I>(more)...};
  return detail::sum_of<L, sizeof...(More) != 0>(index, std::make_integer_sequence<int, L.count>{});
}

}  // namespace warpwright::layout
