// `warpwright mask`: the multicast and commit masks of a cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "warpwright/atom/cluster.h"

namespace warpwright::cli {

struct MaskOptions {
  std::string cluster;  ///< "M,N"
  bool pair = false;    ///< for 2-SM MMAs
  std::optional<int> rank;
  bool json = false;
};

/// Adds --cluster, --pair and --rank.
void add_mask_choices(CLI::App& app, MaskOptions& options);

/// The cluster that is written "M,N". Throws InputError with one sentence that names the rule and
/// the nearest legal value, also where it has no CTA `rank`.
atom::ClusterShape cluster_of(const std::string& cluster, bool pair, std::optional<int> rank);

void add_mask_command(CLI::App& app, MaskOptions& options);

/// Prints one line a rank, or only the line of `rank`, for example
/// "rank 0 A 0x1111 B 0x000f commit 0x111f arrivals 7" (see docs/masks.md). Returns 0, or 2 with
/// one sentence on `err`.
int mask_command(const MaskOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
