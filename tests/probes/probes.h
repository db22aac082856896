// Questions to the hardware that the ISA text does not settle. Every probe is one kernel body on
// the functions of isa/, so the same source asks an H200 (probes.cu) and the model
// (probes_test.cpp). It leaves a few words in global memory; what an H200 left there is kept in
// h200.h.
#pragma once

#include <cstdint>

#include "warpwright/atom/descriptor.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/draw.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"

namespace warpwright::probes {

inline constexpr int threads = 128;
inline constexpr int shared_bytes = 16 * 1024;
inline constexpr int tensor_words = 1024;
inline constexpr int out_words = 512;

enum class Kind : std::uint8_t {
  load,
  bulk_load,
  store,
  reduce_add,
  early_bytes,
  parity,
  short_count,
  elect,
  cluster_address,
  draw,
  store_async,
  load_matrix,
  store_matrix,
  wgmma_accumulator,
  wgmma_registers,
  wgmma_steps,
  wgmma_subnormals,
  wgmma_rounding,
  wgmma_rounding_f16,
  wgmma_rounding_e4m3,
  wgmma_rounding_e5m2,
  half_warps,
  whole_warps,
  two_sync_warps,
  prefetch_outside,
};

/// Words of memory: word i is first[i % 4] + i * step.
struct Fill {
  std::uint32_t first[4];
  std::uint32_t step = 0;
};

WW_DEVICE std::uint32_t word_of(const Fill& fill, int i) {
  return fill.first[i % 4] + static_cast<std::uint32_t>(i) * fill.step;
}

/// A tensor, the box and the one copy that a probe makes.
struct Copy {
  DType type = DType::bf16;
  int columns = 8;
  int rows = 1;
  int pitch = 8;  ///< elements from row to row
  int box_columns = 8;
  int box_rows = 1;
  atom::SmemSwizzle swizzle = atom::SmemSwizzle::none;
  int x = 0;
  int y = 0;
  int offset = 0;  ///< of the box from the start of dynamic shared memory
  Fill tensor{};
  Fill source{};  ///< shared memory before a store
};

struct Probe {
  const char* name;
  Kind kind;
  int words;       ///< that the answer has: of the tensor after a store, of the output otherwise
  int stride = 1;  ///< a load's answer is every stride-th word of shared memory
  Copy copy{};
  bool open = false;       ///< the ISA leaves the answer open, and the model has its own
  const char* finds = "";  ///< the ISA forbids it: what the model finds, while the H200 answers
};

/// What a kernel gets.
struct Input {
  isa::TensorMap map;
  Copy copy;
  Kind kind;
  int words;
  int stride;
  const std::uint32_t* tensor;
  std::uint32_t* out;
};

// Halves numbered from 0, and from 0x8000.
inline constexpr Fill numbered{{0x10000, 0x10000, 0x10000, 0x10000}, 0x20002};
inline constexpr Fill numbered_source{{0x80018000, 0x80018000, 0x80018000, 0x80018000}, 0x20002};
inline constexpr Fill one_bf16{{0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80}, 0};
inline constexpr Fill two_bf16{{0x40004000, 0x40004000, 0x40004000, 0x40004000}, 0};
inline constexpr Fill one_f32{{0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000}, 0};
inline constexpr Fill two_f32{{0x40000000, 0x40000000, 0x40000000, 0x40000000}, 0};
// Sums that show rounding and subnormals: f32 1 + 1 (codes), 2^-126 - 2^-149, 1 + 2^-24 (a tie),
// 1 + 2^-23 and 2^-24 (a tie). bf16 and f16: the same idea in pairs.
inline constexpr Fill edges_f32{{0x1, 0x00800000, 0x3f800000, 0x3f800001}, 0};
inline constexpr Fill edges_f32_source{{0x1, 0x80000001, 0x33800000, 0x33800000}, 0};
inline constexpr Fill edges_bf16{{0x00800001, 0x3f813f80, 0x80010001, 0x7f7f4000}, 0};
inline constexpr Fill edges_bf16_source{{0x80010001, 0x3b803b80, 0x80000000, 0x7f7f4000}, 0};
inline constexpr Fill edges_f16{{0x04000001, 0x3c013c00, 0x80010001, 0x7bff4000}, 0};
inline constexpr Fill edges_f16_source{{0x80010001, 0x10001000, 0x80000000, 0x7bff4000}, 0};

inline constexpr atom::SmemSwizzle plain = atom::SmemSwizzle::none;
inline constexpr atom::SmemSwizzle sw32 = atom::SmemSwizzle::b32;
inline constexpr atom::SmemSwizzle sw64 = atom::SmemSwizzle::b64;
inline constexpr atom::SmemSwizzle sw128 = atom::SmemSwizzle::b128;
inline constexpr Probe all[] = {
    // Copy: type, columns, rows, pitch, box columns, box rows, swizzle, x, y, offset, fills
    {"load_ragged", Kind::load, 16, 1, {DType::bf16, 5, 3, 16, 8, 4, plain, 0, 0, 0, numbered}},
    {"load_odd_column", Kind::load, 16, 1, {DType::bf16, 9, 3, 16, 8, 4, plain, 3, 1, 0, numbered}},
    {"load_column_1", Kind::load, 16, 1, {DType::bf16, 16, 4, 16, 8, 4, plain, 1, 0, 0, numbered}},
    {"load_column_4", Kind::load, 16, 1, {DType::bf16, 16, 4, 16, 8, 4, plain, 4, 0, 0, numbered}},
    {"load_column_8", Kind::load, 16, 1, {DType::bf16, 13, 4, 16, 8, 4, plain, 8, 1, 0, numbered}},
    {"load_column_3_swizzled",
     Kind::load,
     64,
     4,
     {DType::bf16, 64, 8, 64, 64, 8, sw128, 3, 0, 0, numbered}},
    {"load_negative_column_8",
     Kind::load,
     32,
     1,
     {DType::bf16, 16, 4, 16, 16, 4, plain, -8, 0, 0, numbered}},
    {"load_negative_column",
     Kind::load,
     16,
     1,
     {DType::bf16, 16, 4, 16, 8, 4, plain, -3, 0, 0, numbered}},
    {"load_negative_row",
     Kind::load,
     16,
     1,
     {DType::bf16, 16, 4, 16, 8, 4, plain, 8, -2, 0, numbered}},
    {"load_outside", Kind::load, 16, 1, {DType::bf16, 16, 4, 16, 8, 4, plain, 32, 9, 0, numbered}},
    {"load_f32_ragged", Kind::load, 16, 1, {DType::f32, 6, 2, 8, 4, 4, plain, 4, 0, 0, numbered}},
    {"bulk_load",
     Kind::bulk_load,
     16,
     1,
     {DType::f32, 16, 1, 16, 12, 1, plain, 8, 0, 48, numbered}},
    {"load_f32_column_3", Kind::load, 16, 1, {DType::f32, 6, 2, 8, 4, 4, plain, 3, 0, 0, numbered}},
    {"load_swizzle_128",
     Kind::load,
     64,
     4,
     {DType::bf16, 64, 8, 64, 64, 8, sw128, 0, 0, 384, numbered}},
    {"load_swizzle_64",
     Kind::load,
     32,
     4,
     {DType::bf16, 32, 8, 32, 32, 8, sw64, 0, 0, 384, numbered}},
    {"load_swizzle_32",
     Kind::load,
     16,
     4,
     {DType::bf16, 16, 8, 16, 16, 8, sw32, 0, 0, 128, numbered}},
    {"load_narrow_in_128",
     Kind::load,
     32,
     4,
     {DType::bf16, 32, 4, 32, 32, 4, sw128, 0, 0, 0, numbered}},
    {"load_narrow_in_64",
     Kind::load,
     16,
     4,
     {DType::bf16, 16, 4, 16, 16, 4, sw64, 0, 0, 0, numbered}},
    {"store_ragged",
     Kind::store,
     16,
     1,
     {DType::bf16, 5, 2, 16, 16, 2, plain, 0, 0, 0, numbered, numbered_source}},
    {"store_ragged_second_box",
     Kind::store,
     16,
     1,
     {DType::bf16, 13, 2, 16, 8, 2, plain, 8, 0, 0, numbered, numbered_source}},
    {"store_ragged_unaligned_13",
     Kind::store,
     16,
     1,
     {DType::bf16, 13, 1, 32, 16, 1, plain, 6, 0, 0, numbered, numbered_source}},
    {"store_ragged_unaligned_15",
     Kind::store,
     16,
     1,
     {DType::bf16, 15, 1, 32, 16, 1, plain, 6, 0, 0, numbered, numbered_source}},
    {"store_odd_column",
     Kind::store,
     16,
     1,
     {DType::bf16, 32, 1, 32, 16, 1, plain, 3, 0, 0, numbered, numbered_source}},
    {"store_negative_column",
     Kind::store,
     16,
     1,
     {DType::bf16, 32, 1, 32, 16, 1, plain, -8, 0, 0, numbered, numbered_source}},
    {"store_negative_row",
     Kind::store,
     16,
     1,
     {DType::bf16, 16, 4, 16, 16, 2, plain, 0, -1, 0, numbered, numbered_source}},
    {"store_column_8",
     Kind::store,
     16,
     1,
     {DType::bf16, 19, 1, 32, 16, 1, plain, 8, 0, 0, numbered, numbered_source}},
    {"store_rows_outside",
     Kind::store,
     24,
     1,
     {DType::bf16, 16, 2, 16, 16, 3, plain, 0, 1, 0, numbered, numbered_source}},
    {"store_f32_ragged",
     Kind::store,
     16,
     1,
     {DType::f32, 5, 1, 16, 8, 1, plain, 0, 0, 0, numbered, numbered_source}},
    {"store_f32_unaligned",
     Kind::store,
     16,
     1,
     {DType::f32, 7, 1, 16, 8, 1, plain, 2, 0, 0, numbered, numbered_source}},
    {"store_swizzled_ragged",
     Kind::store,
     32,
     1,
     {DType::bf16, 21, 2, 32, 32, 2, sw64, 0, 0, 0, numbered, numbered_source}},
    {"reduce_ragged",
     Kind::reduce_add,
     16,
     1,
     {DType::bf16, 5, 2, 16, 16, 2, plain, 0, 0, 0, one_bf16, two_bf16}},
    {"reduce_ragged_second_box",
     Kind::reduce_add,
     16,
     1,
     {DType::bf16, 13, 2, 16, 8, 2, plain, 8, 0, 0, one_bf16, two_bf16}},
    {"reduce_f32_ragged_aligned",
     Kind::reduce_add,
     16,
     1,
     {DType::f32, 7, 1, 16, 8, 1, plain, 4, 0, 0, one_f32, two_f32}},
    {"reduce_ragged_unaligned",
     Kind::reduce_add,
     16,
     1,
     {DType::bf16, 13, 1, 32, 16, 1, plain, 6, 0, 0, one_bf16, two_bf16}},
    {"reduce_f32_ragged",
     Kind::reduce_add,
     16,
     1,
     {DType::f32, 7, 1, 16, 8, 1, plain, 2, 0, 0, one_f32, two_f32}},
    {"reduce_f32_edges",
     Kind::reduce_add,
     4,
     1,
     {DType::f32, 4, 1, 4, 4, 1, plain, 0, 0, 0, edges_f32, edges_f32_source}},
    {"reduce_bf16_edges",
     Kind::reduce_add,
     4,
     1,
     {DType::bf16, 8, 1, 8, 8, 1, plain, 0, 0, 0, edges_bf16, edges_bf16_source}},
    {"reduce_f16_edges",
     Kind::reduce_add,
     4,
     1,
     {DType::f16, 8, 1, 8, 8, 1, plain, 0, 0, 0, edges_f16, edges_f16_source}},
    {"early_bytes",
     Kind::early_bytes,
     4,
     1,
     {DType::bf16, 8, 1, 8, 8, 1, plain, 0, 0, 0, numbered}},
    {"parity", Kind::parity, 6},
    {"short_count", Kind::short_count, 8, 1, {}, false, "B5"},
    {"elect", Kind::elect, 32},
    {"cluster_address", Kind::cluster_address, 4},
    {"draw", Kind::draw, 8},
    {"store_async", Kind::store_async, 16},
    {"load_matrix", Kind::load_matrix, 128},
    {"store_matrix", Kind::store_matrix, 128},
    {"wgmma_accumulator", Kind::wgmma_accumulator, 256},
    {"wgmma_registers", Kind::wgmma_registers, 384},
    {"wgmma_steps_128", Kind::wgmma_steps, 128, 1, {.swizzle = sw128}},
    {"wgmma_steps_64", Kind::wgmma_steps, 128, 1, {.swizzle = sw64}},
    {"wgmma_steps_32", Kind::wgmma_steps, 128, 1, {.swizzle = sw32}},
    {"wgmma_subnormals", Kind::wgmma_subnormals, 8},
    {"wgmma_rounding", Kind::wgmma_rounding, 8, 1, {}, true},
    {"wgmma_rounding_f16", Kind::wgmma_rounding_f16, 8, 1, {}, true},
    {"wgmma_rounding_e4m3", Kind::wgmma_rounding_e4m3, 8},
    {"wgmma_rounding_e5m2", Kind::wgmma_rounding_e5m2, 8},
    {"half_warps", Kind::half_warps, 2, 1, {}, false, "W3"},
    {"whole_warps", Kind::whole_warps, 2},
    {"two_sync_warps", Kind::two_sync_warps, 32},
    {"prefetch_outside", Kind::prefetch_outside, 1, 1, {}, false, "M3"},
};

/// CTAs of a probe's one cluster.
constexpr int cluster_size(const Probe& p) {
  return p.kind == Kind::cluster_address || p.kind == Kind::store_async ? 2 : 1;
}

// --- bodies --------------------------------------------------------------------------------------

inline constexpr std::uint32_t second_operand = 8192;
inline constexpr std::uint32_t barrier_offset = shared_bytes - 64;

/// Every thread's share of shared memory below `second_operand`, then ready for either proxy.
WW_DEVICE void fill_shared(const Fill& fill) {
  const isa::SharedView<std::uint32_t> shared{isa::shared_base()};
  for (int i = isa::thread_index(); i < static_cast<int>(second_operand) / 4; i += threads) {
    shared.store(i, word_of(fill, i));
  }
  isa::fence_proxy_async_shared();
  isa::sync_threads(threads);
}

WW_DEVICE int box_bytes(const Copy& c) {
  return c.box_columns * c.box_rows * (c.type == DType::f32 ? 4 : 2);
}

WW_DEVICE void load(const Input& in) {
  const isa::SharedAddress to = isa::shared_base() + static_cast<std::uint32_t>(in.copy.offset);
  const isa::SharedAddress barrier = isa::shared_base() + barrier_offset;
  if (isa::thread_index() == 0) isa::mbarrier_init(barrier, 1);
  fill_shared({{0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee, 0xeeeeeeee}});
  if (isa::thread_index() == 0) {
    // Completes only if the copy counts exactly the full box.
    isa::mbarrier_arrive_expect(barrier, box_bytes(in.copy));
    if (in.kind == Kind::bulk_load) {  // as many bytes, without the map
      isa::bulk_load(to, in.tensor + in.copy.x, box_bytes(in.copy), barrier);
    } else {
      isa::tensor_load(to, in.map, barrier, isa::Coords{in.copy.x, in.copy.y});
    }
  }
  isa::mbarrier_wait<isa::Scope::cta>(barrier, 0);
  const isa::SharedView<std::uint32_t> shared{to};
  for (int i = isa::thread_index(); i < in.words; i += threads) {
    isa::GlobalView<std::uint32_t>{in.out}.store(i, shared.load(i * in.stride));
  }
}

template <bool Reduce>
WW_DEVICE void store(const Input& in) {
  fill_shared(in.copy.source);
  if (isa::thread_index() != 0) return;
  const isa::SharedAddress from = isa::shared_base() + static_cast<std::uint32_t>(in.copy.offset);
  if constexpr (Reduce) {
    isa::tensor_reduce_add(in.map, from, isa::Coords{in.copy.x, in.copy.y});
  } else {
    isa::tensor_store(in.map, from, isa::Coords{in.copy.x, in.copy.y});
  }
  isa::bulk_commit();
  isa::bulk_wait<0>();
}

/// A load lands before anybody expects its bytes: the phase stays open, and passes once they are.
WW_DEVICE void early_bytes(const Input& in) {
  const isa::SharedAddress base = isa::shared_base();
  const isa::SharedAddress early = base + barrier_offset;
  const isa::SharedAddress other = early + 8;
  if (isa::thread_index() != 0) return;
  const isa::GlobalView<std::uint32_t> out{in.out};
  isa::mbarrier_init(early, 1);
  isa::mbarrier_init(other, 1);
  isa::fence_proxy_async_shared();
  isa::tensor_load(base, in.map, early, isa::Coords{0, 0});
  for (int i = 0; i < 20; ++i) {  // time enough
    isa::mbarrier_arrive_expect(other, box_bytes(in.copy));
    isa::tensor_load(base + 1024, in.map, other, isa::Coords{0, 0});
    isa::mbarrier_wait<isa::Scope::cta>(other, i & 1);
  }
  out.store(0, isa::mbarrier_test_wait<isa::Scope::cta>(early, 0) ? 1U : 0U);
  isa::mbarrier_arrive_expect(early, box_bytes(in.copy));
  isa::mbarrier_wait<isa::Scope::cta>(early, 0);
  out.store(1, isa::mbarrier_test_wait<isa::Scope::cta>(early, 0) ? 1U : 0U);
  out.store(2, isa::mbarrier_test_wait<isa::Scope::cta>(early, 1) ? 1U : 0U);
  out.store(3, isa::SharedView<std::uint32_t>{base}.load(0));
}

/// What waits by either parity answer on a fresh barrier, after one phase and after two.
WW_DEVICE void parity(const Input& in) {
  if (isa::thread_index() != 0) return;
  const isa::SharedAddress barrier = isa::shared_base() + barrier_offset;
  isa::mbarrier_init(barrier, 1);
  for (int phase = 0; phase < 3; ++phase) {
    if (phase > 0) isa::mbarrier_arrive<isa::Scope::cta>(barrier);
    for (int p = 0; p < 2; ++p) {
      const bool done = isa::mbarrier_test_wait<isa::Scope::cta>(barrier, p);
      isa::GlobalView<std::uint32_t>{in.out}.store(2 * phase + p, done ? 1U : 0U);
    }
  }
}

/// Four threads arrive, in any order, on a barrier that counts three: one of them counts in the
/// next phase, which two more complete. What waits by either parity answer behind each.
WW_DEVICE void short_count(const Input& in) {
  const isa::SharedAddress barrier = isa::shared_base() + barrier_offset;
  if (isa::thread_index() == 0) isa::mbarrier_init(barrier, 3);
  isa::sync_threads(threads);
  if (isa::lane_index() == 0) isa::mbarrier_arrive<isa::Scope::cta>(barrier);
  isa::sync_threads(threads);
  if (isa::thread_index() != 0) return;
  for (int more = 0; more < 4; ++more) {
    if (more > 0) isa::mbarrier_arrive<isa::Scope::cta>(barrier);
    for (int p = 0; p < 2; ++p) {
      const bool done = isa::mbarrier_test_wait<isa::Scope::cta>(barrier, p);
      isa::GlobalView<std::uint32_t>{in.out}.store(2 * more + p, done ? 1U : 0U);
    }
  }
}

/// Among four warps, the last of them late, how many left a barrier before it had come, and how
/// many warps they saw at most. With `halves` half of each warp comes, to a barrier for 32 threads,
/// which is legal only for whole warps: as lanes two halves would fill it, as warps each does.
template <bool halves>
WW_DEVICE void count_at_barrier(const Input& in) {
  const isa::SharedView<std::uint32_t> came{isa::shared_base()};
  const isa::SharedView<std::uint32_t> saw{isa::shared_base() + 64};
  const int warp = isa::warp_index();
  const bool first = isa::lane_index() == 0;
  if (first) came.store(warp, 0);
  isa::sync_threads(threads);
  if (warp == 3 && first) {
    std::uint32_t read = 0;
    WW_NO_UNROLL for (int i = 0; i < (halves ? 20000 : 200); ++i) read |= came.load(3);
    if (read != 0) came.store(3, 2);  // never: it is this lane's own word
  }
  if (halves && warp != 3) {
    if (first) came.store(warp, 1);
    isa::named_barrier_sync(2, 96);
  }
  if (first) came.store(warp, 1);
  isa::sync_warp();
  if constexpr (halves) {
    if (isa::lane_index() < 16) isa::named_barrier_sync(1, 32);
    isa::sync_warp();
  } else {
    isa::named_barrier_sync(1, threads);
  }
  if (first) {
    std::uint32_t seen = 0;
    for (int i = 0; i < 4; ++i) seen += came.load(i);
    saw.store(warp, seen);
  }
  isa::sync_threads(threads);
  if (isa::thread_index() != 0) return;
  std::uint32_t early = 0, most = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t seen = saw.load(i);
    early += seen < 4 ? 1U : 0U;
    most = seen > most ? seen : most;
  }
  const isa::GlobalView<std::uint32_t> out{in.out};
  out.store(0, early);
  out.store(1, most);
}

/// The lanes of a warp meet at two syncwarps, as they may from sm_70 on: what one half has written
/// the other reads.
WW_DEVICE void two_sync_warps(const Input& in) {
  if (isa::warp_index() != 0) return;
  const int lane = isa::lane_index();
  const isa::SharedView<std::uint32_t> words{isa::shared_base()};
  words.store(lane, static_cast<std::uint32_t>(lane) + 100);
  if (lane < 16) {
    isa::sync_warp();
  } else {
    isa::sync_warp();
  }
  isa::GlobalView<std::uint32_t>{in.out}.store(lane, words.load(lane ^ 16));
}

/// A prefetch far behind every tensor is a hint that nothing follows from.
WW_DEVICE void prefetch_outside(const Input& in) {
  if (isa::thread_index() != 0) return;
  isa::bulk_prefetch(in.tensor + (std::int64_t{1} << 34), 1024);
  isa::GlobalView<std::uint32_t>{in.out}.store(0, 1);
}

WW_DEVICE void elect(const Input& in) {
  if (isa::warp_index() != 0) return;
  const bool mine = isa::elect_one();
  isa::GlobalView<std::uint32_t>{in.out}.store(isa::lane_index(), mine ? 1U : 0U);
}

/// Numbers up to 2, from 0 on and from beyond; then the word that is left.
WW_DEVICE void draw(const Input& in) {
  const isa::Prerequisites ready = isa::wait_for_prerequisites();
  if (isa::thread_index() != 0) return;
  const isa::GlobalView<std::uint32_t> out{in.out};
  std::uint32_t* const counter = in.out + 7;
  out.store(7, 0);
  for (int i = 0; i < 5; ++i) out.store(i, isa::draw(counter, 2, ready));
  out.store(7, 9);
  for (int i = 5; i < 7; ++i) out.store(i, isa::draw(counter, 2, ready));
}

/// 16 bytes to the peer of a cluster and 16 to the own CTA, each with a barrier that waits for as
/// many.
WW_DEVICE void store_async(const Input& in) {
  const isa::SharedAddress base = isa::shared_base();
  const int rank = isa::cluster_rank();
  if (isa::thread_index() == 0) {
    for (const isa::SharedAddress barrier : {base, base + 8}) isa::mbarrier_init(barrier, 1);
    isa::fence_mbarrier_init();
  }
  isa::cluster_arrive();
  isa::cluster_wait();
  if (isa::thread_index() != 0) return;
  for (int i = 0; i < 2; ++i) {
    const auto offset = static_cast<isa::SharedAddress>(i);
    const int to = i == 0 ? 1 - rank : rank;
    const auto word = static_cast<std::uint32_t>(16 * rank + 4 * i);
    isa::mbarrier_arrive_expect(base + 8 * offset, 16);
    isa::store_async(isa::map_rank(base + 16 + 16 * offset, to),
                     {{word, word + 1, word + 2, word + 3}}, isa::map_rank(base + 8 * offset, to));
  }
  for (int i = 0; i < 2; ++i) {
    isa::mbarrier_wait<isa::Scope::cta>(base + 8 * static_cast<isa::SharedAddress>(i), 0);
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t word = isa::SharedView<std::uint32_t>{base + 16}.load(4 * i + w);
      isa::GlobalView<std::uint32_t>{in.out}.store(8 * rank + 4 * i + w, word);
    }
  }
}

WW_DEVICE void cluster_address(const Input& in) {
  const int rank = isa::cluster_rank();
  if (isa::thread_index() == 0) {
    const isa::GlobalView<std::uint32_t> out{in.out};
    out.store(2 * rank, isa::shared_base());
    out.store(2 * rank + 1, isa::map_rank(isa::shared_base() + 64, 1 - rank));
  }
  isa::cluster_arrive();
  isa::cluster_wait();
}

/// Halves of two 8 x 8 matrices, numbered in memory; which lane gets which.
template <bool Transpose>
WW_DEVICE void load_matrices(const Input& in, int at) {
  const int lane = isa::lane_index();
  std::uint32_t got[2] = {};
  isa::load_matrix<2, Transpose>(isa::shared_base() + static_cast<std::uint32_t>(lane % 16 * 16),
                                 got);
  for (int j = 0; j < 2; ++j) {
    isa::GlobalView<std::uint32_t>{in.out}.store(at + 32 * j + lane, got[j]);
  }
}

/// The other way: halves numbered by matrix, lane and half; where in memory each comes to lie.
template <bool Transpose>
WW_DEVICE void store_matrices(const Input& in, int at) {
  const int lane = isa::lane_index();
  const auto first = static_cast<std::uint32_t>(2 * lane);
  const std::uint32_t from[2] = {first | (first + 1) << 16, (first + 64) | (first + 65) << 16};
  const isa::SharedAddress base = isa::shared_base() + (Transpose ? 512 : 0);
  isa::store_matrix<2, Transpose>(base + static_cast<std::uint32_t>(lane % 16 * 16), from);
  isa::sync_warp();
  for (int i = lane; i < 64; i += 32) {
    isa::GlobalView<std::uint32_t>{in.out}.store(at + i,
                                                 isa::SharedView<std::uint32_t>{base}.load(i));
  }
}

// An operand whose element (row, k) is value(row, k), written by all threads.
template <atom::OperandTile tile, class Value>
WW_DEVICE void write_operand(isa::SharedAddress base, const Value& value) {
  for (int i = isa::thread_index(); i < tile.rows * tile.depth; i += threads) {
    const int row = i / tile.depth;
    const int k = i % tile.depth;
    const isa::SharedAddress at =
        atom::apply_swizzle(tile.swizzle, base + atom::tile_offset<tile>(row, k));
    const std::uint32_t code = isa::pack<DType::bf16>(value(row, k), 0);
    isa::SharedView<std::uint16_t>{at}.store(0, static_cast<std::uint16_t>(code));
  }
}

WW_DEVICE void operands_written() {
  isa::fence_proxy_async_shared();
  isa::sync_threads(threads);
}

inline constexpr atom::Major k_major = atom::Major::k;

/// D(i, j) = 8 i + j: which thread and register hold it. Two values a word.
WW_DEVICE void wgmma_accumulator(const Input& in) {
  constexpr atom::OperandTile a{64, 16, 16, k_major, plain};
  constexpr atom::OperandTile b{8, 16, 16, k_major, plain};
  const isa::SharedAddress base = isa::shared_base();
  write_operand<a>(
      base, [](int i, int k) { return k == 0 ? static_cast<float>(i) : (k == 1 ? 1.0F : 0.0F); });
  write_operand<b>(base + second_operand, [](int j, int k) {
    return k == 0 ? 8.0F : (k == 1 ? static_cast<float>(j) : 0.0F);
  });
  operands_written();
  isa::Fragment<float, 4> d;
  isa::wgmma_fence(d);
  isa::wgmma<DType::bf16, 8>(d, atom::encode(atom::descriptor(a, base)),
                             atom::encode(atom::descriptor(b, base + second_operand)), false);
  isa::wgmma_commit();
  isa::wgmma_wait<0>(d);
  for (int r = 0; r < 4; r += 2) {
    const auto low = static_cast<std::uint32_t>(d[r]);
    const auto high = static_cast<std::uint32_t>(d[r + 1]);
    isa::GlobalView<std::uint32_t>{in.out}.store(2 * isa::thread_index() + r / 2, low | high << 16);
  }
}

/// D = A of registers times the identity: which lane's register half is A(i, k), then which warp's.
WW_DEVICE void wgmma_registers(const Input& in) {
  constexpr atom::OperandTile b{16, 16, 16, k_major, plain};
  const isa::SharedAddress base = isa::shared_base();
  write_operand<b>(base, [](int j, int k) { return j == k ? 1.0F : 0.0F; });
  operands_written();
  const std::uint64_t descriptor = atom::encode(atom::descriptor(b, base));
  const isa::GlobalView<std::uint32_t> out{in.out};
  const int t = isa::thread_index();
  for (int pass = 0; pass < 2; ++pass) {
    isa::Fragment<std::uint32_t, 4> a;
    for (int r = 0; r < 4; ++r) {
      const int low = pass == 0 ? t % 32 * 8 + 2 * r : t / 32;
      const int high = pass == 0 ? low + 1 : low;
      a[r] = isa::pack<DType::bf16>(static_cast<float>(low), static_cast<float>(high));
    }
    isa::Fragment<float, 8> d;
    isa::wgmma_fence(d, a);
    isa::wgmma_registers<DType::bf16, 16>(d, a, descriptor, false);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(d, a);
    std::uint32_t packed[2] = {};
    std::uint32_t warps = 0;
    WW_UNROLL for (int v = 0; v < 8; ++v) {
      const auto value = static_cast<std::uint32_t>(d[v]);
      packed[v / 4] |= value << (v % 4 * 8);
      warps |= value << (v * 2);
    }
    if (pass == 0) {
      out.store(3 * t, packed[0]);
      out.store(3 * t + 1, packed[1]);
    } else {
      out.store(3 * t + 2, warps);
    }
  }
}

/// The K-steps of a swizzled tile by moving the descriptor's start inside the swizzle's span:
/// D(i, j) of step s is i + 16 s + 2 j. Register 0 of four steps a word.
template <atom::SmemSwizzle swizzle>
WW_DEVICE void wgmma_steps(const Input& in) {
  constexpr atom::OperandTile a{64, 64, 16, k_major, swizzle};
  constexpr atom::OperandTile b{8, 64, 16, k_major, swizzle};
  const isa::SharedAddress base = isa::shared_base();
  write_operand<a>(base, [](int i, int k) { return static_cast<float>(i + k); });
  write_operand<b>(base + second_operand,
                   [](int j, int k) { return k % 16 == 2 * j ? 1.0F : 0.0F; });
  operands_written();
  std::uint32_t packed = 0;
  WW_NO_UNROLL for (int s = 0; s < 4; ++s) {
    isa::Fragment<float, 4> d;
    // Unrolled, and with registers that nothing set, ptxas 13.0 serialises the wgmmas (C7511) and
    // step 0 shows the result of step 1.
    for (int i = 0; i < 4; ++i) d[i] = 0;
    isa::wgmma_fence(d);
    isa::wgmma<DType::bf16, 8>(
        d, atom::advance(atom::encode(atom::descriptor(a, base)), atom::k_block_offset<a>(s)),
        atom::advance(atom::encode(atom::descriptor(b, base + second_operand)),
                      atom::k_block_offset<b>(s)),
        false);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(d);
    packed |= static_cast<std::uint32_t>(d[0]) << (8 * s);
  }
  isa::GlobalView<std::uint32_t>{in.out}.store(isa::thread_index(), packed);
}

// D(0, 0..7) of ones (64 x 16 or 32) times B, whose codes are codes(j, k): its bits go out.
template <DType T, class Codes>
WW_DEVICE void wgmma_sums(const Input& in, std::uint32_t one, const Codes& codes) {
  constexpr int bits = numeric::bits(T);
  constexpr atom::OperandTile a{64, 256 / bits, bits, k_major, plain};
  constexpr atom::OperandTile b{8, 256 / bits, bits, k_major, plain};
  const isa::SharedAddress base = isa::shared_base();
  constexpr int per_word = 32 / bits;
  for (int i = isa::thread_index(); i < 64 * 8; i += threads) {
    const int k = i % 8 * per_word;
    const std::uint32_t at = base + atom::tile_offset<a>(i / 8, k);
    isa::SharedView<std::uint32_t>{at}.store(0, one);
    if (i >= 64) continue;
    std::uint32_t word = 0;
    for (int e = 0; e < per_word; ++e) word |= codes(i / 8, k + e) << (e * bits);
    isa::SharedView<std::uint32_t>{base + second_operand + atom::tile_offset<b>(i / 8, k)}.store(
        0, word);
  }
  operands_written();
  isa::Fragment<float, 4> d;
  isa::wgmma_fence(d);
  isa::wgmma<T, 8>(d, atom::encode(atom::descriptor(a, base)),
                   atom::encode(atom::descriptor(b, base + second_operand)), false);
  isa::wgmma_commit();
  isa::wgmma_wait<0>(d);
  const int t = isa::thread_index();
  if (t >= 4) return;
  isa::GlobalView<std::uint32_t>{in.out}.store(2 * t, isa::float_bits(d[0]));
  isa::GlobalView<std::uint32_t>{in.out}.store(2 * t + 1, isa::float_bits(d[1]));
}

/// bf16: the smallest and the largest subnormal by themselves, 2^-126 - 2^-127, sixteen times the
/// smallest, -0 by itself, its negative, 2^-126 - 2^-133, and nothing.
WW_DEVICE std::uint32_t subnormal_code(int j, int k) {
  if (j == 3) return 0x0001;
  if (k == 0) {
    constexpr std::uint32_t first[] = {0x0001, 0x007f, 0x0080, 0, 0x8000, 0x8001, 0x0080, 0};
    return first[j];
  }
  if (k == 1) return j == 2 ? 0x8040U : (j == 6 ? 0x8001U : 0U);
  return 0;
}

/// bf16: 2^24 with 1 to 5 ones beside it, 2^24 and four halves, 2^24 and eight quarters, and
/// -2^24 with three times -1.
WW_DEVICE std::uint32_t rounding_code(int j, int k) {
  if (k == 0) return j == 7 ? 0xcb80 : 0x4b80;
  if (j < 5) return k <= j + 1 ? 0x3f80 : 0;
  if (j == 5) return k <= 4 ? 0x3f00 : 0;
  if (j == 6) return k <= 8 ? 0x3e80 : 0;
  return k <= 3 ? 0xbf80 : 0;
}

/// e4m3: 256 + 2^(1 - j).
WW_DEVICE std::uint32_t rounding_code_e4m3(int j, int k) {
  constexpr std::uint32_t small[] = {0x40, 0x38, 0x30, 0x28, 0x20, 0x18, 0x10, 0x08};
  return k == 0 ? 0x78 : (k == 1 ? small[j] : 0);
}

/// e5m2: the same.
WW_DEVICE std::uint32_t rounding_code_e5m2(int j, int k) {
  return k == 0 ? 0x5c : (k == 1 ? static_cast<std::uint32_t>(16 - j) << 2 : 0);
}

/// f16: 2^15 with 1 to 6 times 2^-9 beside it, and 2^15 with eight times 2^-10 or 2^-11.
WW_DEVICE std::uint32_t rounding_code_f16(int j, int k) {
  if (k == 0) return 0x7800;
  if (j < 6) return k <= j + 1 ? 0x1800 : 0;
  return k <= 8 ? (j == 6 ? 0x1400U : 0x1000U) : 0;
}

/// The kernel: what one thread does.
WW_DEVICE void body(const Input& in) {
  switch (in.kind) {
    case Kind::load:
    case Kind::bulk_load:
      return load(in);
    case Kind::store:
      return store<false>(in);
    case Kind::reduce_add:
      return store<true>(in);
    case Kind::early_bytes:
      return early_bytes(in);
    case Kind::parity:
      return parity(in);
    case Kind::short_count:
      return short_count(in);
    case Kind::elect:
      return elect(in);
    case Kind::cluster_address:
      return cluster_address(in);
    case Kind::draw:
      return draw(in);
    case Kind::store_async:
      return store_async(in);
    case Kind::load_matrix: {
      constexpr Fill halves = numbered;
      fill_shared(halves);
      if (isa::warp_index() != 0) return;
      load_matrices<false>(in, 0);
      return load_matrices<true>(in, 64);
    }
    case Kind::store_matrix:
      if (isa::warp_index() != 0) return;
      store_matrices<false>(in, 0);
      return store_matrices<true>(in, 64);
    case Kind::wgmma_accumulator:
      return wgmma_accumulator(in);
    case Kind::wgmma_registers:
      return wgmma_registers(in);
    case Kind::wgmma_steps:
      return in.copy.swizzle == sw128  ? wgmma_steps<sw128>(in)
             : in.copy.swizzle == sw64 ? wgmma_steps<sw64>(in)
                                       : wgmma_steps<sw32>(in);
    case Kind::wgmma_subnormals:
      return wgmma_sums<DType::bf16>(in, 0x3f803f80,
                                     [](int j, int k) { return subnormal_code(j, k); });
    case Kind::wgmma_rounding:
      return wgmma_sums<DType::bf16>(in, 0x3f803f80,
                                     [](int j, int k) { return rounding_code(j, k); });
    case Kind::wgmma_rounding_f16:
      return wgmma_sums<DType::f16>(in, 0x3c003c00,
                                    [](int j, int k) { return rounding_code_f16(j, k); });
    case Kind::wgmma_rounding_e5m2:
      return wgmma_sums<DType::e5m2>(in, 0x3c3c3c3c,
                                     [](int j, int k) { return rounding_code_e5m2(j, k); });
    case Kind::half_warps:
      return count_at_barrier<true>(in);
    case Kind::whole_warps:
      return count_at_barrier<false>(in);
    case Kind::two_sync_warps:
      return two_sync_warps(in);
    case Kind::prefetch_outside:
      return prefetch_outside(in);
    case Kind::wgmma_rounding_e4m3:
      return wgmma_sums<DType::e4m3>(in, 0x38383838,
                                     [](int j, int k) { return rounding_code_e4m3(j, k); });
  }
}

/// Whether the answer is what a copy left of the tensor.
constexpr bool answers_in_tensor(Kind kind) {
  return kind == Kind::store || kind == Kind::reduce_add;
}

/// Word i of the tensor before the probe.
inline std::uint32_t tensor_word(const Probe& p, int i) {
  return p.copy.tensor.first[i % 4] + static_cast<std::uint32_t>(i) * p.copy.tensor.step;
}

}  // namespace warpwright::probes
