// How many tokens each group of a grouped product has, from a word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// The lengths of `groups` groups, in the words of --tokens:
///
///   "3,0,17"     a length for each group
///   "16"         the same for every group; "uniform:16" too
///   "skew:SEED"  drawn: one group in eight (at least one of four or more) is empty, the others
///   have
///                shares of `total` that are log-normal with sigma 1, rounded so that they add up
///   "routed:TOKENS,TOPK[,uniform|zipf:S][,seed:N]"
///                drawn as a router draws them (routing.h), with `seed` where the words have none
///
/// `total` are the rows there are, 0 or less where that is open: then a skewed draw has 256 tokens
/// for each of the groups. The lengths depend only on the arguments, not on the machine. Refuses
/// more than 65536 groups, other words, lists of another length, lengths below 0, and sums beyond
/// `total`, which the sentence calls `bound`, or 32 bits.
Result<std::vector<std::int64_t>> token_lengths(const std::string& words, std::int64_t groups,
                                                std::int64_t total,
                                                const std::string& bound = "--total",
                                                std::uint64_t seed = 1);

/// Has a plan expect lengths that are spread so: "equal", "routed" (also where there is no word) or
/// "zipf:S", S from 0 to 8. Throws InputError, which calls the words --expected-lengths.
void expect_lengths(Groups& groups, const std::string& words);

/// The seed by which the lengths of such words are drawn; nothing where they are not routed.
std::optional<std::uint64_t> routed_seed(const std::string& words, std::uint64_t seed);

}  // namespace warpwright::cli
