// The functions of tensors, tiles and copies, as expressions call them.
#include <algorithm>
#include <iterator>

#include "warpwright/layout/call.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"
#include "warpwright/layout/tma.h"

namespace warpwright::layout {
namespace {

// ---------------------------------------------------------------- tiles and coordinates

Value call_slice(const Call& call) {
  const Tuple at = call.coordinate_at(1);
  return call.of_values(0, [&](const auto& t) {
    expect_inside(at, shape(layout_of(t)));
    return value_of(slice(t, at));
  });
}

// A tree of one number as one mode: a tile of 4 is (4).
Tuple in_modes(const Tuple& t) {
  return detail::is_leaf(t) ? tuple(t) : t;
}

Value call_local_tile(const Call& call) {
  const Tuple tile = in_modes(call.shape_at(1));
  const Tuple at = in_modes(call.coordinate_at(2));
  return call.of_values(0, [&](const auto& t) {
    return call.count() == 3 ? value_of(local_tile(t, tile, at))
                             : value_of(local_tile(t, tile, at, call.shape_at(3)));
  });
}

Value call_group_modes(const Call& call) {
  return call.inside([&](const Layout& l) {
    const int first = call.index(1, 0, rank(l), "the first mode");
    return group_modes(l, first, call.index(2, first + 1, rank(l) + 1, "the end of the modes"));
  });
}

Value call_select(const Call& call) {
  return call.inside([&](const Layout& l) {
    detail::Builder<Layout> builder;
    for (std::size_t i = 1; i < call.count(); ++i)
      builder.add(mode(l, call.index(i, 0, rank(l), "a mode")));
    return builder.tuple();
  });
}

// The index of a call, which must be inside the domain.
std::int64_t index_in(const Call& call, std::size_t i, const Layout& of) {
  const std::int64_t index = call.number(i);
  if (index < 0 || index >= size(of))
    refuse("the index {} lies outside of {}, which has {} elements.", index, of, size(of));
  return index;
}

Tuple flat(Tuple t) {
  for (int i = 0; i < t.count; ++i) t.open[i] = t.close[i] = 0;
  ++t.open[0];
  ++t.close[t.count - 1];
  return t;
}

Value call_crd2idx(const Call& call) {
  const Tuple at = call.shape_at(0);
  return call.of_values(1, [&](const auto& t) -> Value {
    to_index(at, shape(layout_of(t)));  // refuses what lies outside
    return t(at);
  });
}

// ---------------------------------------------------------------- copies

constexpr const char* kTmaWords[] = {"SM90_TMA_LOAD", "SM90_TMA_LOAD_MULTICAST", "SM90_TMA_STORE"};

// The layout of a tile in shared memory, of whatever kind; its swizzle is the tensor map's.
Layout smem_layout_at(const Call& call, std::size_t i) {
  Layout found;
  call.of_tensor(i, [&](const auto& t) -> Value {
    found = layout_of(t);
    return found;
  });
  return found;
}

Value call_make_tma_atom(const Call& call) {
  const auto* word = std::get_if<Word>(&call[0]);
  const bool known = word != nullptr && std::find(std::begin(kTmaWords), std::end(kTmaWords),
                                                  word->text) != std::end(kTmaWords);
  if (!known)
    throw Error(
        "make_tma_atom: argument 1 is SM90_TMA_LOAD, SM90_TMA_LOAD_MULTICAST or SM90_TMA_STORE; "
        "copies of a pair of CTAs are made by make_tma_atom_A_sm100 of warpwright mma.");
  const Tensor gmem = call.tensor_at(1);
  const Tuple tile = call.shape_at(3);
  const int multicast =
      call.count() == 5 ? call.index(4, 1, 17, "the number of multicasting CTAs") : 1;
  if (multicast > 1 && word->text != kTmaWords[1])
    throw Error("make_tma_atom: " + word->text +
                " does not multicast: SM90_TMA_LOAD_MULTICAST copies to more CTAs than one.");
  const Layout all = identity(shape(gmem.layout));
  return make_tma_atom(gmem, smem_layout_at(call, 2), composition(all, tile), multicast, 1);
}

Value call_get_tma_tensor(const Call& call) {
  const CopyAtom atom = call.atom_at(0);
  if (!has_basis(atom.coordinates))
    throw Error("get_tma_tensor: argument 1 must be the Copy_Atom of a TMA copy.");
  Layout coordinates = atom.coordinates;
  if (call.count() == 2) coordinates = make_layout(call.shape_at(1), stride(coordinates));
  return coordinates_of(coordinates);
}

Value call_tma_partition(const Call& call) {
  const CopyAtom atom = call.atom_at(0);
  const std::int64_t cta = call.number(1);
  const Layout ctas = call.layout_at(2);
  const auto* gmem = std::get_if<CoordinateTensor>(&call[4]);
  if (gmem == nullptr)
    call.wrong(4, "a coordinate tensor, such as ArithTuple(0,0) o (128,64):(1@1,1@0)");
  TmaSides sides;
  call.of_tensor(3, [&](const auto& smem) -> Value {
    const TmaPartition part = tma_partition(layout_of(smem), *gmem, box_of(atom), cta, ctas);
    sides.gmem = part.gmem;
    auto moved = with_layout(smem, part.smem);
    using Smem = std::decay_t<decltype(moved)>;
    if constexpr (std::is_same_v<Smem, Tensor>) {
      moved.pointer.address += part.smem_offset * moved.pointer.bits;
      sides.smem = moved;
    } else if constexpr (std::is_same_v<Smem, ComposedLayout>) {
      moved.offset += part.smem_offset;
      sides.smem = moved;
    } else if constexpr (std::is_same_v<Smem, Layout>) {
      if (part.smem_offset == 0)
        sides.smem = moved;
      else
        sides.smem = ComposedLayout{Swizzle{}, part.smem_offset, moved};
    } else {
      call.wrong(3, "a tensor in shared memory, or its layout");
    }
    return moved;
  });
  return sides;
}

Value call_partition(const Call& call, bool written) {
  const TiledCopy copy = call.copy_at(0);
  const std::int64_t thread = call.number(1);
  return call.of_values(2, [&](const auto& t) {
    return value_of(written ? copy.partition_d(thread, t) : copy.partition_s(thread, t));
  });
}

}  // namespace

std::span<const Function> tensor_functions() {
  static const Function functions[] = {
      {"slice", "slice(A, (_,3,_))", 2, 2, call_slice},
      {"local_tile", "local_tile(A, tile, (1,_)), local_tile(A, tile, (1,0,_), (1,X,1))", 3, 4,
       call_local_tile},
      {"group_modes", "group_modes(A, first, end)", 3, 3, call_group_modes},
      {"select", "select(A, i, ...)", 2, SIZE_MAX, call_select},
      {"idx2crd", "idx2crd(index, A)", 2, 2,
       [](const Call& call) -> Value {
         const Layout of = call.layout_at(1);
         return to_coordinate(index_in(call, 0, of), shape(of));
       }},
      {"crd2idx", "crd2idx(coordinate, A)", 2, 2, call_crd2idx},
      {"get_flat_coord", "get_flat_coord(A, index)", 2, 2,
       [](const Call& call) -> Value {
         const Layout of = call.domain();
         detail::Builder<Tuple> modes;
         for (int m = 0; m < rank(of); ++m) modes.add(Tuple(size(of, m)));
         return flat(to_coordinate(index_in(call, 1, of), flat(modes.out)));
       }},
      {"get_hier_coord", "get_hier_coord(A, index)", 2, 2,
       [](const Call& call) -> Value {
         const Layout of = call.domain();
         return to_coordinate(index_in(call, 1, of), shape(of));
       }},
      {"make_fragment_like", "make_fragment_like(A)", 1, 1,
       [](const Call& call) -> Value { return make_fragment_like(call.domain()); }},
      {"make_tma_atom", "make_tma_atom(SM90_TMA_LOAD_MULTICAST, A, smem, tile, CTAs)", 4, 5,
       call_make_tma_atom},
      {"get_tma_tensor", "get_tma_tensor(atom), get_tma_tensor(atom, shape)", 1, 2,
       call_get_tma_tensor},
      {"tma_partition", "tma_partition(atom, cta, CTAs, smem, gmem)", 5, 5, call_tma_partition},
      {"make_tiled_copy", "make_tiled_copy(atom, threads, values)", 3, 3,
       [](const Call& call) -> Value {
         return make_tiled_copy(call.atom_at(0), call.layout_at(1), call.layout_at(2));
       }},
      {"partition_S", "partition_S(copy, thread, A)", 3, 3,
       [](const Call& call) { return call_partition(call, false); }},
      {"partition_D", "partition_D(copy, thread, A)", 3, 3,
       [](const Call& call) { return call_partition(call, true); }},
  };
  return functions;
}

}  // namespace warpwright::layout
