#include "cli/compute/routing.h"

#include <algorithm>
#include <random>
#include <utility>

#include "cli/compute/words.h"
#include "cli/files/printable.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

constexpr double kMostZipf = 8;

// Whether the word behind tokens and top-k is one; it is kept.
bool take_routing(const std::string& word, Routing& routing) {
  const auto behind = [&word](const char* prefix) -> std::optional<std::string> {
    if (word.rfind(prefix, 0) != 0) return std::nullopt;
    return word.substr(std::char_traits<char>::length(prefix));
  };
  if (word == "uniform" || word == "zipf") {
    routing.zipf = word == "zipf" ? 1 : 0;
    return true;
  }
  if (const auto text = behind("seed:")) {
    routing.seed = as_number<std::uint64_t>(*text);
    return routing.seed.has_value();
  }
  const auto text = behind("zipf:");
  const auto value = text ? as_number<double>(*text) : std::nullopt;
  if (!value || !(*value >= 0 && *value <= kMostZipf)) return false;
  routing.zipf = *value;
  return true;
}

// r^-s for r = 1, 2, ..., by products and sums only: a C library's pow differs between machines.
std::vector<double> powers_of_ranks(std::int64_t count, double s) {
  std::vector<double> powers;
  double logarithm = 0;
  for (std::int64_t rank = 1; rank <= count; ++rank) {
    if (rank > 1) {
      // ln(r / (r - 1)) is 2 artanh(t).
      const double t = 1 / static_cast<double>(2 * rank - 1);
      double power = t;
      for (int odd = 1; odd < 40; odd += 2, power *= t * t) logarithm += 2 * power / odd;
    }
    const double x = -s * logarithm / 4096;
    double y = 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)));
    for (int i = 0; i < 12; ++i) y *= y;
    powers.push_back(y);
  }
  return powers;
}

// Whole weights, whose sums are exact.
std::vector<std::uint64_t> weights_of(const Routing& routing, std::int64_t experts) {
  if (routing.zipf == 0) return std::vector<std::uint64_t>(static_cast<std::size_t>(experts), 1);
  std::vector<std::uint64_t> weights;
  for (const double power : powers_of_ranks(experts, routing.zipf)) {
    weights.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(power * 0x1p32)));
  }
  return weights;
}

// From 0 to `end` - 1, all as likely.
std::uint64_t below(std::mt19937_64& random, std::uint64_t end) {
  constexpr std::uint64_t most = std::mt19937_64::max();
  std::uint64_t value = random();
  while (value >= most - most % end) value = random();
  return value % end;
}

// Experts by weight, some of which are out for now: a Fenwick tree.
class Urn {
 public:
  explicit Urn(std::vector<std::uint64_t> weights)
      : weights_(std::move(weights)), sums_(weights_.size() + 1) {
    while (step_ * 2 < sums_.size()) step_ *= 2;
    for (std::size_t i = 0; i < weights_.size(); ++i) add(i, weights_[i]);
  }

  // The expert that covers a drawn place; it is out until it is put back.
  std::size_t take(std::mt19937_64& random) {
    std::uint64_t place = below(random, left_);
    std::size_t at = 0;
    for (std::size_t step = step_; step > 0; step /= 2) {
      if (at + step >= sums_.size() || sums_[at + step] > place) continue;
      at += step;
      place -= sums_[at];
    }
    add(at, 0 - weights_[at]);
    return at;
  }
  void put_back(std::size_t expert) { add(expert, weights_[expert]); }

 private:
  // Modulo 2^64, so that a weight is taken out by its negative.
  void add(std::size_t expert, std::uint64_t weight) {
    left_ += weight;
    for (std::size_t i = expert + 1; i < sums_.size(); i += i & (0 - i)) sums_[i] += weight;
  }

  std::vector<std::uint64_t> weights_;
  std::vector<std::uint64_t> sums_;  // of the last (i & -i) weights up to the i-th
  std::size_t step_ = 1;
  std::uint64_t left_ = 0;
};

}  // namespace

std::optional<double> parse_router(const std::string& word) {
  Routing routing;
  if (word.starts_with("seed") || !take_routing(word, routing)) return std::nullopt;
  return routing.zipf;
}

Result<Routing> parse_routing(const std::string& words, std::int64_t experts,
                              const std::string& option) {
  const std::vector<std::string> parts = split(words);
  Routing routing;
  const auto tokens = as_number<std::int64_t>(parts[0]);
  const auto chosen = as_number<std::int64_t>(parts.size() > 1 ? parts[1] : std::string());
  bool is_right = tokens && chosen && *tokens >= 0;
  for (std::size_t i = 2; i < parts.size(); ++i)
    is_right = is_right && take_routing(parts[i], routing);
  if (!is_right) {
    return Refusal{RefusalCode::bad_value,
                   option + " has \"" + words + "\"; " +
                       as_rule("it must be TOKENS,TOPK, and behind them uniform or zipf:S with S "
                               "from 0 to 8, and seed:N, for example 64,8 or 64,8,zipf:1,seed:7")};
  }
  const std::int64_t top_k = *chosen;
  routing.tokens = *tokens;
  routing.top_k = top_k;
  if (top_k < 1 || top_k > experts) {
    return Refusal{RefusalCode::bad_value,
                   option + " sends every token to " + std::to_string(top_k) + " experts of " +
                       std::to_string(experts) + "; the nearest legal top-k is " +
                       as_nearest(std::to_string(top_k < 1 ? 1 : experts))};
  }
  if (*tokens > kMostChoices / top_k) {
    return Refusal{
        RefusalCode::bad_value,
        option + " has " + std::to_string(*tokens) + " tokens; " +
            as_rule("no more than ", std::to_string(kMostChoices), " choices are drawn") +
            ": the nearest legal value is " + as_nearest(std::to_string(kMostChoices / top_k))};
  }
  return routing;
}

std::vector<std::int32_t> routed_choices(const Routing& routing, std::int64_t experts,
                                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> weights = weights_of(routing, experts);
  for (std::size_t i = weights.size(); i > 1; --i) {
    std::swap(weights[i - 1], weights[below(random, i)]);
  }
  Urn urn(std::move(weights));
  std::vector<std::int32_t> choices;
  choices.reserve(static_cast<std::size_t>(routing.tokens * routing.top_k));
  std::vector<std::size_t> taken(static_cast<std::size_t>(routing.top_k));
  for (std::int64_t token = 0; token < routing.tokens; ++token) {
    for (std::size_t& expert : taken) {
      expert = urn.take(random);
      choices.push_back(static_cast<std::int32_t>(expert));
    }
    for (const std::size_t expert : taken) urn.put_back(expert);
  }
  return choices;
}

std::vector<std::int64_t> lengths_of(const std::vector<std::int32_t>& choices, std::int64_t experts,
                                     std::int64_t first) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(experts));
  for (const std::int32_t choice : choices) {
    if (choice < first || choice >= first + experts) continue;
    ++lengths[static_cast<std::size_t>(choice - first)];
  }
  return lengths;
}

std::vector<std::int64_t> routed_lengths(const Routing& routing, std::int64_t experts,
                                         std::uint64_t seed) {
  return lengths_of(routed_choices(routing, experts, seed), experts);
}

}  // namespace warpwright::cli
