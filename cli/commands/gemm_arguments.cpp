#include "cli/commands/gemm_arguments.h"

#include <cfloat>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/commands/words.h"
#include "warpwright/atom/mask_text.h"

namespace warpwright::cli {
namespace {

constexpr Words<Accumulation> kAccumulations = {{"fast", Accumulation::fast},
                                                {"promoted", Accumulation::promoted}};
constexpr Words<Activation> kActivations = {{"none", Activation::none},
                                            {"relu", Activation::relu},
                                            {"gelu", Activation::gelu},
                                            {"silu", Activation::silu}};
constexpr Words<Bias> kBiases = {
    {"none", Bias::none}, {"rows", Bias::rows}, {"columns", Bias::columns}};
constexpr Words<std::pair<bool, bool>> kLayouts = {
    {"NT", {false, false}}, {"NN", {false, true}}, {"TN", {true, true}}, {"TT", {true, false}}};

bool is_8bit(DType t) {
  return t == DType::e4m3 || t == DType::e5m2;
}

[[noreturn]] void refuse_operand_types(const std::string& text) {
  throw InputError("--dtype is \"" + text +
                   "\"; it must be bf16, fp16, e4m3 or e5m2, or two 8-bit types as "
                   "\"e4m3,e5m2\": the nearest is bf16.");
}

DType operand_type(const std::string& word, const std::string& text) {
  const std::optional<DType> type = numeric::parse_dtype(word);
  if (type == DType::bf16 || type == DType::f16 || (type && is_8bit(*type))) return *type;
  refuse_operand_types(text);
}

}  // namespace

std::pair<DType, DType> parse_operand_types(const std::string& text) {
  const std::size_t comma = text.find(',');
  const DType a = operand_type(text.substr(0, comma), text);
  if (comma == std::string::npos) return {a, a};
  const DType b = operand_type(text.substr(comma + 1), text);
  if (a != b && !(is_8bit(a) && is_8bit(b))) refuse_operand_types(text);
  return {a, b};
}

DType parse_result_type(const std::string& text) {
  const std::optional<DType> type = numeric::parse_dtype(text);
  if (type == DType::f32 || type == DType::bf16 || type == DType::f16 || (type && is_8bit(*type))) {
    return *type;
  }
  throw InputError("--d-dtype is \"" + text + "\"; it must be f32, bf16, fp16, e4m3 or e5m2.");
}

float parse_scalar(const char* name, const std::string& text, float otherwise) {
  if (text.empty()) return otherwise;
  const std::string what = std::string(name) + " is \"" + text + "\"";
  double value = 0;
  const char* first = text.data() + (text.front() == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  if (end != last || error == std::errc::invalid_argument) {
    throw InputError(what + "; it must be a number, for example 1 or -0.5.");
  }
  if (std::isnan(value)) throw InputError(what + "; it must be a number, and NaN is none.");
  if (error == std::errc::result_out_of_range ||
      (std::isfinite(value) && std::abs(value) > FLT_MAX)) {
    throw InputError(what + ", which an fp32 does not hold; the nearest legal value is " +
                     (text.find('-') == 0 ? "-" : "") + "3.4028234e38.");
  }
  return static_cast<float>(value);
}

Scaling parse_scaling(const std::string& text) {
  if (text.empty()) return Scaling::none;
  return chosen<Scaling>("--scaling", text,
                         {{"none", Scaling::none},
                          {"tensor", Scaling::tensor},
                          {"row-column", Scaling::row_column},
                          {"block", Scaling::block}});
}

Accumulation parse_accumulation(const std::string& text) {
  if (text.empty()) return Accumulation::fast;
  return chosen<Accumulation>("--accumulation", text, kAccumulations);
}

Activation parse_activation(const std::string& text) {
  if (text.empty()) return Activation::none;
  return chosen<Activation>("--activation", text, kActivations);
}

const char* accumulation_name(Accumulation accumulation) {
  return word_of(accumulation, kAccumulations);
}

const char* activation_name(Activation activation) {
  return word_of(activation, kActivations);
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
    throw InputError("--bias is \"" + text +
                     "\"; it must be rows or columns, for random values, or rows=FILE or "
                     "columns=FILE.");
  }
  return {word == "rows" ? Bias::rows : Bias::columns,
          sign == std::string::npos ? "" : text.substr(sign + 1)};
}

std::pair<bool, bool> parse_layout(const std::string& text) {
  if (text.empty()) return {false, false};
  return chosen<std::pair<bool, bool>>("--layout", text, kLayouts);
}

std::optional<atom::ClusterShape> parse_cluster(const std::string& text, bool pair) {
  if (text.empty()) return std::nullopt;
  const std::optional<atom::ClusterShape> cluster = atom::parse_cluster(text);
  if (!cluster) {
    throw InputError("--cluster is \"" + text +
                     "\"; it is written M,N with two integers, for example 2,1.");
  }
  const std::string refusal = atom::cluster_refusal(*cluster, pair);
  if (!refusal.empty()) throw InputError(refusal);
  return cluster;
}

std::optional<bool> parse_swapped(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return chosen<bool>("--swapped", text, {{"yes", true}, {"no", false}});
}

PlanChoices parse_choices(const GemmOptions& o) {
  PlanChoices choices;
  choices.cluster = parse_cluster(o.cluster, o.pair.value_or(false));
  choices.tile_m = o.tile_m;
  choices.tile_n = o.tile_n;
  choices.ctas = o.ctas;
  choices.cluster_k = o.cluster_k;
  choices.pair = o.pair;
  choices.accumulators = o.accumulators;
  if (!o.kernel.empty()) choices.kernel = o.kernel;
  choices.swapped = parse_swapped(o.swapped);
  if (!o.scheduler.empty()) {
    choices.tiles = chosen<kernel::TileSource>("--scheduler", o.scheduler,
                                               {{"one", kernel::TileSource::one_tile},
                                                {"static", kernel::TileSource::static_persistent},
                                                {"clc", kernel::TileSource::launch_control}});
  }
  if (!o.schedule.empty()) {
    choices.schedule = chosen<kernel::Schedule>("--schedule", o.schedule,
                                                {{"cooperative", kernel::Schedule::cooperative},
                                                 {"pingpong", kernel::Schedule::pingpong},
                                                 {"multistage", kernel::Schedule::multistage}});
  }
  return choices;
}

}  // namespace warpwright::cli
