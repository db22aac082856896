// Tensors: a layout behind an offset, a swizzle, an origin or a pointer; and the parts of them that
// a coordinate selects.
#pragma once

#include <cstdint>

#include "warpwright/layout/swizzle.h"

namespace warpwright::layout {

/// What a pointer points to: elements in memory, descriptors of matrices in shared memory, 16 bytes
/// apart, or cells of tensor memory, lane << 16 | column.
enum class Space : std::uint8_t { global, shared, gmma_descriptors, umma_descriptors, tmem };

/// A pointer to elements of `bits` bits. The swizzle turns byte addresses, as TMA copies and the
/// tensor core do: `Sw<3,4,3>_smem_ptr[16b](0x400)`.
struct Pointer {
  Space space = Space::shared;
  int bits = 16;
  Swizzle swizzle = {};
  bool is_set = false;       ///< else no address is known: `smem_ptr[16b](unset)`
  std::int64_t address = 0;  ///< in bits, before the swizzle
  friend constexpr bool operator==(const Pointer&, const Pointer&) = default;
};

/// Elements in memory.
struct Tensor {
  Pointer pointer;
  Layout layout;

  /// The byte address of an element, swizzled. An element narrower than a byte has that of the byte
  /// in which it begins.
  constexpr std::int64_t operator()(const Tuple& coordinate) const {
    const std::int64_t at =
        detail::add(pointer.address, detail::multiply(layout(coordinate), pointer.bits));
    return pointer.swizzle(at / 8);
  }
  friend constexpr bool operator==(const Tensor&, const Tensor&) = default;
};

/// The layout inside, and the same around another one: how functions of layouts become functions
/// of tensors.
constexpr const Layout& layout_of(const Layout& l) {
  return l;
}
constexpr const Layout& layout_of(const ComposedLayout& c) {
  return c.layout;
}
constexpr const Layout& layout_of(const CoordinateTensor& t) {
  return t.layout;
}
constexpr const Layout& layout_of(const Tensor& t) {
  return t.layout;
}
constexpr Layout with_layout(const Layout& /*l*/, const Layout& other) {
  return other;
}
constexpr ComposedLayout with_layout(const ComposedLayout& c, const Layout& other) {
  return {c.swizzle, c.offset, other};
}
constexpr CoordinateTensor with_layout(const CoordinateTensor& t, const Layout& other) {
  return {t.origin, other};
}
constexpr Tensor with_layout(const Tensor& t, const Layout& other) {
  return {t.pointer, other};
}

// ---------------------------------------------------------------- slices

namespace detail {

constexpr Layout kept_modes(const Layout& l, const Tuple& at) {
  if (is_leaf(at) && at.leaf[0].value == kAll) return l;
  Builder<Layout> builder;
  collect_slice(builder, l, at);
  return builder.modes == 0 ? Layout{} : builder.tuple();
}

constexpr bool keeps_all(const Tuple& at) {
  for (int i = 0; i < at.count; ++i)
    if (at.leaf[i].value != kAll) return false;
  return true;
}

/// The bits of an offset in five zones, each a basis: below the ones that a swizzle changes (0),
/// those (1 to B), between (B + 1), the ones that it reads (B + 2 to 2 B + 1), above (2 B + 2).
struct SwizzleZones {
  Layout zones;
  std::int64_t unit[kMaxLeaves] = {};

  constexpr SwizzleZones(const Swizzle& sw, std::int64_t offset) {
    Builder<Tuple> extents;
    Builder<Tuple> strides;
    const auto add = [&](std::int64_t extent, std::int64_t step) {
      unit[extents.modes] = step;
      strides.add(along(1, extents.modes));
      extents.add(Tuple(extent));
    };
    const auto bit = [](int i) { return std::int64_t{1} << i; };
    const auto moved = [&](int i) { return sw(offset ^ bit(i)) - sw(offset); };
    add(bit(sw.base), 1);
    for (int i = 0; i < sw.bits; ++i) add(2, moved(sw.base + i) * sign(offset, sw.base + i));
    add(bit(sw.shift - sw.bits), bit(sw.base + sw.bits));
    for (int i = 0; i < sw.bits; ++i)
      add(2, moved(sw.base + sw.shift + i) * sign(offset, sw.base + sw.shift + i));
    add(1, bit(sw.base + sw.shift + sw.bits));
    zones = make_layout(extents.tuple(), strides.tuple());
  }

 private:
  // A bit that is set already cannot be walked; any value will do, for the proof then fails.
  static constexpr std::int64_t sign(std::int64_t offset, int i) {
    return (offset >> i & 1) == 0 ? 1 : 0;
  }
};

/// Is sw(offset + of(i)) == sw(offset) + plain(i) for every i? Leaves that step over all bits of
/// the swizzle are left out: they add the same on both sides.
constexpr bool is_unswizzled(const Swizzle& sw, std::int64_t offset, const Layout& of,
                             const Layout& plain) {
  const std::int64_t period = std::int64_t{1} << (sw.base + sw.shift + sw.bits);
  Builder<Layout> of_low;
  Builder<Layout> plain_low;
  // `plain` refines the leaves of `of` in their order.
  int at = 0;
  for (int i = 0; i < of.count; ++i) {
    std::int64_t extent = 1;
    const int first = at;
    do {
      if (at == plain.count) return false;
      extent *= plain.shape[at++];
    } while (extent < of.shape[i]);
    if (extent != of.shape[i]) return false;
    if (of.stride[i].value % period == 0) {
      if (of.shape[i] != 1 && (at - first != 1 || plain.stride[first] != of.stride[i]))
        return false;
      continue;
    }
    of_low.add(single(of.shape[i], of.stride[i]));
    for (int j = first; j < at; ++j) plain_low.add(single(plain.shape[j], plain.stride[j]));
  }
  if (of_low.modes == 0) return true;
  const Layout a = of_low.tuple();
  const Layout b = plain_low.tuple();
  if (size(a) > kProofLimit) return false;
  for (std::int64_t i = 0; i < size(a); ++i)
    if (sw(offset + a(i)) != sw(offset) + b(i)) return false;
  return true;
}

}  // namespace detail

/// The plain layout, behind an offset, that is the same function as a swizzled one. There is one
/// where no bit that the swizzle reads and the bit that it changes are both the layout's: then
/// only the offset says which way a step goes, as for one thread's part of a swizzled tile. Steps
/// over single bits of the swizzle stay modes of their own (for other threads they go other ways),
/// as in CuTe. Else the swizzled layout, as it was.
constexpr ComposedLayout unswizzled(const ComposedLayout& c) {
  const Swizzle& sw = c.swizzle;
  if (sw.bits == 0) return {Swizzle{}, c.offset, c.layout};
  if (sw.shift < sw.bits || has_basis(c.layout)) return c;
  const detail::SwizzleZones zones(sw, c.offset);
  const Layout flat = detail::coalesce(zones.zones, true);
  detail::Composer composer{zones.zones, c.layout};
  Layout plain;
  if (!composer.run(flat, plain)) return c;
  for (int i = 0; i < plain.count; ++i) {
    const Leaf leaf = plain.stride[i];
    if (leaf.basis != -1) plain.stride[i] = {leaf.value * zones.unit[leaf.basis], -1};
  }
  if (!detail::is_unswizzled(sw, c.offset, c.layout, plain)) return c;
  return {Swizzle{}, sw(c.offset), plain};
}

/// The modes of a tensor that `at` leaves whole (kAll), behind what the others come to: an origin,
/// a pointer moved on, an offset. A swizzled layout of which something is fixed becomes a plain one
/// where it can (`unswizzled`); one whose swizzle is its pointer's stays as it is.
constexpr CoordinateTensor slice(const CoordinateTensor& t, const Tuple& at) {
  return {t(at), detail::kept_modes(t.layout, at)};
}
constexpr Tensor slice(const Tensor& t, const Tuple& at) {
  Tensor part{t.pointer, detail::kept_modes(t.layout, at)};
  part.pointer.address =
      detail::add(t.pointer.address, detail::multiply(t.layout(at), t.pointer.bits));
  return part;
}
constexpr ComposedLayout slice(const ComposedLayout& c, const Tuple& at) {
  const ComposedLayout part{c.swizzle, detail::add(c.offset, c.layout(at)),
                            detail::kept_modes(c.layout, at)};
  return detail::keeps_all(at) ? part : unswizzled(part);
}

/// The coordinates of a shape, which is congruent with them: (4,8) is (4,8):(1@0,1@1).
constexpr Layout identity(const Tuple& extents) {
  if (detail::depth_of(extents) > 1)
    refuse("a tensor of nested modes, such as {}, has no coordinates here.", make_layout(extents));
  Tuple steps = extents;
  for (int i = 0; i < extents.count; ++i) steps.leaf[i] = {1, i};
  return make_layout(extents, steps);
}

/// local_tile (division.h) of a tensor.
template <class T, class... Projection>
constexpr auto local_tile(const T& tensor, const Tuple& tile, const Tuple& at,
                          const Projection&... projection) {
  const TilePlace place = tile_place(layout_of(tensor), tile, at, projection...);
  return slice(with_layout(tensor, place.tiles), place.at);
}

/// Modes [first, last) of a tensor as one mode.
template <class T>
constexpr T group_modes(const T& tensor, int first, int last) {
  return with_layout(tensor, group_modes(layout_of(tensor), first, last));
}

/// Registers for a part of a tensor: compact, mode 0 (an instruction's values) first, the others in
/// the order in which the tensor's strides grow. CuTe's make_fragment_like.
constexpr Layout make_fragment_like(const Layout& l) {
  if (rank(l) < 2) return make_layout(shape(l));
  Layout values = mode(l, 0);
  detail::Builder<Layout> rest;
  for (int m = 1; m < rank(l); ++m) rest.add(mode(l, m));
  Layout others = rest.tuple();
  std::int64_t step = 1;
  const auto place = [&](Layout& of, int i) {
    const bool repeats = of.shape[i] == 1;
    of.stride[i] = {repeats ? 0 : step, -1};
    step = detail::multiply(step, of.shape[i]);
  };
  for (int i = 0; i < values.count; ++i) {
    // Values that repeat one of memory (stride 0) are one register.
    if (values.stride[i].value == 0)
      values.stride[i] = {};
    else
      place(values, i);
  }
  bool placed[kMaxLeaves] = {};
  for (int n = 0; n < others.count; ++n) {
    int next = -1;
    for (int i = 0; i < others.count; ++i) {
      if (placed[i]) continue;
      if (next == -1 ||
          detail::abs(rest.out.stride[i].value) < detail::abs(rest.out.stride[next].value))
        next = i;
    }
    placed[next] = true;
    place(others, next);
  }
  detail::Builder<Layout> all;
  all.add(values);
  all.add_modes_of(others);
  return all.tuple();
}

}  // namespace warpwright::layout
