// Lesson 11: MMAs of two CTAs.
//
// Seed 000's second main loop (CuTe's example 4), with its single buffer and without roles. A
// cluster of 2 x 2 CTAs is two pairs; each pair multiplies 256 x 128 x 64. A CTA has half of A's
// rows, half of B's, and half of D's rows in its tensor memory. The even CTA leads: only it
// expects the bytes of both, waits for them and issues the MMAs; its commit tells all four CTAs.
#pragma once

#include <warpwright/atom/cluster.h>
#include <warpwright/atom/umma.h>
#include <warpwright/isa/tcgen05.h>
#include <warpwright/isa/tcgen05_memory.h>

#include "lessons/lesson.h"

namespace lessons::pair_umma {

constexpr atom::ClusterShape cluster{2, 2};
constexpr int k_tiles = 3, columns = 128, threads = 128;
constexpr atom::OperandTile tile_a{128, 64, 16, atom::Major::k, atom::SmemSwizzle::b128};
constexpr int bytes_a = atom::tile_bytes(tile_a), bytes_b = tile_bytes;
constexpr int at_barriers = bytes_a + bytes_b;

struct Params {
  isa::TensorMap a;  // 256 x 192 bf16, boxes of 64 rows
  isa::TensorMap b;  // 256 x 192
  float* d;          // 256 x 256
};

template <bool Broken, bool Meets = true>
WW_DEVICE void kernel(const Params& p) {
  isa::set_role("CTA");
  const SharedAddress base = isa::shared_base();
  const SharedAddress tma_bar = base + at_barriers, mma_bar = tma_bar + 8, word = mma_bar + 8;
  const int rank = isa::cluster_rank();
  const atom::ClusterCoord at = atom::coord_of(cluster, rank);
  const atom::Masks masks = atom::masks(cluster, rank, true);
  const bool leads = atom::is_pair_leader(rank), one = isa::thread_index() == 0;
  if (one) {
    isa::mbarrier_init(tma_bar, 1, {"tma_bar"}, "the even CTA's thread");
    isa::mbarrier_init(mma_bar, masks.arrivals, {"mma_bar"}, "commits of the pairs that share");
    isa::fence_mbarrier_init();
  }
  isa::cluster_arrive_relaxed();
  isa::cluster_wait();
  if (isa::warp_index() == 0) isa::tcgen05_allocate<2>(word, columns);
  isa::sync_threads(threads);
  const isa::TmemAddress sums = isa::SharedView<std::uint32_t>{word}.load();

  constexpr std::uint32_t instruction = atom::encode_instruction(
      atom::umma_atom(DType::bf16, DType::bf16, DType::f32, 256, columns, true));
  int parity = 0;
  for (int k = 0; k < k_tiles; ++k, parity ^= 1) {
    const isa::Mark mark("k_tile %", k);
    if (one) {
      // The bytes of both CTAs arrive at the leader. The broken one expects its own.
      if (leads) isa::mbarrier_arrive_expect(tma_bar, (Broken ? 1 : 2) * (bytes_a + bytes_b));
      const SharedAddress signal = atom::pair_leader_address(tma_bar);
      // A half of this CTA's rows of A for itself and the CTA beside it, and its share of B.
      isa::tensor_load_multicast<2>(base + at.y * (bytes_a / 2), p.a, signal, masks.a,
                                    Coords{64 * k, 128 * at.x + 64 * at.y});
      isa::tensor_load<2>(base + bytes_a, p.b, signal, Coords{64 * k, columns * at.y + 64 * at.x});
    }
    if (one && leads) {
      isa::mbarrier_wait<Scope::cta>(tma_bar, parity, {"tma_bar"});
      isa::tcgen05_fence_after_sync();
      constexpr atom::OperandTile of_a = tile_a, of_b = tile64;
      const std::uint64_t a = atom::encode_umma(atom::descriptor(of_a, base));
      const std::uint64_t b = atom::encode_umma(atom::descriptor(of_b, base + bytes_a));
      for (int k_block = 0; k_block < 4; ++k_block) {
        isa::tcgen05_mma<atom::UmmaKind::f16, 2>(sums, atom::advance(a, 32U * k_block),
                                                 atom::advance(b, 32U * k_block), instruction,
                                                 k > 0 || k_block > 0);
      }
      isa::tcgen05_commit_multicast<2>(mma_bar, masks.commit);
    }
    isa::mbarrier_wait<Scope::cta>(mma_bar, parity, {"mma_bar"});  // all wait, as there
    // There nothing follows. Then whoever is late may miss two phases, and waits for ever (B5).
    if constexpr (Meets) isa::sync_threads(threads);
  }

  isa::tcgen05_fence_after_sync();
  isa::Fragment<float, 32> values;
  const int row = 128 * at.x + isa::thread_index();
  for (int c = 0; c < columns; c += 32) {
    isa::tcgen05_load(values, sums + atom::tmem_address(32 * isa::warp_index(), c));
    isa::tcgen05_wait_load(values);
    for (int i = 0; i < 32; ++i) {
      isa::GlobalView<float>{p.d}.store(row * 256 + columns * at.y + c + i, values[i]);
    }
  }
  isa::cluster_arrive();
  isa::cluster_wait();
  if (isa::warp_index() == 0) isa::tcgen05_deallocate<2>(sums, columns);
}

template <bool Meets = true>
testing::Outcome run(const Ask& ask) {
  Product<bf16_t> product(256, 256, 64 * k_tiles);
  const Params p{product.map_a(64), product.map_b(64), product.d.data()};
  return product.run(
      [&] {
        if (ask.broken) return kernel<true>(p);
        kernel<false, Meets>(p);
      },
      {.ctas = 4, .cluster_size = 4, .threads = threads, .shared_bytes = at_barriers + 32}, ask);
}

inline constexpr Lesson lesson{
    .number = 11,
    .name = "pair_umma",
    .title = "MMAs of a pair of CTAs",
    .question = "How many bytes does the even CTA's barrier expect for a k_tile?",
    .answer = "Those of both CTAs: 2 x (16384 of A + 8192 of B). The odd CTA's expects none.",
    .broken = "the even CTA expects the bytes of its own loads",
    .finding = Check::transaction_bytes,
    .line = "mbarrier_arrive_expect(tma_bar",
    .pages = "seed 000, deck 33 and 34",
    .picture = Picture::barriers,
    .run = run<>,
};

}  // namespace lessons::pair_umma
