#include "warpwright/atom/mask_text.h"

#include <gtest/gtest.h>

namespace warpwright::atom {
namespace {

TEST(MaskTextTest, Parse) {
  EXPECT_EQ(parse_cluster("4,4"), (ClusterShape{4, 4}));
  EXPECT_EQ(parse_cluster("0,-3"), (ClusterShape{0, -3}));
  for (const char* bad : {"", "4", "4,", ",4", "4,4,1", "4 ,4", "4x4", "a,b", "99999999999,1"}) {
    EXPECT_EQ(parse_cluster(bad), std::nullopt) << bad;
  }
}

TEST(MaskTextTest, Lines) {
  EXPECT_EQ(mask_line({4, 4}, 0, false), "rank 0 A 0x1111 B 0x000f commit 0x111f arrivals 7");
  EXPECT_EQ(mask_line({4, 4}, 11, false), "rank 11 A 0x8888 B 0x0f00 commit 0x8f88 arrivals 7");
  EXPECT_EQ(mask_line({4, 4}, 14, true), "rank 14 A 0x4444 B 0x5000 commit 0xfccc arrivals 5");
}

TEST(MaskTextTest, Refusals) {
  EXPECT_EQ(cluster_refusal({3, 5}, false), "");
  EXPECT_EQ(cluster_refusal({8, 4}, false),
            "cluster 8,4: a cluster has at most 16 CTAs; the nearest legal cluster is 8,2.");
  EXPECT_EQ(cluster_refusal({3, 2}, true),
            "cluster 3,2: a CTA pair lies along M, so the cluster's M must be even; the nearest "
            "legal cluster is 4,2.");
  EXPECT_EQ(cluster_refusal({0, 2}, false),
            "cluster 0,2: a cluster has at least one CTA along M and along N; the nearest legal "
            "cluster is 1,2.");
  EXPECT_EQ(rank_refusal({4, 4}, 15), "");
  EXPECT_EQ(rank_refusal({4, 2}, 8),
            "rank 8: cluster 4,2 has ranks 0 to 7; the nearest legal rank is 7.");
  EXPECT_EQ(rank_refusal({4, 2}, -1),
            "rank -1: cluster 4,2 has ranks 0 to 7; the nearest legal rank is 0.");
}

}  // namespace
}  // namespace warpwright::atom
