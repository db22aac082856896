// A study of a public kernel for Blackwell, version 7 of gau-nernst/learn-cuda, 02e_matmul_sm100
// (github.com/gau-nernst/learn-cuda; the author's text: gau-nernst.github.io/tcgen05). Its
// structure in the words of isa/, written anew: D = A * B^T in bf16, MMAs of one CTA or of a pair,
// persistent, two accumulators in tensor memory so that a tile's epilogue hides behind the next
// tile's MMAs.
//
//   warps 0-3   epilogue: tensor memory -> registers -> D, 32 rows a warp
//   warp 4      one thread loads k_tiles of A (128 x 64) and of its CTA's share of B into a ring
//   warp 5      allocates tensor memory; in the even CTA one thread issues the MMAs of both
//
//   barrier       copies  arrivals a phase                         waits     arrives
//   full[s]       stages  1 a CTA (+ the bytes of all), in the     5         4 of each CTA, copies
//                         even CTA
//   empty[s]      stages  1                                        4         commit, in each CTA
//   acc_full[a]   2       1                                        0         commit, in each CTA
//   acc_empty[a]  2       128 a CTA, in the even CTA               5         all of warps 0-3
//   named 1       1       128, once a tile                         0-3       0-3
//   cluster       1       all threads at the begin; at the end     all; 0-3  the same
//                         those of warps 0-3
#pragma once

#include <cstdint>

#include <warpwright/atom/cluster.h>
#include <warpwright/atom/descriptor.h>
#include <warpwright/atom/umma.h>
#include <warpwright/isa/barrier.h>
#include <warpwright/isa/fence.h>
#include <warpwright/isa/mbarrier.h>
#include <warpwright/isa/memory.h>
#include <warpwright/isa/numeric.h>
#include <warpwright/isa/tcgen05.h>
#include <warpwright/isa/tcgen05_memory.h>
#include <warpwright/isa/thread.h>
#include <warpwright/isa/tma.h>
#include <warpwright/isa/warp.h>

namespace study::pairs {

namespace atom = warpwright::atom;
namespace isa = warpwright::isa;
using isa::Scope;
using isa::SharedAddress;
using isa::TmemAddress;
using warpwright::DType;

/// Operands: boxes of 128 x 64 (A) and of a CTA's share of B's rows x 64, 128-byte swizzled. D lies
/// by rows, each a multiple of 16 bytes.
struct Params {
  isa::TensorMap a;
  isa::TensorMap b;
  std::uint16_t* d = nullptr;
  int m = 0;  ///< a multiple of 256
  int n = 0;  ///< a multiple of the tile's columns
  int k = 0;  ///< a multiple of 64, at least 64
};

/// What is compiled: columns of a tile, stages of the ring, CTAs of an MMA (1 or 2), which are the
/// cluster.
struct Shape {
  int bn = 256;
  int stages = 6;
  int ctas = 2;
};

/// What the study takes away, one thing or more at a time. The first five are not in the published
/// kernel; `published` is without the first four, which concern order.
struct Edges {
  bool before_fence = true;    ///< tcgen05.fence::before_thread_sync ahead of acc_empty's arrivals
  bool drain_empty = true;     ///< the loader sees the last commits arrive before its CTA ends
  bool exit_releases = true;   ///< the last cluster barrier's arrival releases what came before it
  bool publish = true;         ///< warps 0-3 read where tensor memory lies, behind a barrier
  bool own_lanes = true;       ///< the odd CTA's warps load lanes 0 to 127, not 128 to 255
  bool exit_barrier = true;    ///< both CTAs meet before one gives tensor memory back
  bool issuer_fence = true;    ///< tcgen05.fence::after_thread_sync behind the wait for a stage
  bool fence_a_tile = false;   ///< that fence once a tile instead, behind the wait for acc_empty
  bool epilogue_fence = true;  ///< tcgen05.fence::after_thread_sync behind the wait for acc_full
  bool epilogue_meets = true;  ///< warps 1-3 wait for warp 0, which has waited for acc_full
  bool wait_load = true;       ///< acc_empty's arrivals stand behind tcgen05.wait::ld
  bool both_expected = true;   ///< the even CTA expects the bytes of both
  bool both_told = true;       ///< commits signal both CTAs, not only the even one
  bool issuer_drains = false;  ///< the issuer waits for the epilogues' last arrivals instead
  bool each_thread = true;     ///< 128 arrivals of a CTA on acc_empty, not one a warp
};

inline constexpr Edges published{
    .before_fence = false, .drain_empty = false, .exit_releases = false, .publish = false};

/// The kernel with all its edges, or without some: a type for each, whose name stands in those of
/// its functions, by which testing::Family finds the statements of one.
struct Mended {
  static constexpr Edges edges{};
};
template <Edges E>
struct Without {
  static constexpr Edges edges = E;
};

template <Shape S, class Way = Mended>
class PairGemm {
  static constexpr Edges E = Way::edges;

 public:
  static constexpr int threads = 192;
  static constexpr int bm = 128;
  static constexpr int bk = 64;
  static constexpr Shape shape = S;
  static constexpr int rows_b = S.bn / S.ctas;  ///< of B, a CTA

 private:
  static constexpr int accumulators = 2;
  static constexpr int columns = atom::tmem_allocation(accumulators * S.bn);
  static constexpr int load_warp = 4, mma_warp = 5, epilogue_threads = 128;
  static constexpr atom::OperandTile tile_a{bm, bk, 16, atom::Major::k, atom::SmemSwizzle::b128};
  static constexpr atom::OperandTile tile_b{rows_b, bk, 16, atom::Major::k,
                                            atom::SmemSwizzle::b128};
  static constexpr int bytes_a = atom::tile_bytes(tile_a), bytes_b = atom::tile_bytes(tile_b);
  static constexpr int at_b = S.stages * bytes_a;
  static constexpr int at_barriers = at_b + S.stages * bytes_b;
  static constexpr int at_address = at_barriers + 8 * (2 * S.stages + 2 * accumulators);
  static_assert(S.bn % 32 == 0 && S.bn <= 256 && S.stages >= 2 && (S.ctas == 1 || S.ctas == 2));

 public:
  static constexpr int shared_bytes = at_address + 16;

  /// The whole kernel, for one thread.
  WW_DEVICE static void run(const Params& p) {
    const PairGemm cta(p);
    const int warp = isa::warp_index();
    if (warp == 0) {
      if (isa::elect_one()) cta.initialise();
      isa::sync_warp();
    }
    if constexpr (S.ctas == 2) {
      isa::cluster_arrive_relaxed();
      isa::cluster_wait();
    } else {
      isa::sync_threads(threads);
    }
    if (warp == load_warp) {
      if (isa::elect_one()) cta.load();
      isa::sync_warp();
    } else if (warp == mma_warp) {
      cta.mma();
    } else {
      cta.epilogue();
    }
  }

 private:
  // A place in a ring of `Slots`: the slot, and the parity of the phase that is waited for there.
  template <int Slots>
  struct Place {
    int slot = 0;
    int parity = 0;
    WW_DEVICE void advance() {
      if (++slot < Slots) return;
      slot = 0;
      parity ^= 1;
    }
  };

  WW_DEVICE explicit PairGemm(const Params& p)
      : p_(p), base_(isa::shared_base()), rank_(isa::cluster_rank()) {}

  [[nodiscard]] WW_DEVICE SharedAddress full(int s) const { return base_ + at_barriers + s * 8; }
  [[nodiscard]] WW_DEVICE SharedAddress empty(int s) const { return full(S.stages + s); }
  [[nodiscard]] WW_DEVICE SharedAddress acc_full(int a) const { return full(2 * S.stages + a); }
  [[nodiscard]] WW_DEVICE SharedAddress acc_empty(int a) const {
    return full(2 * S.stages + accumulators + a);
  }
  // The same in the even CTA, whose thread issues the MMAs.
  [[nodiscard]] WW_DEVICE static SharedAddress leaders(SharedAddress own) {
    return S.ctas == 2 ? atom::pair_leader_address(own) : own;
  }
  [[nodiscard]] WW_DEVICE int tiles() const { return p_.m / bm * (p_.n / S.bn); }
  // Tiles of a CTA follow each other along M first, two by two: those of a pair are neighbours.
  [[nodiscard]] WW_DEVICE int row(int tile) const {
    return (tile / (p_.n / S.bn * 2) * 2 + tile % 2) * bm;
  }
  [[nodiscard]] WW_DEVICE int column(int tile) const { return tile / 2 % (p_.n / S.bn) * S.bn; }

  WW_DEVICE void initialise() const {
    for (int s = 0; s < S.stages; ++s) {
      isa::mbarrier_init(full(s), S.ctas, {"full", s}, "the loader of each CTA");
      isa::mbarrier_init(empty(s), 1, {"empty", s}, "the commit of the stage's MMAs");
    }
    for (int a = 0; a < accumulators; ++a) {
      isa::mbarrier_init(acc_full(a), 1, {"acc_full", a}, "the commit of the tile's MMAs");
      isa::mbarrier_init(acc_empty(a), S.ctas * (E.each_thread ? epilogue_threads : 4),
                         {"acc_empty", a}, "the epilogue of each CTA");
    }
    isa::fence_mbarrier_init();
  }

  // One thread a CTA. All loads of a pair signal the even CTA, whose loader expects the bytes.
  WW_DEVICE void load() const {
    isa::set_role("load");
    constexpr int bytes = (bytes_a + bytes_b) * (E.both_expected ? S.ctas : 1);
    Place<S.stages> place{.parity = 1};  // on a fresh barrier a wait for parity 1 returns
    for (int tile = isa::cta_index(); tile < tiles(); tile += isa::cta_count()) {
      for (int k = 0; k < p_.k; k += bk) {
        const int s = place.slot;
        const SharedAddress signal = leaders(full(s));
        isa::mbarrier_wait<Scope::cta>(empty(s), place.parity, {"empty", s});
        isa::tensor_load<S.ctas>(base_ + s * bytes_a, p_.a, signal, isa::Coords{k, row(tile)});
        isa::tensor_load<S.ctas>(base_ + at_b + s * bytes_b, p_.b, signal,
                                 isa::Coords{k, column(tile) + rank_ * rows_b});
        if (rank_ == 0) {
          isa::mbarrier_arrive_expect(full(s), bytes);
        } else {
          isa::mbarrier_arrive<Scope::cta>(signal);
        }
        place.advance();
      }
    }
    for (int s = 0; E.drain_empty && s < S.stages; ++s, place.advance()) {
      isa::mbarrier_wait<Scope::cta>(empty(place.slot), place.parity, {"empty", place.slot});
    }
  }

  WW_DEVICE void mma() const {
    isa::set_role("mma");
    isa::tcgen05_allocate<S.ctas>(base_ + at_address, columns);
    if constexpr (E.publish) isa::named_barrier_sync(2, epilogue_threads + 32);
    isa::sync_warp();
    const TmemAddress tmem = address();
    if (rank_ == 0 && isa::elect_one()) multiply(tmem);
    isa::sync_warp();
  }

  // The published kernel takes tensor memory to begin at 0, as nobody else has any.
  [[nodiscard]] WW_DEVICE TmemAddress address() const {
    return E.publish ? isa::SharedView<std::uint32_t>{base_ + at_address}.load() : 0;
  }

  // One thread of the even CTA: the MMAs of tile after tile, an accumulator for each in turn.
  WW_DEVICE void multiply(TmemAddress tmem) const {
    Place<S.stages> place;
    Place<accumulators> sum{.parity = 1};
    for (int tile = isa::cta_index(); tile < tiles(); tile += isa::cta_count()) {
      isa::mbarrier_wait<Scope::cta>(acc_empty(sum.slot), sum.parity, {"acc_empty", sum.slot});
      if constexpr (E.fence_a_tile) isa::tcgen05_fence_after_sync();
      for (int k = 0; k < p_.k; k += bk) {
        const int s = place.slot;
        isa::mbarrier_wait<Scope::cta>(full(s), place.parity, {"full", s});
        if constexpr (E.issuer_fence) isa::tcgen05_fence_after_sync();
        multiply_k_tile(tmem + sum.slot * S.bn, s, k > 0);
        commit(empty(s));
        place.advance();
      }
      commit(acc_full(sum.slot));
      sum.advance();
    }
    for (int a = 0; E.issuer_drains && a < accumulators; ++a, sum.advance()) {
      isa::mbarrier_wait<Scope::cta>(acc_empty(sum.slot), sum.parity, {"acc_empty", sum.slot});
    }
  }

  WW_DEVICE void multiply_k_tile(TmemAddress d, int s, bool accumulate) const {
    constexpr atom::OperandTile of_a = tile_a, of_b = tile_b;
    constexpr std::uint32_t instruction = atom::encode_instruction(
        atom::umma_atom(DType::bf16, DType::bf16, DType::f32, bm * S.ctas, S.bn, S.ctas == 2));
    const std::uint64_t a = atom::encode_umma(atom::descriptor(of_a, base_ + s * bytes_a));
    const std::uint64_t b = atom::encode_umma(atom::descriptor(of_b, base_ + at_b + s * bytes_b));
    WW_UNROLL for (int k_block = 0; k_block < atom::k_block_count(of_a); ++k_block) {
      isa::tcgen05_mma<atom::UmmaKind::f16, S.ctas>(
          d, atom::advance(a, atom::k_block_offset<of_a>(k_block)),
          atom::advance(b, atom::k_block_offset<of_b>(k_block)), instruction,
          accumulate || k_block > 0);
    }
  }

  // Signals the barrier in each CTA when the MMAs so far are complete.
  WW_DEVICE static void commit(SharedAddress barrier) {
    if constexpr (S.ctas == 2 && E.both_told) {
      isa::tcgen05_commit_multicast<S.ctas>(barrier, 3);
    } else {
      isa::tcgen05_commit<S.ctas>(barrier);
    }
  }

  // Four warps: each takes its 32 rows of tile after tile to D.
  WW_DEVICE void epilogue() const {
    isa::set_role("epilogue");
    const int warp = isa::warp_index();
    if constexpr (E.publish) isa::named_barrier_sync(2, epilogue_threads + 32);
    const TmemAddress tmem = address();
    const int lane = 32 * warp + (E.own_lanes ? 0 : 128 * rank_);
    Place<accumulators> sum;
    for (int tile = isa::cta_index(); tile < tiles(); tile += isa::cta_count()) {
      const int a = sum.slot;
      if (warp == 0) isa::mbarrier_wait<Scope::cta>(acc_full(a), sum.parity, {"acc_full", a});
      if constexpr (E.epilogue_meets) isa::named_barrier_sync(1, epilogue_threads);
      if constexpr (E.epilogue_fence) isa::tcgen05_fence_after_sync();
      store(tmem + a * S.bn + atom::tmem_address(lane, 0), tile, a);
      sum.advance();
    }
    if constexpr (S.ctas == 2 && E.exit_barrier) {
      if constexpr (E.exit_releases) {
        isa::cluster_arrive();
      } else {
        isa::cluster_arrive_relaxed();
      }
      isa::cluster_wait();
    } else {
      isa::named_barrier_sync(1, epilogue_threads);
    }
    if (warp == 0) isa::tcgen05_deallocate<S.ctas>(tmem, columns);
  }

  // A thread's row of a tile: 16 columns at a time, 32 bytes of D. Then the accumulator goes back.
  WW_DEVICE void store(TmemAddress from, int tile, int a) const {
    std::uint16_t* const to =
        p_.d + static_cast<std::int64_t>(row(tile) + isa::thread_index()) * p_.n + column(tile);
    isa::Fragment<float, 16> values;
    for (int c = 0; c < S.bn; c += 16) {
      isa::tcgen05_load(values, from + c);
      if (!E.wait_load && c + 16 == S.bn) release(a);
      isa::tcgen05_wait_load(values);
      WW_UNROLL for (int half = 0; half < 2; ++half) {
        isa::Words<4> words;
        WW_UNROLL for (int w = 0; w < 4; ++w) {
          words.word[w] =
              isa::pack<DType::bf16>(values[8 * half + 2 * w], values[8 * half + 2 * w + 1]);
        }
        isa::global_words<4>(to + c + 8 * half).store(0, words);
      }
    }
    if constexpr (E.wait_load) release(a);
  }

  WW_DEVICE void release(int a) const {
    if constexpr (E.before_fence) isa::tcgen05_fence_before_sync();
    if constexpr (!E.each_thread) isa::sync_warp();
    if (E.each_thread || isa::lane_index() == 0) {
      isa::mbarrier_arrive<Scope::cta>(leaders(acc_empty(a)));
    }
  }

  const Params& p_;
  SharedAddress base_;
  int rank_;
};

}  // namespace study::pairs
