// Copies as values: an instruction that moves elements (Copy_Atom), and copies of it over the
// threads and elements of a tile (TiledCopy). Names and results are CuTe's.
#pragma once

#include <cstdint>

#include "warpwright/layout/tensor.h"

namespace warpwright::layout {

/// A copy instruction: which threads take part (of TMA copies: CTAs), and which of its elements
/// each reads (src) and writes (dst), (thread, value) -> element. `ref` is the one by which tiles
/// are dealt out: that of the registers, where one side is registers.
struct CopyAtom {
  Layout thr_id;
  Layout src;
  Layout dst;
  Layout ref;
  int bits = 16;  ///< of an element
  /// For a TMA copy: the tensor as coordinates of its tensor map; else 1:0.
  Layout coordinates;
};

constexpr std::int64_t threads_of(const CopyAtom& atom) {
  return size(atom.ref, 0);
}
constexpr std::int64_t values_of(const CopyAtom& atom) {
  return size(atom.ref, 1);
}

/// A thread that copies `bits` bits of elements of `element_bits` at once: a plain load or store,
/// cp.async.
constexpr CopyAtom vector_copy(int bits, int element_bits) {
  if (element_bits < 1 || bits % element_bits != 0)
    refuse("a copy of {} bits holds no whole number of elements of {} bits.", bits, element_bits);
  const Layout values = make_layout(tuple(1, bits / element_bits), tuple(0, 1));
  return {make_layout(1), values, values, values, element_bits, Layout{}};
}

/// Copies of an instruction: which element of a tile each value of each thread is.
struct TiledCopy {
  CopyAtom atom;
  Layout layout_tv;  ///< (thread, value) -> element of the tile
  Tiler tiler;       ///< the tile

  /// A tensor (rows, columns, ...) as (thread, (values of an instruction, instructions), (rest)):
  /// of the side that is read, and of the one that is written.
  constexpr Layout tidfrg_s(const Layout& tensor) const { return tidfrg(tensor, atom.src); }
  constexpr Layout tidfrg_d(const Layout& tensor) const { return tidfrg(tensor, atom.dst); }

  /// The same, only of the tile, (thread, value) -> element: CuTe's get_layoutS_TV and _D_.
  constexpr Layout layout_s_tv() const { return layout_of_side(atom.src); }
  constexpr Layout layout_d_tv() const { return layout_of_side(atom.dst); }

  constexpr std::int64_t thread_count() const { return size(layout_tv, 0); }

  /// A thread's part of a tensor: ((values of an instruction, instructions), rest, ...).
  template <class T>
  constexpr auto partition_s(std::int64_t thread, const T& tensor) const {
    return part_of(thread, tensor, tidfrg_s(layout_of(tensor)));
  }
  template <class T>
  constexpr auto partition_d(std::int64_t thread, const T& tensor) const {
    return part_of(thread, tensor, tidfrg_d(layout_of(tensor)));
  }

 private:
  constexpr Layout tidfrg(const Layout& tensor, const Layout& side) const {
    if (rank(tensor) < tiler.count)
      refuse("a copy of tiles of {} modes does not fit {}.", tiler.count, tensor);
    for (int m = 0; m < tiler.count; ++m)
      if (size(tensor, m) % size(tiler.tile[m]) != 0)
        refuse("mode {} of {} is no multiple of the {} that the tile of the copies has there.", m,
               tensor, size(tiler.tile[m]));
    return divided(zipped_divide(tensor, tiler), side);
  }

  constexpr Layout layout_of_side(const Layout& side) const {
    detail::Builder<Tuple> extents;
    for (int m = 0; m < tiler.count; ++m) extents.add(Tuple(size(tiler.tile[m])));
    const Layout all = divided(make_layout(make_layout(extents.tuple()), make_layout(1)), side);
    return make_layout(mode(all, 0), mode(all, 1));
  }

  /// `tiles` is ((tile), (rest)); `side` is src or dst.
  constexpr Layout divided(const Layout& tiles, const Layout& side) const {
    // What the side's thread and value are as the reference's.
    const Layout to_ref = composition(right_inverse(atom.ref), side);
    Tiler one;
    one.add(make_layout(threads_of(atom)));
    one.add(make_layout(values_of(atom)));
    const Layout atoms = zipped_divide(layout_tv, one);  // ((thread, value), (threads, values))
    const Layout tv = composition(mode(atoms, 0), to_ref);
    const Layout more = mode(atoms, 1);
    const Layout zipped = make_layout(make_layout(mode(tv, 0), mode(more, 0)),
                                      make_layout(mode(tv, 1), mode(more, 1)));
    const Layout by_thread = coalesce(zipped, tuple(1, tuple(1, 1)));
    const Layout part = composition(mode(tiles, 0), by_thread);
    return make_layout(mode(part, 0), mode(part, 1), mode(tiles, 1));
  }

  template <class T>
  constexpr auto part_of(std::int64_t thread, const T& tensor, const Layout& by_thread) const {
    if (thread < 0 || thread >= thread_count())
      refuse("thread {} is not one of the {} of the TiledCopy.", thread, thread_count());
    detail::Builder<Tuple> all;
    for (int m = 0; m < rank(mode(by_thread, 2)); ++m) all.add(kAll);
    return slice(with_layout(tensor, by_thread), tuple(thread, kAll, all.tuple()));
  }
};

/// An instruction over the tile whose (thread, value) -> element is given, compact with its first
/// mode fastest: of `rows` x `columns`.
constexpr TiledCopy make_tiled_copy_tv(const CopyAtom& atom, const Layout& layout_tv,
                                       std::int64_t rows, std::int64_t columns) {
  if (size(layout_tv, 0) % threads_of(atom) != 0 || size(layout_tv, 1) % values_of(atom) != 0)
    refuse(
        "a TiledCopy of {} threads and {} values each is no multiple of its instruction's {} "
        "threads and {} values.",
        size(layout_tv, 0), size(layout_tv, 1), threads_of(atom), values_of(atom));
  return {atom, layout_tv, make_tiler(tuple(rows, columns))};
}

/// An instruction over threads that stand as `threads` says, (row, column) -> thread, each of which
/// copies the block of elements `values`, (row, column) -> value.
constexpr TiledCopy make_tiled_copy(const CopyAtom& atom, const Layout& threads,
                                    const Layout& values) {
  const Layout by_element = raked_product(threads, values);  // (row, column) -> thread and value
  if (rank(by_element) != 2)
    refuse("a TiledCopy deals out rows and columns, and {} has {} modes.", by_element,
           rank(by_element));
  const Layout tv =
      composition(right_inverse(by_element), make_layout(tuple(size(threads), size(values))));
  return make_tiled_copy_tv(atom, tv, size(by_element, 0), size(by_element, 1));
}

}  // namespace warpwright::layout
