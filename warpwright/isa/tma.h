// TMA: loads of rows of bytes; tiled loads, multicast loads, stores and
// reduce-add stores of tensors (PTX ISA 9.7.9.25 and 9.7.9.27). Probed on an H200: out-of-bounds
// parts of a load arrive as zeros and count in the transaction bytes; those of a store or
// reduce-add are skipped by whole 16-byte pieces; a store at a negative coordinate traps, and so
// does any copy whose innermost coordinate is no multiple of 16 bytes. Copies of four rows by
// number do the same with rows and columns outside, which triton tests on a B200
// (python/tutorials/gluon/09-tma-gather-scatter.py).
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/trace.h"

#if WW_GPU
#include "warpwright/model/memory/tensor_map_type.h"
#endif

namespace warpwright::isa {

/// The opaque 128-byte description of a tensor and its box, made on the host. A kernel takes it as
/// a __grid_constant__ parameter.
using TensorMap = model::TensorMap;

/// Coordinates of a box's first element, innermost dimension first; R is the tensor's rank.
template <int R>
struct Coords {
  static_assert(R >= 1 && R <= 5, "tensor maps have rank 1 to 5");
  int at[R];
};
template <class... Ints>
Coords(Ints...) -> Coords<static_cast<int>(sizeof...(Ints))>;

/// Fetches the map into the descriptor cache (prefetch.tensormap); one thread is enough.
WW_DEVICE
void prefetch_map([[maybe_unused]] const TensorMap& map) {
#if WW_GPU
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

#if WW_GPU
// One asm statement a rank: operand lists cannot be expanded from a pack. `text` makes the
// instructions from the dimension's suffix and the coordinates in braces; the rest are their
// operands, numbered from 5.
#define WW_TENSOR_COPY(rank, text, ...)                                                           \
  if constexpr (rank == 1) {                                                                      \
    asm volatile(text(".1d", "", "{%0}")::"r"(c.at[0]), "r"(0), "r"(0), "r"(0), "r"(0),           \
                 __VA_ARGS__                                                                      \
                 : "memory");                                                                     \
  } else if constexpr (rank == 2) {                                                               \
    asm volatile(text(".2d", "", "{%0, %1}")::"r"(c.at[0]), "r"(c.at[1]), "r"(0), "r"(0), "r"(0), \
                 __VA_ARGS__                                                                      \
                 : "memory");                                                                     \
  } else if constexpr (rank == 3) {                                                               \
    asm volatile(text(".3d", "", "{%0, %1, %2}")::"r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]),       \
                 "r"(0), "r"(0), __VA_ARGS__                                                      \
                 : "memory");                                                                     \
  } else if constexpr (rank == 4) {                                                               \
    asm volatile(text(".4d", "", "{%0, %1, %2, %3}")::"r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]),   \
                 "r"(c.at[3]), "r"(0), __VA_ARGS__                                                \
                 : "memory");                                                                     \
  } else {                                                                                        \
    asm volatile(text(".5d", "", "{%0, %1, %2, %3, %4}")::"r"(c.at[0]), "r"(c.at[1]),             \
                 "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4]), __VA_ARGS__                            \
                 : "memory");                                                                     \
  }
// (To .shared::cluster it would be the same on sm_90, and a system call on sm_120, which for its
// sake ignores setmaxnreg.)
#define WW_LOAD(dim, mode, coords)                      \
  "cp.async.bulk.tensor" dim ".shared::cta.global" mode \
  ".mbarrier::complete_tx::bytes [%5], [%6, " coords "], [%7];"
#define WW_MULTICAST(dim, mode, coords)                     \
  "cp.async.bulk.tensor" dim ".shared::cluster.global" mode \
  ".mbarrier::complete_tx::bytes.multicast::cluster [%5], [%6, " coords "], [%7], %8;"
#define WW_LOAD_PAIR(dim, mode, coords)                     \
  "cp.async.bulk.tensor" dim ".shared::cluster.global" mode \
  ".mbarrier::complete_tx::bytes.cta_group::2 [%5], [%6, " coords "], [%7];"
#define WW_MULTICAST_PAIR(dim, mode, coords)                                         \
  "cp.async.bulk.tensor" dim ".shared::cluster.global" mode                          \
  ".mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [%5], [%6, " coords \
  "], [%7], %8;"
// The one to several CTAs where the mask names some.
#define WW_EITHER(multicast, load) \
  "{\n\t.reg .pred p;\n\tsetp.ne.b16 p, %8, 0;\n\t@p " multicast "\n\t@!p " load "\n\t}"
#define WW_LOAD_TO(dim, mode, coords) \
  WW_EITHER(WW_MULTICAST(dim, mode, coords), WW_LOAD(dim, mode, coords))
#define WW_LOAD_TO_PAIR(dim, mode, coords) \
  WW_EITHER(WW_MULTICAST_PAIR(dim, mode, coords), WW_LOAD_PAIR(dim, mode, coords))
#define WW_STORE(dim, mode, coords) \
  "cp.async.bulk.tensor" dim ".global.shared::cta" mode ".bulk_group [%5, " coords "], [%6];"
#define WW_REDUCE(dim, mode, coords)                                                          \
  "cp.reduce.async.bulk.tensor" dim ".global.shared::cta.add" mode ".bulk_group [%5, " coords \
  "], [%6];"
// Four rows from a column on.
#define WW_ROWS_COPY(text, mode, ...)                                                              \
  asm volatile(text(".2d", mode, "{%0, %1, %2, %3, %4}")::"r"(column), "r"(rows[0]), "r"(rows[1]), \
               "r"(rows[2]), "r"(rows[3]), __VA_ARGS__                                             \
               : "memory");
#endif

/// Starts the load of one box into this CTA's shared memory at `to` (128-byte aligned; a swizzled
/// tile starts where its pattern repeats). When it lands, the box's bytes are subtracted from the
/// pending transaction bytes of `barrier`. One thread issues it. With Ctas = 2 (.cta_group::2,
/// sm_100) `barrier` may also be of the other CTA of the pair, the one whose rank differs in bit 0.
template <int Ctas = 1, int R>
WW_DEVICE void tensor_load(SharedAddress to, const TensorMap& map, SharedAddress barrier,
                           Coords<R> c, [[maybe_unused]] Site site = Site::here()) {
  static_assert(Ctas == 1 || Ctas == 2, "a load works for one CTA or for a pair");
#if WW_GPU
  if constexpr (Ctas == 1) {
    WW_TENSOR_COPY(R, WW_LOAD, "r"(to), "l"(&map), "r"(barrier))
  } else {
    WW_TENSOR_COPY(R, WW_LOAD_PAIR, "r"(to), "l"(&map), "r"(barrier))
  }
#else
  model::tensor_load(map, c.at, model::CopyMode::tile, to, barrier, 0, Ctas, site);
#endif
}

/// The same into every CTA of the cluster whose bit is set in `ctas`: data at the same offset as
/// `to`, and the full count of bytes signalled at the same offset as `barrier`, in each of them.
/// With Ctas = 2 each destination's bytes are signalled in the CTA of its pair whose rank has the
/// parity of `barrier`'s: with an even CTA's barrier always in the pair's even CTA.
template <int Ctas = 1, int R>
WW_DEVICE void tensor_load_multicast(SharedAddress to, const TensorMap& map, SharedAddress barrier,
                                     std::uint16_t ctas, Coords<R> c,
                                     [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "a load works for one CTA or for a pair");
#if WW_GPU
  if constexpr (Ctas == 1) {
    WW_TENSOR_COPY(R, WW_MULTICAST, "r"(to), "l"(&map), "r"(barrier), "h"(ctas))
  } else {
    WW_TENSOR_COPY(R, WW_MULTICAST_PAIR, "r"(to), "l"(&map), "r"(barrier), "h"(ctas))
  }
#else
  model::tensor_load(map, c.at, model::CopyMode::tile, to, barrier, ctas, Ctas, site);
#endif
}

/// `tensor_load_multicast` to `ctas`, or `tensor_load` when `ctas` is 0, without a branch: for
/// loops that serve launches with and without clusters.
template <int Ctas = 1, int R>
WW_DEVICE void tensor_load_to(std::uint16_t ctas, SharedAddress to, const TensorMap& map,
                              SharedAddress barrier, Coords<R> c,
                              [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "a load works for one CTA or for a pair");
#if WW_GPU
  if constexpr (Ctas == 1) {
    WW_TENSOR_COPY(R, WW_LOAD_TO, "r"(to), "l"(&map), "r"(barrier), "h"(ctas))
  } else {
    WW_TENSOR_COPY(R, WW_LOAD_TO_PAIR, "r"(to), "l"(&map), "r"(barrier), "h"(ctas))
  }
#else
  model::tensor_load(map, c.at, model::CopyMode::tile, to, barrier, ctas, Ctas, site);
#endif
}

/// Starts the store of one box from this CTA's shared memory at `from` (128-byte aligned) in the
/// current bulk group of this thread. The bytes must have been made visible to the asynchronous
/// proxy (`fence_proxy_async_shared` by their writers) and stay until `bulk_wait_read`. A map of
/// padded elements of 6 bits takes them a byte each, and leaves the two upper bits of it out.
template <int R>
WW_DEVICE void tensor_store(const TensorMap& map, SharedAddress from, Coords<R> c,
                            [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  WW_TENSOR_COPY(R, WW_STORE, "l"(&map), "r"(from))
#else
  model::tensor_store(map, c.at, model::CopyMode::tile, from, false, site);
#endif
}

/// The same, but adds the box to what is in global memory, element by element, in the map's element
/// type (relaxed atomic additions at GPU scope; their order is open).
template <int R>
WW_DEVICE void tensor_reduce_add(const TensorMap& map, SharedAddress from, Coords<R> c,
                                 [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  WW_TENSOR_COPY(R, WW_REDUCE, "l"(&map), "r"(from))
#else
  model::tensor_store(map, c.at, model::CopyMode::tile, from, true, site);
#endif
}

#if WW_GPU
namespace detail {
// Whether the target of this compilation has tile::gather4.
#ifdef __CUDA_ARCH__
inline constexpr bool kGathersRows = __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200;
#else
inline constexpr bool kGathersRows = true;
#endif
}  // namespace detail
#endif

/// Starts the load of four rows of a matrix, from element `column` on: rows[i] becomes row i of a
/// box of four rows at `to`. The map has two dimensions and a box of one row. A row that the matrix
/// does not have, a negative one too, comes as zeros. A taller tile takes one of these for each
/// four of its rows, 4 spans further on each time: the swizzle goes by the address, so `to` need
/// only be a multiple of 128 bytes. CTAs, barrier and bytes are as for `tensor_load_to`. One thread
/// issues it (tile::gather4, PTX ISA 9.7.9.27). sm_100, sm_103 and sm_110, in their "a" and "f"
/// targets. For sm_120 ptxas takes the form for one CTA but not that for several: refused there.
template <int Ctas = 1>
WW_DEVICE void tensor_gather4_to(std::uint16_t ctas, SharedAddress to, const TensorMap& map,
                                 SharedAddress barrier, int column, const int (&rows)[4],
                                 [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "a load works for one CTA or for a pair");
#if WW_GPU
  static_assert(Ctas > 0 && detail::kGathersRows,
                "tensor_gather4_to is for sm_100, sm_103 and sm_110");
  if constexpr (Ctas == 1) {
    WW_ROWS_COPY(WW_LOAD_TO, ".tile::gather4", "r"(to), "l"(&map), "r"(barrier), "h"(ctas))
  } else {
    WW_ROWS_COPY(WW_LOAD_TO_PAIR, ".tile::gather4", "r"(to), "l"(&map), "r"(barrier), "h"(ctas))
  }
#else
  const int coords[] = {column, rows[0], rows[1], rows[2], rows[3]};
  model::tensor_load(map, coords, model::CopyMode::rows, to, barrier, ctas, Ctas, site);
#endif
}

/// Starts the store of a box of four rows, from this CTA's shared memory at `from`, to rows of a
/// matrix from element `column` on, in the current bulk group of this thread: row i of the box goes
/// to rows[i]. The map is as for `tensor_gather4_to`. A row past the matrix's last is dropped, a
/// negative one traps, and none may be named twice. As `tensor_store` otherwise (tile::scatter4,
/// PTX ISA 9.7.9.27). sm_100, sm_103 and sm_110, in their "a" and "f" targets; ptxas refuses
/// sm_120.
WW_DEVICE void tensor_scatter4(const TensorMap& map, SharedAddress from, int column,
                               const int (&rows)[4], [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  WW_ROWS_COPY(WW_STORE, ".tile::scatter4", "l"(&map), "r"(from))
#else
  const int coords[] = {column, rows[0], rows[1], rows[2], rows[3]};
  model::tensor_store(map, coords, model::CopyMode::rows, from, false, site);
#endif
}

#if WW_GPU
#undef WW_TENSOR_COPY
#undef WW_ROWS_COPY
#undef WW_LOAD
#undef WW_MULTICAST
#undef WW_EITHER
#undef WW_LOAD_TO
#undef WW_LOAD_TO_PAIR
#undef WW_LOAD_PAIR
#undef WW_MULTICAST_PAIR
#undef WW_STORE
#undef WW_REDUCE
#endif

/// How the L2 cache treats what a copy brings.
struct CachePolicy {
  std::uint64_t bits = 0;
};

/// What is brought is the first to leave again: data that is read once (createpolicy.fractional).
WW_DEVICE
CachePolicy evict_first() {
  CachePolicy policy;
#if WW_GPU
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.bits));
#endif
  return policy;
}

/// Starts the load of `bytes` bytes of global memory from `from` into this CTA's shared memory at
/// `to` (both, and `bytes`, multiples of 16; fewer than 2^20). When they land, as many are
/// subtracted from the pending transaction bytes of `barrier`. One thread issues it
/// (cp.async.bulk, PTX ISA 9.7.9.25.4).
WW_DEVICE void bulk_load(SharedAddress to, const void* from, int bytes, SharedAddress barrier,
                         [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
#else
  model::bulk_load(from, to, bytes, barrier, site);
#endif
}

/// The same under a policy of L2.
WW_DEVICE void bulk_load(SharedAddress to, const void* from, int bytes, SharedAddress barrier,
                         [[maybe_unused]] CachePolicy policy,
                         [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1], %2, [%3], %4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy.bits)
      : "memory");
#else
  model::bulk_load(from, to, bytes, barrier, site);
#endif
}

/// Asks L2 for `bytes` bytes of global memory from `from` on (both multiples of 16). A hint: what
/// lies there may still be written, and nothing waits for it (cp.async.bulk.prefetch.L2, PTX ISA
/// 9.7.9.25.4.4).
WW_DEVICE void bulk_prefetch(const void* from, int bytes,
                             [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#else
  model::bulk_prefetch(from, bytes, site);
#endif
}

/// Closes this thread's current group of bulk stores (cp.async.bulk.commit_group).
WW_DEVICE
void bulk_commit([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  model::bulk_commit(site);
#endif
}

/// Waits until at most N of this thread's newest bulk groups still read shared memory: older ones'
/// source bytes may be overwritten (cp.async.bulk.wait_group.read).
template <int N>
WW_DEVICE void bulk_wait_read([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait stores");
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
  trace_wait_end();
#else
  model::bulk_wait(N, true, site);
#endif
}

/// Waits until at most N of this thread's newest bulk groups are incomplete: older ones' results
/// are in global memory and visible to this thread (cp.async.bulk.wait_group).
template <int N>
WW_DEVICE void bulk_wait([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait stores");
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
  trace_wait_end();
#else
  model::bulk_wait(N, false, site);
#endif
}

}  // namespace warpwright::isa
