// How many tokens a router sends to each of its experts, drawn as a router draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// A batch of tokens on their way to experts. Every token goes to `top_k` different ones.
struct Routing {
  std::int64_t tokens = 0;
  std::int64_t top_k = 0;
  /// How uneven experts are liked: the one of rank r (from 1) has the weight r^-zipf. 0: all alike.
  double zipf = 0;
  std::optional<std::uint64_t> seed = {};  ///< of the draw, where the words say it

  friend bool operator==(const Routing&, const Routing&) = default;
};

/// "TOKENS,TOPK[,uniform|zipf[:S]][,seed:N]" among so many experts; zipf by itself has S = 1.
/// Refuses other words, a TOPK beyond the experts, an S that is not from 0 to 8, and more than 2^22
/// choices in all. The sentence calls the words `option`.
Result<Routing> parse_routing(const std::string& words, std::int64_t experts,
                              const std::string& option);

/// The exponent of "uniform" (0), "zipf" (1) or "zipf:S"; nothing for other words.
std::optional<double> parse_router(const std::string& word);

/// The most choices that are drawn.
inline constexpr std::int64_t kMostChoices = std::int64_t{1} << 22;  // half a second

/// tokens x top_k: the experts of each token. A token picks them one after the other by their
/// weights, those that it has already left out: what a softmax router with top-k does under Gumbel
/// noise. Which expert has which rank is drawn too. They depend only on the arguments, not on the
/// machine.
std::vector<std::int32_t> routed_choices(const Routing& routing, std::int64_t experts,
                                         std::uint64_t seed);

/// How many of these choices each of `experts` has, the first of which has the number `first`.
std::vector<std::int64_t> lengths_of(const std::vector<std::int32_t>& choices, std::int64_t experts,
                                     std::int64_t first = 0);

/// How many tokens each expert has of these choices.
std::vector<std::int64_t> routed_lengths(const Routing& routing, std::int64_t experts,
                                         std::uint64_t seed);

}  // namespace warpwright::cli
