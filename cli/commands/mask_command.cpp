#include "cli/commands/mask_command.h"

#include "cli/files/printable.h"
#include "warpwright/atom/mask_text.h"

namespace warpwright::cli {

int mask_command(const std::string& cluster, bool pair, std::optional<int> rank, std::ostream& out,
                 std::ostream& err) {
  const auto refuse = [&err](const std::string& sentence) {
    err << printable(sentence) << "\n";
    return 2;
  };
  const std::optional<atom::ClusterShape> shape = atom::parse_cluster(cluster);
  if (!shape) {
    return refuse("cluster \"" + cluster +
                  "\": a cluster is written M,N, two integers whose product is at most 16; for "
                  "example " +
                  (pair ? "2,1." : "1,1."));
  }
  const std::string bad_shape = atom::cluster_refusal(*shape, pair);
  if (!bad_shape.empty()) return refuse(bad_shape);
  if (rank) {
    const std::string bad_rank = atom::rank_refusal(*shape, *rank);
    if (!bad_rank.empty()) return refuse(bad_rank);
    out << atom::mask_line(*shape, *rank, pair) << "\n";
    return 0;
  }
  for (int r = 0; r < atom::cluster_size(*shape); ++r) {
    out << atom::mask_line(*shape, r, pair) << "\n";
  }
  return 0;
}

}  // namespace warpwright::cli
