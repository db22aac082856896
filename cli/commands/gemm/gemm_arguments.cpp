#include "cli/commands/gemm/gemm_arguments.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>

#include "cli/commands/gemm/operand_files.h"
#include "cli/compute/token_lengths.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "cli/files/printable.h"
#include "warpwright/atom/mask_text.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

constexpr Words<Accumulation> kAccumulations = {{"fast", Accumulation::fast},
                                                {"promoted", Accumulation::promoted}};
constexpr Words<Bias> kBiases = {
    {"none", Bias::none}, {"rows", Bias::rows}, {"columns", Bias::columns}};
constexpr Words<bool> kGateUps = {{"halves", false}, {"interleaved", true}};
constexpr Words<std::pair<bool, bool>> kLayouts = {
    {"NT", {false, false}}, {"NN", {false, true}}, {"TN", {true, true}}, {"TT", {true, false}}};

[[noreturn]] void refuse_operand_types(const std::string& text) {
  throw InputError("--dtype is \"" + text + "\"; " +
                   as_rule("it must be ", operand_words(", "), format_words(", ", " or "),
                           ", or two 8-bit floats as \"e4m3,e5m2\" or two of the last as "
                           "\"mxf8,mxf4\"") +
                   ": the nearest is " + as_nearest("bf16") + ".");
}

DType operand_type(const std::string& word, const std::string& text) {
  const std::optional<DType> type = numeric::parse_dtype(word);
  if (type && is_operand_type(*type)) return *type;
  refuse_operand_types(text);
}

// The largest cluster of kernels of this device within the one that was asked for.
atom::ClusterShape nearest_cluster(atom::ClusterShape wanted, bool pair, const std::string& as) {
  const std::optional<DeviceFacts> facts = known_facts(as);
  atom::ClusterShape nearest{pair ? 2 : 1, 1};
  for (const KernelFacts* kernel : all_kernels()) {
    const auto& on = kernel->architectures;
    if (std::ranges::find(on, facts ? facts->architecture : 90) == on.end()) continue;
    for (const atom::ClusterShape& c : kernel->clusters) {
      const bool within = c.m <= wanted.m && c.n <= wanted.n && (!pair || c.m % 2 == 0);
      if (within && atom::cluster_size(c) > atom::cluster_size(nearest)) nearest = c;
    }
  }
  return nearest;
}

std::optional<atom::ClusterShape> parse_cluster(const std::string& text, bool pair,
                                                const std::string& as) {
  if (text.empty()) return std::nullopt;
  const std::optional<atom::ClusterShape> cluster = atom::parse_cluster(text);
  if (!cluster) {
    throw InputError("--cluster is \"" + text + "\"; " +
                     as_rule("it is written M,N with two integers, for example 2,1") + ".");
  }
  const atom::ClusterFault fault = atom::cluster_fault(*cluster, pair);
  if (fault == atom::ClusterFault::none) return cluster;
  throw InputError("cluster " + atom::cluster_text(*cluster) + ": " + as_rule(sentence(fault)) +
                   "; the nearest legal cluster is " +
                   as_nearest(atom::cluster_text(nearest_cluster(*cluster, pair, as))) + ".");
}

// What the arguments fix of the plan.
PlanChoices parse_choices(const GemmOptions& o) {
  PlanChoices choices;
  choices.cluster = parse_cluster(o.cluster, o.pair.value_or(false), o.as);
  choices.batch_invariant = o.batch_invariant;
  choices.tile_m = o.tile_m;
  choices.tile_n = o.tile_n;
  choices.tile_tokens = o.tile_tokens;
  choices.ctas = o.ctas;
  choices.cluster_k = o.cluster_k;
  choices.pair = o.pair;
  choices.accumulators = o.accumulators;
  if (!o.kernel.empty()) choices.kernel = o.kernel;
  choose<bool>(choices.swap_ab, "--swap-ab", o.swap_ab, {{"yes", true}, {"no", false}});
  choose<kernel::TileSource>(choices.tiles, "--scheduler", o.scheduler,
                             {{"one", kernel::TileSource::one_tile},
                              {"static", kernel::TileSource::static_persistent},
                              {"clc", kernel::TileSource::clc},
                              {"dynamic", kernel::TileSource::dynamic_persistent}});
  choose<kernel::Schedule>(choices.schedule, "--schedule", o.schedule,
                           {{"cooperative", kernel::Schedule::cooperative},
                            {"pingpong", kernel::Schedule::pingpong},
                            {"multistage", kernel::Schedule::multistage}});
  choose<kernel::Grouping>(choices.search, "--search", o.search,
                           {{"linear_scan", kernel::Grouping::linear_scan},
                            {"binary_search", kernel::Grouping::binary_search},
                            {"warp_scan", kernel::Grouping::warp_scan}});
  return choices;
}

// What is said of packed weights. Those of a file say the rest themselves.
void read_weights(const GemmOptions& o, GemmJob& job) {
  if (o.weights.empty()) {
    const char* given = o.group ? "--group" : !o.sums.empty() ? "--sums" : nullptr;
    if (o.zero_points) given = "--zero-points";
    if (given == nullptr) return;
    const bool is_sums = std::string_view(given) == "--sums";
    throw InputError(
        std::string(given) + " is said of " + (is_sums ? "packed" : "int4") + " weights: " +
        as_rule("give --weights ", is_sums ? packed::format_words() : "int4", " too") + ".");
  }
  const packed::WeightFormat& format =
      chosen_weights(o.weights, ", or leave it out where B has the type of --dtype");
  if (!o.accumulation.empty()) {
    throw InputError("--accumulation is given, and " + as_tensor("B") + " are " + o.weights +
                     " weights, whose sums --sums is about: " + as_rule("give that") + ".");
  }
  if (job.b_transposed) {
    throw InputError("--layout is " + o.layout + ", and " + o.weights +
                     " weights are packed N x K: the nearest legal value is " + as_nearest("NT") +
                     ".");
  }
  PackedWeights& packed = job.product.packed.emplace();
  packed.format = packed_for_tokens(format, o.dtype);
  for (const auto& [option, is_given] :
       {std::pair{"--group", o.group && !packed::has_groups(format)},
        std::pair{"--zero-points",
                  o.zero_points && !packed::usual_form(format).storage.zero_points}}) {
    if (!is_given) continue;
    throw InputError(std::string(option) + " is said of int4 weights, and --weights is " +
                     o.weights + ": " + as_rule("leave it out") + ".");
  }
  packed.format.group = o.group.value_or(packed.format.group);
  if (o.zero_points) packed.format.zero_points = ZeroPoints::groups;
  choose<GroupSums>(packed.sums, "--sums", o.sums,
                    {{"exact", GroupSums::exact},
                     {"chained", GroupSums::chained},
                     {"folded", GroupSums::folded},
                     {"table", GroupSums::table}});
  if (packed.sums == GroupSums::table && !o.zero_points && !packed::has_float_codes(packed.format))
    packed.format.encoding = Int4Encoding::sm;
}

// Whether --dtype says that operands have scales of their own.
void read_micro(const GemmOptions& o, GemmJob& job) {
  const auto formats = micro_formats_of(o.dtype);
  if (!o.scales_layout.empty()) {
    if (!formats || (o.scale_a.empty() && o.scale_b.empty())) {
      throw InputError("--scales-layout is said of scales of files with --dtype " +
                       format_words(", ", " or ") + ": " + as_rule("leave it out") + ".");
    }
    static_cast<void>(
        chosen<bool>("--scales-layout", o.scales_layout, {{"linear", false}, {"tiles", true}}));
  }
  if (!formats) return;
  for (const auto& [option, text] :
       {std::pair{"--scaling", &o.scaling}, std::pair{"--weights", &o.weights}}) {
    if (text->empty()) continue;
    throw InputError(std::string(option) + " is " + *text + ", and --dtype is " + o.dtype +
                     ", whose " + as_tensor("A") +
                     " and B have scales of their own: " + as_rule("leave it out") + ".");
  }
  job.product.scaling = Scaling::block_scaled;
  job.product.scale_a.dtype = formats->first.scale;
  job.product.scale_b.dtype = formats->second.scale;
}

}  // namespace

std::pair<DType, DType> micro_types(const GemmOptions& o) {
  const auto [a, b] = *micro_formats_of(o.dtype);
  return {a.element, b.element};
}

void read_words(const GemmOptions& o, GemmJob& job) {
  if (o.is_grouped) job.product.groups.emplace();
  job.product.alpha = parse_scalar("alpha", o.alpha, 1.0F);
  job.product.beta = parse_scalar("beta", o.beta, o.c.empty() ? 0.0F : 1.0F);
  if (o.batch) {
    if (*o.batch < 1) {
      throw InputError("--batch is " + std::to_string(*o.batch) + "; the nearest legal value is " +
                       as_nearest("1") + ".");
    }
    job.product.d.batch = *o.batch;
    job.is_batch = true;
  }
  std::pair<bool, bool> layout = {false, false};
  choose(layout, "--layout", o.layout, kLayouts);
  std::tie(job.a_transposed, job.b_transposed) = layout;
  if (!o.scaling.empty()) {
    job.product.scaling = chosen_mode("--scaling", o.scaling, all_scalings, is_option);
  }
  job.block = chosen_block(o.block, job.product.scaling, !o.weights.empty());
  read_micro(o, job);
  choose(job.product.accumulation, "--accumulation", o.accumulation, kAccumulations);
  read_weights(o, job);
  if (o.gated) job.product.epilogue.activation = Activation::silu;
  if (!o.activation.empty()) {
    job.product.epilogue.activation =
        chosen_mode("--activation", o.activation, all_activations, any<Activation>, is_of_products);
  }
  job.product.epilogue.gated = o.gated;
  job.product.epilogue.gate = parse_gate(o.gate, job.product.epilogue.activation);
  choose(job.product.epilogue.interleaved, "--gate-up", o.gate_up, kGateUps);
  if (!o.quantise_d.empty()) {
    job.product.epilogue.quantise =
        chosen_mode("--quantise-d", o.quantise_d, all_quantisations, any<QuantiseD>);
  }
  job.product.epilogue.bias = parse_bias(o.bias).first;
  job.choices = parse_choices(o);
  job.uses_tuning = !o.no_tuning;
  if (o.expected_tokens && !(*o.expected_tokens > 0 && std::isfinite(*o.expected_tokens))) {
    throw InputError("--expected-tokens must be a number above 0; " +
                     as_rule("leave it out for the mean") + ".");
  }
  if (job.product.groups) {
    job.product.groups->expected_tokens = o.expected_tokens.value_or(0);
    expect_lengths(*job.product.groups, o.expected_lengths);
  }
  if (job.product.groups && !names_file(o.offsets)) {
    choose<OffsetType>(job.product.groups->type, "--offsets", o.offsets,
                       {{"int32", OffsetType::int32}, {"int64", OffsetType::int64}});
  }
  if (o.total && *o.total < 1) {
    throw InputError("--total is " + std::to_string(*o.total) + "; " +
                     as_rule("it is at least the tokens of all groups") +
                     ": leave it out for no rows beside theirs.");
  }
}

std::pair<DType, DType> parse_operand_types(const std::string& text) {
  const std::size_t comma = text.find(',');
  const DType a = operand_type(text.substr(0, comma), text);
  if (comma == std::string::npos) return {a, a};
  const DType b = operand_type(text.substr(comma + 1), text);
  if (a != b && !(is_8bit_float(a) && is_8bit_float(b))) refuse_operand_types(text);
  return {a, b};
}

DType parse_result_type(const std::string& text) {
  const std::optional<DType> type = numeric::parse_dtype(text);
  if (type && is_result_type(*type)) return *type;
  throw InputError("--d-dtype is \"" + text + "\"; " +
                   as_rule("it must be f32, ", listed(operand_types, is_result_type)) + ".");
}

float parse_scalar(const char* name, const std::string& text, float otherwise) {
  if (text.empty()) return otherwise;
  const std::string what = std::string(name) + " is \"" + text + "\"";
  double value = 0;
  const char* first = text.data() + (text.front() == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  if (end != last || error == std::errc::invalid_argument) {
    throw InputError(what + "; " + as_rule("it must be a number, for example 1 or -0.5") + ".");
  }
  if (std::isnan(value))
    throw InputError(what + "; " + as_rule("it must be a number, and NaN is none") + ".");
  if (error == std::errc::result_out_of_range ||
      (std::isfinite(value) && std::abs(value) > FLT_MAX)) {
    throw InputError(what + ", which an fp32 does not hold; the nearest legal value is " +
                     as_nearest((text.find('-') == 0 ? "-" : ""), "3.4028234e38") + ".");
  }
  return static_cast<float>(value);
}

std::optional<GateNumbers> parse_gate(const GateOptions& o, Activation activation) {
  if (o.limit.empty() && o.alpha.empty() && o.beta.empty()) return std::nullopt;
  const GateNumbers own = gate_of(activation);
  return GateNumbers{parse_scalar("--gate-alpha", o.alpha, own.alpha),
                     parse_scalar("--gate-beta", o.beta, own.beta),
                     parse_scalar("--gate-limit", o.limit, own.limit)};
}

const char* gate_up_name(bool interleaved) {
  return word_of(interleaved, kGateUps);
}

const char* accumulation_name(Accumulation accumulation) {
  return word_of(accumulation, kAccumulations);
}

const char* bias_name(Bias bias) {
  return word_of(bias, kBiases);
}

const char* layout_name(bool a_transposed, bool b_transposed) {
  return word_of(std::pair(a_transposed, b_transposed), kLayouts);
}

std::pair<Bias, std::string> parse_bias(const std::string& text) {
  if (text.empty()) return {Bias::none, ""};
  const std::size_t sign = text.find('=');
  const std::string word = text.substr(0, sign);
  const bool lacks_file = sign != std::string::npos && sign + 1 == text.size();
  if ((word != "rows" && word != "columns") || lacks_file) {
    throw InputError(
        "--bias is \"" + text + "\"; " +
        as_rule("it must be rows or columns, for random values, or rows=FILE or columns=FILE") +
        ".");
  }
  return {word == "rows" ? Bias::rows : Bias::columns,
          sign == std::string::npos ? "" : text.substr(sign + 1)};
}

}  // namespace warpwright::cli
