#include "warpwright/plan/moe/layers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::LayerConfig;
using Slots = kernel::SlotTiles<1>;

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

// Are weights of a product in this packed form what a kernel decodes, as the steps would?
bool serves_packed(const kernel::PackedOperands& has, const std::optional<PackedWeights>& form) {
  if (!form || form->format.tokens != has.tokens || form->format.code != has.code) return false;
  const PackedFormat& f = form->format;
  if (packed::has_float_codes(f)) return true;
  const GroupSums sums = packed::sums_for(f, form->sums);
  return f.zero_points == ZeroPoints::none && (sums == GroupSums::open || sums == GroupSums::exact);
}

// Are there so few tokens and weights that warps which multiply by themselves are fastest? By what
// an H200 said of five models (docs/log/moe.md).
bool suits_warps(const MixtureProblem& p) {
  using Map = kernel::WarpLayerMap;
  constexpr std::int64_t million = std::int64_t{1} << 20;
  // Where slots are fewer, warps share the K of an expert's block of the second product.
  constexpr std::int64_t some_slots = 4;
  const std::int64_t most = p.is_packed() && p.slots() >= some_slots ? 112 * million
                            : p.quantises()                          ? 16 * million
                                                                     : 48 * million;
  return p.is_routed() && p.slots() <= Map::most_slots &&
         p.tokens() * kernel::token_row_bytes(p.hidden()) <= Map::token_bytes &&
         p.slots() * p.inner() * p.hidden() <= most;
}
// Has the K of both products whole units of so many elements?
bool has_units(const MixtureProblem& p, std::int64_t unit) {
  return p.hidden() % unit == 0 && p.inner() % unit == 0;
}

// Does it multiply such weights by such tokens?
bool serves(const LayerConfig& c, const MixtureProblem& p) {
  const bool quantises = kernel::quantises_rows(c);
  if (p.x.dtype != (quantises ? DType::bf16 : kernel::operand_b(c.first).type)) return false;
  if (kernel::packed_a(c.first)) {
    const auto& has = c.first.operands.as<kernel::PackedOperands>();
    // Warps by themselves keep scales of up to 16 bits.
    const auto is_kept = [&](const std::optional<PackedWeights>& form) {
      return !kernel::by_warps(c) || form->format.scale != DType::f32;
    };
    return p.is_packed() && serves_packed(has, p.packed13) && serves_packed(has, p.packed2) &&
           is_kept(p.packed13) && is_kept(p.packed2) && (!kernel::by_warps(c) || has_units(p, 8));
  }
  if (p.is_packed() || p.w13.dtype != kernel::operand_a(c.first).type) return false;
  // Their stages are whole: what filled one up might be infinite. For e4m3 that is a block of
  // scales.
  if (kernel::by_warps(c) && !has_units(p, 2 * kernel::unit_k(c))) return false;
  return quantises ? p.scaling == Scaling::blockwise && !p.has_small_blocks()
                   : p.scaling == Scaling::none;
}

// Is there a kernel whose warps multiply by themselves, and is it fastest?
bool goes_by_warps(const MixtureProblem& p) {
  return suits_warps(p) && std::ranges::any_of(kernel::hopper::layer_rows, [&](const auto& row) {
           return kernel::by_warps(row.config) && serves(row.config, p);
         });
}

// Why such a mixture has no such kernel, or nothing.
std::optional<Refusal> form_fault(const MixtureProblem& p) {
  if (p.slots() > Slots::most_slots) {
    return refused(" of ", p.slots(), " slots; ",
                   as_rule("one launch takes up to ", Slots::most_slots, " slots"));
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
  const bool is_known = p.bias2.dtype == DType::f32 || p.bias2.dtype == p.x.dtype;
  if (is_given(p.bias2) && (!is_known || p.bias2.row_stride != 1)) {
    return refused(", and bias2 is ", type_name(p.bias2.dtype), " with a stride of ",
                   p.bias2.row_stride, "; ",
                   as_rule("one launch adds f32 or x's type, side by side"));
  }
  constexpr std::int64_t most_inner = std::int64_t{1} << 16;
  if (p.inner() > most_inner || p.hidden() > most_inner) {
    return refused(" of ", p.hidden(), " elements and ", p.inner(), " between the products; ",
                   as_rule("one launch takes up to ", most_inner, " of either"));
  }
  return std::nullopt;
}

// Do rows begin and end at multiples of 16 bytes?
bool lies_at_16_bytes(const PlannedMatrix& m) {
  const auto is_at = [&m](std::int64_t elements) {
    return elements * numeric::bits(m.dtype) % 128 == 0;
  };
  return m.alignment >= 16 && is_at(m.columns) && (m.rows < 2 || is_at(m.row_stride));
}

// The tokens of an expert that has many of them, as a router spreads them.
double many_tokens(const MixtureProblem& p) {
  const double mean = static_cast<double>(p.slots()) / static_cast<double>(p.total());
  return std::min(static_cast<double>(p.tokens()), 2 * mean + 2);
}

// Experts of which a router that likes all alike chooses some.
double hit_experts(const MixtureProblem& p) {
  const auto total = static_cast<double>(p.total());
  const double missed = std::pow(1 - 1 / total, static_cast<double>(p.slots()));
  return std::max(1.0, static_cast<double>(p.experts()) * (1 - missed));
}

}  // namespace

const LayerConfig& layer_config(int layer) {
  return kernel::hopper::layer_rows[static_cast<std::size_t>(layer)].config;
}

LayerTiles layer_tiles(const MixtureProblem& p, MixtureWay way) {
  const LayerConfig& c = layer_config(way.layer);
  return {pieces(p.inner(), kernel::weight_rows(c, false)),
          pieces(p.hidden(), kernel::weight_rows(c, true)),
          std::max<std::int64_t>(1, tile::GroupedTiles::most_token_tiles(p.slots(), p.experts(),
                                                                         kernel::tile_tokens(c)))};
}

std::int64_t layer_flag_bytes(const MixtureProblem& p, MixtureWay way) {
  // The same for any number of tokens: so launches of a layer leave each other's flags as they are.
  const std::int64_t tokens = Slots::most_slots / p.top_k();
  return kernel::LayerParams::flag_bytes(p.experts(), tokens, layer_tiles(p, way).second);
}

bool pays_in_one_launch(const MixtureProblem& p, const DeviceFacts& device,
                        const MixtureChoices& choices) {
  // On the model steps are what is looked at; and their bits are those of any number of tokens.
  if (device.is_model || choices.batch_invariant) return false;
  constexpr std::int64_t few_tokens = 4;
  constexpr std::int64_t few_tokens_of_e2m1 = 8;
  constexpr std::int64_t long_rows = 2048;
  // Codes of few tiles wait for the warpgroup that decodes them; small experts for what lies
  // between their products.
  if (p.is_packed()) {
    const bool is_e2m1 = packed::has_float_codes(p.packed13->format);
    return p.is_routed() && p.tokens() <= (is_e2m1 ? few_tokens_of_e2m1 : few_tokens);
  }
  if (goes_by_warps(p)) return true;
  if (p.quantises() || p.has_codes()) return false;
  return p.inner() >= long_rows && (p.is_routed() || p.tokens() <= few_tokens);
}

// Warps that multiply by themselves share the K of a block of the second product so that each has
// a job.
static void share_among_warps(const MixtureProblem& p, MixtureWay& way) {
  const LayerConfig& c = layer_config(way.layer);
  const auto wanted = static_cast<std::int64_t>(c.warps / hit_experts(p));
  const std::int64_t most =
      std::min({wanted, kernel::WarpLayerMap::sum_rows / std::max<std::int64_t>(p.slots(), 1),
                pieces(p.inner(), 2 * kernel::unit_k(c))});
  way.k_parts = static_cast<int>(std::max<std::int64_t>(most, 1));
}

MixtureWay layer_way(const MixtureProblem& p, const DeviceFacts& device,
                     const MixtureChoices& choices, int layer) {
  MixtureWay way{.by_index = true, .early = choices.early_weights.value_or(true), .layer = layer};
  if (kernel::by_warps(layer_config(layer))) {
    share_among_warps(p, way);
    return way;
  }
  // Where bits are to be those of any number of tokens, they are those of a launch for each step.
  if (choices.batch_invariant) return way;
  // As many parts as give each CTA two items, none of fewer than so many elements of K.
  constexpr std::int64_t least = 1024;
  constexpr std::int64_t most_of_an_sm = 8;
  const LayerConfig& c = layer_config(layer);
  const LayerTiles tiles = layer_tiles(p, way);
  const std::int64_t most = most_of_an_sm / c.first.ctas_per_sm;
  if (tiles.second * tiles.most_tokens * most >= kernel::LayerParams::seen) return way;
  const double items = static_cast<double>(tiles.second) * hit_experts(p);
  const int ctas = c.first.ctas_per_sm * std::max(device.sms, 1);
  const auto wanted = static_cast<std::int64_t>(std::lround(2 * ctas / items));
  const std::int64_t count = std::clamp<std::int64_t>(std::min(wanted, p.inner() / least), 1, most);
  const std::int64_t k_tiles = pieces(p.inner(), kernel::tile_k(c.second));
  way.k_parts = static_cast<int>(pieces(k_tiles, pieces(k_tiles, count)));
  return way;
}

Result<int> layer_of(const MixtureProblem& p, const DeviceFacts& device,
                     const MixtureChoices& choices) {
  if (device.architecture != 90) {
    return refused(" on ", device.name, ", which is sm_", device.architecture, "; ",
                   as_rule("one launch is for sm_90"));
  }
  if (auto r = choice_fault(choices)) return *r;
  if (auto r = form_fault(p)) return *r;
  // The narrowest tiles that hold the tokens of an expert, else the widest: so are most stages.
  int layer = -1;
  int number = 0;
  for (const kernel::LayerRow& row : kernel::hopper::layer_rows) {
    const bool is_wide_enough =
        layer >= 0 && many_tokens(p) <= kernel::tile_tokens(layer_config(layer));
    // Warps by themselves add up in another order than the steps.
    const bool fits = !kernel::by_warps(row.config) || (suits_warps(p) && !choices.batch_invariant);
    if (fits && serves(row.config, p) && !is_wide_enough) layer = number;
    ++number;
    if (layer >= 0 && kernel::by_warps(layer_config(layer))) break;
  }
  if (layer >= 0 && kernel::quantises_rows(layer_config(layer)) && !lies_at_16_bytes(p.x)) {
    return refused(" of tokens whose rows do not begin and end at multiples of 16 bytes; ",
                   as_rule("one launch quantises rows that do"));
  }
  if (layer >= 0) {
    const LayerTiles tiles = layer_tiles(p, {.layer = layer});
    const std::int64_t counted =
        tiles.most_tokens *
        std::max(tiles.first * kernel::counting_warps(layer_config(layer)), tiles.second);
    if (counted < kernel::LayerParams::seen) return layer;
    return refused(" of ", p.slots(), " slots, ", p.hidden(), " elements and ", p.inner(),
                   " between the products; ",
                   as_rule("one launch counts tiles of all tokens of an expert to ",
                           kernel::LayerParams::seen));
  }
  return refused(
      " of ", type_name(p.x.dtype), " by ", type_name(p.w13.dtype), ", scaling ", name(p.scaling),
      "; ",
      as_rule("one launch takes tokens of bf16 by weights of bf16 without scales, packed "
              "for bf16 (e2m1, or int4 with exact sums and no zero points), or, up to ",
              kernel::WarpLayerMap::most_slots,
              " slots of small experts, of e4m3 with scales of 128 x 128"));
}

}  // namespace warpwright
