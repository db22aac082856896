// The products of layers of experts, with lengths as routers draw them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/compute/bench_shapes.h"

namespace warpwright::cli {

/// The experts of a layer: its first product has 2 x inner columns and K = hidden, its second has
/// hidden columns and K = inner.
struct ExpertModel {
  const char* name = "";  ///< the word of --model
  std::int64_t experts = 0;
  std::int64_t top_k = 0;  ///< 0: one expert without a router, the MLP of a dense model
  std::int64_t hidden = 0;
  std::int64_t inner = 0;
  const char* spread = "";  ///< behind "TOKENS,TOPK" in the words of --tokens
};

/// All models; the first ones are built into `bench grouped`.
const std::vector<ExpertModel>& expert_models();
/// Their names, with a space behind each.
std::string model_words();
inline constexpr int kBuiltInModels = 2;

/// The model of a name. Throws InputError.
const ExpertModel& expert_model(const std::string& name);

/// The two products of a model at 8, 64, 512 and 4,096 tokens.
std::vector<Shape> model_shapes(const ExpertModel& model);

/// What `bench grouped` is told of a layer of experts, as it was typed; empty texts were not given.
struct RoutedOptions {
  std::string routed;  ///< EXPERTS,TOKENS,TOPK[,uniform|zipf:S][,seed:N]
  std::string model;
  std::optional<std::int64_t> n, k;  ///< of one product instead of a model's

  [[nodiscard]] bool given() const { return !routed.empty() || !model.empty() || n || k; }
};

/// The shapes of such options: of --routed the products of --model (the first one's where it is not
/// given), or the one of --n and --k; without it all of --model's. Throws InputError.
std::vector<Shape> routed_shapes(const RoutedOptions& options);

}  // namespace warpwright::cli
