// TiledMMA as a value: an instruction repeated over threads and over a tile, and who gets what.
//
// Names and results are CuTe's, on layout values: a partition has the modes (values of an MMA, MMAs
// along the rows, MMAs along the columns, what else the tensor had).
#pragma once

#include "warpwright/atom/mma.h"
#include "warpwright/layout/copy.h"

namespace warpwright::atom {

/// An MMA, where its copies stand among the threads, and in which order a tile's rows and columns
/// are dealt to them.
struct TiledMma {
  Mma atom;
  /// (M, N, K) -> which copy: (2,2,1):(1,2,0) is copies 0 and 1 along M, 2 and 3 beside them.
  layout::Layout threads = layout::make_layout(layout::tuple(1, 1, 1));
  /// For M, N and K: which elements of the tile the MMAs take in turn; `_` or none: as they stand.
  layout::Tiler permutation = {};

  /// (thread of an MMA, M, N, K) -> thread.
  constexpr layout::Layout thr_layout_vmnk() const;
  /// The tile's extent along mode 0 to 2 (M, N, K), and the order of its elements.
  constexpr layout::Layout permutation_mnk(int mode) const;
  constexpr std::int64_t tile_size(int mode) const { return layout::size(permutation_mnk(mode)); }

  /// A tensor (rows, columns, ...) as ((thread, (copies, copies)), (value, (rest, rest, ...))), of
  /// A (M, K), B (N, K) or C (M, N).
  constexpr layout::Layout thrfrg_a(const layout::Layout& a) const;
  constexpr layout::Layout thrfrg_b(const layout::Layout& b) const;
  constexpr layout::Layout thrfrg_c(const layout::Layout& c) const;

  /// (thread, value) -> element of one tile of A (row + M k), B (column + N k) or C (row + M
  /// column): CuTe's get_layoutA_TV and so on. Every thread of the copies has a place, also those
  /// that hold the same as others.
  constexpr layout::Layout layout_a_tv() const;
  constexpr layout::Layout layout_b_tv() const;
  constexpr layout::Layout layout_c_tv() const;

  /// Threads: as many as the copies have, in whole warps. Lanes that no copy names (of the quad
  /// pairs that a 1 x 1 of m8n8k4 leaves out) work on tiles of their own, as those do that they
  /// repeat.
  constexpr int thread_count() const;

  struct Slice;
  /// The part of one thread (of tcgen05: of one CTA).
  constexpr Slice get_slice(int thread) const;
};

/// One thread's view of a TiledMma: its coordinate (V, M, N, K), and its part of tensors.
struct TiledMma::Slice {
  const TiledMma& mma;
  std::int64_t vmnk[4] = {};

  /// For a layout: (values, MMAs along rows, along columns, ...) and where it begins. For a tensor
  /// (layout/tensor.h): the same behind its pointer, its origin or its swizzle.
  template <class T>
  constexpr auto partition_a(const T& a) const;
  template <class T>
  constexpr auto partition_b(const T& b) const;
  template <class T>
  constexpr auto partition_c(const T& c) const;
};

/// An MMA with copies of it side by side: along M, N and K as `threads` says.
constexpr TiledMma make_tiled_mma(const Mma& atom, const layout::Layout& threads = {},
                                  const layout::Tiler& permutation = {}) {
  const layout::Layout copies = layout::append(
      layout::rank(threads) == 1 && layout::depth(threads) == 0 ? layout::make_layout(threads)
                                                                : threads,
      3);
  if (layout::rank(copies) != 3)
    layout::refuse("a TiledMMA repeats its MMA along M, N and K, and {} has {} modes.", copies,
                   layout::rank(copies));
  if (permutation.count > 3)
    layout::refuse("a TiledMMA permutes M, N and K, and {} modes are given.", permutation.count);
  const std::int64_t count = layout::size(copies);
  if (layout::size(layout::filter(copies)) != count || layout::cosize(copies) != count)
    layout::refuse(
        "a TiledMMA's copies are numbered from 0 without gaps, and {} does not: "
        "{} would be its compact layout.",
        copies, layout::make_layout(layout::shape(copies)));
  const TiledMma tiled{atom, copies, permutation};
  const int extents[] = {atom.m, atom.n, atom.k};
  for (int mode = 0; mode < 3; ++mode) {
    const std::int64_t unit = extents[mode] * layout::size(copies, mode);
    if (tiled.tile_size(mode) % unit != 0)
      layout::refuse(
          "a TiledMMA's permutation {} of mode {} covers no multiple of the {} that its "
          "MMAs take.",
          tiled.permutation_mnk(mode), mode, unit);
  }
  return tiled;
}

constexpr layout::Layout TiledMma::thr_layout_vmnk() const {
  return layout::detail::unpack_second(layout::logical_product(mma_thr_id(atom), threads));
}

constexpr layout::Layout TiledMma::permutation_mnk(int mode) const {
  if (mode < permutation.count && !permutation.keep[mode]) return permutation.tile[mode];
  const int extents[] = {atom.m, atom.n, atom.k};
  return layout::make_layout(extents[mode] * layout::size(threads, mode));
}

namespace detail {

/// thrfrg of an operand whose rows and columns are modes `row` and `column` of M, N and K.
constexpr layout::Layout thrfrg(const TiledMma& mma, const layout::Layout& tensor, int row,
                                int column, const layout::Layout& values) {
  if (layout::rank(tensor) < 2)
    layout::refuse("{} has no columns to partition: a tensor is (rows, columns, ...).", tensor);
  const int modes[] = {row, column};
  const int extents[] = {mma.atom.m, mma.atom.n, mma.atom.k};
  layout::Tiler order;
  layout::Tiler atoms;
  layout::Tiler copies;
  for (int i = 0; i < 2; ++i) {
    const layout::Layout permutation = mma.permutation_mnk(modes[i]);
    if (layout::size(tensor, i) % layout::size(permutation) != 0)
      layout::refuse("mode {} of {} is no multiple of the {} that the tile of the MMAs has there.",
                     i, tensor, layout::size(permutation));
    order.add(permutation);
    atoms.add(layout::make_layout(extents[modes[i]]));
    copies.add(layout::make_layout(layout::size(mma.threads, modes[i])));
  }
  const layout::Layout by_atom =
      layout::zipped_divide(layout::logical_divide(tensor, order), atoms);
  const layout::Layout tv = layout::composition(layout::mode(by_atom, 0), values);
  const layout::Layout rest = layout::zipped_divide(layout::mode(by_atom, 1), copies);
  return layout::make_layout(layout::make_layout(layout::mode(tv, 0), layout::mode(rest, 0)),
                             layout::make_layout(layout::mode(tv, 1), layout::mode(rest, 1)));
}

/// The coordinate of one thread's part in ((thread, (copies, copies)), (value, rest)).
constexpr layout::Tuple place_of(const layout::Layout& tv, std::int64_t v, std::int64_t row,
                                 std::int64_t column) {
  const layout::Layout rest = layout::mode(layout::mode(tv, 1), 1);
  layout::detail::Builder<layout::Tuple> all;
  for (int i = 0; i < layout::rank(rest); ++i) all.add(layout::kAll);
  return layout::tuple(layout::tuple(v, layout::tuple(row, column)),
                       layout::tuple(layout::kAll, all.tuple()));
}

/// That part of a tensor whose layout is `tv` now.
template <class T>
constexpr auto slice_of(const T& tensor, const layout::Layout& tv, std::int64_t v, std::int64_t row,
                        std::int64_t column) {
  return layout::slice(layout::with_layout(tensor, tv), place_of(tv, v, row, column));
}

}  // namespace detail

constexpr layout::Layout TiledMma::thrfrg_a(const layout::Layout& a) const {
  return detail::thrfrg(*this, a, 0, 2, mma_layout_a(atom));
}
constexpr layout::Layout TiledMma::thrfrg_b(const layout::Layout& b) const {
  return detail::thrfrg(*this, b, 1, 2, mma_layout_b(atom));
}
constexpr layout::Layout TiledMma::thrfrg_c(const layout::Layout& c) const {
  return detail::thrfrg(*this, c, 0, 1, mma_layout_c(atom));
}

namespace detail {

/// ((thread, (copies, copies)), (value, rest)) of modes `row` and `column` as (thread, value), with
/// threads numbered through: the third mode repeats what the two hold.
constexpr layout::Layout by_thread(const TiledMma& mma, const layout::Layout& tv, int row,
                                   int column) {
  const layout::Layout vmnk = mma.thr_layout_vmnk();
  const layout::Layout copies = layout::mode(layout::mode(tv, 0), 1);
  layout::detail::Builder<layout::Layout> all;
  all.add(layout::mode(layout::mode(tv, 0), 0));
  for (int mode = 0; mode < 3; ++mode) {
    if (mode == row || mode == column) {
      all.add(layout::mode(copies, mode == row ? 0 : 1));
    } else {
      all.add(layout::make_layout(layout::size(vmnk, mode + 1), 0));
    }
  }
  return layout::make_layout(
      layout::composition(layout::make_layout(all.tuple()), layout::right_inverse(vmnk)),
      layout::mode(tv, 1));
}

/// A compact tile of `rows` x `columns`.
constexpr layout::Layout compact_tile(std::int64_t rows, std::int64_t columns) {
  return layout::make_layout(layout::tuple(rows, columns));
}

}  // namespace detail

constexpr layout::Layout TiledMma::layout_a_tv() const {
  return detail::by_thread(*this, thrfrg_a(detail::compact_tile(tile_size(0), tile_size(2))), 0, 2);
}
constexpr layout::Layout TiledMma::layout_b_tv() const {
  return detail::by_thread(*this, thrfrg_b(detail::compact_tile(tile_size(1), tile_size(2))), 1, 2);
}
constexpr layout::Layout TiledMma::layout_c_tv() const {
  return detail::by_thread(*this, thrfrg_c(detail::compact_tile(tile_size(0), tile_size(1))), 0, 1);
}

constexpr int TiledMma::thread_count() const {
  const auto named = static_cast<int>(layout::cosize(thr_layout_vmnk()));
  return is_register_mma(atom.kind) ? (named + 31) / 32 * 32 : named;
}

constexpr TiledMma::Slice TiledMma::get_slice(int thread) const {
  const layout::Layout vmnk = thr_layout_vmnk();
  if (thread < 0 || thread >= thread_count())
    layout::refuse("thread {} is not one of the {} of the TiledMMA.", thread, thread_count());
  Slice slice{*this};
  for (int mode = 0; mode < 4; ++mode) {
    const layout::Layout part = layout::mode(vmnk, mode);
    std::int64_t step = 1;
    for (int i = 0; i < part.count; ++i) {
      const std::int64_t stride = part.stride[i].value;
      if (stride != 0) slice.vmnk[mode] += step * (thread / stride % part.shape[i]);
      step *= part.shape[i];
    }
  }
  return slice;
}

template <class T>
constexpr auto TiledMma::Slice::partition_a(const T& a) const {
  return detail::slice_of(a, mma.thrfrg_a(layout::layout_of(a)), vmnk[0], vmnk[1], vmnk[3]);
}
template <class T>
constexpr auto TiledMma::Slice::partition_b(const T& b) const {
  return detail::slice_of(b, mma.thrfrg_b(layout::layout_of(b)), vmnk[0], vmnk[2], vmnk[3]);
}
template <class T>
constexpr auto TiledMma::Slice::partition_c(const T& c) const {
  return detail::slice_of(c, mma.thrfrg_c(layout::layout_of(c)), vmnk[0], vmnk[1], vmnk[2]);
}

/// A TiledCopy whose threads hold, on the side of the registers, what they hold of a TiledMMA's
/// operand: how fragments of A and B are loaded, and those of C stored.
constexpr layout::TiledCopy make_tiled_copy_a(const layout::CopyAtom& atom, const TiledMma& mma) {
  return layout::make_tiled_copy_tv(atom, mma.layout_a_tv(), mma.tile_size(0), mma.tile_size(2));
}
constexpr layout::TiledCopy make_tiled_copy_b(const layout::CopyAtom& atom, const TiledMma& mma) {
  return layout::make_tiled_copy_tv(atom, mma.layout_b_tv(), mma.tile_size(1), mma.tile_size(2));
}
constexpr layout::TiledCopy make_tiled_copy_c(const layout::CopyAtom& atom, const TiledMma& mma) {
  return layout::make_tiled_copy_tv(atom, mma.layout_c_tv(), mma.tile_size(0), mma.tile_size(1));
}

}  // namespace warpwright::atom
