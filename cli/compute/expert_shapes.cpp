#include "cli/compute/expert_shapes.h"

#include <algorithm>
#include <charconv>

#include "cli/compute/routing.h"
#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

constexpr std::int64_t kMostExperts = 1 << 16;  // as many groups as there may be

// The products of a layer for as many tokens as the words say.
void add_products(std::vector<Shape>& shapes, const ExpertModel& model, std::int64_t experts,
                  const std::string& words) {
  shapes.push_back({0, 2 * model.inner, model.hidden, experts, words});
  shapes.push_back({0, model.hidden, model.inner, experts, words});
}

std::string model_names() {
  return joined(expert_models(), ", ", " or ", &ExpertModel::name);
}

// The experts of "EXPERTS,TOKENS,TOPK..."; what follows them is left to `token_lengths`.
std::pair<std::int64_t, std::string> split_routed(const std::string& text) {
  std::int64_t experts = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, experts);
  if (error != std::errc() || end == last || *end != ',' || experts < 1 || experts > kMostExperts) {
    throw InputError("--routed is \"" + text + "\"; " +
                     as_rule("it must be EXPERTS,TOKENS,TOPK, and behind them uniform or zipf:S, "
                             "and seed:N, for example 128,64,8 or 256,512,8,zipf:1, with up to ",
                             std::to_string(kMostExperts), " experts") +
                     ".");
  }
  return {experts, std::string(end + 1, last)};
}

void require_both(const RoutedOptions& o) {
  if (o.n.has_value() != o.k.has_value()) {
    throw InputError("--n and --k are of one product: " + as_rule("give both, or neither") + ".");
  }
  if (o.n && o.routed.empty()) {
    throw InputError("--n and --k are of a product of --routed: " + as_rule("give that too") + ".");
  }
  if (o.n && !o.model.empty()) {
    throw InputError(
        "--n and --k and --model both say what is multiplied: " + as_rule("leave one out") + ".");
  }
  for (const auto& [name, extent] : {std::pair{"--n", o.n}, std::pair{"--k", o.k}}) {
    if (!extent || *extent >= 1) continue;
    throw InputError(std::string(name) + " is " + std::to_string(*extent) +
                     "; the nearest legal value is " + as_nearest("1") + ".");
  }
}

}  // namespace

const std::vector<ExpertModel>& expert_models() {
  static const std::vector<ExpertModel> models = {
      {"qwen3-30b", 128, 8, 2048, 768, ""},     {"mixtral", 8, 2, 4096, 14336, ""},
      {"qwen3-235b", 128, 8, 4096, 1536, ""},   {"deepseek-v3", 256, 8, 7168, 2048, ",zipf:1"},
      {"gpt-oss-120b", 128, 4, 2880, 2880, ""}, {"llama3-8b", 1, 0, 4096, 14336, ""}};
  return models;
}

std::string model_words() {
  std::string words;
  for (const ExpertModel& model : expert_models()) words += std::string(model.name) + " ";
  return words;
}

const ExpertModel& expert_model(const std::string& name) {
  const std::vector<ExpertModel>& models = expert_models();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&name](const ExpertModel& model) { return name == model.name; });
  if (found != models.end()) return *found;
  throw InputError("--model is \"" + name + "\"; " + as_rule("it must be ", model_names()) + ".");
}

std::vector<Shape> model_shapes(const ExpertModel& model) {
  std::vector<Shape> shapes;
  for (const char* tokens : {"8", "64", "512", "4096"}) {
    add_products(
        shapes, model, model.experts,
        std::string("routed:") + tokens + "," + std::to_string(model.top_k) + model.spread);
  }
  return shapes;
}

std::vector<Shape> routed_shapes(const RoutedOptions& o) {
  require_both(o);
  const ExpertModel& model = o.model.empty() ? expert_models().front() : expert_model(o.model);
  if (model.top_k == 0) {
    throw InputError("--model is \"" + o.model + "\", which has no router; " +
                     as_rule("its products are no groups: say warpwright bench moe") + ".");
  }
  if (o.routed.empty()) return model_shapes(model);
  const auto [experts, rest] = split_routed(o.routed);
  if (const auto routing = parse_routing(rest, experts, "--routed"); !routing) {
    throw InputError(routing.refusal() + ".");
  }
  std::vector<Shape> shapes;
  if (o.n) {
    shapes.push_back({0, *o.n, *o.k, experts, "routed:" + rest});
  } else {
    add_products(shapes, model, experts, "routed:" + rest);
  }
  return shapes;
}

}  // namespace warpwright::cli
