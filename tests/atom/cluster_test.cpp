#include "warpwright/atom/cluster.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "warpwright/atom/cluster_layout.h"
#include "warpwright/layout/text.h"

namespace warpwright::atom {
namespace {

using Set = std::set<int>;

Set members(unsigned mask) {
  Set set;
  for (int r = 0; r < 32; ++r) {
    if (mask >> r & 1) set.insert(r);
  }
  return set;
}

// The masks derived the long way, from what each CTA computes, holds and writes. Operands are
// numbered by the slab of the cluster's A (or B) they are.
struct Cluster {
  struct Cta {
    int a_slab;   // which rows of A it holds
    int b_slab;   // which columns of B it holds
    int issuer;   // the CTA that issues its MMA
    int a_block;  // which block of A its MMA consumes
    int b_block;
  };
  std::vector<Cta> ctas;

  Cluster(ClusterShape shape, bool pair) {
    for (int y = 0; y < shape.n; ++y) {
      for (int x = 0; x < shape.m; ++x) {
        const int rank = static_cast<int>(ctas.size());
        if (pair) {
          // The pair's MMA covers two slabs of A and one block of B; the even CTA holds the first
          // half of that block's columns, the odd one the second.
          ctas.push_back({x, 2 * y + x % 2, rank - x % 2, x / 2, y});
        } else {
          ctas.push_back({x, y, rank, x, y});
        }
      }
    }
  }

  int size() const { return static_cast<int>(ctas.size()); }

  // Everybody who holds a slab loads a slice of it for all who hold it.
  Set receivers_of_a(int rank) const {
    Set set;
    for (int r = 0; r < size(); ++r) {
      if (ctas[r].a_slab == ctas[rank].a_slab) set.insert(r);
    }
    return set;
  }
  Set receivers_of_b(int rank) const {
    Set set;
    for (int r = 0; r < size(); ++r) {
      if (ctas[r].b_slab == ctas[rank].b_slab) set.insert(r);
    }
    return set;
  }

  // The MMA of `issuer` frees a stage in every CTA it reads; whoever writes there must know.
  Set told_by(int issuer) const {
    Set set;
    for (int read = 0; read < size(); ++read) {
      if (ctas[read].issuer != issuer) continue;
      for (int writer = 0; writer < size(); ++writer) {
        if (receivers_of_a(writer).count(read) || receivers_of_b(writer).count(read)) {
          set.insert(writer);
        }
      }
    }
    return set;
  }

  int arrivals_at(int rank) const {
    Set issuers;
    for (int r = 0; r < size(); ++r) {
      if (told_by(ctas[r].issuer).count(rank)) issuers.insert(ctas[r].issuer);
    }
    return static_cast<int>(issuers.size());
  }
};

TEST(ClusterTest, MasksFollowFromWhoHoldsAndWritesWhat) {
  for (const bool pair : {false, true}) {
    for (int m = 1; m <= 16; ++m) {
      for (int n = 1; n <= 16; ++n) {
        const ClusterShape shape{m, n};
        if (cluster_fault(shape, pair) != ClusterFault::none) continue;
        const Cluster cluster(shape, pair);
        for (int rank = 0; rank < cluster_size(shape); ++rank) {
          const Masks got = masks(shape, rank, pair);
          SCOPED_TRACE(testing::Message() << m << "x" << n << " rank " << rank << " pair " << pair);
          EXPECT_EQ(members(got.a), cluster.receivers_of_a(rank));
          EXPECT_EQ(members(got.b), cluster.receivers_of_b(rank));
          EXPECT_EQ(members(got.commit), cluster.told_by(cluster.ctas[rank].issuer));
          EXPECT_EQ(got.arrivals, cluster.arrivals_at(rank));
          EXPECT_TRUE(got.a >> rank & 1 && got.b >> rank & 1 && got.commit >> rank & 1);
        }
      }
    }
  }
}

TEST(ClusterTest, KnownMasksOfOneSm) {
  constexpr ClusterShape shape{4, 4};
  static_assert(masks(shape, 0, false) == Masks{0x1111, 0x000f, 0x111f, 7});
  static_assert(masks(shape, 9, false) == Masks{0x2222, 0x0f00, 0x2f22, 7});
  static_assert(masks(shape, 11, false) == Masks{0x8888, 0x0f00, 0x8f88, 7});
  static_assert(masks({1, 1}, 0, false) == Masks{1, 1, 1, 1});
  static_assert(masks({2, 1}, 1, false) == Masks{2, 3, 3, 2});
  static_assert(masks({1, 2}, 1, false) == Masks{3, 2, 3, 2});
}

TEST(ClusterTest, KnownMasksOfPairs) {
  constexpr ClusterShape shape{4, 4};
  static_assert(masks(shape, 0, true) == Masks{0x1111, 0x0005, 0x333f, 5});
  static_assert(masks(shape, 9, true) == Masks{0x2222, 0x0a00, 0x3f33, 5});
  static_assert(masks(shape, 14, true) == Masks{0x4444, 0x5000, 0xfccc, 5});
  static_assert(masks({2, 1}, 1, true) == Masks{2, 2, 3, 1});
  for (int rank = 0; rank < 16; ++rank) {
    const int x = rank % 4;
    const int y = rank / 4;
    const Masks got = masks(shape, rank, true);
    EXPECT_EQ(got.a, 0x1111 << x);
    EXPECT_EQ(got.b, (x % 2 ? 0xa : 0x5) << 4 * y);
    EXPECT_EQ(got.commit, (x < 2 ? 0x3333 : 0xcccc) | 0xf << 4 * y);
    EXPECT_EQ(got.arrivals, 5);
    EXPECT_EQ(got.commit, masks(shape, pair_peer(rank), true).commit);
  }
}

TEST(ClusterTest, RanksAndCoordinates) {
  constexpr ClusterShape shape{3, 5};
  for (int rank = 0; rank < cluster_size(shape); ++rank) {
    EXPECT_EQ(rank_of(shape, coord_of(shape, rank)), rank);
  }
  static_assert(coord_of({4, 4}, 11) == ClusterCoord{3, 2});
  static_assert(pair_peer(6) == 7 && pair_peer(7) == 6);
  static_assert(is_pair_leader(6) && !is_pair_leader(7));
  static_assert(pair_leader_address(7u << 24 | 0x400) == (6u << 24 | 0x400));
  static_assert(pair_leader_address(6u << 24 | 0x400) == (6u << 24 | 0x400));
}

TEST(ClusterTest, LegalShapes) {
  static_assert(cluster_fault({1, 1}) == ClusterFault::none);
  static_assert(cluster_fault({3, 5}) == ClusterFault::none);
  static_assert(cluster_fault({16, 1}) == ClusterFault::none);
  static_assert(cluster_fault({0, 4}) == ClusterFault::extent_below_one);
  static_assert(cluster_fault({4, -1}) == ClusterFault::extent_below_one);
  static_assert(cluster_fault({8, 4}) == ClusterFault::too_many_ctas);
  static_assert(cluster_fault({2147483647, 2147483647}) == ClusterFault::too_many_ctas);
  static_assert(cluster_fault({3, 2}, true) == ClusterFault::pair_needs_even_m);
  static_assert(cluster_fault({3, 2}, false) == ClusterFault::none);
}

TEST(ClusterTest, NearestLegalShape) {
  static_assert(nearest_legal({4, 4}) == ClusterShape{4, 4});
  static_assert(nearest_legal({0, 4}) == ClusterShape{1, 4});
  static_assert(nearest_legal({8, 4}) == ClusterShape{8, 2});
  static_assert(nearest_legal({17, 1}) == ClusterShape{16, 1});
  static_assert(nearest_legal({1, 2000000000}) == ClusterShape{1, 16});
  static_assert(nearest_legal({-2000000000, 2}) == ClusterShape{1, 2});
  static_assert(nearest_legal({1, 1}, true) == ClusterShape{2, 1});
  static_assert(nearest_legal({3, 2}, true) == ClusterShape{4, 2});
  for (const bool pair : {false, true}) {
    for (int m = -1; m <= 18; ++m) {
      for (int n = -1; n <= 18; ++n) {
        EXPECT_EQ(cluster_fault(nearest_legal({m, n}, pair), pair), ClusterFault::none);
      }
    }
  }
}

TEST(ClusterTest, Slices) {
  static_assert(slices_evenly(128, 4));
  static_assert(slices_evenly(192, 3));
  static_assert(!slices_evenly(128, 3));
  static_assert(!slices_evenly(64, 16));
  static_assert(slices_evenly(256, 4, 64));
  static_assert(!slices_evenly(128, 4, 64));
}

TEST(ClusterTest, LayoutVmnk) {
  EXPECT_EQ(layout::to_text(cluster_layout_vmnk({4, 4}, false)), "((1),4,4,1):((0),1,4,0)");
  EXPECT_EQ(layout::to_text(cluster_layout_vmnk({4, 4}, true)), "((2),2,4,1):((1),2,4,0)");
  EXPECT_EQ(layout::to_text(cluster_layout_vmnk({2, 1}, true)), "((2),1,1,1):((1),0,0,0)");
  for (const bool pair : {false, true}) {
    for (int m = pair ? 2 : 1; m <= 16; m += pair ? 2 : 1) {
      for (int n = 1; n <= 16 / m; ++n) {
        const layout::Layout vmnk = cluster_layout_vmnk({m, n}, pair);
        const int v = pair ? 2 : 1;
        EXPECT_EQ(layout::size(vmnk, 1) + layout::size(vmnk, 2) - 1,
                  masks({m, n}, 0, pair).arrivals);
        for (int rank = 0; rank < m * n; ++rank) {
          const ClusterCoord at = coord_of({m, n}, rank);
          EXPECT_EQ(vmnk(at.x % v, at.x / v, at.y, 0), rank);
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::atom
