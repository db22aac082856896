#include "warpwright/atom/values.h"

#include <string>
#include <utility>

#include "warpwright/atom/copy_atoms.h"
#include "warpwright/atom/umma.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"
#include "warpwright/layout/tma.h"

namespace warpwright::atom {
namespace {

using layout::Call;
using layout::Function;
using layout::Value;

// ---------------------------------------------------------------- copies

struct CopyWord {
  std::string_view word;
  int matrices;  // of ldmatrix; 0: cp.async; -1: a plain copy
  bool transposed;
};
constexpr CopyWord kCopyWords[] = {
    {"SM75_U32x1_LDSM_N", 1, false},
    {"SM75_U32x2_LDSM_N", 2, false},
    {"SM75_U32x4_LDSM_N", 4, false},
    {"SM75_U16x2_LDSM_T", 1, true},
    {"SM75_U16x4_LDSM_T", 2, true},
    {"SM75_U16x8_LDSM_T", 4, true},
    {"SM80_CP_ASYNC_CACHEALWAYS", 0, false},
    {"SM80_CP_ASYNC_CACHEGLOBAL", 0, false},
    {"UniversalCopy", -1, false},
};

Value call_make_copy_atom(const Call& call) {
  const auto* word = std::get_if<layout::Word>(&call[0]);
  std::string known;
  for (const CopyWord& one : kCopyWords) {
    known += (known.empty() ? "" : ", ") + std::string(one.word);
    if (word == nullptr || word->text != one.word) continue;
    const int bits = call.index(1, 1, 129, "bits of an element");
    if (one.matrices > 0) {
      if (call.count() == 3)
        throw layout::Error("make_copy_atom: " + word->text +
                            " says by its name how much it copies: it takes two arguments.");
      return ldmatrix_atom(one.matrices, bits, one.transposed);
    }
    const int copied = call.count() == 3 ? call.index(2, 1, 129, "bits of a copy") : 128;
    if (one.matrices == 0) {
      if (copied % 8 != 0)
        layout::refuse("cp.async copies 4, 8 or 16 bytes, and {} bits are asked for.", copied);
      return copy_async_atom(copied / 8, bits);
    }
    return layout::vector_copy(copied, bits);
  }
  throw layout::Error("make_copy_atom: argument 1 is an instruction: " + known + ".");
}

// ---------------------------------------------------------------- partitions

// f of a layout or a tensor, a layout of basis strides as a tensor of coordinates.
template <class F>
Value of_tensor(const Value& tensor, F f) {
  return Call("a partition", {tensor}).of_values(0, f);
}

enum class Holder { registers, descriptors, tensor_memory };

Holder holder_of(const Mma& mma, char operand) {
  if (mma.kind >= MmaKind::tcgen05)
    return operand == 'C' ? Holder::tensor_memory : Holder::descriptors;
  if (is_register_mma(mma.kind) || operand == 'C') return Holder::registers;
  return operand == 'A' && mma.kind == MmaKind::wgmma_registers ? Holder::registers
                                                                : Holder::descriptors;
}

// A descriptor for every MMA of a part in shared memory, in steps of 16 bytes.
layout::Tensor descriptors(const Mma& mma, const layout::Layout& part, int bits) {
  layout::detail::Builder<layout::Layout> modes;
  modes.add(layout::Layout{});
  for (int m = 1; m < layout::rank(part); ++m) {
    layout::Layout mode = layout::mode(part, m);
    for (int i = 0; i < mode.count; ++i) {
      const std::int64_t step = mode.stride[i].value * bits;
      if (mode.stride[i].basis != -1 || step % 128 != 0)
        layout::refuse(
            "a descriptor counts in 16 bytes, and MMAs of {} of {} bits begin at others.", part,
            bits);
      mode.stride[i].value = step / 128;
    }
    modes.add(mode);
  }
  layout::Pointer pointer{mma.kind >= MmaKind::tcgen05 ? layout::Space::umma_descriptors
                                                       : layout::Space::gmma_descriptors,
                          128};
  return {pointer, modes.tuple()};
}

// The sums of a CTA in tensor memory: its rows and columns of an MMA, then MMAs behind one another.
layout::Tensor tensor_memory(const Mma& mma, const layout::Layout& part) {
  using layout::make_layout;
  using layout::tuple;
  const UmmaAtom atom = umma_of(mma);
  constexpr std::int64_t lane = 1 << 16;
  layout::detail::Builder<layout::Layout> modes;
  if (umma_folds_columns(atom)) {
    modes.add(make_layout(tuple(64, tuple(atom.n / 2, 2)), tuple(lane, tuple(1, 64 * lane))));
  } else if (atom.m == 64) {
    modes.add(make_layout(tuple(tuple(16, 4), atom.n), tuple(tuple(lane, 32 * lane), 1)));
  } else {
    modes.add(make_layout(tuple(128, atom.n), tuple(lane, 1)));
  }
  std::int64_t column = umma_columns(atom);
  for (int m = 1; m < layout::rank(part); ++m) {
    layout::Layout mode = layout::mode(part, m);
    for (int i = 0; i < mode.count; ++i) {
      mode.stride[i] = {mode.shape[i] == 1 ? 0 : column, -1};
      column *= mode.shape[i];
    }
    modes.add(mode);
  }
  if (column > kTmemColumns)
    layout::refuse("tensor memory has {} columns, and these sums take {}.", kTmemColumns, column);
  return {{layout::Space::tmem, 32}, modes.tuple()};
}

DType type_of(const Mma& mma, char operand) {
  return operand == 'A' ? mma.a : operand == 'B' ? mma.b : mma.sums;
}

// make_tma_atom_A_sm100(OP, A, smem, tile of (M, N, K), cluster_layout_vmnk), and _B_.
Value call_make_tma_atom(const TiledMma& mma, char operand, const Call& call) {
  const auto* word = std::get_if<layout::Word>(&call[0]);
  const bool pair = mma.atom.kind == MmaKind::tcgen05_pair;
  const std::string plain = pair ? "SM100_TMA_2SM_LOAD" : "SM90_TMA_LOAD";
  const std::string multicast = plain + "_MULTICAST";
  if (word == nullptr || (word->text != plain && word->text != multicast))
    throw layout::Error(call.name() + ": argument 1 is " + plain + " or " + multicast + " for " +
                        (pair ? "a pair of CTAs." : "an MMA of one CTA."));
  const layout::Tensor tensor = call.tensor_at(1);
  layout::Layout smem;
  call.of_tensor(2, [&](const auto& t) -> Value { return smem = layout::layout_of(t); });
  const layout::Tuple tile = call.shape_at(3);
  const layout::Layout cluster = call.layout_at(4);
  if (layout::rank(tile) != 3 || layout::rank(cluster) != 4)
    throw layout::Error(call.name() +
                        ": argument 4 is a tile of M, N and K, and argument 5 a cluster of (pair, "
                        "M, N, K), as tiled_divide((4,4,1), <2:1>) is.");
  const layout::Layout of_tile = layout::composition(
      layout::identity(layout::shape(tensor.layout)),
      layout::tuple(layout::mode(tile, operand == 'A' ? 0 : 1), layout::mode(tile, 2)));
  const auto first = mma.get_slice(0);
  const layout::CoordinateTensor part = operand == 'A'
                                            ? first.partition_a(layout::coordinates_of(of_tile))
                                            : first.partition_b(layout::coordinates_of(of_tile));
  const int sharing = static_cast<int>(layout::size(cluster, operand == 'A' ? 2 : 1));
  return layout::make_tma_atom(tensor, smem, part.layout, word->text == multicast ? sharing : 1,
                               pair ? 2 : 1);
}

}  // namespace

std::span<const Function> copy_functions() {
  static const Function functions[] = {
      {"make_copy_atom",
       "make_copy_atom(SM75_U32x4_LDSM_N, bits), make_copy_atom(OP, bits, copied)", 2, 3,
       call_make_copy_atom},
  };
  return functions;
}

Value partition(const TiledMma& mma, char operand, const Value& tensor, int thread) {
  return of_tensor(tensor, [&](const auto& t) {
    const TiledMma::Slice slice = mma.get_slice(thread);
    if (operand == 'A') return layout::value_of(slice.partition_a(t));
    if (operand == 'B') return layout::value_of(slice.partition_b(t));
    return layout::value_of(slice.partition_c(t));
  });
}

Value fragment(const TiledMma& mma, char operand, const Value& partition) {
  const Holder holder = holder_of(mma.atom, operand);
  return of_tensor(partition, [&](const auto& t) -> Value {
    const layout::Layout& part = layout::layout_of(t);
    if (holder == Holder::tensor_memory) return tensor_memory(mma.atom, part);
    if (holder == Holder::registers) {
      return operand == 'C' ? layout::make_layout(layout::shape(part))
                            : layout::make_fragment_like(part);
    }
    int bits = numeric::bits(type_of(mma.atom, operand));
    if constexpr (std::is_same_v<std::decay_t<decltype(t)>, layout::Tensor>) bits = t.pointer.bits;
    return descriptors(mma.atom, part, bits);
  });
}

std::vector<Function> mma_functions(const TiledMma& mma, int thread) {
  struct Names {
    char operand;
    const char *partition, *partition_usage, *fragment, *fragment_usage, *both, *both_usage, *copy,
        *copy_usage;
  };
  constexpr Names names[] = {
      {'A', "partition_A", "partition_A(A), partition_A(A, thread)", "make_fragment_A",
       "make_fragment_A(partition)", "partition_fragment_A", "partition_fragment_A(A)",
       "make_tiled_copy_A", "make_tiled_copy_A(atom)"},
      {'B', "partition_B", "partition_B(B), partition_B(B, thread)", "make_fragment_B",
       "make_fragment_B(partition)", "partition_fragment_B", "partition_fragment_B(B)",
       "make_tiled_copy_B", "make_tiled_copy_B(atom)"},
      {'C', "partition_C", "partition_C(C), partition_C(C, thread)", "make_fragment_C",
       "make_fragment_C(partition)", "partition_fragment_C", "partition_fragment_C(C)",
       "make_tiled_copy_C", "make_tiled_copy_C(atom)"}};
  std::vector<Function> all;
  for (const Names& name : names) {
    const char operand = name.operand;
    const auto part = [mma, operand, thread](const Call& call) {
      const int of = call.count() == 2 ? call.index(1, 0, mma.thread_count(), "a thread") : thread;
      return partition(mma, operand, call[0], of);
    };
    all.push_back({name.partition, name.partition_usage, 1, 2, part});
    all.push_back({name.fragment, name.fragment_usage, 1, 1,
                   [mma, operand](const Call& call) { return fragment(mma, operand, call[0]); }});
    all.push_back({name.both, name.both_usage, 1, 2, [mma, operand, part](const Call& call) {
                     return fragment(mma, operand, part(call));
                   }});
    all.push_back({name.copy, name.copy_usage, 1, 1, [mma, operand](const Call& call) -> Value {
                     const layout::CopyAtom atom = call.atom_at(0);
                     if (operand == 'A') return make_tiled_copy_a(atom, mma);
                     return operand == 'B' ? make_tiled_copy_b(atom, mma)
                                           : make_tiled_copy_c(atom, mma);
                   }});
  }
  if (mma.atom.kind >= MmaKind::tcgen05) {
    all.push_back({"make_tma_atom_A_sm100", "make_tma_atom_A_sm100(OP, A, smem, (M,N,K), cluster)",
                   5, 5, [mma](const Call& call) { return call_make_tma_atom(mma, 'A', call); }});
    all.push_back({"make_tma_atom_B_sm100", "make_tma_atom_B_sm100(OP, B, smem, (M,N,K), cluster)",
                   5, 5, [mma](const Call& call) { return call_make_tma_atom(mma, 'B', call); }});
  }
  return all;
}

}  // namespace warpwright::atom
