#include "cli/commands/gemm_tensors.h"

#include <array>
#include <cstring>
#include <utility>

#include "cli/commands/gemm_arguments.h"
#include "cli/commands/operand_files.h"
#include "cli/compute/random.h"

namespace warpwright::cli {
namespace {

// Streams of the random tensors.
enum Stream : std::uint64_t {
  kStreamA = 1,
  kStreamB = 2,
  kStreamC = 3,
  kStreamScaleA = 4,
  kStreamScaleB = 5,
  kStreamBias = 6,
};

// Refuses a tensor that is no matrix, nor a batch of them where the product is one.
void check_rank(const std::string& what, const HostTensor& tensor, const GemmJob& job) {
  const std::size_t rank = tensor.shape.size();
  if (rank == 2) return;
  if (rank == 3 && job.is_batch) {
    if (tensor.shape[0] == job.batch) return;
    throw InputError(what + " has shape " + shape_text(tensor.shape) + "; with --batch " +
                     std::to_string(job.batch) + " it has " + std::to_string(job.batch) +
                     " matrices, or is one matrix for all of them.");
  }
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
  std::string nearest;
  if (rows > 0) {
    nearest = "; the nearest legal shape is " + std::to_string(rows) + "x" +
              std::to_string(tensor.elements() / rows);
  }
  if (rank == 3) nearest += ", or give --batch " + std::to_string(rows);
  throw InputError(what + " has " + std::to_string(rank) + " dimensions (shape " +
                   shape_text(tensor.shape) + "); a matrix has 2" + nearest + ".");
}

HostTensor read_matrix(const char* name, const std::string& spec, const GemmJob& job) {
  HostTensor tensor = read_named(name, spec);
  const std::string what = std::string(name) + " (" + spec + ")";
  check_rank(what, tensor, job);
  require_operand_type(what, tensor);
  return tensor;
}

// Rows and columns of the (first) stored matrix.
std::pair<std::int64_t, std::int64_t> extents(const HostTensor& t) {
  return {t.shape[t.shape.size() - 2], t.shape.back()};
}

// The shape of a tensor that a batch has one of for each product.
Extents batched(const GemmJob& job, std::int64_t rows, std::int64_t columns) {
  if (job.is_batch) return {job.batch, rows, columns};
  return {rows, columns};
}

// M, N and K when they are given as numbers.
std::optional<std::array<std::int64_t, 3>> given_extents(const GemmOptions& o) {
  if (!o.random.empty()) {
    if (o.random.size() != 3) throw InputError("--random takes three numbers: M N K.");
    return std::array{o.random[0], o.random[1], o.random[2]};
  }
  if (!o.m && !o.n && !o.k) return std::nullopt;
  if (!o.m || !o.n || !o.k) throw InputError("--m, --n and --k are given together or not at all.");
  return std::array{*o.m, *o.n, *o.k};
}

void shape_random(const std::array<std::int64_t, 3>& extents, GemmJob& job) {
  job.m = extents[0];
  job.n = extents[1];
  job.k = extents[2];
  const auto stored = [&job](std::int64_t rows, bool transposed) {
    return transposed ? batched(job, job.k, rows) : batched(job, rows, job.k);
  };
  job.a.shape = stored(job.m, job.a_transposed);
  job.b.shape = stored(job.n, job.b_transposed);
  if (job.reads_c()) job.c.shape = batched(job, job.m, job.result_columns());
}

void read_files(const GemmOptions& o, GemmJob& job) {
  if (o.a.empty() || o.b.empty()) {
    throw InputError(std::string(o.a.empty() ? "A" : "B") +
                     " is missing: give both --a FILE and --b FILE, or --random M N K.");
  }
  job.a = read_matrix("A", o.a, job);
  job.b = read_matrix("B", o.b, job);
  auto [m, k] = extents(job.a);
  auto [n, other_k] = extents(job.b);
  if (job.a_transposed) std::swap(m, k);
  if (job.b_transposed) std::swap(n, other_k);
  job.m = m;
  job.n = n;
  job.k = k;
  if (other_k != k) {
    const std::int64_t rows = job.b_transposed ? k : n;
    const std::int64_t columns = job.b_transposed ? n : k;
    throw InputError("A (" + o.a + ") is " + shape_text(job.a.shape) + " and B (" + o.b + ") is " +
                     shape_text(job.b.shape) + "; their " +
                     (job.a_transposed || job.b_transposed ? "K" : "columns are both K and") +
                     " must agree: the nearest legal B is " + std::to_string(rows) + "x" +
                     std::to_string(columns) + ".");
  }
  if (!job.reads_c()) return;
  if (o.c.empty()) {
    throw InputError("C is missing: beta is " + o.beta + ", so give --c FILE, or leave beta at 0.");
  }
  job.c = read_matrix("C", o.c, job);
  if (extents(job.c) != std::pair(job.m, job.result_columns())) {
    throw InputError("C (" + o.c + ") is " + shape_text(job.c.shape) +
                     "; it must be as large as D: " + std::to_string(job.m) + "x" +
                     std::to_string(job.result_columns()) + ".");
  }
}

// A tensor of [batch x] rows x columns in a file, where dimensions of 1 do not matter.
HostTensor read_vector(const std::string& name, const std::string& spec, const GemmJob& job,
                       std::int64_t rows, std::int64_t columns) {
  std::vector<Extents> legal = {{rows, columns}};
  if (job.is_batch) legal.push_back({job.batch, rows, columns});
  return read_shaped(name, spec, legal);
}

// The scales of A or B.
HostTensor scales_of(const GemmOptions& o, const GemmJob& job, bool of_a) {
  const std::string& spec = of_a ? o.scale_a : o.scale_b;
  const char* option = of_a ? "--scale-a" : "--scale-b";
  const std::int64_t block_rows = of_a ? 1 : 128;
  std::int64_t rows = of_a ? job.m : job.n;
  std::int64_t columns = 1;
  if (job.scaling == Scaling::tensor) rows = 1;
  if (job.scaling == Scaling::block) {
    rows = (rows + block_rows - 1) / block_rows;
    columns = (job.k + 127) / 128;
  }
  if (spec.empty()) {
    if (!o.a.empty()) {
      throw InputError(std::string("The scales of ") + (of_a ? "A" : "B") +
                       " are missing: --scaling is " + o.scaling + ", so give " + option +
                       " FILE.");
    }
    return {DType::f32, batched(job, rows, columns), {}};
  }
  HostTensor tensor = read_vector(of_a ? "scale_a" : "scale_b", spec, job, rows, columns);
  require_f32(of_a ? "scale_a" : "scale_b", tensor);
  return tensor;
}

// The scale of D: a number, or a file's.
std::optional<HostTensor> scale_of_result(const std::string& text, const GemmJob& job) {
  if (text.empty()) return std::nullopt;
  if (names_file(text)) {
    HostTensor tensor = read_vector("scale_d", text, job, 1, 1);
    require_f32("scale_d", tensor);
    return tensor;
  }
  const float value = parse_scalar("scale_d", text, 1.0F);
  HostTensor tensor{DType::f32, {1, 1}, std::vector<std::byte>(sizeof value)};
  std::memcpy(tensor.bytes.data(), &value, sizeof value);
  return tensor;
}

HostTensor bias_of(const std::string& spec, const GemmJob& job) {
  const std::int64_t rows = job.epilogue.bias == Bias::rows ? job.m : job.n;
  if (spec.empty()) return {DType::f32, batched(job, rows, 1), {}};
  HostTensor tensor = read_vector("The bias", spec, job, rows, 1);
  // f32 holds what the narrower types do.
  return tensor.dtype == job.result && numeric::bits(job.result) == 16
             ? tensor
             : convert(tensor, DType::f32);
}

}  // namespace

void check_memory(const GemmJob& job) {
  const double result = static_cast<double>(job.batch) * static_cast<double>(job.m) *
                        static_cast<double>(job.result_columns()) * numeric::bits(job.result) / 8;
  const double wanted = bytes_as(job.a, job.a_type) + bytes_as(job.b, job.b_type) +
                        bytes_as(job.c, job.result) + bytes_as(job.scale_a, DType::f32) +
                        bytes_as(job.scale_b, DType::f32) + bytes_as(job.bias, job.bias.dtype) +
                        result;
  require_memory(job.reads_c() ? "A, B, C and D" : "A, B and D", wanted,
                 "choose smaller M, N or K");
}

void read_matrices(const GemmOptions& o, GemmJob& job) {
  const auto numbers = given_extents(o);
  if (!numbers) return read_files(o, job);
  if (!o.a.empty() || !o.b.empty() || !o.c.empty()) {
    throw InputError("Files and numbers do not go together: give --a and --b, or M, N and K.");
  }
  shape_random(*numbers, job);
}

void read_vectors(const GemmOptions& o, GemmJob& job) {
  if (job.scaling == Scaling::none && (!o.scale_a.empty() || !o.scale_b.empty())) {
    throw InputError(
        std::string(o.scale_a.empty() ? "--scale-b" : "--scale-a") +
        " is given without --scaling: say what a scale is for, tensor, row-column or block.");
  }
  if (job.scaling != Scaling::none) {
    job.scale_a = scales_of(o, job, true);
    job.scale_b = scales_of(o, job, false);
  }
  job.scale_d = scale_of_result(o.scale_d, job);
  if (job.epilogue.bias != Bias::none) job.bias = bias_of(parse_bias(o.bias).second, job);
}

void load(GemmJob& job, std::uint64_t seed, std::ostream& err) {
  check_memory(job);
  // What has no content yet is random.
  const auto is_open = [](const HostTensor& t) { return t.bytes.empty() && !t.shape.empty(); };
  const auto make = [&](HostTensor& t, DType type, std::uint64_t stream) {
    if (!is_open(t)) return false;
    t = random_normal(type, t.shape, seed, stream);
    return true;
  };
  if (!make(job.a, job.a_type, kStreamA)) round_to(job.a, job.a_type, "A", err);
  if (!make(job.b, job.b_type, kStreamB)) round_to(job.b, job.b_type, "B", err);
  if (job.reads_c() && !make(job.c, job.result, kStreamC)) round_to(job.c, job.result, "C", err);
  if (is_open(job.scale_a)) job.scale_a = random_scales(job.scale_a.shape, seed, kStreamScaleA);
  if (is_open(job.scale_b)) job.scale_b = random_scales(job.scale_b.shape, seed, kStreamScaleB);
  make(job.bias, DType::f32, kStreamBias);
}

}  // namespace warpwright::cli
