#include "cli/commands/gemm/gemm_tensors.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "cli/commands/gemm/gemm_arguments.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/micro_files.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/compute/words.h"
#include "cli/files/packed_file.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

// Which matrices a tensor has one of for each: all rows of a dense product's batch, or all groups.
enum class Along : std::uint8_t { rows, groups };

// The shape of a tensor of rows x columns for each.
Extents stacked(const GemmJob& job, Along along, std::int64_t rows, std::int64_t columns) {
  if (job.product.is_grouped() && along == Along::groups)
    return {job.product.group_count(), rows, columns};
  if (job.is_batch) return {job.product.batch(), rows, columns};
  return {rows, columns};
}

// What an operand is read as: values of a type that is multiplied or rounded, or, where a file has
// its scales, the codes of a format.
struct ReadAs {
  const MicroFormat* format = nullptr;  // none: only values
  bool has_scales = false;
  const char* option = "";  // that gives them
};

HostTensor read_as(const char* name, const std::string& spec, const ReadAs& as) {
  if (as.has_scales) return read_codes_as(name, spec, *as.format);
  if (as.format == nullptr) return read_named(name, spec);
  try {
    return read_named(name, spec);
  } catch (const InputError& refusal) {
    bool is_codes = true;
    try {
      static_cast<void>(read_codes_as(name, spec, *as.format));
    } catch (const InputError&) {
      is_codes = false;
    }
    if (!is_codes) throw;
    throw InputError(as_tensor(name) + " (" + spec + ") has codes of " + as.format->word +
                     ", whose scales are missing: " + as_rule("give ", as.option, " FILE") + ".");
  }
}

// A matrix of a file, or a batch of them where the product is one; B of groups always is.
HostTensor read_matrix(const char* name, const std::string& spec, const GemmJob& job,
                       Along along = Along::rows, const ReadAs& as = {}) {
  HostTensor tensor = read_as(name, spec, as);
  const std::string what = std::string(name) + " (" + spec + ")";
  const std::size_t rank = tensor.shape.size();
  const std::size_t wanted = job.product.is_grouped() && along == Along::groups ? 3 : 2;
  if (rank == 3 && job.is_batch) {
    if (tensor.shape[0] != job.product.batch()) {
      throw InputError(what + " has shape " + shape_text(tensor.shape) + "; " +
                       as_rule("with --batch ", std::to_string(job.product.batch()), " it has ",
                               std::to_string(job.product.batch()),
                               " matrices, or is one matrix for all of them") +
                       ".");
    }
  } else if (rank != wanted) {
    Extents nearest = tensor.shape;
    if (nearest.empty()) nearest = {1};
    if (nearest.size() == 1) nearest.insert(nearest.begin(), 1);  // a row of K elements
    if (nearest.size() < wanted) nearest.insert(nearest.begin(), 1);
    while (nearest.size() > wanted) {
      nearest[1] *= nearest[0];
      nearest.erase(nearest.begin());
    }
    throw InputError(what + " has " + std::to_string(rank) +
                     (rank == 1 ? " dimension" : " dimensions") + " (shape " +
                     shape_text(tensor.shape) + "); " +
                     as_rule("it must have ", std::to_string(wanted),
                             (wanted == 3 ? ", a matrix for each group" : "")) +
                     ": the nearest legal shape is " + as_nearest(shape_text(nearest)) +
                     ((rank == 3 && !job.product.is_grouped()
                           ? ", or give --batch " + std::to_string(tensor.shape[0])
                           : "")) +
                     ".");
  }
  if (!as.has_scales) require_operand_type(what, tensor);
  return tensor;
}

// Rows and columns of the (first) stored matrix.
std::pair<std::int64_t, std::int64_t> extents(const HostTensor& t) {
  return {t.shape[t.shape.size() - 2], t.shape.back()};
}

// The extents of random matrices; M of groups are their rows.
void read_numbers(const GemmOptions& o, GemmJob& job) {
  if (job.product.is_grouped()) {
    const char* missing = !o.groups ? "--groups" : !o.n ? "--n" : !o.k ? "--k" : nullptr;
    if (missing != nullptr) {
      throw InputError(
          std::string(missing) + " is missing: " +
          as_rule("give --groups, --n and --k for random A and B, or --a FILE and --b FILE") + ".");
    }
    job.product.b.batch = *o.groups;
  } else if (!o.random.empty()) {
    if (o.random.size() != 3)
      throw InputError("--random takes three numbers: " + as_rule("M N K") + ".");
    if (o.m || o.n || o.k) {
      throw InputError(std::string(o.m   ? "--m"
                                   : o.n ? "--n"
                                         : "--k") +
                       " is given, and --random: " + as_rule("give one of them") + ".");
    }
    job.set_extents(o.random[0], o.random[1], o.random[2]);
    return;
  } else if (!o.m || !o.n || !o.k) {
    throw InputError("--m, --n and --k are given together or not at all.");
  }
  job.set_extents(o.m.value_or(0), *o.n, *o.k);
}

// The factors of a packed tensor's experts: one is alpha's, others are scales of the groups' B. A
// scale_b that is given takes their place.
void take_factors(const GemmOptions& o, const PackedTensor& read, GemmJob& job) {
  if (!o.scale_b.empty()) return;
  const std::vector<float>& alphas = read.known_alphas();
  if (std::ranges::all_of(alphas, [&](float each) { return each == alphas.front(); })) {
    job.product.alpha *= alphas.front();
    return;
  }
  if (!job.product.is_grouped() || job.product.scaling != Scaling::none) {
    throw InputError(
        "The experts of " + read.name + " have factors that differ, and " +
        (job.product.is_grouped() ? "--scaling is " + std::string(name(job.product.scaling))
                                  : "a product without groups has one alpha") +
        ": " +
        as_rule(job.product.is_grouped() ? "leave it out, they are scales of the groups"
                                         : "pack them one by one, or use `warpwright grouped`") +
        ".");
  }
  job.product.scaling = Scaling::group;
  job.scale_b = {DType::f32, {static_cast<std::int64_t>(alphas.size()), 1}, {}};
  job.scale_b.bytes.resize(4 * alphas.size());
  std::memcpy(job.scale_b.bytes.data(), alphas.data(), job.scale_b.bytes.size());
}

// B of a packed tensor, which says its form and extents; the values come when they are loaded.
void read_packed_b(const GemmOptions& o, GemmJob& job) {
  PackedTensor read = read_packed(o.b);
  const weights::Header& header = read.header;
  if (o.group && *o.group != header.format.group) {
    throw InputError("--group is " + std::to_string(*o.group) + ", and " + as_tensor("B") + " (" +
                     read.name + ") has groups of " + std::to_string(header.format.group) + ": " +
                     as_rule("leave it out") + ".");
  }
  const packed::Extents& e = header.extents;
  const std::int64_t wanted = job.product.is_grouped() ? e.experts : job.product.batch();
  if (e.experts != wanted && e.experts != 1) {
    throw InputError(
        as_tensor("B") + " (" + read.name + ") has " + std::to_string(e.experts) + " experts; " +
        as_rule("a dense product of ", std::to_string(job.product.batch()),
                (job.product.batch() > 1 ? " matrices takes as many, or one" : " matrix takes one"),
                ": `warpwright grouped` takes any number") +
        ".");
  }
  if (packed::weights_word(header.format) != o.weights) {
    throw InputError(
        "--weights is " + o.weights + ", and " + as_tensor("B") + " (" + read.name + ") are " +
        packed::weights_word(header.format) + ": " +
        as_rule("the nearest legal value is ", as_nearest(packed::weights_word(header.format))) +
        ".");
  }
  job.product.packed->format = header.format;
  take_factors(o, read, job);
  job.packed_b = std::move(read.tensor.bytes);
  job.b.dtype = DType::f32;
  job.b.shape = {e.n, e.k};
  if (job.product.is_grouped() || e.experts > 1) job.b.shape.insert(job.b.shape.begin(), e.experts);
}

// The scales that a packed file brings along, and its factor.
void take_packed_scales(const GemmOptions& o, GemmJob& job, bool of_a, const MicroFormat& format) {
  auto& scales = of_a ? job.scales_of_a : job.scales_of_b;
  scales = packed_scales(of_a ? "A" : "B", of_a ? o.a : o.b, format);
  if (scales) job.product.alpha *= *scales->packed_alpha;
}

void read_operands(const GemmOptions& o, GemmJob& job) {
  if (o.a.empty() || o.b.empty()) {
    throw InputError(
        as_tensor(o.a.empty() ? "A" : "B") + " is missing: " +
        as_rule("give both --a FILE and --b FILE, or ",
                (job.product.is_grouped() ? "--groups, --n and --k" : "--random M N K")) +
        ".");
  }
  const auto formats = micro_formats_of(o.dtype);
  if (formats && o.scale_a.empty()) take_packed_scales(o, job, true, formats->first);
  if (formats && o.scale_b.empty()) take_packed_scales(o, job, false, formats->second);
  const ReadAs a{formats ? &formats->first : nullptr,
                 formats && (job.scales_of_a || !o.scale_a.empty()), "--scale-a"};
  const ReadAs b{formats ? &formats->second : nullptr,
                 formats && (job.scales_of_b || !o.scale_b.empty()), "--scale-b"};
  job.a = read_matrix("A", o.a, job, Along::rows, a);
  if (job.product.packed) {
    read_packed_b(o, job);
  } else {
    job.b = read_matrix("B", o.b, job, Along::groups, b);
  }
  auto [m, k] = extents(job.a);
  auto [n, other_k] = extents(job.b);
  if (job.a_transposed) std::swap(m, k);
  if (job.b_transposed) std::swap(n, other_k);
  job.set_extents(m, n, k);
  if (job.product.is_grouped()) job.product.b.batch = job.b.shape[0];
  if (other_k == k) return;
  // Packed weights keep the K that they were packed with.
  const bool of_a = job.product.packed.has_value();
  Extents nearest = of_a ? job.a.shape : job.b.shape;
  const bool is_transposed = of_a ? job.a_transposed : job.b_transposed;
  nearest[nearest.size() - (is_transposed ? 2 : 1)] = of_a ? other_k : k;
  throw InputError(
      as_tensor("A") + " (" + o.a + ") is " + shape_text(job.a.shape) + " and B (" + o.b + ") is " +
      shape_text(job.b.shape) + "; " +
      as_rule("their ", (job.a_transposed || job.b_transposed ? "K" : "columns are both K and"),
              " must agree") +
      ": the nearest legal " + (of_a ? "A" : "B") + " is " + as_nearest(shape_text(nearest)) +
      (of_a && k < other_k ? ", with zeros behind its rows." : "."));
}

HostTensor read_c(const GemmOptions& o, const GemmJob& job) {
  if (o.c.empty()) {
    throw InputError(as_tensor("C") + " is missing: " +
                     as_rule("beta is ", o.beta, ", so give --c FILE, or leave --beta out") + ".");
  }
  HostTensor c = read_matrix("C", o.c, job);
  if (extents(c) == std::pair(job.product.m(), job.result_columns())) return c;
  throw InputError(as_tensor("C") + " (" + o.c + ") is " + shape_text(c.shape) + "; " +
                   as_rule("it must be as large as D: ", std::to_string(job.product.m()), "x",
                           std::to_string(job.result_columns())) +
                   ".");
}

// A tensor of this shape, or of that of `one` that serves all; random where no file is named.
HostTensor read_vector(const std::string& name, const std::string& spec, const Extents& shape,
                       const Extents& one) {
  if (spec.empty()) return {DType::f32, shape, {}};
  std::vector<Extents> legal = {shape};
  if (one != shape) legal.push_back(one);
  return read_shaped(name, spec, legal);
}

// The scales of operands of a format, which go with their codes.
void read_micro_scales(const GemmOptions& o, GemmJob& job, bool of_a) {
  const std::string& spec = of_a ? o.scale_a : o.scale_b;
  const std::string option = of_a ? "--scale-a" : "--scale-b";
  if (spec.empty()) {
    if (of_a ? job.scales_of_a : job.scales_of_b) check_packed_scales(job, of_a, of_a ? o.a : o.b);
    return;
  }
  if (o.a.empty()) {
    throw InputError(option + " is given, and --dtype is " + o.dtype +
                     ", whose random operands have scales that are made with them: " +
                     as_rule("leave it out, or give ", of_a ? "--a" : "--b", " FILE") + ".");
  }
  auto& scales = of_a ? job.scales_of_a : job.scales_of_b;
  scales = read_scales_as(job, of_a, spec, o.scales_layout);
  // The factor of codes that were packed with one goes with them, unless --alpha says it.
  if (!o.alpha.empty()) return;
  scales->packed_alpha = packed_alpha(of_a ? "A" : "B", of_a ? o.a : o.b);
  job.product.alpha *= scales->packed_alpha.value_or(1.0F);
}

// The scales of A or B.
HostTensor scales_of(const GemmOptions& o, GemmJob& job, bool of_a) {
  const std::string& spec = of_a ? o.scale_a : o.scale_b;
  const std::string option = of_a ? "--scale-a" : "--scale-b";
  if (job.is_block_scaled()) {
    read_micro_scales(o, job, of_a);
    return {};
  }
  if (job.product.scaling == Scaling::group && !job.product.is_grouped()) {
    throw InputError("--scaling is group, and the product has no groups: the nearest is " +
                     as_nearest("tensor") + ".");
  }
  if (job.product.scaling == Scaling::none) {
    if (spec.empty()) return {};
    const auto scales = [](Scaling s) { return s != Scaling::none && is_option(s); };
    throw InputError(option + " is given without --scaling: " +
                     as_rule("say what a scale is for, ", listed(all_scalings, scales)) + ".");
  }
  // Packed weights bring the scales of their groups: others are given or left out. Tokens of 16
  // bits have none.
  if (!of_a && job.product.packed && spec.empty()) return {};
  if (of_a && job.product.packed && !numeric::is_8bit(job.product.a.dtype)) {
    if (spec.empty()) return {};
    throw InputError("--scale-a is given, and A is " + type_name(job.product.a.dtype) + ": " +
                     as_rule("tokens of 16 bits have no scales, only packed weights have them") +
                     ".");
  }
  if (spec.empty() && !o.a.empty()) {
    throw InputError("The scales of " + as_tensor(of_a ? "A" : "B") + " are missing: " +
                     as_rule("--scaling is ", o.scaling, ", so give ", option, " FILE") +
                     (of_a ? " (wp.quantise makes them from tokens of 16 bits)." : "."));
  }
  const ScaleReach reach =
      scale_reach(job.product.scaling, of_a, micro_scale(job.product, of_a), job.block);
  const bool of_groups = job.product.scaling == Scaling::group;
  const std::int64_t rows =
      of_groups ? job.product.group_count()
                : ScaleReach::count(of_a ? job.product.a.rows : job.product.n(), reach.rows);
  Extents one = {rows, ScaleReach::count(job.product.k(), reach.depth)};  // that serves all
  Extents shape = one;
  if (of_groups || !serves_all(reach)) {
    shape = stacked(job, of_a || of_groups ? Along::rows : Along::groups, one[0], one[1]);
  }
  if (job.product.is_grouped()) one = of_a && of_groups ? Extents{1, 1} : shape;
  const std::string name = of_a ? "scale_a" : "scale_b";
  HostTensor tensor = read_vector(name, spec, shape, one);
  take_as_f32(name, tensor);
  return tensor;
}

// The scale of D: a number, or a file's.
HostTensor scale_of_result(const std::string& text, QuantiseD quantise) {
  if (names_file(text)) {
    HostTensor tensor = read_vector("scale_d", text, {1, 1}, {1, 1});
    take_as_f32("scale_d", tensor);
    return tensor;
  }
  const float value = parse_scalar("scale_d", text, 1.0F);
  if (quantise != QuantiseD::none && !(value > 0 && std::isfinite(value))) {
    throw InputError("scale_d is " + text + ", and D is quantised (" + std::string(name(quantise)) +
                     "): " +
                     as_rule("the scale of all of D is positive and finite, about its "
                             "largest magnitude / 2688") +
                     ".");
  }
  HostTensor tensor{DType::f32, {1, 1}, std::vector<std::byte>(sizeof value)};
  std::memcpy(tensor.bytes.data(), &value, sizeof value);
  return tensor;
}

HostTensor bias_of(const std::string& spec, const GemmJob& job) {
  const bool of_rows = job.product.epilogue.bias == Bias::rows;
  const std::int64_t rows = of_rows ? job.product.m() : job.product.n();
  HostTensor tensor = read_vector(
      "The bias", spec, stacked(job, of_rows ? Along::rows : Along::groups, rows, 1), {rows, 1});
  // f32 holds what the narrower types do.
  if (spec.empty() ||
      (tensor.dtype == job.product.d.dtype && numeric::bits(job.product.d.dtype) == 16)) {
    return tensor;
  }
  return convert(tensor, DType::f32);
}

}  // namespace

void read_matrices(const GemmOptions& o, GemmJob& job) {
  const bool files = !o.a.empty() || !o.b.empty() || !o.c.empty();
  const char* number = !o.random.empty() ? "--random"
                       : o.groups        ? "--groups"
                       : o.m             ? "--m"
                       : o.n             ? "--n"
                       : o.k             ? "--k"
                       : o.total         ? "--total"
                                         : nullptr;
  if (files && number != nullptr) {
    throw InputError(std::string("Files and numbers do not go together: leave ") + number +
                     " out, or --a, --b and --c.");
  }
  if (files || (number == nullptr && !job.product.is_grouped())) {
    read_operands(o, job);
  } else {
    read_numbers(o, job);
  }
  read_rows(o, job);
  if (!files) {
    const auto stored = [&job](Along along, std::int64_t rows, bool transposed) {
      return transposed ? stacked(job, along, job.product.k(), rows)
                        : stacked(job, along, rows, job.product.k());
    };
    job.a.shape = stored(Along::rows, job.product.a.rows, job.a_transposed);
    job.b.shape = stored(Along::groups, job.product.n(), job.b_transposed);
    if (job.reads_c())
      job.c.shape = stacked(job, Along::rows, job.product.m(), job.result_columns());
  } else if (job.reads_c()) {
    job.c = read_c(o, job);
  }
}

void read_vectors(const GemmOptions& o, GemmJob& job) {
  job.scale_a = scales_of(o, job, true);
  // That of packed weights may have come with them.
  if (job.scale_b.bytes.empty() || !o.scale_b.empty()) job.scale_b = scales_of(o, job, false);
  const Epilogue& epilogue = job.product.epilogue;
  if (epilogue.bias != Bias::none) {
    job.epilogue.push_back({&GemmOperands::bias, bias_of(parse_bias(o.bias).second, job),
                            epilogue.bias == Bias::rows});
  }
  if (!o.scale_d.empty()) {
    job.epilogue.push_back({&GemmOperands::scale_d, scale_of_result(o.scale_d, epilogue.quantise)});
  }
}

}  // namespace warpwright::cli
