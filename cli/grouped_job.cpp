#include "cli/grouped_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "cli/gemm_arguments.h"
#include "cli/model_time.h"
#include "cli/random.h"
#include "cli/token_lengths.h"
#include "cli/words.h"
#include "warpwright/plan/rules.h"

namespace warpwright::cli {
namespace {

// Streams of the random tensors.
enum Stream : std::uint64_t {
  kStreamX = 1,
  kStreamW = 2,
  kStreamScaleX = 3,
  kStreamScaleW = 4,
};

constexpr int kPoison = 0xff;

std::int64_t size_of(DType t) {
  return numeric::bits(t) / 8;
}

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}

GroupedScaling parse_grouped_scaling(const std::string& text) {
  if (text.empty()) return GroupedScaling::none;
  return chosen<GroupedScaling>("--scaling", text,
                                {{"none", GroupedScaling::none},
                                 {"tensor", GroupedScaling::tensor},
                                 {"group", GroupedScaling::group},
                                 {"row-column", GroupedScaling::row_column},
                                 {"block", GroupedScaling::block}});
}

GroupedChoices parse_grouped_choices(const GroupedOptions& o) {
  GroupedChoices choices;
  choices.cluster = parse_cluster(o.cluster, false);
  choices.swapped = parse_swapped(o.swapped);
  choices.tile_tokens = o.tile_tokens;
  if (!o.kernel.empty()) choices.kernel = o.kernel;
  if (!o.search.empty()) {
    choices.search = chosen<kernel::Grouping>("--search", o.search,
                                              {{"horizontal", kernel::Grouping::horizontal},
                                               {"vertical", kernel::Grouping::vertical},
                                               {"ballot", kernel::Grouping::ballot}});
  }
  return choices;
}

// What the arguments say without the lengths of the groups.
void read_words(const GroupedOptions& o, GroupedJob& job) {
  job.groups = o.groups;
  job.n = o.n;
  job.k = o.k;
  if (!o.dtype.empty()) std::tie(job.x_type, job.w_type) = parse_operand_types(o.dtype);
  job.result = !o.y_dtype.empty()          ? parse_result_type(o.y_dtype)
               : is_8bit_float(job.x_type) ? DType::bf16
                                           : job.x_type;
  job.alpha = parse_scalar("alpha", o.alpha, 1.0F);
  job.scaling = parse_grouped_scaling(o.scaling);
  job.accumulation = parse_accumulation(o.accumulation);
  job.choices = parse_grouped_choices(o);
  if (o.expected_tokens && !(*o.expected_tokens > 0 && std::isfinite(*o.expected_tokens))) {
    throw InputError("--expected-tokens must be a number above 0; leave it out for the mean.");
  }
  job.expected_tokens = o.expected_tokens.value_or(0);
  if (!o.offsets.empty()) {
    job.offset_type = chosen<OffsetType>(
        "--offsets", o.offsets, {{"int32", OffsetType::int32}, {"int64", OffsetType::int64}});
  }
  if (o.total && *o.total < 1) {
    throw InputError(
        "--total is " + std::to_string(*o.total) +
        "; the nearest legal value is 1: leave it out for no rows beside the groups'.");
  }
}

// Breaks the last group's end, so that no two groups share rows.
void break_offsets(const std::string& how, GroupedJob& job) {
  if (how.empty()) return;
  const std::int64_t last = job.offsets[job.offsets.size() - 2];
  job.offsets.back() = chosen<std::int64_t>(
      "--bad-offsets", how, {{"decreasing", last - 1}, {"beyond", job.total + 1000}});
}

void read_lengths(const GroupedOptions& o, GroupedJob& job) {
  require_memory("The offsets", 64.0 * static_cast<double>(o.groups), "choose fewer groups");
  const Result<std::vector<std::int64_t>> lengths =
      token_lengths(o.tokens, o.groups, o.total.value_or(0));
  if (!lengths) throw InputError(lengths.reason() + ".");
  job.offsets = {0};
  for (const std::int64_t length : *lengths) job.offsets.push_back(job.offsets.back() + length);
  job.total = o.total.value_or(job.offsets.back());
  break_offsets(o.bad_offsets, job);
  job.rest = {0, job.total};
  for (std::size_t g = 0; g < lengths->size(); ++g) {
    const tile::GroupSpan span =
        tile::clamped(job.offsets[g], job.offsets[g + 1], static_cast<int>(job.total));
    job.rows.push_back({span.first, span.end});
    job.rest.begin = std::max<std::int64_t>(job.rest.begin, span.end);
  }
}

// Shapes of the scales of X and W, as GroupedScaling has them.
std::vector<std::int64_t> scale_shape(const GroupedJob& job, bool of_x) {
  const std::int64_t blocks = pieces(job.k, scale_block);
  switch (job.scaling) {
    case GroupedScaling::group:
      return {job.groups, 1};
    case GroupedScaling::row_column:
      if (of_x) return {job.total, 1};
      return {job.groups, job.n, 1};
    case GroupedScaling::block:
      if (of_x) return {job.total, blocks};
      return {job.groups, pieces(job.n, scale_block), blocks};
    default:
      return {1, 1};
  }
}

double bytes_of(const std::vector<std::int64_t>& shape, DType type) {
  double bytes = static_cast<double>(size_of(type));
  for (const std::int64_t extent : shape) bytes *= static_cast<double>(extent);
  return bytes;
}

// Rows [begin, end) of a matrix become NaN.
void poison(HostTensor& matrix, const TokenRows& rows) {
  const std::int64_t row = matrix.shape[1] * size_of(matrix.dtype);
  std::fill_n(matrix.bytes.begin() + rows.begin * row, rows.count() * row, std::byte{kPoison});
}

// Of a packed tensor: a matrix, or one for each group.
MatrixView view_of(HostTensor& t) {
  const std::size_t rank = t.shape.size();
  MatrixView view = matrix(t.bytes.data(), t.dtype, t.shape[rank - 2], t.shape[rank - 1]);
  if (rank == 3) {
    view.batch = t.shape[0];
    view.batch_stride = view.rows * view.columns;
  }
  return view;
}

// The codes of a tensor from its element `first` on.
MatrixCodes codes_from(const HostTensor& t, std::int64_t first) {
  return {t.dtype, t.bytes.data() + first * size_of(t.dtype)};
}

// The product of one group, as a dense one.
GemmCheck check_of(const GroupedJob& job, std::size_t group, DType type, const void* y) {
  const TokenRows rows = job.rows[group];
  const auto g = static_cast<std::int64_t>(group);
  GemmCheck c;
  c.m = rows.count();
  c.n = job.n;
  c.k = job.k;
  c.a = codes_from(job.x, rows.begin * job.k);
  c.b = codes_from(job.w, g * job.n * job.k);
  c.d = {type, static_cast<const std::byte*>(y) + rows.begin * job.n * size_of(type)};
  c.alpha = static_cast<double>(job.alpha);
  c.accumulation = job.accumulation;
  const auto scales = [&](Scaling scaling, std::int64_t first_x, std::int64_t first_w) {
    c.scaling = scaling;
    c.scale_a = codes_from(job.scale_x, first_x);
    c.scale_b = codes_from(job.scale_w, first_w);
  };
  const std::int64_t blocks = pieces(job.k, scale_block);
  switch (job.scaling) {
    case GroupedScaling::none:
      break;
    case GroupedScaling::tensor:
      scales(Scaling::tensor, 0, 0);
      break;
    case GroupedScaling::group:
      scales(Scaling::tensor, g, g);
      break;
    case GroupedScaling::row_column:
      scales(Scaling::row_column, rows.begin, g * job.n);
      break;
    case GroupedScaling::block:
      scales(Scaling::block, rows.begin * blocks, g * pieces(job.n, scale_block) * blocks);
      break;
  }
  return c;
}

// Rows of Y in no group that are not as they were made.
std::int64_t touched_rows(const GroupedJob& job, DType type, const void* y) {
  const std::int64_t row = job.n * size_of(type);
  const auto* bytes = static_cast<const std::byte*>(y);
  std::int64_t touched = 0;
  for (std::int64_t i = job.rest.begin; i < job.rest.end; ++i) {
    const bool same = std::all_of(bytes + i * row, bytes + (i + 1) * row,
                                  [](std::byte b) { return b == std::byte{kPoison}; });
    touched += same ? 0 : 1;
  }
  return touched;
}

}  // namespace

std::int64_t GroupedJob::busy_groups() const {
  return std::count_if(rows.begin(), rows.end(), [](const TokenRows& r) { return r.count() > 0; });
}

GroupedJob read_grouped_job(const GroupedOptions& options) {
  GroupedJob job;
  read_words(options, job);
  read_lengths(options, job);
  return job;
}

GroupedProblem problem_of(const GroupedJob& job) {
  GroupedProblem p =
      packed_grouped_problem(job.total, job.n, job.k, job.groups, job.x_type, job.result);
  p.w = job.w_type;
  if (job.alpha == 0.0F) p.k = 0;
  p.offsets = job.offset_type;
  p.scaling = job.scaling;
  p.accumulation = job.scaling == GroupedScaling::block ? Accumulation::promoted : job.accumulation;
  p.expected_tokens = job.expected_tokens;
  return p;
}

GroupedPlan plan_job(const GroupedJob& job, const DeviceFacts& facts) {
  const Result<GroupedPlan> made = plan_grouped(problem_of(job), facts, job.choices);
  if (!made) throw InputError(made.reason());
  return *made;
}

std::int64_t tiles_of(const GroupedJob& job, const GroupedPlan& plan) {
  if (plan.ctas == 0) return 0;
  const tile::GroupedTiles tiles = plan.tiles(nullptr);
  std::int64_t all = 0;
  for (const TokenRows& r : job.rows) all += pieces(r.count(), tiles.tokens);
  return all * tiles.by_weights.value * atom::cluster_size(plan.cluster);
}

double roof_seconds(const GroupedJob& job, const DeviceFacts& device) {
  if (device.flops_16bit <= 0 || device.memory_bytes_per_second <= 0) return 0;
  const auto tokens = static_cast<double>(job.tokens());
  const auto n = static_cast<double>(job.n);
  const auto k = static_cast<double>(job.k);
  const double compute = 2 * tokens * n * k / tensor_rate(device, job.x_type);
  const double bytes =
      tokens * k * static_cast<double>(size_of(job.x_type)) +
      static_cast<double>(job.busy_groups()) * n * k * static_cast<double>(size_of(job.w_type)) +
      tokens * n * static_cast<double>(size_of(job.result));
  return std::max(compute, bytes / device.memory_bytes_per_second);
}

double products_of(const GroupedJob& job) {
  return static_cast<double>(job.tokens()) * static_cast<double>(job.n) *
         static_cast<double>(job.k);
}

double model_seconds(const GroupedJob& job, const GroupedPlan& plan) {
  return model_seconds(tiles_of(job, plan), plan.tile_tokens(), plan.tile_weights(), job.k);
}

void check_memory(const GroupedJob& job) {
  const double scales =
      bytes_of(scale_shape(job, true), DType::f32) + bytes_of(scale_shape(job, false), DType::f32);
  require_memory("X, W and Y",
                 bytes_of({job.total, job.k}, job.x_type) +
                     bytes_of({job.groups, job.n, job.k}, job.w_type) +
                     bytes_of({job.total, job.n}, job.result) +
                     (job.scaling == GroupedScaling::none ? 0 : scales),
                 "choose fewer groups or tokens, or a smaller N or K");
}

void load(GroupedJob& job, std::uint64_t seed) {
  check_memory(job);
  const std::vector<std::int64_t> w_shape = {job.groups, job.n, job.k};
  job.x = random_normal(job.x_type, {job.total, job.k}, seed, kStreamX);
  job.w = random_normal(job.w_type, w_shape, seed, kStreamW);
  poison(job.x, job.rest);
  if (job.scaling != GroupedScaling::none) {
    job.scale_x = random_scales(scale_shape(job, true), seed, kStreamScaleX);
    job.scale_w = random_scales(scale_shape(job, false), seed, kStreamScaleW);
    const bool by_token =
        job.scaling == GroupedScaling::row_column || job.scaling == GroupedScaling::block;
    if (by_token) poison(job.scale_x, job.rest);
  }
  const auto write = [&job](auto width) {
    const std::vector<decltype(width)> all(job.offsets.begin(), job.offsets.end());
    job.offset_bytes.resize(all.size() * sizeof width);
    std::memcpy(job.offset_bytes.data(), all.data(), job.offset_bytes.size());
  };
  if (job.offset_type == OffsetType::int64) {
    write(std::int64_t{});
  } else {
    write(std::int32_t{});
  }
}

HostTensor poisoned_result(const GroupedJob& job) {
  HostTensor y{job.result, {job.total, job.n}, {}};
  y.bytes.assign(static_cast<std::size_t>(y.elements() * size_of(job.result)), std::byte{kPoison});
  return y;
}

GroupedOperands operands_of(GroupedJob& job, HostTensor& y) {
  GroupedOperands o;
  o.x = view_of(job.x);
  o.w = view_of(job.w);
  o.y = view_of(y);
  o.offsets = job.offset_bytes.data();
  o.offset_type = job.offset_type;
  o.alpha = job.alpha;
  o.scaling = job.scaling;
  o.accumulation = job.accumulation;
  if (job.scaling != GroupedScaling::none) {
    o.scale_x = view_of(job.scale_x);
    o.scale_w = view_of(job.scale_w);
  }
  return o;
}

GroupedCheck check_grouped(const GroupedJob& job, DType type, const void* y,
                           const std::function<void(double)>& progress) {
  GroupedCheck result;
  for (std::size_t g = 0; g < job.rows.size(); ++g) {
    const TokenRows rows = job.rows[g];
    if (rows.count() == 0) continue;
    GemmCheck question = check_of(job, g, type, y);
    if (progress) {
      question.progress = [&](double share) {
        progress((static_cast<double>(rows.begin) + share * static_cast<double>(rows.count())) /
                 static_cast<double>(job.total));
      };
    }
    CheckResult part = check_gemm(question);
    if (part.worst_row >= 0) part.worst_row += rows.begin;
    merge(result.elements, part);
  }
  result.touched = touched_rows(job, type, y);
  return result;
}

}  // namespace warpwright::cli
