// Bugs between the CTAs of a cluster: scopes, multicast, publication, and peers that are gone.
#include "tests/corpus/corpus.h"

namespace warpwright::corpus {
namespace {

const Launch thread_pair{.ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 8192};

// Makes barriers 0 to `count` - 1 and lets the cluster know them.
void publish(int count, int arrivals = 1) {
  for (int i = 0; i < count; ++i) isa::mbarrier_init(barrier(i), arrivals, {"barrier", i});
  isa::fence_mbarrier_init();
  cluster_sync();
}

template <Scope A, Scope W>
void arrive_and_wait(bool arrives, SharedAddress bar) {
  if (arrives) {
    isa::mbarrier_arrive<A>(isa::map_rank(bar, 0));
  } else {
    isa::mbarrier_wait<W>(bar, 0, {"handed", 0});
  }
}

enum class Scopes { both_cta, arrival_cta, wait_cta, cluster };
void hand_over(Scopes scopes, bool arrives, SharedAddress bar) {
  if (scopes == Scopes::both_cta) arrive_and_wait<Scope::cta, Scope::cta>(arrives, bar);
  if (scopes == Scopes::arrival_cta) arrive_and_wait<Scope::cta, Scope::cluster>(arrives, bar);
  if (scopes == Scopes::wait_cta) arrive_and_wait<Scope::cluster, Scope::cta>(arrives, bar);
  if (scopes == Scopes::cluster) arrive_and_wait<Scope::cluster, Scope::cluster>(arrives, bar);
}

// CTA 1 writes, arrives on a barrier of CTA 0, and CTA 0 goes on from there: with .cta on either
// side of the hand-off nothing makes the writes visible.
// NVIDIA/cutlass #3643 (wrong in 249 of 1000 runs) and #3324:
// https://github.com/NVIDIA/cutlass/issues/3643, https://github.com/NVIDIA/cutlass/issues/3324
TEST(Cluster, CtaScopeAcrossCtas) {
  Buffer<std::uint32_t> words("words", 4);
  const auto kernel = [&](Scopes scopes) {
    publish(1);
    const isa::GlobalView<std::uint32_t> view{words.data()};
    const bool writer = isa::cluster_rank() == 1;
    if (writer) view.store(2, 7);
    hand_over(scopes, writer, barrier());
    if (!writer) (void)view.load(2);
    cluster_sync();
  };
  for (const Scopes scopes : {Scopes::both_cta, Scopes::arrival_cta, Scopes::wait_cta}) {
    expect_guilty(run(chosen(kernel, scopes), thread_pair, words), Only{Check::weak_scope});
  }
  EXPECT_CLEAN(run(chosen(kernel, Scopes::cluster), thread_pair, words));
}

// The same where the leader's asynchronous operation reaches into the peer's shared memory: CTA 1
// clears its stage with plain stores, then CTA 0 multicasts over it.
// NVIDIA/cutlass #3643 (there the 2-CTA MMA of the leader reads what the peer wrote):
// https://github.com/NVIDIA/cutlass/pull/3647
TEST(Cluster, CtaScopeBeforeTheLeadersMulticast) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](Scopes scopes) {
    publish(2);
    isa::mbarrier_arrive_expect(barrier(1), box_bytes);
    fill(data());
    isa::fence_proxy_async_shared();
    hand_over(scopes, isa::cluster_rank() == 1, barrier(0));
    if (isa::cluster_rank() == 0) {
      isa::tensor_load_multicast(data(), in.map, barrier(1), 0b11, isa::Coords{0, 0});
    }
    isa::mbarrier_wait<Scope::cta>(barrier(1), 0, {"full", 0});
    cluster_sync();
  };
  expect_guilty(run(chosen(kernel, Scopes::both_cta), thread_pair, in.memory),
                Only{Check::weak_scope});
  EXPECT_CLEAN(run(chosen(kernel, Scopes::cluster), thread_pair, in.memory));
}

// Each CTA loads its half, and the leader goes on when its own half has landed: nothing tells it of
// the peer's. NVIDIA/cutlass #3643, second half (the missing SFB wait):
// https://github.com/NVIDIA/cutlass/pull/3647
TEST(Cluster, ThePeersLoadIsNotWaitedFor) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](bool mended) {
    publish(3);
    const bool leader = isa::cluster_rank() == 0;
    isa::mbarrier_arrive_expect(barrier(0), box_bytes);
    isa::mbarrier_arrive_expect(barrier(1), box_bytes);
    load(data(), in, barrier(0));
    if (leader || mended) isa::mbarrier_wait<Scope::cta>(barrier(0), 0, {"own half", 0});
    if (!leader) isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(barrier(2), 0));
    if (leader) {
      isa::mbarrier_wait<Scope::cluster>(barrier(2), 0, {"peer ready", 0});
      isa::tensor_load_multicast(data(), in.map, barrier(1), 0b11, isa::Coords{0, 0});
    }
    isa::mbarrier_wait<Scope::cta>(barrier(0), 0, {"own half", 0});
    isa::mbarrier_wait<Scope::cta>(barrier(1), 0, {"next", 0});
    cluster_sync();
  };
  expect_mended(kernel, Only{Check::in_flight_access}, thread_pair, in.memory);
}

// The leader multicasts the next tile when its own CTA has read the last one; the peer still reads.
// inclusionAI/humming #56, and why DeepGEMM counts the consumers of both CTAs (#51):
// https://github.com/inclusionAI/humming/pull/56, https://github.com/deepseek-ai/DeepGEMM/issues/51
TEST(Cluster, MulticastOverAPeerThatStillReads) {
  Tensor in("in", 4, Access::input);
  const auto kernel = [&](bool mended) {
    isa::mbarrier_init(barrier(0), 1, {"full", 0});
    isa::mbarrier_init(barrier(1), mended ? 2 : 1, {"empty", 0});
    isa::fence_mbarrier_init();
    cluster_sync();
    const bool leader = isa::cluster_rank() == 0;
    for (int i = 0; i < 4; ++i) {
      isa::mbarrier_arrive_expect(barrier(0), box_bytes);
      if (leader) {
        isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
        isa::tensor_load_multicast(data(), in.map, barrier(0), 0b11, isa::Coords{0, i * 8});
      }
      isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
      read(data());
      if (leader || mended) isa::mbarrier_arrive<Scope::cta>(isa::map_rank(barrier(1), 0));
    }
    cluster_sync();
  };
  expect_mended(kernel, Among{Check::data_race}, thread_pair, in.memory);
}

// Only the CTA that issues the multicast expects its bytes; the signal comes to every receiver.
// flashinfer-ai/flashinfer-bench #183 (review of a kernel written by an assistant):
// https://github.com/flashinfer-ai/flashinfer-bench/pull/183
TEST(Cluster, AReceiverThatExpectsNothing) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](bool mended) {
    publish(1);
    const bool issuer = isa::cluster_rank() == 0;
    if (issuer || mended) {
      isa::mbarrier_arrive_expect(barrier(), box_bytes);
    } else {
      isa::mbarrier_arrive<Scope::cta>(barrier());
    }
    if (issuer) isa::tensor_load_multicast(data(), in.map, barrier(), 0b11, isa::Coords{0, 0});
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    cluster_sync();
  };
  expect_mended(kernel, Among{Check::transaction_bytes}, thread_pair, in.memory);
}

// The mask of a multicast names a rank that the cluster does not have.
// NVIDIA/cutlass #3658 (the peer bit of a cluster without pairs; Xid 13):
// https://github.com/NVIDIA/cutlass/issues/3658
TEST(Cluster, AMaskBeyondTheCluster) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](std::uint16_t mask) {
    publish(1);
    isa::mbarrier_arrive_expect(barrier(), box_bytes);
    if (isa::cluster_rank() == 0) {
      isa::tensor_load_multicast(data(), in.map, barrier(), mask, isa::Coords{0, 0});
    }
    isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    cluster_sync();
  };
  for (const int mask : {0b111, 0b1000000000000011}) {
    expect_guilty(run(chosen(kernel, mask), thread_pair, in.memory), Only{Check::multicast_mask});
  }
  EXPECT_CLEAN(run(chosen(kernel, 0b011), thread_pair, in.memory));
}

// Barriers are initialised and the cluster barrier is passed, but no fence.mbarrier_init published
// them to the peer; or the fence is there and only the own CTA was synchronised.
// The rule of CUTLASS's fence_barrier_init and cluster_sync; late entry as racecheck reports it.
TEST(Cluster, InitialisationIsNotPublished) {
  const auto kernel = [](bool fence, bool meets) {
    isa::mbarrier_init(barrier(), 1, {"gate", 0});
    if (fence) isa::fence_mbarrier_init();
    if (meets) cluster_sync();
    isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(barrier(), isa::cluster_rank() ^ 1));
    isa::mbarrier_wait<Scope::cluster>(barrier(), 0, {"gate", 0});
    cluster_sync();
  };
  expect_guilty(run(chosen(kernel, false, true), thread_pair), Only{Check::barrier_unpublished});
  // Here the arrival may find a barrier that is not published, or none at all yet.
  const auto alone = run(chosen(kernel, true, false), thread_pair);
  EXPECT_EQ(alone.count(Check::barrier_unpublished) + alone.count(Check::dead_barrier),
            static_cast<int>(alone.runs.size()));
  EXPECT_CLEAN(run(chosen(kernel, true, true), thread_pair));
}

// A CTA that has read its last stage leaves, while the peer still arrives on its barriers: the tail
// of the producer is missing.
// The question of rchardx/hopper-gemm #3 about DeepGEMM's tail; CUTLASS's producer_tail:
// https://github.com/rchardx/hopper-gemm/issues/3
TEST(Cluster, TheTailIsMissing) {
  Tensor in("in", 3, Access::input);
  const auto kernel = [&](bool mended) {
    isa::mbarrier_init(barrier(0), 1, {"full", 0}, "the CTA itself");
    isa::mbarrier_init(barrier(1), 2, {"empty", 0}, "both CTAs");
    isa::fence_mbarrier_init();
    cluster_sync();
    const bool leader = isa::cluster_rank() == 0;
    for (int i = 0; i < 3; ++i) {
      isa::mbarrier_arrive_expect(barrier(0), box_bytes);
      if (leader) {
        isa::mbarrier_wait<Scope::cta>(barrier(1), (i & 1) ^ 1, {"empty", 0});
        isa::tensor_load_multicast(data(), in.map, barrier(0), 0b11, isa::Coords{0, i * 8});
      }
      isa::mbarrier_wait<Scope::cta>(barrier(0), i & 1, {"full", 0});
      read(data());
      isa::mbarrier_arrive<Scope::cta>(isa::map_rank(barrier(1), 0));
    }
    if (leader && mended) isa::mbarrier_wait<Scope::cta>(barrier(1), 0, {"empty", 0});
  };
  expect_mended(kernel, Only{Check::cluster_lifetime}, thread_pair, in.memory);
}

// A CTA leaves while its peer may still read, or write, its shared memory: two statements between
// the access and the exit hide it from every schedule that starves nobody.
// Our own: the last cluster barrier of kernels that share K (kernel/hopper/fixup.h);
// triton-lang/triton #11730 has the same with a multicast.
TEST(Cluster, ExitWhileAPeerReachesIn) {
  enum class Last { none, arrival, relaxed, released };
  const auto kernel = [](bool writes, Last last) {
    isa::SharedView<isa::Words<4>>{data()}.store(0, {{1, 2, 3, 4}});
    cluster_sync();
    const SharedAddress there = isa::map_rank(data(), isa::cluster_rank() ^ 1);
    const isa::ClusterView<isa::Words<4>> peer{there + (writes ? 16u : 0u)};
    if (writes) {
      peer.store({{5, 6, 7, 8}});
    } else {
      (void)peer.load();
    }
    isa::sync_warp();
    isa::sync_warp();
    if (last == Last::none) return;
    if (last == Last::released) {
      isa::cluster_arrive();
    } else {
      isa::cluster_arrive_relaxed();
    }
    if (last != Last::arrival) isa::cluster_wait();
  };
  const auto always = [](const model::testing::Outcome& outcome) {
    expect_guilty(outcome, Only{Check::cluster_lifetime});
  };
  for (const bool writes : {false, true}) {
    always(run(chosen(kernel, writes, Last::none), thread_pair));
    always(run(chosen(kernel, writes, Last::arrival), thread_pair));
    EXPECT_CLEAN(run(chosen(kernel, writes, Last::released), thread_pair));
  }
  // A relaxed arrival says that a read is over, not that a write has come.
  EXPECT_CLEAN(run(chosen(kernel, false, Last::relaxed), thread_pair));
  always(run(chosen(kernel, true, Last::relaxed), thread_pair));
}

// A thread writes into a peer's memory before anything says that the peer has started.
// Late entry, as racecheck reports it.
TEST(Cluster, WritesBeforeThePeerHasStarted) {
  const auto kernel = [](bool meets) {
    if (meets) cluster_sync();
    const SharedAddress there = isa::map_rank(data(), isa::cluster_rank() ^ 1);
    isa::ClusterView<isa::Words<4>>{there}.store({{1, 2, 3, 4}});
    cluster_sync();
    (void)isa::SharedView<isa::Words<4>>{data()}.load();
  };
  expect_mended(kernel, Only{Check::cluster_lifetime}, thread_pair);
}

// Both CTAs add to a word of the first one. Additions need no order among each other, but one to
// the store that comes before them and to the load behind.
// Our own: what a relaxed cluster barrier orders.
TEST(Cluster, AdditionsToAPeersWord) {
  enum class Relaxed { none, before, behind };
  Buffer<std::uint32_t> sum("sum", 1);
  const auto kernel = [&](Relaxed relaxed) {
    const auto meet = [](bool released) {
      if (released) {
        isa::cluster_arrive();
      } else {
        isa::cluster_arrive_relaxed();
      }
      isa::cluster_wait();
    };
    const bool first = isa::cluster_rank() == 0;
    const isa::SharedView<std::uint32_t> word{data()};
    if (first) word.store(0, 40);
    meet(relaxed != Relaxed::before);
    isa::cluster_add(isa::map_rank(data(), 0), isa::cluster_rank() == 0 ? 1U : 2U);
    isa::cluster_add(isa::map_rank(data(), 0), 10U);
    meet(relaxed != Relaxed::behind);
    if (first) isa::GlobalView<std::uint32_t>{sum.data()}.store(0, word.load());
    cluster_sync();
  };
  expect_guilty(run(chosen(kernel, Relaxed::before), thread_pair, sum),
                OnlyLate{Check::weak_scope});
  expect_guilty(run(chosen(kernel, Relaxed::behind), thread_pair, sum), Only{Check::weak_scope});
  Launch launch = thread_pair;
  launch.verify = [&] { return sum[0] == 63 ? "" : "the sum is " + std::to_string(sum[0]); };
  EXPECT_CLEAN(run(chosen(kernel, Relaxed::none), launch, sum));
}

// A CTA without work returns at once; the leader multicasts to it all the same.
// triton-lang/triton #11730 and #11731 (no cluster barrier before the return):
// https://github.com/triton-lang/triton/issues/11730
TEST(Cluster, MulticastToACtaThatHasExited) {
  Tensor in("in", 1, Access::input);
  const auto kernel = [&](bool mended) {
    publish(1);
    if (isa::cluster_rank() == 0) {
      isa::mbarrier_arrive_expect(barrier(), box_bytes);
      isa::tensor_load_multicast(data(), in.map, barrier(), 0b11, isa::Coords{0, 0});
      isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    } else if (mended) {
      isa::mbarrier_arrive_expect(barrier(), box_bytes);
      isa::mbarrier_wait<Scope::cta>(barrier(), 0, {"full", 0});
    }
    if (mended) cluster_sync();
  };
  // Or the CTA leaves while the load is in flight (barrier_outlived): one of both in every
  // schedule.
  const auto broken = run(chosen(kernel, false), thread_pair, in.memory);
  EXPECT_FINDING(broken, Check::multicast_mask);
  EXPECT_EQ(broken.count(Check::multicast_mask) + broken.count(Check::barrier_outlived),
            static_cast<int>(broken.runs.size()));
  EXPECT_CLEAN(run(chosen(kernel, true), thread_pair, in.memory));
  // Where the other CTA has left before, a mask without it is right.
  const auto behind = [&](std::uint16_t mask) {
    publish(2);
    if (isa::cluster_rank() == 1) {
      isa::mbarrier_arrive<Scope::cluster>(isa::map_rank(barrier(), 0));
      return;
    }
    isa::mbarrier_wait<Scope::cluster>(barrier(), 0, {"left", 0});
    isa::mbarrier_arrive_expect(barrier(1), box_bytes);
    isa::tensor_load_multicast(data(), in.map, barrier(1), mask, isa::Coords{0, 0});
    isa::mbarrier_wait<Scope::cta>(barrier(1), 0, {"full", 1});
  };
  expect_guilty(run(chosen(behind, 0b11), thread_pair, in.memory), Only{Check::multicast_mask});
  EXPECT_CLEAN(run(chosen(behind, 0b01), thread_pair, in.memory));
}

// Tiles of all groups are numbered through, and a pair of CTAs takes two neighbours. With an odd
// number of tiles a group, a pair lies across two groups: its first CTA, the only one in its group,
// loads for itself, while the second waits for a multicast that nobody starts. Their loops over K
// differ in length too, and each waits for the other's releases. deepseek-ai/DeepGEMM #415 and #429
// (SM90, K-grouped, both open): no multicast where the tiles of a group do not come out even.
// https://github.com/deepseek-ai/DeepGEMM/pull/415
TEST(Cluster, APairLiesAcrossTwoGroups) {
  Tensor a("a", 4, Access::input), b("b", 4, Access::input);
  const auto kernel = [&](int tiles_of_group, bool multicast) {
    const int rank = isa::cluster_rank(), total = 2 * tiles_of_group;
    isa::mbarrier_init(barrier(0), 1, {"full", 0});
    isa::mbarrier_init(barrier(1), multicast ? 2 : 1, {"empty", 0});
    isa::fence_mbarrier_init();
    cluster_sync();
    unsigned step = 0;
    for (int tile = rank; tile < total; tile += 2) {
      const int group = tile / tiles_of_group;
      const bool alone = rank == 0 && tile % tiles_of_group == tiles_of_group - 1;
      const bool shared = multicast && !alone;
      for (int k_tile = 0; k_tile < 2 - group; ++k_tile, ++step) {
        isa::mbarrier_wait<Scope::cta>(barrier(1), (step & 1) ^ 1, {"empty", 0});
        isa::mbarrier_arrive_expect(barrier(0), 2 * box_bytes);
        load(data(0), a, barrier(0), tile % 4);
        if (!shared) load(data(1), b, barrier(0), k_tile);
        if (shared && rank == 0) {
          isa::tensor_load_multicast(data(1), b.map, barrier(0), 0b11, isa::Coords{0, 8 * k_tile});
        }
        isa::mbarrier_wait<Scope::cta>(barrier(0), step & 1, {"full", 0});
        read(data(0));
        read(data(1));
        for (int to = 0; to < 2; ++to) {
          if (!multicast && to != rank) continue;
          isa::mbarrier_arrive<Scope::cta>(isa::map_rank(barrier(1), to));
        }
      }
    }
    cluster_sync();
  };
  const auto broken = run(chosen(kernel, 3, true), thread_pair, a.memory, b.memory);
  EXPECT_EQ(broken.count(Check::deadlock), static_cast<int>(broken.runs.size())) << broken.text();
  EXPECT_CLEAN(run(chosen(kernel, 4, true), thread_pair, a.memory, b.memory));
  EXPECT_CLEAN(run(chosen(kernel, 3, false), thread_pair, a.memory, b.memory));
}

}  // namespace
}  // namespace warpwright::corpus
