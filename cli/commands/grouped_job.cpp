#include "cli/commands/grouped_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "cli/commands/gemm_arguments.h"
#include "cli/commands/model_time.h"
#include "cli/commands/operand_files.h"
#include "cli/commands/words.h"
#include "cli/compute/random.h"
#include "cli/compute/token_lengths.h"
#include "warpwright/plan/rules.h"

namespace warpwright::cli {
namespace {

// Streams of the random tensors.
enum GroupedStream : std::uint64_t {
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

// What the arguments say without a look at the files.
void read_words(const GroupedOptions& o, GroupedJob& job) {
  job.alpha = parse_scalar("alpha", o.alpha, 1.0F);
  job.scaling = parse_grouped_scaling(o.scaling);
  job.accumulation = parse_accumulation(o.accumulation);
  job.choices = parse_grouped_choices(o);
  if (o.expected_tokens && !(*o.expected_tokens > 0 && std::isfinite(*o.expected_tokens))) {
    throw InputError("--expected-tokens must be a number above 0; leave it out for the mean.");
  }
  job.expected_tokens = o.expected_tokens.value_or(0);
  if (!o.offsets.empty() && !names_file(o.offsets)) {
    job.offset_type = chosen<OffsetType>(
        "--offsets", o.offsets, {{"int32", OffsetType::int32}, {"int64", OffsetType::int64}});
  }
  if (o.total && *o.total < 1) {
    throw InputError(
        "--total is " + std::to_string(*o.total) +
        "; the nearest legal value is 1: leave it out for no rows beside the groups'.");
  }
}

bool has_files(const GroupedOptions& o) {
  return !o.x.empty() || !o.w.empty();
}

// X or W of a file: as many dimensions as `form`, "TOTAL x K", has.
HostTensor read_operand(const char* name, const std::string& spec, std::size_t rank,
                        const char* form) {
  HostTensor tensor = read_named(name, spec);
  const std::string what = std::string(name) + " (" + spec + ")";
  if (tensor.shape.size() != rank) {
    Extents nearest = tensor.shape;
    while (nearest.size() < rank) nearest.insert(nearest.begin(), 1);
    while (nearest.size() > rank) {
      nearest[1] *= nearest[0];
      nearest.erase(nearest.begin());
    }
    throw InputError(what + " has " + std::to_string(tensor.shape.size()) + " dimensions (shape " +
                     shape_text(tensor.shape) + "); it must have " + std::to_string(rank) + ", " +
                     form + ": the nearest legal shape is " + shape_text(nearest) + ".");
  }
  require_operand_type(what, tensor);
  return tensor;
}

void read_files(const GroupedOptions& o, GroupedJob& job) {
  if (o.x.empty() || o.w.empty()) {
    throw InputError(std::string(o.x.empty() ? "X" : "W") +
                     " is missing: give both --x FILE and --w FILE, or --groups, --n and --k.");
  }
  if (o.groups || o.n || o.k || o.total) {
    const char* number = o.groups ? "--groups" : o.n ? "--n" : o.k ? "--k" : "--total";
    throw InputError(std::string("Files and numbers do not go together: leave ") + number +
                     " out, X and W have their shapes.");
  }
  job.x = read_operand("X", o.x, 2, "TOTAL x K");
  job.w = read_operand("W", o.w, 3, "G x N x K");
  job.total = job.x.shape[0];
  job.groups = job.w.shape[0];
  job.n = job.w.shape[1];
  job.k = job.w.shape[2];
  if (job.x.shape[1] != job.k) {
    throw InputError("X (" + o.x + ") is " + shape_text(job.x.shape) + " and W (" + o.w + ") is " +
                     shape_text(job.w.shape) +
                     "; the last dimensions are both K and must agree: the nearest legal W is " +
                     shape_text(Extents{job.groups, job.n, job.x.shape[1]}) + ".");
  }
}

// The extents that X and W have, or are to have. `total` of random ones follows from the lengths.
void read_extents(const GroupedOptions& o, GroupedJob& job) {
  if (has_files(o)) return read_files(o, job);
  const char* missing = !o.groups ? "--groups" : !o.n ? "--n" : !o.k ? "--k" : nullptr;
  if (missing != nullptr) {
    throw InputError(std::string(missing) +
                     " is missing: give --groups, --n and --k for random X and W, or --x FILE and "
                     "--w FILE.");
  }
  for (const auto& [option, file] :
       {std::pair("--scale-x", &o.scale_x), {"--scale-w", &o.scale_w}}) {
    if (!file->empty()) {
      throw InputError(std::string(option) +
                       " is given without --x and --w: random X and W have random scales.");
    }
  }
  job.groups = *o.groups;
  job.n = *o.n;
  job.k = *o.k;
}

void choose_types(const GroupedOptions& o, GroupedJob& job) {
  if (!o.dtype.empty()) {
    std::tie(job.x_type, job.w_type) = parse_operand_types(o.dtype);
  } else if (has_files(o)) {
    std::tie(job.x_type, job.w_type) = types_of_files(job.x.dtype, job.w.dtype);
  }
  job.result = o.y_dtype.empty() ? natural_result(job.x_type) : parse_result_type(o.y_dtype);
}

// The integers of a file, one for each of `count`.
HostIntegers read_list(const char* option, const std::string& spec, std::int64_t count,
                       const std::string& rule) {
  HostIntegers list;
  try {
    list = read_integers(spec);
  } catch (const InputError& refusal) {
    throw InputError(std::string(option) + ": " + refusal.what());
  }
  const auto found = static_cast<std::int64_t>(list.values.size());
  if (found == count) return list;
  throw InputError(std::string(option) + " (" + spec + ") has " + std::to_string(found) +
                   " integers; " + rule + ": the nearest legal shape is " + std::to_string(count) +
                   ".");
}

// The lengths of all groups from their offsets.
std::vector<std::int64_t> read_offsets(const GroupedOptions& o, GroupedJob& job) {
  if (!o.tokens.empty()) {
    throw InputError(
        "--tokens and --offsets FILE both say how long the groups are: leave one out.");
  }
  const HostIntegers list =
      read_list("--offsets", o.offsets, job.groups + 1,
                "there are " + std::to_string(job.groups) + " groups, and one offset more");
  job.offset_type = list.bits == 64 ? OffsetType::int64 : OffsetType::int32;
  const auto fault = [&](std::int64_t index, std::int64_t value, const std::string& rule,
                         std::int64_t nearest) {
    return InputError("--offsets (" + o.offsets + ") has " + std::to_string(value) + " in place " +
                      std::to_string(index) + "; " + rule + ": the nearest legal value is " +
                      std::to_string(nearest) + ".");
  };
  if (list.values[0] != 0) throw fault(0, list.values[0], "the first group begins at row 0", 0);
  std::vector<std::int64_t> lengths;
  for (std::int64_t g = 0; g < job.groups; ++g) {
    const std::int64_t begin = list.values[static_cast<std::size_t>(g)];
    const std::int64_t end = list.values[static_cast<std::size_t>(g) + 1];
    if (end < begin) throw fault(g + 1, end, "offsets do not decrease", begin);
    const std::int64_t most = has_files(o) ? job.total : max_extent;
    if (end > most) {
      throw fault(
          g + 1, end,
          has_files(o) ? "X has " + std::to_string(most) + " rows" : "coordinates have 32 bits",
          most);
    }
    lengths.push_back(end - begin);
  }
  return lengths;
}

// The words of --tokens; lengths in a file are written out.
std::string token_words(const GroupedOptions& o, const GroupedJob& job) {
  if (o.tokens.empty()) {
    throw InputError(
        "--tokens is missing: say how many rows of X each group has, for example 16,0,3, or give "
        "--offsets FILE.");
  }
  if (!names_file(o.tokens)) return o.tokens;
  const HostIntegers list =
      read_list("--tokens", o.tokens, job.groups,
                "there are " + std::to_string(job.groups) + " groups, each with a length");
  std::string words;
  for (const std::int64_t length : list.values) {
    words += (words.empty() ? "" : ",") + std::to_string(length);
  }
  return words;
}

std::vector<std::int64_t> lengths_of(const GroupedOptions& o, GroupedJob& job) {
  if (names_file(o.offsets)) return read_offsets(o, job);
  const bool known = has_files(o);
  const Result<std::vector<std::int64_t>> lengths =
      token_lengths(token_words(o, job), job.groups, known ? job.total : o.total.value_or(0),
                    known ? "the number of X's rows" : "--total");
  if (!lengths) throw InputError(lengths.reason() + ".");
  return *lengths;
}

// Breaks the last group's end, so that no two groups share rows.
void break_offsets(const std::string& how, GroupedJob& job) {
  if (how.empty()) return;
  const std::int64_t last = job.offsets[job.offsets.size() - 2];
  job.offsets.back() = chosen<std::int64_t>(
      "--bad-offsets", how, {{"decreasing", last - 1}, {"beyond", job.total + 1000}});
}

void read_lengths(const GroupedOptions& o, GroupedJob& job) {
  require_memory("The offsets", 64.0 * static_cast<double>(job.groups), "choose fewer groups");
  const std::vector<std::int64_t> lengths = lengths_of(o, job);
  job.offsets = {0};
  for (const std::int64_t length : lengths) job.offsets.push_back(job.offsets.back() + length);
  if (!has_files(o)) job.total = o.total.value_or(job.offsets.back());
  if (job.total < job.offsets.back()) {
    throw InputError("--offsets (" + o.offsets + ") ends at row " +
                     std::to_string(job.offsets.back()) + ", and --total is " +
                     std::to_string(job.total) + ": the nearest legal total is " +
                     std::to_string(job.offsets.back()) + ".");
  }
  break_offsets(o.bad_offsets, job);
  job.rest = {0, job.total};
  for (std::size_t g = 0; g < lengths.size(); ++g) {
    const tile::GroupSpan span =
        tile::clamped(job.offsets[g], job.offsets[g + 1], static_cast<int>(job.total));
    job.rows.push_back({span.first, span.end});
    job.rest.begin = std::max<std::int64_t>(job.rest.begin, span.end);
  }
}

// Shapes of the scales of X and W, as GroupedScaling has them.
Extents scale_shape(const GroupedJob& job, bool of_x) {
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

// Shapes of what is random, and the scales of files.
void read_tensors(const GroupedOptions& o, GroupedJob& job) {
  if (!has_files(o)) {
    job.x.shape = {job.total, job.k};
    job.w.shape = {job.groups, job.n, job.k};
  }
  for (const bool of_x : {true, false}) {
    const std::string& spec = of_x ? o.scale_x : o.scale_w;
    const std::string option = of_x ? "--scale-x" : "--scale-w";
    HostTensor& scales = of_x ? job.scale_x : job.scale_w;
    if (job.scaling == GroupedScaling::none) {
      if (spec.empty()) continue;
      throw InputError(option +
                       " is given without --scaling: say what a scale is for, tensor, group, "
                       "row-column or block.");
    }
    if (!has_files(o)) {
      scales = {DType::f32, scale_shape(job, of_x), {}};
    } else if (spec.empty()) {
      throw InputError(std::string("The scales of ") + (of_x ? "X" : "W") +
                       " are missing: --scaling is " + o.scaling + ", so give " + option +
                       " FILE.");
    } else {
      const std::string name = of_x ? "scale_x" : "scale_w";
      std::vector<Extents> legal = {scale_shape(job, of_x)};
      if (of_x && job.scaling == GroupedScaling::group) legal.push_back({1, 1});  // for all groups
      scales = read_shaped(name, spec, legal);
      require_f32(name, scales);
    }
  }
}

// Rows [begin, end) of a matrix become NaN.
void poison(HostTensor& matrix, const TokenRows& rows) {
  const std::int64_t row = matrix.shape[1] * size_of(matrix.dtype);
  std::fill_n(matrix.bytes.begin() + rows.begin * row, rows.count() * row, std::byte{kPoison});
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
      scales(Scaling::tensor, job.scale_x.shape[0] == 1 ? 0 : g, g);
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
  read_extents(options, job);
  choose_types(options, job);
  read_lengths(options, job);
  read_tensors(options, job);
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
  const HostTensor y{job.result, {job.total, job.n}, {}};
  require_memory("X, W and Y",
                 bytes_as(job.x, job.x_type) + bytes_as(job.w, job.w_type) +
                     bytes_as(y, job.result) + bytes_as(job.scale_x, DType::f32) +
                     bytes_as(job.scale_w, DType::f32),
                 "choose fewer groups or tokens, or a smaller N or K");
}

void load(GroupedJob& job, std::uint64_t seed, std::ostream& err) {
  check_memory(job);
  // What has no content yet is random.
  const auto is_open = [](const HostTensor& t) { return t.bytes.empty() && !t.shape.empty(); };
  if (is_open(job.x)) {
    job.x = random_normal(job.x_type, job.x.shape, seed, kStreamX);
    poison(job.x, job.rest);
  } else {
    round_to(job.x, job.x_type, "X", err);
  }
  if (is_open(job.w)) {
    job.w = random_normal(job.w_type, job.w.shape, seed, kStreamW);
  } else {
    round_to(job.w, job.w_type, "W", err);
  }
  if (is_open(job.scale_x)) {
    job.scale_x = random_scales(job.scale_x.shape, seed, kStreamScaleX);
    const bool by_token =
        job.scaling == GroupedScaling::row_column || job.scaling == GroupedScaling::block;
    if (by_token) poison(job.scale_x, job.rest);
  }
  if (is_open(job.scale_w)) {
    job.scale_w = random_scales(job.scale_w.shape, seed, kStreamScaleW);
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

void write_result(const GroupedJob& job, HostTensor y, const std::string& spec, std::ostream& err) {
  if (job.rest.count() > 0) {
    const std::int64_t row = job.n * size_of(y.dtype);
    std::fill_n(y.bytes.begin() + job.rest.begin * row, job.rest.count() * row, std::byte{0});
  }
  const bool is_npy = parse_spec(spec).kind == TensorSpec::Kind::npy;
  if (is_npy && y.dtype != DType::f32 && y.dtype != DType::f16) {
    err << "note: Y is " << numeric::name(y.dtype) << ", which .npy does not have: " << spec
        << " holds the same values as f32.\n";
    y = convert(y, DType::f32);
  }
  write_tensor(spec, y);
}

GroupedOperands operands_of(GroupedJob& job, HostTensor& y) {
  GroupedOperands o;
  o.x = packed_view(job.x);
  o.w = packed_view(job.w);
  o.y = packed_view(y);
  o.offsets = job.offset_bytes.data();
  o.offset_type = job.offset_type;
  o.alpha = job.alpha;
  o.scaling = job.scaling;
  o.accumulation = job.accumulation;
  if (job.scaling != GroupedScaling::none) {
    o.scale_x = packed_view(job.scale_x);
    o.scale_w = packed_view(job.scale_w);
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
