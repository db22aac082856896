#include "warpwright/atom/mask_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

namespace warpwright::atom {
namespace {

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string cluster_text(ClusterShape shape) {
  return std::to_string(shape.m) + "," + std::to_string(shape.n);
}

std::optional<ClusterShape> parse_cluster(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const std::optional<int> m = parse_int(text.substr(0, comma));
  const std::optional<int> n = parse_int(text.substr(comma + 1));
  if (!m || !n) return std::nullopt;
  return ClusterShape{*m, *n};
}

std::string mask_line(ClusterShape shape, int rank, bool pair) {
  const Masks set = masks(shape, rank, pair);
  char line[96];
  std::snprintf(line, sizeof line, "rank %d A 0x%04x B 0x%04x commit 0x%04x arrivals %d", rank,
                set.a, set.b, set.commit, set.arrivals);
  return line;
}

std::string cluster_refusal(ClusterShape shape, bool pair) {
  const ClusterFault fault = cluster_fault(shape, pair);
  if (fault == ClusterFault::none) return {};
  return "cluster " + cluster_text(shape) + ": " + sentence(fault) +
         "; the nearest legal cluster is " + cluster_text(nearest_legal(shape, pair)) + ".";
}

std::string rank_refusal(ClusterShape shape, int rank) {
  const int last = cluster_size(shape) - 1;
  if (rank >= 0 && rank <= last) return {};
  return "rank " + std::to_string(rank) + ": cluster " + cluster_text(shape) + " has ranks 0 to " +
         std::to_string(last) + "; the nearest legal rank is " +
         std::to_string(std::clamp(rank, 0, last)) + ".";
}

}  // namespace warpwright::atom
