#include "cli/commands/gemm/groups.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "bench/gemm_bench.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/compute/token_lengths.h"
#include "cli/compute/words.h"
#include "cli/files/printable.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

bool has_operands(const GemmOptions& o) {
  return !o.a.empty();
}

// The integers of a file, one for each of `count`.
HostIntegers read_list(const char* option, const std::string& spec, std::int64_t count,
                       const std::string& rule) {
  HostIntegers list;
  try {
    list = read_integers(spec);
  } catch (const InputError& refusal) {
    throw InputError(option + (": " + refusal.sentence()), refusal.code());
  }
  const auto found = static_cast<std::int64_t>(list.values.size());
  if (found == count) return list;
  throw InputError(std::string(option) + " (" + spec + ") has " + std::to_string(found) +
                   " integers; " + as_rule("there are ", std::to_string(count), rule) +
                   ": the nearest legal shape is " + as_nearest(std::to_string(count)) + ".");
}

// The offsets of a file, which must be in order.
std::vector<std::int64_t> read_offsets(const GemmOptions& o, GemmJob& job) {
  if (!o.tokens.empty()) {
    throw InputError("--tokens and --" + as_tensor("offsets") +
                     " FILE both say how long the groups are: " + as_rule("leave one out") + ".");
  }
  const HostIntegers list = read_list("--offsets", o.offsets, job.product.group_count() + 1,
                                      ", one more than there are groups");
  job.product.groups->type = list.bits == 64 ? OffsetType::int64 : OffsetType::int32;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < list.values.size(); ++i) {
    const std::int64_t value = list.values[i];
    const auto require = [&](bool is_legal, const std::string& rule, std::int64_t nearest) {
      if (is_legal) return;
      throw InputError("--" + as_tensor("offsets") + " (" + o.offsets + ") has " +
                       std::to_string(value) + " in place " + std::to_string(i) + "; " +
                       as_rule(rule) + ": the nearest legal value is " +
                       as_nearest(std::to_string(nearest)) + ".");
    };
    const std::int64_t most = has_operands(o) ? job.product.m() : max_extent;
    require(i > 0 || value == 0, "the first group begins at row 0", 0);
    require(value >= before, "offsets do not decrease", before);
    require(
        value <= most,
        has_operands(o) ? "A has " + std::to_string(most) + " rows" : "coordinates have 32 bits",
        most);
    before = value;
  }
  return list.values;
}

// The words of --tokens; lengths in a file are written out.
std::string token_words(const GemmOptions& o, const GemmJob& job) {
  if (o.tokens.empty()) {
    throw InputError(
        "--tokens is missing: " +
        as_rule(
            "say how many rows of A each group has, for example 16,0,3, or give --offsets FILE") +
        ".");
  }
  if (!names_file(o.tokens)) return o.tokens;
  const std::int64_t groups = job.product.group_count();
  return joined_numbers(
      read_list("--tokens", o.tokens, groups, " groups, each with a length").values);
}

std::vector<std::int64_t> offsets_of(const GemmOptions& o, GemmJob& job) {
  if (names_file(o.offsets)) return read_offsets(o, job);
  const bool known = has_operands(o);
  const Result<std::vector<std::int64_t>> lengths = token_lengths(
      token_words(o, job), job.product.group_count(), known ? job.product.m() : o.total.value_or(0),
      known ? "the number of A's rows" : "--total");
  if (!lengths) throw InputError(lengths.refusal() + ".", name(lengths.code()));
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t length : *lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

// Breaks the last group's end, so that no two groups share rows.
void break_offsets(const std::string& how, GemmJob& job) {
  const std::int64_t last = job.offsets[job.offsets.size() - 2];
  choose<std::int64_t>(job.offsets.back(), "--bad-offsets", how,
                       {{"decreasing", last - 1}, {"beyond", job.product.m() + 1000}});
}

std::string counted(std::int64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The index of rows, or how many tokens it will be drawn of.

void read_index(const GemmOptions& o, GemmJob& job) {
  if (o.rows_index.empty()) {
    if (!o.rows_divisor) return;
    throw InputError("--rows-divisor is given without --rows-index: " + as_rule("leave it out") +
                     ".");
  }
  const int divisor = o.rows_divisor.value_or(1);
  require_between("--rows-divisor", divisor, 1, max_extent);
  job.product.groups->rows_divisor = divisor;
  constexpr std::string_view random = "random:";
  if (o.rows_index.starts_with(random)) {
    if (has_operands(o)) {
      throw InputError("--rows-index draws the tokens, and A comes of a file: " +
                       as_rule("give the index in a file too") + ".");
    }
    const std::int64_t tokens =
        as_number<std::int64_t>(std::string_view(o.rows_index).substr(random.size())).value_or(0);
    const std::int64_t most = std::numeric_limits<std::int32_t>::max() / divisor;
    if (tokens < 1 || tokens > most) {
      throw InputError("--rows-index is " + o.rows_index + "; the nearest legal value is " +
                       as_nearest("random:" + std::to_string(tokens > 1 ? most : 1)) + ".");
    }
    job.product.a.rows = tokens;
    job.draws_index = true;
    job.checks_index = o.check_offsets;
    return;
  }
  const std::int64_t tokens = has_operands(o) ? job.product.a.rows : 0;
  const HostIntegers list = read_integers(o.rows_index);
  for (const std::int64_t value : list.values) {
    job.index.push_back(static_cast<std::int32_t>(
        std::clamp<std::int64_t>(value, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max())));
  }
  if (tokens > 0) {
    job.product.d.rows = std::ssize(job.index);
    return;
  }
  const auto most = std::max_element(job.index.begin(), job.index.end());
  job.product.a.rows = most == job.index.end() ? 1 : std::max(1, *most / divisor + 1);
}

// The index and D are as long.
void check_index(const GemmOptions& o, GemmJob& job) {
  if (!job.product.is_by_index()) return;
  if (job.draws_index) job.index.resize(static_cast<std::size_t>(job.product.m()));
  if (std::ssize(job.index) == job.product.m()) return;
  throw InputError("--rows-index (" + o.rows_index + ") has " + std::to_string(job.index.size()) +
                   " integers, and D " + std::to_string(job.product.m()) +
                   " rows: the nearest legal number is " +
                   as_nearest(std::to_string(job.product.m())) + ".");
}

}  // namespace

void read_rows(const GemmOptions& o, GemmJob& job) {
  if (!job.product.is_grouped()) {
    job.rows = {{0, job.product.m()}};
    job.rest = {job.product.m(), job.product.m()};
    return;
  }
  require_between("--groups", job.product.group_count(), 1,
                  std::numeric_limits<std::int64_t>::max());
  require_memory("The offsets", 64.0 * static_cast<double>(job.product.group_count()),
                 "choose fewer groups");
  read_index(o, job);
  const std::int64_t tokens = job.product.a.rows;
  job.offsets = offsets_of(o, job);
  if (!has_operands(o)) {
    job.set_extents(o.total.value_or(job.offsets.back()), job.product.n(), job.product.k());
    if (job.product.is_by_index()) job.product.a.rows = tokens;
  }
  check_index(o, job);
  if (job.product.m() < job.offsets.back()) {
    throw InputError("--" + as_tensor("offsets") + " (" + o.offsets + ") ends at row " +
                     std::to_string(job.offsets.back()) + ", and --total is " +
                     std::to_string(job.product.m()) + ": the nearest legal total is " +
                     as_nearest(std::to_string(job.offsets.back())) + ".");
  }
  break_offsets(o.bad_offsets, job);
  job.rest = {0, job.product.m()};
  for (std::size_t g = 0; g + 1 < job.offsets.size(); ++g) {
    const std::int64_t begin = std::clamp<std::int64_t>(job.offsets[g], 0, job.product.m());
    const std::int64_t end = std::clamp(job.offsets[g + 1], begin, job.product.m());
    job.rows.push_back({begin, end});
    job.rest.begin = std::max(job.rest.begin, end);
  }
}

std::int64_t tiles_of(const GemmJob& job, const Plan& plan) {
  const bool by_lengths = job.product.is_grouped() && plan.ctas > 0;
  return by_lengths ? tiles_of(job.lengths(), plan) : plan.tiles();
}

std::int64_t tiles_of(const std::vector<std::int64_t>& lengths, const Plan& plan) {
  if (plan.ctas == 0) return 0;
  const KernelFacts& facts = plan.facts();
  const auto pieces = [](std::int64_t extent, std::int64_t piece) {
    return (extent + piece - 1) / piece;
  };
  // The cluster lies over the tile's own rows and columns.
  const bool swap_ab = facts.swap_ab;
  const std::int64_t tokens = facts.result_rows * (swap_ab ? plan.cluster.n : plan.cluster.m);
  const std::int64_t columns = facts.result_columns * (swap_ab ? plan.cluster.m : plan.cluster.n);
  std::int64_t clusters = 0;
  for (const std::int64_t length : lengths) clusters += pieces(length, tokens);
  return clusters * pieces(result_columns(plan.problem), columns) * plan.cluster_ctas();
}

std::string tiles_text(const GemmJob& job, const Plan& plan) {
  std::string tiles = counted(tiles_of(job, plan), "tile");
  if (!job.product.is_grouped()) return tiles;
  const std::vector<std::int64_t> lengths = job.lengths();
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const std::int64_t empty = std::count(lengths.begin(), lengths.end(), 0);
  return counted(job.product.group_count(), "group") +
         (empty > 0 ? " (" + std::to_string(empty) + " empty)" : std::string()) + " of up to " +
         counted(longest, "token") + ", " + std::to_string(job.tokens()) + " in all" +
         (job.rest.count() > 0 ? " and " + counted(job.rest.count(), "row") + " in no group"
                               : std::string()) +
         ": " + tiles;
}

double roof_us(const GemmJob& job, const Plan& plan) {
  GemmProblem p = plan.problem;
  p.c.rows = p.d.rows = job.tokens();
  if (!p.is_by_index()) p.a.rows = p.d.rows;
  return bench::roof(p, plan.device, job.lengths()).us();
}

}  // namespace warpwright::cli
