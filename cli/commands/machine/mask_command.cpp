#include "cli/commands/machine/mask_command.h"

#include <algorithm>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
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

atom::ClusterShape cluster_of(const std::string& cluster, bool pair, std::optional<int> rank) {
  const std::optional<atom::ClusterShape> shape = atom::parse_cluster(cluster);
  if (!shape) {
    throw InputError("cluster \"" + cluster +
                     "\": a cluster is written M,N, two integers whose product is at most 16; " +
                     "for example " + as_nearest(pair ? "2,1" : "1,1") + ".");
  }
  require_legal(atom::cluster_refusal(*shape, pair), sentence(atom::cluster_fault(*shape, pair)),
                atom::cluster_text(atom::nearest_legal(*shape, pair)));
  if (rank) {
    require_legal(atom::rank_refusal(*shape, *rank), "",
                  std::to_string(std::clamp(*rank, 0, atom::cluster_size(*shape) - 1)));
  }
  return *shape;
}

void add_mask_choices(CLI::App& app, MaskOptions& o) {
  const Values add(app);
  offer(
      add("--cluster", o.cluster, "M,N", "CTAs along M and along N, at most 16 in all")->required(),
      "1,1 2,1 1,2 2,2 4,1 1,4 4,2 2,4 8,1 1,8 4,4");
  app.add_flag("--pair", o.pair, "for MMAs of a pair of SMs");
  add("--rank", o.rank, "R", "only for this CTA", whole(0, 15));
}

void add_mask_command(CLI::App& app, MaskOptions& o) {
  CLI::App* mask = app.add_subcommand("mask", "the multicast and commit masks of a cluster");
  add_mask_choices(*mask, o);
  mask->add_flag("--json", o.json, "for programs");
  mask->footer(
      "Examples:\n"
      "  warpwright mask --cluster 4,4 --rank 11\n"
      "  warpwright mask --cluster 2,1 --pair");
}

int mask_command(const MaskOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    const atom::ClusterShape shape = cluster_of(o.cluster, o.pair, o.rank);
    const int first = o.rank.value_or(0);
    const int last = o.rank.value_or(atom::cluster_size(shape) - 1);
    if (o.json) {
      out << json_text(to_json(shape, o.pair, first, last));
      return 0;
    }
    for (int r = first; r <= last; ++r) out << atom::mask_line(shape, r, o.pair) << "\n";
    return 0;
  });
}

}  // namespace warpwright::cli
