// The cluster masks in words: what `warpwright masks` prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warpwright/atom/cluster.h"

namespace warpwright::atom {

/// "M,N" as a shape, for example "4,4"; nothing when the text is not two decimal integers. The
/// shape need not be legal.
std::optional<ClusterShape> parse_cluster(std::string_view text);

/// The shape as it is typed: "4,4".
std::string cluster_text(ClusterShape shape);

/// One line without a newline: "rank 0 A 0x1111 B 0x000f commit 0x111f arrivals 7". The shape and
/// the rank must be legal.
std::string mask_line(ClusterShape shape, int rank, bool pair);

/// One sentence that names the rule a shape breaks and the nearest legal shape; empty when the
/// shape is legal.
std::string cluster_refusal(ClusterShape shape, bool pair);

/// One sentence that names the ranks a legal shape has and the nearest one; empty when `rank` is
/// one of them.
std::string rank_refusal(ClusterShape shape, int rank);

}  // namespace warpwright::atom
