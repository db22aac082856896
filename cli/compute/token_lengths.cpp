#include "cli/compute/token_lengths.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "cli/compute/random.h"
#include "cli/compute/routing.h"
#include "cli/compute/words.h"
#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kTokensOfAGroup = 256;  // of a skewed draw without a total
constexpr std::int64_t kMostGroups = 1 << 16;  // so that a line of a file asks for no gigabytes

constexpr const char* kRouted = "routed";

// Streams of a draw's seed.
constexpr std::uint64_t kStreamShares = 1;
constexpr std::uint64_t kStreamEmpty = 2;

Refusal refuse_words(const std::string& words) {
  return Refusal{
      RefusalCode::bad_value,
      "--tokens is \"" + words + "\"; " +
          as_rule("it must be a length for each group, for example 16,0,3, one for all of "
                  "them, uniform:16, skew:SEED, or routed:TOKENS,TOPK")};
}

// `groups` have lengths like it, where it stands for all of them.
std::optional<Refusal> length_fault(std::int64_t length, std::int64_t groups = 1) {
  if (length >= 0 && length <= max_extent) return std::nullopt;
  return Refusal{RefusalCode::bad_value,
                 "--tokens has a length of " + std::to_string(length) +
                     "; the nearest legal value is " +
                     as_nearest(std::to_string(length < 0 ? 0 : max_extent / groups))};
}

Result<Lengths> equal_lengths(const std::string& words, const std::string& number,
                              std::int64_t groups) {
  const auto length = as_number<std::int64_t>(number);
  if (!length) return refuse_words(words);
  if (const auto fault = length_fault(*length, groups)) return *fault;
  return Lengths(static_cast<std::size_t>(groups), *length);
}

Result<Lengths> listed_lengths(const std::string& words, std::int64_t groups) {
  Lengths lengths;
  for (const std::string& word : split(words)) {
    const auto length = as_number<std::int64_t>(word);
    if (!length) return refuse_words(words);
    if (const auto fault = length_fault(*length)) return *fault;
    lengths.push_back(*length);
  }
  if (static_cast<std::int64_t>(lengths.size()) == groups) return lengths;
  return Refusal{RefusalCode::bad_value, "--tokens lists " + std::to_string(lengths.size()) +
                                             " lengths and there are " + std::to_string(groups) +
                                             " groups; " +
                                             as_rule("give one length for each group, 0 for none")};
}

std::vector<double> normal_values(std::int64_t count, std::uint64_t seed, std::uint64_t stream) {
  const HostTensor drawn = random_normal(DType::f32, {count}, seed, stream);
  std::vector<float> narrow(static_cast<std::size_t>(count));
  std::memcpy(narrow.data(), drawn.bytes.data(), drawn.bytes.size());
  return {narrow.begin(), narrow.end()};
}

// e^x, near enough for a weight, only by products: a C library's exp differs between machines.
double portable_exp(double x) {
  double y = 1 + x / 1024;
  for (int i = 0; i < 10; ++i) y *= y;
  return y;
}

// The first `count` groups in the order of `keys`.
std::vector<std::size_t> smallest(const std::vector<double>& keys, std::size_t count) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  order.resize(count);
  return order;
}

Lengths skewed_lengths(std::uint64_t seed, std::int64_t groups, std::int64_t total) {
  std::vector<double> shares = normal_values(groups, seed, kStreamShares);
  for (double& share : shares) share = portable_exp(share);
  const std::int64_t empty = groups < 4 ? 0 : std::max<std::int64_t>(1, groups / 8);
  for (const std::size_t g :
       smallest(normal_values(groups, seed, kStreamEmpty), static_cast<std::size_t>(empty))) {
    shares[g] = 0;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  // Rounded down; the tokens that are left go to the largest remainders.
  Lengths lengths(shares.size());
  std::vector<double> taken(shares.size());  // minus the remainders
  std::int64_t left = total;
  for (std::size_t g = 0; g < shares.size(); ++g) {
    const double exact = static_cast<double>(total) * shares[g] / sum;
    lengths[g] = static_cast<std::int64_t>(exact);
    taken[g] = static_cast<double>(lengths[g]) - exact;
    left -= lengths[g];
  }
  for (const std::size_t g : smallest(taken, static_cast<std::size_t>(left))) ++lengths[g];
  return lengths;
}

Result<Lengths> drawn_lengths(const std::string& words, const std::string& number,
                              std::int64_t groups, std::int64_t total) {
  const auto seed = as_number<std::uint64_t>(number);
  if (!seed) return refuse_words(words);
  const std::int64_t tokens = total > 0 ? total : kTokensOfAGroup * groups;
  if (tokens > max_extent) {
    return Refusal{RefusalCode::bad_value,
                   "the groups have " + std::to_string(tokens) + " tokens in all; " +
                       as_rule("coordinates have 32 bits") + ": the nearest legal total is " +
                       as_nearest(std::to_string(max_extent))};
  }
  return skewed_lengths(*seed, groups, tokens);
}

Result<Lengths> drawn_by_router(const std::string& words, std::int64_t groups, std::uint64_t seed) {
  const auto routing = parse_routing(words, groups, "--tokens routed");
  if (!routing) return routing.refusal();
  return routed_lengths(*routing, groups, routing->seed.value_or(seed));
}

Result<Lengths> lengths_of(const std::string& words, std::int64_t groups, std::int64_t total,
                           std::uint64_t seed) {
  const std::size_t colon = words.find(':');
  if (colon != std::string::npos) {
    const std::string kind = words.substr(0, colon);
    const std::string number = words.substr(colon + 1);
    if (kind == "uniform") return equal_lengths(words, number, groups);
    if (kind == "skew") return drawn_lengths(words, number, groups, total);
    if (kind == kRouted) return drawn_by_router(number, groups, seed);
    return refuse_words(words);
  }
  if (words.find(',') == std::string::npos) return equal_lengths(words, words, groups);
  return listed_lengths(words, groups);
}

}  // namespace

Result<std::vector<std::int64_t>> token_lengths(const std::string& words, std::int64_t groups,
                                                std::int64_t total, const std::string& bound,
                                                std::uint64_t seed) {
  if (groups < 1 || groups > kMostGroups) {
    return Refusal{RefusalCode::bad_value,
                   "--groups is " + std::to_string(groups) + "; the nearest legal value is " +
                       as_nearest(std::to_string(groups < 1 ? 1 : kMostGroups))};
  }
  Result<Lengths> lengths = lengths_of(words, groups, total, seed);
  if (!lengths) return lengths;
  // No overflow: up to 2^16 lengths below 2^31.
  const std::int64_t sum = std::accumulate(lengths->begin(), lengths->end(), std::int64_t{0});
  const std::int64_t most = total > 0 ? std::min(total, max_extent) : max_extent;
  if (sum <= most) return lengths;
  return Refusal{RefusalCode::bad_value,
                 "the groups have " + std::to_string(sum) + " tokens in all" +
                     (most == total ? ", and " + bound + " is " + std::to_string(total) +
                                          ": the nearest legal total is " + as_nearest(sum)
                                    : "; coordinates have 32 bits: the nearest legal number of "
                                      "tokens of a group is " +
                                          as_nearest(max_extent / groups))};
}

void expect_lengths(Groups& groups, const std::string& words) {
  if (auto r = warpwright::expect_lengths(groups, "--expected-lengths",
                                          words.empty() ? kRouted : words.c_str())) {
    throw InputError(std::move(*r) + ".");
  }
}

std::optional<std::uint64_t> routed_seed(const std::string& words, std::uint64_t seed) {
  const std::string prefix = std::string(kRouted) + ":";
  if (words.rfind(prefix, 0) != 0) return std::nullopt;
  // The experts matter not for the seed.
  const auto routing = parse_routing(words.substr(prefix.size()), kMostGroups, "--tokens routed");
  return routing ? routing->seed.value_or(seed) : seed;
}

}  // namespace warpwright::cli
