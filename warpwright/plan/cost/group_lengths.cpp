#include "warpwright/plan/cost/group_lengths.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "warpwright/plan/product/plan.h"

namespace warpwright {
namespace {

constexpr std::size_t kCuts = GroupLengths::shares.size();

// Quantiles of the normal distribution at these shares.
constexpr std::array<double, kCuts> kNormal = {-2.652, -1.881, -1.405, -1.036, -0.674, -0.332, 0,
                                               0.332,  0.674,  1.036,  1.405,  1.881,  2.652};

// Means from which a normal distribution, with its skew set right, is near enough.
constexpr double kManyRows = 24;

// The mean of a Poisson distribution whose values above 0 have this mean.
double mean_with_empty(double mean_without) {
  if (mean_without <= 1) return 0;
  double mean = std::min(mean_without, 2 * (mean_without - 1));
  for (int i = 0; i < 12; ++i) mean = mean_without * (1 - std::exp(-mean));
  return mean;
}

// Quantiles of the values above 0 of a Poisson distribution.
void few_rows(GroupLengths& to, double mean) {
  if (mean <= 0) {
    for (std::size_t i = 0; i < kCuts; ++i) to.cuts[i] = 0.5 + GroupLengths::shares[i];
    return;
  }
  double share = std::exp(-mean);  // of groups with n rows
  const double empty = share;
  double upto = 0;
  int n = 0;
  for (std::size_t i = 0; i < kCuts; ++i) {
    const double wanted = (1 - empty) * GroupLengths::shares[i];
    while (n == 0 || (upto + share < wanted && n < 1000)) {
      upto += n == 0 ? 0 : share;
      share *= mean / ++n;
    }
    to.cuts[i] = n - 0.5 + std::min(1.0, (wanted - upto) / share);
  }
}

// Lengths of rows that fall one by one into `groups` groups, of which those with any have this
// mean.
void spread_evenly(GroupLengths& to, double mean, double groups) {
  to.is_equal = groups <= 1;
  if (to.is_equal) {
    to.cuts.fill(mean);
  } else if (mean < kManyRows) {
    few_rows(to, mean_with_empty(mean));
  } else {
    const double deviation = std::sqrt(mean * (1 - 1 / groups));
    for (std::size_t i = 0; i < kCuts; ++i) {
      const double z = kNormal[i];
      to.cuts[i] = mean + z * deviation + (z * z - 1) / 6;
    }
  }
}

// Experts whose ranks are alike.
struct Rank {
  double groups = 0;
  double share = 0;  // of the router's liking, of each
  double rows = 0;   // that each expects
};

// Experts by rank, some together from the fourth on, with the rows that each expects of a router
// whose tokens pick top-k of them.
std::vector<Rank> ranks_of(double rows, std::int64_t groups, double zipf) {
  std::vector<Rank> ranks;
  double sum = 0;
  for (std::int64_t first = 1; first <= groups;) {
    const std::int64_t end = std::min(groups + 1, first + std::max<std::int64_t>(1, first / 3));
    const double middle = 0.5 * static_cast<double>(first + end - 1);
    const auto count = static_cast<double>(end - first);
    ranks.push_back({count, std::pow(middle, -zipf)});
    sum += count * ranks.back().share;
    first = end;
  }
  // Layers of experts have a top-k of some sixteenth of them, up to 8. A token picks an expert once
  // at most, so that the best liked saturate.
  const double top_k = std::clamp(static_cast<double>(groups) / 16, 1.0, 8.0);
  const double tokens = rows / top_k;
  double liking = top_k / sum;
  for (int i = 0; i < 12; ++i) {
    double picked = 0;
    for (Rank& rank : ranks) {
      rank.rows = tokens * (1 - std::exp(-liking * rank.share));
      picked += rank.groups * rank.rows;
    }
    liking *= rows / picked;
  }
  return ranks;
}

// Lengths of groups of different rank: three points of each, in order.
void spread_by_rank(GroupLengths& to, const std::vector<Rank>& ranks) {
  constexpr std::array<std::pair<double, double>, 3> points = {
      {{-1.732, 1.0 / 6}, {0, 2.0 / 3}, {1.732, 1.0 / 6}}};
  std::vector<std::pair<double, double>> lengths;  // and how many groups have them
  to.is_equal = false;
  to.busy = 0;
  for (const Rank& rank : ranks) {
    const double busy = rank.groups * (1 - std::exp(-rank.rows));
    for (const auto& [z, weight] : points) {
      const double length = std::max(1.0, rank.rows + z * std::sqrt(rank.rows));
      lengths.emplace_back(length, weight * busy);
    }
    to.busy += busy;
  }
  std::sort(lengths.begin(), lengths.end());
  double upto = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kCuts; ++i) {
    const double wanted = to.busy * GroupLengths::shares[i];
    while (at + 1 < lengths.size() && upto + lengths[at].second < wanted) {
      upto += lengths[at++].second;
    }
    to.cuts[i] = lengths[at].first;
  }
}

}  // namespace

double mean_ceil(double low, double high, double step) {
  const auto integral = [step](double x) {
    const double whole = std::floor(x / step);
    return (step * whole / 2 + x - step * whole) * (whole + 1);
  };
  if (high - low < 1e-6 * step) return std::ceil(low / step);
  return (integral(high) - integral(low)) / (high - low);
}

GroupTileCount GroupLengths::tiles(double rows) const {
  if (is_equal) return {std::ceil(cuts[0] / rows), 0};
  GroupTileCount count;
  double squares = 0;
  const double all = shares.back() - shares.front();
  for (std::size_t i = 0; i + 1 < kCuts; ++i) {
    const double share = (shares[i + 1] - shares[i]) / all;
    const double low = std::max(0.0, cuts[i] - 0.5);
    const double mean = std::max(1.0, mean_ceil(low, std::max(low, cuts[i + 1] - 0.5), rows));
    const double part = mean - std::floor(mean);
    count.mean += share * mean;
    squares += share * (mean * mean + part * (1 - part));
  }
  count.variance = std::max(0.0, squares - count.mean * count.mean);
  return count;
}

double GroupLengths::even_tokens(const tile::TileWidths& widths) const {
  const int kinds = tile::count(widths);
  const auto tokens = [&](double length) {
    const int rows = std::max(1, static_cast<int>(std::lround(std::min(length, 1e9))));
    const int step = tile::even_step(widths, kinds, rows);
    const int whole = (rows - 1) / step;
    const int last = tile::narrowest_for(widths, kinds, rows - whole * step);
    return 1.0 * whole * step + tile::width_of(widths, kinds, last);
  };
  if (is_equal) return tokens(cuts[0]);
  constexpr int points = 8;  // in a part of the spread
  const double all = shares.back() - shares.front();
  double mean = 0;
  for (std::size_t i = 0; i + 1 < kCuts; ++i) {
    const double share = (shares[i + 1] - shares[i]) / all;
    for (int j = 0; j < points; ++j) {
      mean += share / points * tokens(cuts[i] + (cuts[i + 1] - cuts[i]) * (j + 0.5) / points);
    }
  }
  return mean;
}

GroupLengths group_lengths(const GemmProblem& p) {
  GroupLengths lengths;
  if (!p.groups || p.m() == 0) return lengths;
  const auto rows = static_cast<double>(p.m());
  const auto groups = static_cast<double>(p.group_count());
  const double mean = expected_tokens(p);
  if (p.groups->expected_lengths == LengthSpread::equal) {
    lengths.cuts.fill(mean);
    lengths.busy = std::min(groups, std::ceil(rows / mean));
    return lengths;
  }
  const bool is_said = p.groups->expected_tokens > 0;
  if (p.groups->expected_zipf > 0) {
    // For those groups that are said to have rows, where it is said.
    const double taken = is_said ? std::clamp(rows / mean, 1.0, groups) : groups;
    spread_by_rank(lengths, ranks_of(std::min(rows, mean * taken), std::llround(taken),
                                     p.groups->expected_zipf));
    return lengths;
  }
  // Without a hint the mean counts empty groups too.
  const double empty = is_said ? 0 : std::pow(1 - 1 / groups, rows);
  lengths.busy = std::min(groups * (1 - empty), rows / mean);
  spread_evenly(lengths, mean / (1 - empty), is_said ? std::max(1.0, rows / mean) : groups);
  return lengths;
}

std::vector<std::int64_t> typical_lengths(const GemmProblem& p) {
  const std::int64_t groups = p.group_count();
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(groups), 0);
  if (groups == 0 || p.m() == 0) return lengths;
  const GroupLengths expected = group_lengths(p);
  const std::int64_t busy = std::clamp<std::int64_t>(std::llround(expected.busy), 1, groups);
  // Groups of all lengths lie side by side, as experts do: neighbours in length are a golden
  // section of all groups apart, by a step that meets each of them.
  std::int64_t step = std::max<std::int64_t>(1, std::llround(0.618 * static_cast<double>(groups)));
  while (std::gcd(step, groups) != 1) ++step;
  std::int64_t left = p.m();
  for (std::int64_t i = 0; i < busy; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(busy);
    std::size_t cut = 1;
    while (cut + 1 < kCuts && GroupLengths::shares[cut] < share) ++cut;
    const double low = GroupLengths::shares[cut - 1];
    const double part = std::clamp((share - low) / (GroupLengths::shares[cut] - low), 0.0, 1.0);
    const double length =
        expected.cuts[cut - 1] + part * (expected.cuts[cut] - expected.cuts[cut - 1]);
    // Whole rows, and some for all groups behind.
    const std::int64_t most = std::max<std::int64_t>(1, left - (busy - 1 - i));
    const std::int64_t rows =
        std::min(std::clamp<std::int64_t>(std::llround(length), 1, most), left);
    lengths[static_cast<std::size_t>(i * step % groups)] = rows;
    left -= rows;
  }
  // What rounding left over, a row a group.
  for (std::int64_t i = 0; left > 0; i = (i + 1) % busy) {
    const std::int64_t more = (left + busy - 1) / busy;
    lengths[static_cast<std::size_t>(i * step % groups)] += std::min(more, left);
    left -= std::min(more, left);
  }
  return lengths;
}

}  // namespace warpwright
