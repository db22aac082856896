// Why a search finds nothing, in sentences: choices that no kernel has, and what there is.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/search/search.h"

namespace warpwright {
namespace {

using kernel::TileSource;

const char* tiles_name(TileSource tiles) {
  constexpr const char* names[] = {"one tile a cluster", "static tiles", "tiles from CLC",
                                   "dynamic persistent tiles"};
  return names[static_cast<std::size_t>(tiles)];
}

bool runs_on(const KernelFacts& f, int architecture) {
  return std::find(f.architectures.begin(), f.architectures.end(), architecture) !=
         f.architectures.end();
}

// A choice of which most kernels know nothing: what it is called, whether it was made, and whether
// a kernel has something of that kind.
const char* schedule_name(kernel::Schedule schedule) {
  constexpr const char* names[] = {"cooperative", "pingpong", "multistage"};
  return names[static_cast<std::size_t>(schedule)];
}

struct Kind {
  std::string name;
  bool wanted;
  bool (*has)(const KernelFacts&, const PlanChoices&);
};

std::vector<Kind> kinds(const PlanChoices& c) {
  using F = const KernelFacts&;
  using C = const PlanChoices&;
  return {{"a cluster of several CTAs", c.cluster && atom::cluster_size(*c.cluster) != 1,
           [](F f, C) { return f.most_cluster_ctas() > 1; }},
          {"CTAs of a cluster that share a tile along K", c.cluster_k.value_or(1) != 1,
           [](F f, C) { return f.shares_cluster_k; }},
          {c.schedule ? "the schedule " + std::string(schedule_name(*c.schedule)) : "",
           c.schedule.has_value(), [](F f, C wanted) { return f.schedule == wanted.schedule; }},
          {"swapped operands", c.swap_ab.value_or(false), [](F f, C) { return f.swap_ab; }},
          {"pairs of SMs", c.pair.value_or(false), [](F f, C) { return f.pair; }},
          {"accumulators in tensor memory", c.accumulators.has_value(),
           [](F f, C) { return f.accumulators > 0; }},
          {c.tiles ? tiles_name(*c.tiles) : "", c.tiles.has_value(),
           [](F f, C wanted) { return f.tiles == *wanted.tiles; }}};
}

// "sm_90 and sm_100": of others than `own`, whose kernels with it are another family's.
std::string who_has(const Kind& kind, const PlanChoices& choices, int own) {
  std::set<int> architectures;
  for (const Family* family : families()) {
    for (const KernelFacts& f : family->kernels()) {
      if (kind.has(f, choices))
        architectures.insert(f.architectures.begin(), f.architectures.end());
    }
  }
  architectures.erase(own);
  std::string text;
  for (const int each : architectures) {
    text += (text.empty()                      ? "sm_"
             : each == *architectures.rbegin() ? " and sm_"
                                               : ", sm_") +
            number(each);
  }
  return text;
}

// Why so many CTAs of a cluster cannot share a tile along K.
std::optional<Refusal> along_k_fault(int ctas, const DeviceFacts& device) {
  int nearest = 1;
  bool is_known = false;
  for (const int each : ctas_along_k) {
    is_known = is_known || each == ctas;
    if (each <= device.sms && std::abs(each - ctas) < std::abs(nearest - ctas)) nearest = each;
  }
  if (nearest == ctas) return std::nullopt;
  return refuse(RefusalCode::bad_choice, "cluster_k is ", ctas,
                (is_known ? ", and device " + device.name + " has " + number(device.sms) + " SMs"
                          : std::string()),
                "; the nearest legal value is ", as_nearest(nearest));
}

// What is asked of the kernel, beside the product.
std::string wishes(const PlanChoices& choices, const Family& family) {
  std::string text;
  const auto wish = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (choices.batch_invariant) wish("sums that do not depend on the batch");
  if (choices.kernel) wish("the name " + *choices.kernel);
  const auto& all = family.kernels();
  const bool has_pairs = std::any_of(all.begin(), all.end(), [](const auto& f) { return f.pair; });
  if (choices.pair && has_pairs) wish(*choices.pair ? "pairs" : "MMAs of one SM");
  if (choices.tile_m) wish("tile_m " + number(*choices.tile_m));
  if (choices.tile_n) wish("tile_n " + number(*choices.tile_n));
  if (choices.tile_tokens) wish("tiles of " + number(*choices.tile_tokens) + " tokens");
  if (choices.accumulators) {
    wish(number(*choices.accumulators) +
         (*choices.accumulators == 1 ? " accumulator" : " accumulators"));
  }
  if (choices.schedule) {
    wish(std::string("the schedule ") + schedule_name(*choices.schedule));
  }
  if (choices.swap_ab) wish(*choices.swap_ab ? "swapped operands" : "operands not swapped");
  if (choices.tiles) wish(tiles_name(*choices.tiles));
  if (choices.search) wish("the search " + std::string(search_name(*choices.search)));
  if (choices.ctas) wish("a grid of " + number(*choices.ctas) + " CTAs");
  if (choices.cluster_k) wish(number(*choices.cluster_k) + " CTAs that share a tile along K");
  if (choices.cluster) {
    wish("cluster " + number(choices.cluster->m) + "x" + number(choices.cluster->n));
  }
  return text;
}

// The grid nearest to the one that nobody has, where another one would do.
Sentence nearest_grid(const Family& family, const Plan& start, PlanChoices choices) {
  const int asked = *std::exchange(choices.ctas, std::nullopt);
  const auto free = ways_of(family, Ask(start, choices), Rows::built);
  if (!free || free->empty() || free->front().ctas == 0) return {};
  const Candidate& one = free->front();
  const int size = atom::cluster_size(one.cluster) * one.cluster_k;
  const int most = one.kernel->ctas_per_sm * resident_ctas(start.device, size);
  choices.ctas = std::clamp(asked / size * size, size, std::max(size, most));
  const auto near = ways_of(family, Ask(start, choices), Rows::built);
  const int nearest = near && !near->empty() ? *choices.ctas : one.ctas;
  return "; the nearest legal grid has " + as_nearest(nearest) + " CTAs";
}

std::string names_of(std::span<const atom::ClusterShape> clusters) {
  std::string text;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == clusters.size() ? " and " : ", ");
    text += number(clusters[i].m) + "x" + number(clusters[i].n);
  }
  return text;
}

// ", tile_m 64 and 128".
std::string extents_of(const std::string& name, const std::set<int>& extents) {
  std::string text = ", " + name + " ";
  for (auto i = extents.begin(); i != extents.end(); ++i) {
    text += i == extents.begin() ? "" : std::next(i) == extents.end() ? " and " : ", ";
    text += number(*i);
  }
  return text;
}

// The way to quantise D that a kernel with A's scales has, where no kernel has the one asked for.
Sentence nearest_way(const Family& family, const GemmProblem& p, int architecture) {
  if (!is_micro(p.epilogue.quantise) || p.scaling != Scaling::block_scaled) return {};
  const DType scale = micro_scale(p, true);
  for (const KernelFacts& f : family.kernels()) {
    if (!f.built || !f.multiplies_scales(scale) || !runs_on(f, architecture)) continue;
    for (const QuantiseD way : all_quantisations) {
      const bool is_made = f.makes_scales(form_of(way).scale) && form_of(way).codes == f.result;
      if (!is_micro(way) || !is_made || way == p.epilogue.quantise) continue;
      return "; those with its scales quantise D as " + as_nearest(std::string(name(way)));
    }
  }
  return {};
}

// No kernel of this build serves the product, whatever is chosen.
Refusal none_serves(const Family& family, const Ask& ask) {
  const GemmProblem& p = ask.problem;
  const DeviceFacts& device = ask.start.device;
  const std::string kind = p.groups ? "no grouped kernel" : "no kernel";
  return refuse(RefusalCode::no_kernel, kind, family.whose(), " in this build multiplies ",
                operand_name(p, true), " by ", operand_name(p, false), " into ",
                type_name(p.d.dtype), " with ",
                (p.groups ? scaling_words(p.scaling) + block_words(scale_block_of(p)) + ", " +
                                (p.accumulation == Accumulation::fast ? "fast" : "promoted") +
                                " accumulation and this epilogue" +
                                (p.is_by_index() ? ", tokens by index" : "")
                          : std::string("these layouts, scales and epilogue")),
                " on sm_", device.architecture, nearest_way(family, p, device.architecture),
                scale_block_of(p) == scale_block || device.architecture == 90
                    ? ""
                    : "; those with scales" + block_words(scale_block_of(p)) +
                          " are for sm_90: the nearest block is " +
                          as_nearest(shape_of(scale_block, scale_block)));
}

// A kernel of another family than the device's.
std::optional<Refusal> device_lacks(const Family& family, const Ask& ask) {
  if (!ask.choices.kernel) return std::nullopt;
  const DeviceFacts& device = ask.start.device;
  for (const KernelFacts* f : all_kernels()) {
    if (f->name != *ask.choices.kernel || runs_on(*f, device.architecture)) continue;
    if (std::string_view(f->family) == family.kernels().front().family) continue;
    return refuse(RefusalCode::no_kernel, "the kernel ", f->name, " does not run on ", device.name,
                  " (sm_", device.architecture, "); ",
                  as_rule("leave the kernel open, or name another"));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> choices_fault(const Family& family, const Plan& start,
                                     const PlanChoices& choices) {
  if (choices == PlanChoices{}) return std::nullopt;
  const DeviceFacts& device = start.device;
  for (const Kind& kind : kinds(choices)) {
    if (!kind.wanted) continue;
    const auto& all = family.kernels();
    const bool is_known = std::any_of(all.begin(), all.end(), [&](const KernelFacts& f) {
      return runs_on(f, device.architecture) && kind.has(f, choices);
    });
    if (is_known) continue;
    const std::string others = who_has(kind, choices, device.architecture);
    return refuse(RefusalCode::bad_choice, "no kernel for ", device.name, " (sm_",
                  device.architecture, ") has ", kind.name,
                  (others.empty() ? "" : ", which those for " + others + " have"), ": ",
                  as_rule("leave it out"));
  }
  if (choices.cluster_k) {
    if (auto r = along_k_fault(*choices.cluster_k, device)) return r;
  }
  return family.choice_fault(start.problem, choices);
}

Refusal none_found(const Family& family, const Ask& ask) {
  const PlanChoices& choices = ask.choices;
  const DeviceFacts& device = ask.start.device;
  if (auto r = device_lacks(family, ask)) return *r;
  std::vector<ResultTile> tiles;
  std::string there;
  std::set<int> of_m, of_n;
  for (const KernelFacts& f : family.kernels()) {
    if (!f.built) continue;
    if (choices.kernel && *choices.kernel == f.name) {
      if (auto r = family.named_fault(f, ask)) return *r;
    }
    if (!family.serves(f, ask, false)) continue;
    tiles.push_back({f.result_rows, f.result_columns});
    of_m.insert(f.tile.m);
    of_n.insert(f.tile.n);
    if (tiles.size() <= 8) there += (there.empty() ? "" : ", ") + f.name;
    if (tiles.size() == 9) there += ", ...";
  }
  if (tiles.empty()) return none_serves(family, ask);
  if (auto r = tiles_fault(ask.problem, tiles)) return *r;
  if (choices.cluster && atom::cluster_size(*choices.cluster) > device.sms) {
    return cluster_too_large(atom::cluster_size(*choices.cluster), device, family.clusters());
  }
  const std::string kind = ask.problem.groups ? "no grouped kernel" : "no kernel";
  const std::string wanted = wishes(choices, family);
  return refuse(
      RefusalCode::no_kernel, kind, family.whose(), " ",
      (wanted.empty() ? "runs" : "has " + wanted + " for"), " this problem on ", device.name, "; ",
      as_rule("there are ", there, (choices.tile_m ? extents_of("tile_m", of_m) : ""),
              (choices.tile_n ? extents_of("tile_n", of_n) : ""),
              (family.clusters().size() > 1 ? ", and clusters " + names_of(family.clusters())
                                            : std::string()),
              (choices.ctas ? nearest_grid(family, ask.start, choices) : "")));
}

}  // namespace warpwright
