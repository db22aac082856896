#include "warpwright/simulation/coverage.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "warpwright/atom/mask_text.h"
#include "warpwright/facts/format.h"
#include "warpwright/kernel/moe/sort_shape.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/moe/steps.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/split.h"

namespace warpwright::device {
namespace {

using model::CompiledSite;

bool names_a_kernel(const CompiledSite& site) {
  static const std::unordered_set<std::string_view> names = [] {
    std::unordered_set<std::string_view> all;
    for (const KernelFacts* kernel : all_kernels()) all.insert(kernel->name);
    // Parts that only a layer in one launch has stand in files of all kernels too.
    for (const StepRow& row : step_rows()) {
      if (row.whole) all.insert({row.kernel, "SlotTiles", "TicketScheduler"});
    }
    return all;
  }();
  const std::vector<std::string_view> words = model::words_of(site.function);
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return names.contains(word); });
}

// A plan like `plan` of another product, or of other choices: would the kernel take it?
class Others {
 public:
  explicit Others(const Plan& plan) : plan_(plan), device_(plan.device) {
    device_.sms = std::max(device_.sms, 16);  // the model has as many as a cluster needs
  }

  template <class Change>
  [[nodiscard]] bool takes(const Change& change) const {
    GemmProblem problem = plan_.problem;
    PlanChoices choices{.kernel = plan_.kernel};
    change(problem, choices);
    return static_cast<bool>(plan(problem, device_, choices));
  }

 private:
  const Plan& plan_;
  DeviceFacts device_;
};

void set_scaling(GemmProblem& p, Scaling scaling) {
  p.scaling = scaling;
  p.scale_a = p.scale_b = {};
  if (scaling == Scaling::none) return;
  p.scale_a = {scale_shape(p, true)};
  p.scale_b = {scale_shape(p, false)};
}

void add_extents(const Plan& plan, std::int64_t tiles, std::vector<std::string>& ways) {
  const KernelFacts& facts = plan.facts();
  const GemmProblem& p = plan.problem;
  const std::int64_t k_tiles = (p.k() + facts.tile.k - 1) / facts.tile.k;
  if (facts.stages > 1 && k_tiles <= facts.stages) {
    ways.push_back(
        format("no tile longer than the ring (K above %d)", facts.stages * facts.tile.k));
  }
  if (facts.tiles != kernel::TileSource::one_tile && tiles <= plan.ctas) {
    ways.emplace_back("no CTA with a second tile");
  }
  if (p.k() % facts.tile.k == 0) ways.emplace_back("no ragged K");
  if (!p.is_grouped() && p.m() % facts.result_rows == 0) ways.emplace_back("no ragged M");
  if (result_columns(p) % facts.result_columns == 0) ways.emplace_back("no ragged N");
}

void add_epilogue(const Plan& plan, const Others& others, std::vector<std::string>& ways) {
  const GemmProblem& p = plan.problem;
  if (!p.reads_c() && others.takes([](GemmProblem& o, PlanChoices&) {
        o.c = packed_matrix(o.d.dtype, o.d.rows, o.d.columns);
        o.c.batch = o.d.batch;
        o.c.batch_stride = o.d.batch > 1 ? o.d.rows * o.d.columns : 0;
        o.beta = 1.0F;
      })) {
    ways.emplace_back("no C");
  }
  if (!p.has_bias() && others.takes([](GemmProblem& o, PlanChoices&) {
        o.epilogue.bias = Bias::columns;
        o.bias = packed_matrix(DType::f32, o.n(), 1);
      })) {
    ways.emplace_back("no bias");
  }
  constexpr std::pair<Scaling, const char*> scalings[] = {
      {Scaling::none, "no product without scales"},
      {Scaling::tensor, "no scales of tensors"},
      {Scaling::row_column, "no scales of rows and columns"}};
  for (const auto& [scaling, words] : scalings) {
    if (p.scaling != scaling &&
        others.takes([s = scaling](GemmProblem& o, PlanChoices&) { set_scaling(o, s); })) {
      ways.emplace_back(words);
    }
  }
}

void add_sharing(const Plan& plan, const Others& others, std::vector<std::string>& ways) {
  const KernelFacts& facts = plan.facts();
  const int size = atom::cluster_size(plan.cluster);
  if (std::any_of(facts.clusters.begin(), facts.clusters.end(), [&](const atom::ClusterShape& c) {
        return atom::cluster_size(c) > size &&
               others.takes([c](GemmProblem&, PlanChoices& o) { o.cluster = c; });
      })) {
    ways.push_back("no cluster beyond " + atom::cluster_text(plan.cluster));
  }
  if (facts.shares_cluster_k) {
    for (const int other : {3, 2}) {
      if (plan.cluster_k == other ||
          !others.takes([other](GemmProblem&, PlanChoices& o) { o.cluster_k = other; })) {
        continue;
      }
      ways.push_back(format("no %d CTAs that share a tile", other));
      break;
    }
  }
  const auto has = [&facts](const char* feature) {
    return std::find(facts.features.begin(), facts.features.end(), feature) != facts.features.end();
  };
  if (has("split-K in slices") && plan.ctas < 2 * plan.tiles()) {
    ways.emplace_back("no tile split along K");
  }
  const bool splits = has("stream-K");
  if (!splits || plan.ctas == 0) return;
  const auto clusters = static_cast<int>(plan.ctas / plan.cluster_ctas());
  const auto tiles = static_cast<int>(plan.tiles() / size);
  const int rest = tiles % clusters;
  if (rest == 0) {
    ways.emplace_back("no tile split along K");
  } else if (tile::SplitPlan::piece_count(tiles, clusters) <= 2 * rest) {
    ways.emplace_back("no tile of three parts along K");
  }
}

}  // namespace

namespace {

// Those of the compiled statements that `belongs` says.
template <class Belongs>
Coverage coverage_of(const std::vector<model::SyncSite>& ran, const Belongs& belongs) {
  std::vector<CompiledSite> all = model::compiled_sites();
  std::erase_if(all, [&](const CompiledSite& site) { return !belongs(site); });
  std::set<std::pair<std::string_view, int>> places;
  for (const CompiledSite& site : all) places.insert({site.file, site.line});
  return {.known = model::lists_sites,
          .statements = static_cast<int>(places.size()),
          .untried = model::not_among(all, ran)};
}

std::set<std::string_view> files_of(const std::vector<model::SyncSite>& ran) {
  std::set<std::string_view> files;
  for (const model::SyncSite& site : ran) files.insert(site.file);
  return files;
}

}  // namespace

Coverage coverage(const Plan& plan, const std::vector<model::SyncSite>& ran) {
  return coverage_of(ran, [&, files = files_of(ran)](const CompiledSite& site) {
    return model::has_word(site, plan.kernel) ||
           (files.contains(site.file) && !names_a_kernel(site));
  });
}

Coverage coverage(const MixturePlan& plan, const std::vector<model::SyncSite>& ran) {
  for (const StepRow& row : rows_of(plan)) {
    if (row.whole) return coverage({row.code.begin(), row.code.end()}, ran);
  }
  return coverage_of(ran, [&, files = files_of(ran)](const CompiledSite& site) {
    const bool is_beside = site.file.starts_with("warpwright/kernel/moe/");
    return model::has_word(site, plan.first.kernel) || model::has_word(site, plan.second.kernel) ||
           ((is_beside || files.contains(site.file)) && !names_a_kernel(site));
  });
}

Coverage coverage(const std::vector<std::string>& words, const std::vector<model::SyncSite>& ran) {
  return coverage_of(ran, [&](const CompiledSite& site) {
    return std::ranges::any_of(words, [&](const auto& w) { return model::has_word(site, w); });
  });
}

std::vector<std::string> untried_ways(const MixturePlan& plan, const MixtureOperands& operands,
                                      std::int64_t rows) {
  const MixtureProblem& p = plan.problem;
  if (p.tokens() == 0) return {"nothing was launched"};
  std::vector<std::string> ways;
  const auto takes = [&](const MixtureChoices& choices) {
    return static_cast<bool>(plan_moe(p, plan.device, choices));
  };
  const auto add = [&](bool is_there, const char* words) {
    if (is_there) ways.emplace_back(words);
  };
  const auto add_ids = [&] {
    add(p.experts() == p.total(), "no rank of several");
    add(rows == p.slots(), "no slot that is left out");
    add(operands.id_type == OffsetType::int32, "no ids of 64 bits");
    return ways;
  };
  if (plan.way.one_launch()) return add_ids();
  using kernel::SortSlotsShape;
  add(takes({.one_launch = true}), "no layer in one launch");
  add(plan.way.sorts_rows, "no sort by a launch of its own");
  add(!plan.way.sorts_rows && takes({.sort_with_gather = true}), "no sort beside a gather");
  add(p.slots() <= SortSlotsShape::one_cta || plan.way.sort_parts > 0, "no sort in a cluster");
  add(plan.way.sort_parts == 0 && p.slots() <= SortSlotsShape::most_at_once,
      "no sort in three launches");
  add(!plan.takes(MixtureStep::gather), "no gather by a launch of its own");
  add(!plan.way.by_index && takes({.by_index = true}), "no tokens by number");
  add(plan.way.fused || plan.way.gates_behind, "no rows quantised by a launch");
  add(plan.way.gates_behind, "no rows gated by the product");
  add(!plan.way.gates_behind && takes({.gates_in_epilogue = false}), "no rows gated by a launch");
  add(!plan.way.fused && takes({.quantises_in_epilogue = true}),
      "no rows quantised by the product");
  return add_ids();
}

std::vector<std::string> untried_ways(const Plan& plan, std::int64_t tiles) {
  std::vector<std::string> ways;
  if (plan.ctas == 0 || !plan.problem.reads_ab()) return {"nothing was multiplied"};
  const Others others(plan);
  add_extents(plan, tiles, ways);
  add_epilogue(plan, others, ways);
  add_sharing(plan, others, ways);
  return ways;
}

}  // namespace warpwright::device
