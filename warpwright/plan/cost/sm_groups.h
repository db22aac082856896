// Which SMs of a GPU stand together (in a GPC): what such SMs ask L2 for at about the same time is
// fetched once. The map differs from card to card and is found by looking where clusters land, as
// all CTAs of one are in one group. Nothing but speed may depend on it.
#pragma once

#include <map>
#include <span>
#include <vector>

namespace warpwright {

/// Where the CTAs of a grid were, one CTA an SM: the SM of each, by its index.
struct SeenGrid {
  int cluster_size = 1;
  std::vector<int> sms;
};

/// What was found out; empty where nothing was.
struct SmGroups {
  /// The group of each SM, by its number (%smid); -1 where it was in no cluster with others.
  std::vector<int> of_sm;
  int count = 0;
  /// By the size of its clusters: the group in which each cluster of a grid lands, by the cluster's
  /// index. For sizes that landed alike every time alone.
  std::map<int, std::vector<int>> of_clusters;

  friend bool operator==(const SmGroups&, const SmGroups&) = default;
};

/// Puts together what was seen, all of it on one GPU. Groups are numbered by their first SM. SMs
/// that were seen together in no chain of clusters come out as different groups, though they may be
/// of one.
SmGroups sm_groups(std::span<const SeenGrid> seen);

}  // namespace warpwright
