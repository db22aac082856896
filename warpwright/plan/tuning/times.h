// Measured times as data: what the ways to run products took on a card. `bench --record` writes
// them, bench/times.tsv.gz keeps them, and a test holds today's choices against them.
//
// The file is text: a line a way, fields between tabs, behind a heading with their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// What one way to run one product took.
struct MeasuredTime {
  std::string card;           ///< as its driver calls it: "NVIDIA H200"
  std::string commit;         ///< of the sources that the kernel was compiled from
  std::string product;        ///< `problem_text`
  std::string lengths;        ///< of its groups, in words, with the seed of drawn ones; "-" without
  std::string configuration;  ///< `configuration_text`
  double microseconds = 0;
  bool chosen = false;  ///< the way that `plan` took then

  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

/// A way to run a product in one word, which differs from those of its other candidates:
/// "hopper_bf16_bf16_128x256_c2x1/132/m8" are the plan's name, its CTAs, and its bands and what
/// they lie along.
std::string configuration_text(const Plan& plan);

/// The problem that `problem_text` gives this text for; refuses what it gives for none.
Result<GemmProblem> parse_problem(std::string_view text);

/// The file of these times, and the times of such a file; refuses one that has a line that is none,
/// by its number and field.
std::string times_text(const std::vector<MeasuredTime>& times);
Result<std::vector<MeasuredTime>> parse_times(std::string_view text);

/// Are both of the same card, product and lengths?
bool same_product(const MeasuredTime& x, const MeasuredTime& y);

/// Adds `rows`, of one product on one card, in place of what there was of it.
void put_times(std::vector<MeasuredTime>& times, const std::vector<MeasuredTime>& rows);

}  // namespace warpwright
