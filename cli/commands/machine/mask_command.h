// `warpwright mask`: the multicast and commit masks of a cluster.
#pragma once

#include <optional>
#include <ostream>
#include <string>

namespace warpwright::cli {

/// Prints one line a rank, or the line of `rank` alone, for example
/// "rank 0 A 0x1111 B 0x000f commit 0x111f arrivals 7" (see docs/masks.md). `cluster` is "M,N";
/// `pair` asks for 2-SM MMAs. Returns 0, or 2 with one sentence on `err` that names the rule and
/// the nearest legal value.
int mask_command(const std::string& cluster, bool pair, std::optional<int> rank, bool json,
                 std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
