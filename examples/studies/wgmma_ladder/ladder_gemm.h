// A study of the last rung of a public ladder of Hopper kernels, kernel 12 of pranjalssh/fast.cu
// (github.com/pranjalssh/fast.cu, examples/matmul/matmul_12.cuh; the author's text:
// cudaforfun.substack.com/p/outperforming-cublas-on-h100-a-worklog). Its structure in the words of
// isa/, written anew: D = A * B^T in bf16, D by columns, clusters of CTAs that share tiles by
// multicast, persistent along a space-filling curve.
//
//   warpgroup 0      one thread loads k_tiles of A (128 x 64) and B (bn x 64) into a ring
//   warpgroups 1, 2  multiply 64 x bn each, stage their part of D and store it by TMA
//
//   barrier    copies  arrivals a phase                         waits     arrives
//   full[s]    stages  1 (+ the bytes of A and B)               1, 2      producer, copies
//   empty[s]   stages  2 x CTAs of the cluster                  producer  one thread of each
//                                                                         consumer, for each CTA
//   named 2,3  1       128, twice a tile                        1; 2      the same
//   cluster    1       all threads, at the begin and the end    all       all
//
// A CTA that shares A or B with a peer takes it from whoever loads it for the row or column of the
// cluster: each CTA expects all bytes of its own stage, whoever has started the copies.
#pragma once

#include <cstdint>

#include <warpwright/atom/descriptor.h>
#include <warpwright/atom/swizzle.h>
#include <warpwright/isa/barrier.h>
#include <warpwright/isa/fence.h>
#include <warpwright/isa/mbarrier.h>
#include <warpwright/isa/memory.h>
#include <warpwright/isa/numeric.h>
#include <warpwright/isa/thread.h>
#include <warpwright/isa/tma.h>
#include <warpwright/isa/warp.h>
#include <warpwright/isa/wgmma.h>

namespace study::ladder {

namespace atom = warpwright::atom;
namespace isa = warpwright::isa;
using isa::Scope;
using isa::SharedAddress;

/// Tiles that a cluster does, one behind the other: m << 16 | n in tiles of the cluster, -1 behind
/// the last.
inline constexpr int list_length = 128;

/// Operands: boxes of 128 x 64 (A) and bn x 64 (B), 128-byte swizzled. D: rank 3, 64 rows of D x
/// all columns x m / 64, boxes of 72 x bn x 1: the 8 rows too many are padding in shared memory,
/// which TMA does not store, for they lie outside the tensor's first extent.
struct Params {
  isa::TensorMap a;
  isa::TensorMap b;
  isa::TensorMap d;
  const int* lists = nullptr;  ///< list_length words for each cluster of the grid
  int k = 0;                   ///< a multiple of 64, at least 64
};

/// What is compiled: columns of a tile, stages of the ring, CTAs of a cluster along M and N.
struct Shape {
  int bn = 256;
  int stages = 3;
  int cluster_m = 2;
  int cluster_n = 1;
};

/// What the study takes away from the synchronisation, one thing or more at a time. The first five
/// are not in the published kernel (`published`).
struct Edges {
  bool init_fence = true;       ///< fence.mbarrier_init behind the initialisation
  bool proxy_fence = true;      ///< before the store of D reads what the threads have staged
  bool staging_barrier = true;  ///< who stages waits for who has waited for the last store
  bool last_drain = true;       ///< the last store has read its bytes before the CTA ends
  bool exit_barrier = true;     ///< no CTA of a cluster ends before its peers' last arrivals
  bool exit_releases = true;    ///< that barrier's arrival releases what came before it
  bool begin_barrier = true;    ///< the cluster meets behind the initialisation, not only the CTA
  bool wait_for_wgmma = true;   ///< a stage is released behind the wait, not behind the issue
  bool release_peers = true;    ///< consumers tell all CTAs of the cluster, not only their own
  bool all_expect = true;       ///< every CTA expects the bytes, not only who starts the copies
  bool stored_barrier = true;   ///< all threads have staged before one of them stores
  bool first_arrivals = true;   ///< consumers arrive on all empty barriers before the first k_tile
  bool diagonal = true;         ///< they tell CTAs with which they share neither A nor B, too
};

inline constexpr Edges published{.init_fence = false,
                                 .proxy_fence = false,
                                 .staging_barrier = false,
                                 .last_drain = false,
                                 .exit_barrier = false};

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
class LadderGemm {
  static constexpr Edges E = Way::edges;

 public:
  static constexpr int threads = 384;
  static constexpr int registers = 168;  ///< a thread at launch
  static constexpr int bm = 128;
  static constexpr int bk = 64;
  static constexpr int rows = 64;      ///< of D, a consumer
  static constexpr int box_rows = 72;  ///< with the padding that keeps stmatrix free of conflicts
  static constexpr Shape shape = S;
  static constexpr int ctas = S.cluster_m * S.cluster_n;

 private:
  static constexpr int consumers = 2;
  // CTAs that a consumer tells of a stage that it has read.
  static constexpr int told = !E.release_peers ? 1
                              : E.diagonal     ? ctas
                                               : S.cluster_m + S.cluster_n - 1;
  static constexpr atom::OperandTile tile_a{rows, bk, 16, atom::Major::k, atom::SmemSwizzle::b128};
  static constexpr atom::OperandTile tile_b{S.bn, bk, 16, atom::Major::k, atom::SmemSwizzle::b128};
  static constexpr int half_a = atom::tile_bytes(tile_a);  // a consumer's rows
  static constexpr int bytes_a = consumers * half_a;
  static constexpr int bytes_b = atom::tile_bytes(tile_b);
  static constexpr int bytes_d = S.bn * box_rows * 2;  // a consumer's part of D

  // Shared memory: A and B of the stages, the staged parts of D, barriers, the list of tiles.
  static constexpr int at_b = S.stages * bytes_a;
  static constexpr int at_d = at_b + S.stages * bytes_b;
  static constexpr int at_barriers = at_d + consumers * bytes_d;
  static constexpr int at_list = at_barriers + 2 * 8 * S.stages;
  static_assert(S.bn % 64 == 0 && S.bn <= 256 && S.stages >= 2 && ctas >= 1 && ctas <= 16);

  using Accumulator = isa::Fragment<float, S.bn / 2>;

 public:
  static constexpr int shared_bytes = at_list + 4 * list_length;

  /// The whole kernel, for one thread.
  WW_DEVICE static void run(const Params& p) {
    const LadderGemm cta;
    const int thread = isa::thread_index();
    if (thread < list_length) {
      const isa::GlobalView<const int> lists{p.lists};
      cta.list().store(thread, lists.load(isa::cluster_index() * list_length + thread));
    }
    if (thread == 0) cta.initialise();
    if constexpr (E.begin_barrier) {
      isa::cluster_arrive();
      isa::cluster_wait();
    } else {
      isa::sync_threads(threads);
    }
    if (thread < 128) {
      isa::decrease_registers<24>();
      if (thread == 0) cta.produce(p);
      isa::sync_warp();
    } else {
      isa::increase_registers<240>();
      cta.consume(p, thread / 128 - 1);
    }
    if constexpr (E.exit_barrier) {
      if constexpr (E.exit_releases) {
        isa::cluster_arrive();
      } else {
        isa::cluster_arrive_relaxed();
      }
      isa::cluster_wait();
    }
  }

 private:
  // A place in the ring: the stage, and the parity of the phase that is waited for there. The
  // consumers complete the empty barriers' first phase, so both sides begin with parity 0. On a
  // fresh barrier a wait for parity 1 returns, which does the same without arrivals.
  struct Place {
    int stage = 0;
    int parity = 0;
    WW_DEVICE void advance() {
      if (++stage < S.stages) return;
      stage = 0;
      parity ^= 1;
    }
  };

  WW_DEVICE LadderGemm() : base_(isa::shared_base()), rank_(isa::cluster_rank()) {}

  [[nodiscard]] WW_DEVICE SharedAddress full(int stage) const {
    return base_ + at_barriers + stage * 8;
  }
  [[nodiscard]] WW_DEVICE SharedAddress empty(int stage) const { return full(S.stages + stage); }
  [[nodiscard]] WW_DEVICE isa::SharedView<int> list() const { return {base_ + at_list}; }
  [[nodiscard]] WW_DEVICE int rank_m() const { return rank_ / S.cluster_n; }
  [[nodiscard]] WW_DEVICE int rank_n() const { return rank_ % S.cluster_n; }

  WW_DEVICE void initialise() const {
    for (int s = 0; s < S.stages; ++s) {
      isa::mbarrier_init(full(s), 1, {"full", s}, "the producer of this CTA");
      isa::mbarrier_init(empty(s), consumers * told, {"empty", s},
                         "each consumer of each CTA of the cluster");
    }
    if constexpr (E.init_fence) isa::fence_mbarrier_init();
  }

  // The next tile of the cluster's list, as this CTA's row and column of D; false behind the last.
  WW_DEVICE bool next(int& index, int& row, int& column) const {
    if (index >= list_length) return false;
    const int tile = list().load(index);
    if (tile < 0) return false;
    row = ((tile >> 16) * S.cluster_m + rank_m()) * bm;
    column = ((tile & 0xffff) * S.cluster_n + rank_n()) * S.bn;
    ++index;
    return true;
  }

  // One thread: stage after stage, tile after tile. CTAs of a row of the cluster have the same rows
  // of A, which the first of them loads for all; those of a column the same rows of B.
  WW_DEVICE void produce(const Params& p) const {
    constexpr Shape cfg = S;
    isa::set_role("producer");
    constexpr unsigned row_mask = (1U << cfg.cluster_n) - 1;
    unsigned column_mask = 0;
    for (int i = 0; i < cfg.cluster_m; ++i) column_mask |= 1U << (i * cfg.cluster_n);
    const auto a_ctas =
        static_cast<std::uint16_t>(cfg.cluster_n > 1 ? row_mask << (rank_m() * cfg.cluster_n) : 0);
    const auto b_ctas = static_cast<std::uint16_t>(cfg.cluster_m > 1 ? column_mask << rank_n() : 0);
    const bool loads_a = cfg.cluster_n == 1 || rank_n() == 0;
    const bool loads_b = cfg.cluster_m == 1 || rank_m() == 0;
    Place place{.parity = E.first_arrivals ? 0 : 1};
    int index = 0, row = 0, column = 0;
    while (next(index, row, column)) {
      for (int k = 0; k < p.k; k += bk) {
        const int s = place.stage;
        isa::mbarrier_wait<Scope::cta>(empty(s), place.parity, {"empty", s});
        if (E.all_expect || (loads_a && loads_b)) {
          isa::mbarrier_arrive_expect(full(s), bytes_a + bytes_b);
        } else {
          isa::mbarrier_arrive<Scope::cta>(full(s));
        }
        if (loads_a) {
          isa::tensor_load_to(a_ctas, base_ + s * bytes_a, p.a, full(s), isa::Coords{k, row});
        }
        if (loads_b) {
          isa::tensor_load_to(b_ctas, base_ + at_b + s * bytes_b, p.b, full(s),
                              isa::Coords{k, column});
        }
        place.advance();
      }
    }
  }

  // One warpgroup: its 64 rows of tile after tile.
  WW_DEVICE void consume(const Params& p, int consumer) const {
    isa::set_role(consumer == 0 ? "consumer 0" : "consumer 1");
    Accumulator sum;
    Place place;
    for (int s = 0; E.first_arrivals && s < S.stages; ++s) release(s);
    int index = 0, row = 0, column = 0;
    while (next(index, row, column)) {
      for (int k = 0; k < p.k; k += bk) {
        const int s = place.stage;
        isa::mbarrier_wait<Scope::cta>(full(s), place.parity, {"full", s});
        multiply(sum, s, consumer, k > 0);
        if constexpr (!E.wait_for_wgmma) release(s);
        isa::wgmma_wait<0>(sum);
        if constexpr (E.wait_for_wgmma) release(s);
        place.advance();
      }
      store(p, sum, consumer, row, column);
    }
    if (E.last_drain && isa::thread_index() % 128 == 0) isa::bulk_wait_read<0>();
  }

  // Threads 0 to ctas - 1 of a consumer each tell one CTA that the stage has been read here. The
  // wait for the wgmmas in one warp speaks for its warpgroup.
  WW_DEVICE void release(int s) const {
    const int to = isa::thread_index() % 128;
    if (to >= ctas || (!E.release_peers && to != rank_)) return;
    const bool shares = to / S.cluster_n == rank_m() || to % S.cluster_n == rank_n();
    if (E.diagonal || shares) isa::mbarrier_arrive<Scope::cta>(isa::map_rank(empty(s), to));
  }

  WW_DEVICE void multiply(Accumulator& sum, int s, int consumer, bool accumulate) const {
    constexpr atom::OperandTile of_a = tile_a, of_b = tile_b;
    const std::uint64_t a =
        atom::encode(atom::descriptor(of_a, base_ + s * bytes_a + consumer * half_a));
    const std::uint64_t b = atom::encode(atom::descriptor(of_b, base_ + at_b + s * bytes_b));
    isa::wgmma_fence(sum);
    WW_UNROLL for (int k_block = 0; k_block < atom::k_block_count(of_a); ++k_block) {
      isa::wgmma<warpwright::DType::bf16, S.bn>(
          sum, atom::advance(a, atom::k_block_offset<of_a>(k_block)),
          atom::advance(b, atom::k_block_offset<of_b>(k_block)), accumulate || k_block > 0);
    }
    isa::wgmma_commit();
  }

  // Sums to bf16, transposed into this consumer's part of shared memory, then one tensor store. It
  // goes on while the next tile is multiplied; whoever stages again waits for it.
  WW_DEVICE void store(const Params& p, Accumulator& sum, int consumer, int row, int column) const {
    const int thread = isa::thread_index() % 128, warp = thread / 32, lane = thread % 32;
    const SharedAddress part = base_ + at_d + consumer * bytes_d;
    if constexpr (E.staging_barrier) {
      if (thread == 0) isa::bulk_wait_read<0>();
      isa::named_barrier_sync(2 + consumer, 128);
    } else {
      isa::bulk_wait<0>();  // the groups are thread 0's: the other 127 threads wait for nothing
    }
    // Lane l gives the address of row l % 8 of matrix l / 8: columns of D lie 72 elements apart.
    const int of_lane = (lane / 16 * 8 + lane % 8) * box_rows + warp * 16 + (lane & 8);
    WW_UNROLL for (int c = 0; c < S.bn; c += 16) {
      std::uint32_t words[4];
      for (int w = 0; w < 4; ++w) {
        words[w] = isa::pack<warpwright::DType::bf16>(sum[c / 2 + 2 * w], sum[c / 2 + 2 * w + 1]);
      }
      isa::store_matrix<4, true>(part + (c * box_rows + of_lane) * 2, words);
    }
    if constexpr (E.proxy_fence) isa::fence_proxy_async_shared();
    if constexpr (E.stored_barrier) isa::named_barrier_sync(2 + consumer, 128);
    if (thread == 0) {
      isa::tensor_store(p.d, part, isa::Coords{0, column, row / rows + consumer});
      isa::bulk_commit();
    }
  }

  SharedAddress base_;
  int rank_;
};

}  // namespace study::ladder
