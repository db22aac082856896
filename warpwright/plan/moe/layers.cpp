#include "warpwright/plan/moe/layers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "warpwright/kernel/hopper/layer_config.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::LayerConfig;
using Slots = kernel::SlotTiles<1>;

const LayerConfig& config_of(int layer) {
  return kernel::hopper::layer_rows[static_cast<std::size_t>(layer)].config;
}

template <class... Why>
Refusal refused(const Why&... why) {
  return refuse(RefusalCode::bad_choice, "one_launch is asked for", why..., ": the nearest is ",
                as_nearest("false"));
}

// Why one launch does not go with what else is asked for, or nothing.
std::optional<Refusal> choice_fault(const MixtureChoices& choices) {
  const std::pair<bool, const char*> others[] = {
      {!choices.by_index.value_or(true), "by_index is false"},
      {choices.quantises_in_epilogue.value_or(false), "quantises_in_epilogue is true"},
      {!choices.gates_in_epilogue.value_or(true), "gates_in_epilogue is false"},
      {choices.sort_with_gather.value_or(false), "sort_with_gather is true"},
      {choices.sort_parts.has_value(), "sort_parts is given"},
      {choices.first_kernel.has_value(), "first_kernel is given"},
      {choices.second_kernel.has_value(), "second_kernel is given"}};
  for (const auto& [is_asked, words] : others) {
    if (!is_asked) continue;
    return refused(", and ", words, "; ",
                   as_rule("a layer in one launch sorts, gates and multiplies by its own kernel"));
  }
  return std::nullopt;
}

// Why such a mixture has no such kernel, or nothing.
std::optional<Refusal> form_fault(const MixtureProblem& p) {
  if (p.slots() > Slots::most_slots) {
    return refused(" of ", p.slots(), " slots; ",
                   as_rule("one launch takes up to ", Slots::most_slots, " slots"));
  }
  if (p.x.dtype != DType::bf16 || p.w13.dtype != DType::bf16 || p.is_packed() ||
      p.scaling != Scaling::none) {
    return refused(" of ", type_name(p.x.dtype), " by ", type_name(p.w13.dtype), ", scaling ",
                   name(p.scaling), "; ",
                   as_rule("one launch takes weights and tokens of bf16 without scales"));
  }
  if (!p.is_gated || gates_behind(p.activation)) {
    return refused(!p.is_gated ? std::string(" without a gate")
                               : ", and activation is " + std::string(name(p.activation)),
                   "; ", as_rule("one launch gates in the epilogue of the first product"));
  }
  if (p.combine != Combine::sum || p.apply_router_weight_on_input) {
    return refused(p.combine != Combine::sum ? ", and combine is " + std::string(name(p.combine))
                                             : std::string(", and apply_router_weight_on_input"),
                   "; ", as_rule("one launch adds up rows times their router weights"));
  }
  constexpr std::int64_t most_inner = std::int64_t{1} << 16;
  if (p.inner() > most_inner || p.hidden() > most_inner) {
    return refused(" of ", p.hidden(), " elements and ", p.inner(), " between the products; ",
                   as_rule("one launch takes up to ", most_inner, " of either"));
  }
  return std::nullopt;
}

// The tokens of an expert that has many of them, as a router spreads them.
double many_tokens(const MixtureProblem& p) {
  const double mean = static_cast<double>(p.slots()) / static_cast<double>(p.total());
  return std::min(static_cast<double>(p.tokens()), 2 * mean + 2);
}

}  // namespace

LayerTiles layer_tiles(const MixtureProblem& p, MixtureWay way) {
  const LayerConfig& c = config_of(way.layer);
  return {pieces(p.inner(), kernel::result_rows(c.first)),
          pieces(p.hidden(), kernel::result_rows(c.second)),
          std::max<std::int64_t>(1, tile::GroupedTiles::most_token_tiles(p.slots(), p.experts(),
                                                                         kernel::tile_tokens(c)))};
}

std::int64_t layer_flag_bytes(const MixtureProblem& p, MixtureWay way) {
  // The same for any number of tokens: so launches of a layer leave each other's flags as they are.
  const std::int64_t tokens = Slots::most_slots / p.top_k();
  return kernel::LayerParams::flag_bytes(p.experts(), tokens, layer_tiles(p, way).second);
}

Result<int> layer_of(const MixtureProblem& p, const DeviceFacts& device,
                     const MixtureChoices& choices) {
  if (device.architecture != 90) {
    return refused(" on ", device.name, ", which is sm_", device.architecture, "; ",
                   as_rule("one launch is for sm_90"));
  }
  if (auto r = choice_fault(choices)) return *r;
  if (auto r = form_fault(p)) return *r;
  // The narrowest tiles that hold the tokens of an expert: so are most stages.
  int layer = 0;
  for (const kernel::LayerRow& row : kernel::hopper::layer_rows) {
    if (many_tokens(p) <= kernel::tile_tokens(row.config)) break;
    if (&row != &kernel::hopper::layer_rows.back()) ++layer;
  }
  return layer;
}

}  // namespace warpwright
