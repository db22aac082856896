#include "cli/commands/machine/mask_command.h"

#include <algorithm>

#include "cli/commands/gemm/run.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/atom/mask_text.h"

namespace warpwright::cli {
namespace {

void require_legal(Sentence refusal, const std::string& rule, const std::string& nearest) {
  if (refusal.reason.empty()) return;
  refusal.rule = rule;
  refusal.nearest = nearest;
  throw InputError(std::move(refusal), name(RefusalCode::bad_choice));
}

nlohmann::ordered_json to_json(atom::ClusterShape shape, bool pair, int first, int last) {
  nlohmann::ordered_json json;
  json["cluster"] = {shape.m, shape.n};
  json["pair"] = pair;
  json["ranks"] = nlohmann::ordered_json::array();
  for (int rank = first; rank <= last; ++rank) {
    const atom::Masks set = atom::masks(shape, rank, pair);
    json["ranks"].push_back({{"rank", rank},
                             {"a", set.a},
                             {"b", set.b},
                             {"commit", set.commit},
                             {"arrivals", set.arrivals}});
  }
  return json;
}

}  // namespace

int mask_command(const std::string& cluster, bool pair, std::optional<int> rank, bool json,
                 std::ostream& out, std::ostream& err) {
  return exit_status(out, err, json, [&] {
    const std::optional<atom::ClusterShape> shape = atom::parse_cluster(cluster);
    if (!shape) {
      throw InputError("cluster \"" + cluster +
                       "\": a cluster is written M,N, two integers whose product is at most 16; " +
                       "for example " + as_nearest(pair ? "2,1" : "1,1") + ".");
    }
    require_legal(atom::cluster_refusal(*shape, pair), sentence(atom::cluster_fault(*shape, pair)),
                  atom::cluster_text(atom::nearest_legal(*shape, pair)));
    const int ranks = atom::cluster_size(*shape);
    if (rank) {
      require_legal(atom::rank_refusal(*shape, *rank), "",
                    std::to_string(std::clamp(*rank, 0, ranks - 1)));
    }
    const int first = rank.value_or(0);
    const int last = rank.value_or(atom::cluster_size(*shape) - 1);
    if (json) {
      out << json_text(to_json(*shape, pair, first, last));
      return 0;
    }
    for (int r = first; r <= last; ++r) out << atom::mask_line(*shape, r, pair) << "\n";
    return 0;
  });
}

}  // namespace warpwright::cli
