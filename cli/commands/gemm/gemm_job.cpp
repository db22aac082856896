#include "cli/commands/gemm/gemm_job.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "cli/commands/gemm/gemm_arguments.h"
#include "cli/commands/gemm/gemm_tensors.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/compute/random.h"
#include "warpwright/weights/pack.h"

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

constexpr std::byte kPoison{0xff};

std::int64_t size_of(DType t) {
  return numeric::bits(t) / 8;
}

bool fits_npy(DType t) {
  return t == DType::f32 || t == DType::f16;
}

bool is_npy(const std::string& spec) {
  return !spec.empty() && parse_spec(spec).kind == TensorSpec::Kind::npy;
}

void choose_types(const GemmOptions& o, const std::optional<std::pair<DType, DType>>& operands,
                  const std::optional<DType>& result, GemmJob& job) {
  if (job.product.packed) {
    std::tie(job.product.a.dtype, job.product.b.dtype) =
        std::pair(operands ? operands->first : DType::e4m3, DType::s4);
  } else {
    std::tie(job.product.a.dtype, job.product.b.dtype) =
        operands.value_or(job.a.bytes.empty() ? std::pair(DType::bf16, DType::bf16)
                                              : types_of_files(job.a.dtype, job.b.dtype));
  }
  // Grouped kernels do not give f32: a .npy file gets what they give, widened.
  const bool to_npy = is_npy(o.out) && !job.product.is_grouped();
  job.product.d.dtype = result.value_or(to_npy ? DType::f32 : natural_result(job.product.a.dtype));
  if (to_npy && !fits_npy(job.product.d.dtype)) {
    const std::string name(numeric::word(job.product.d.dtype));
    throw InputError(as_tensor("D") + " as " + name + " cannot be written to " + o.out +
                     ": .npy has no " + name + "; " +
                     as_rule("choose --d-dtype f32 or fp16, or --out FILE.safetensors:NAME") + ".");
  }
}

// A tensor as it is stored, of the type that it will have.
MatrixView stored(const HostTensor& t, DType type, bool transposed = false) {
  if (t.shape.empty()) return {nullptr, MatrixShape{type}};
  MatrixView view = packed_view(t);
  view.data = nullptr;
  view.dtype = type;
  if (!transposed) return view;
  std::swap(view.rows, view.columns);
  std::swap(view.row_stride, view.column_stride);
  return view;
}

// Where the tensors of a product will lie.
void lay_out(GemmJob& job) {
  GemmOperands& o = job.product;
  o.a = stored(job.a, o.a.dtype, job.a_transposed);
  o.b = stored(job.b, o.b.dtype, job.b_transposed);
  if (job.reads_c()) o.c = stored(job.c, o.d.dtype);
  MatrixView d = matrix(nullptr, o.d.dtype, o.d.rows, job.result_columns());
  d.batch = o.d.batch;
  d.batch_stride = d.rows * d.columns;
  o.d = d;
  o.scale_a = stored(job.scale_a, DType::f32);
  o.scale_b = stored(job.scale_b, DType::f32);
  if (job.scale_d) o.scale_d = stored(*job.scale_d, DType::f32);
  if (o.has_bias()) o.bias = stored(job.bias, job.bias.dtype);
}

// The bytes of rows [begin, end) of a matrix; of whole batches where there are no groups.
std::span<std::byte> bytes_of(HostTensor& t, const RowRange& rows) {
  if (rows.count() == 0) return {};
  const std::int64_t row = t.shape.back() * size_of(t.dtype);
  return std::span(t.bytes).subspan(static_cast<std::size_t>(rows.begin * row),
                                    static_cast<std::size_t>(rows.count() * row));
}

// Random int4 weights: normal ones, quantised.
void pack_random(GemmJob& job, std::uint64_t seed) {
  HostTensor wide = random_normal(DType::f32, job.b.shape, seed, kStreamB);
  const PackedFormat& f = job.product.packed->format;
  const MatrixView view = packed_view(wide);
  const auto quantised = weights::quantise(
      {&view, 1},
      {.encoding = f.encoding, .group = f.group, .scale = f.scale, .zero_points = f.zero_points});
  if (!quantised) throw InputError(quantised.refusal());
  auto bytes =
      weights::pack(weights::source_of(*quantised), {.encoding = f.encoding, .scale = f.scale});
  if (!bytes) throw InputError(bytes.refusal());
  job.packed_b = std::move(*bytes);
}

// Block scales of A as TMA reads them: the tokens of a block of K side by side, each
// block at a multiple of 16 bytes.
MatrixView side_by_side_view(GemmJob& job) {
  MatrixView view = packed_view(job.scale_a);
  view.data = job.side_by_side.data();
  view.row_stride = 1;
  view.column_stride = (view.rows + 3) / 4 * 4;
  if (view.batch > 1) view.batch_stride = view.column_stride * view.columns;
  return view;
}

void lay_side_by_side(GemmJob& job) {
  const MatrixView from = packed_view(job.scale_a);
  const std::int64_t columns = from.columns;
  job.side_by_side.assign(static_cast<std::size_t>(from.batch * columns *
                                                   ((from.rows + 3) / 4 * 4) * size_of(from.dtype)),
                          kPoison);
  const MatrixView to = side_by_side_view(job);
  const auto* values = static_cast<const std::byte*>(from.data);
  for (std::int64_t row = 0; row < from.batch * from.rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column, values += size_of(from.dtype)) {
      const std::int64_t at =
          row / from.rows * to.batch_stride + row % from.rows + column * to.column_stride;
      std::memcpy(&job.side_by_side[static_cast<std::size_t>(at * size_of(from.dtype))], values,
                  sizeof(float));
    }
  }
}

// Rows of a result in no group that are not as they were made.
std::int64_t touched_rows(const GemmJob& job, const MatrixView& d) {
  const std::int64_t row = job.result_columns() * size_of(d.dtype);
  const auto* bytes = static_cast<const std::byte*>(d.data);
  std::int64_t touched = 0;
  for (std::int64_t i = job.rest.begin; i < job.rest.end; ++i) {
    const bool same = std::all_of(bytes + i * row, bytes + (i + 1) * row,
                                  [](std::byte b) { return b == kPoison; });
    touched += same ? 0 : 1;
  }
  return touched;
}

}  // namespace

std::vector<std::int64_t> GemmJob::lengths() const {
  std::vector<std::int64_t> lengths;
  for (const RowRange& r : rows) lengths.push_back(r.count());
  return lengths;
}

GemmJob read_job(const GemmOptions& o) {
  GemmJob job;
  read_words(o, job);
  std::optional<std::pair<DType, DType>> operands;
  if (job.is_block_scaled()) {
    operands = micro_types(o);
  } else if (!o.dtype.empty()) {
    operands = parse_operand_types(o.dtype);
  }
  std::optional<DType> result;
  if (!o.d_dtype.empty()) result = parse_result_type(o.d_dtype);
  if (!o.out.empty()) static_cast<void>(parse_spec(o.out));
  read_matrices(o, job);
  choose_types(o, operands, result, job);
  read_vectors(o, job);
  lay_out(job);
  return job;
}

void GemmJob::set_extents(std::int64_t m, std::int64_t n, std::int64_t k) {
  product.a.rows = product.d.rows = m;
  product.b.rows = n;
  product.a.columns = product.b.columns = k;
  product.d.columns = result_columns();
}

void check_memory(const GemmJob& job) {
  const double result =
      static_cast<double>(job.product.batch()) * static_cast<double>(job.product.m()) *
      static_cast<double>(job.result_columns()) * numeric::bits(job.product.d.dtype) / 8;
  const double wanted = bytes_as(job.a, job.is_block_scaled() ? DType::f32 : job.product.a.dtype) +
                        bytes_as(job.b, job.is_block_scaled() ? DType::f32 : job.product.b.dtype) +
                        bytes_as(job.c, job.product.d.dtype) + bytes_as(job.scale_a, DType::f32) +
                        bytes_as(job.scale_b, DType::f32) + bytes_as(job.bias, job.bias.dtype) +
                        result;
  require_memory(job.reads_c() ? "A, B, C and D" : "A, B and D", wanted,
                 job.product.is_grouped() ? "choose fewer groups or tokens, or a smaller N or K"
                                          : "choose smaller M, N or K");
}

void load(GemmJob& job, std::uint64_t seed, std::ostream& err) {
  check_memory(job);
  // What has no content yet is random.
  const auto is_open = [](const HostTensor& t) { return t.bytes.empty() && !t.shape.empty(); };
  const auto poison = [&job](HostTensor& t) { std::ranges::fill(bytes_of(t, job.rest), kPoison); };
  const auto make = [&](HostTensor& t, DType type, std::uint64_t stream) {
    if (!is_open(t)) return false;
    t = random_normal(type, t.shape, seed, stream);
    return true;
  };
  const DType a_type = job.is_block_scaled() ? DType::f32 : job.product.a.dtype;
  const DType b_type = job.is_block_scaled() ? DType::f32 : job.product.b.dtype;
  if (make(job.a, a_type, kStreamA)) {
    poison(job.a);
  } else {
    round_to(job.a, a_type, "A", err);
  }
  if (job.product.packed) {
    if (job.packed_b.empty()) pack_random(job, seed);
  } else if (!make(job.b, b_type, kStreamB)) {
    round_to(job.b, b_type, "B", err);
  }
  if (job.is_block_scaled()) {
    job.micro_a = quantise(job.a, job.product.a.dtype);
    job.micro_b = quantise(job.b, job.product.b.dtype);
  }
  if (make(job.c, job.product.d.dtype, kStreamC)) {
    poison(job.c);
  } else if (job.reads_c()) {
    round_to(job.c, job.product.d.dtype, "C", err);
  }
  if (is_open(job.scale_a)) {
    job.scale_a = random_scales(job.scale_a.shape, seed, kStreamScaleA);
    if (scale_reach(job.product.scaling, true, job.product.a.dtype).rows > 0) poison(job.scale_a);
    // Kernels take both ways, each by a path of its own: odd seeds try the one by copies.
    if (job.product.scaling == Scaling::blockwise && seed % 2 == 1) lay_side_by_side(job);
  }
  if (is_open(job.scale_b)) job.scale_b = random_scales(job.scale_b.shape, seed, kStreamScaleB);
  if (make(job.bias, DType::f32, kStreamBias) && job.product.epilogue.bias == Bias::rows)
    poison(job.bias);
  const auto write = [&job](auto width) {
    const std::vector<decltype(width)> all(job.offsets.begin(), job.offsets.end());
    const auto bytes = std::as_bytes(std::span(all));
    job.offset_bytes.assign(bytes.begin(), bytes.end());
  };
  if (!job.product.groups) return;
  if (job.product.groups->type == OffsetType::int64) {
    write(std::int64_t{});
  } else {
    write(std::int32_t{});
  }
}

HostTensor poisoned_result(const GemmJob& job) {
  const std::int64_t columns = job.result_columns();
  HostTensor d{job.product.d.dtype, {job.product.m(), columns}, {}};
  if (job.is_batch) d.shape.insert(d.shape.begin(), job.product.batch());
  d.bytes.assign(static_cast<std::size_t>(d.elements() * size_of(job.product.d.dtype)), kPoison);
  return d;
}

GemmOperands operands_of(GemmJob& job, HostTensor& d) {
  GemmOperands o = job.product;
  o.a.data = job.is_block_scaled() ? job.micro_a.codes.data() : job.a.bytes.data();
  o.b.data = job.is_block_scaled() ? job.micro_b.codes.data()
             : job.product.packed  ? job.packed_b.data() + packed::kHeaderBytes
                                   : job.b.bytes.data();
  if (job.is_block_scaled()) {
    o.scale_a = scales_view(job.micro_a, job.a, o.a.dtype);
    o.scale_b = scales_view(job.micro_b, job.b, o.b.dtype);
  } else {
    o.scale_a.data = job.scale_a.bytes.data();
    if (!job.side_by_side.empty()) o.scale_a = side_by_side_view(job);
    o.scale_b.data = job.scale_b.bytes.data();
  }
  if (job.reads_c()) o.c.data = job.c.bytes.data();
  o.d.data = d.bytes.data();
  if (job.scale_d) o.scale_d.data = job.scale_d->bytes.data();
  if (o.has_bias()) o.bias.data = job.bias.bytes.data();
  if (o.groups) o.groups->offsets = job.offset_bytes.data();
  return o;
}

JobCheck check_job(const GemmJob& job, const GemmOperands& operands,
                   const std::function<void(double)>& progress) {
  return {check_gemm(operands, {.progress = progress}), touched_rows(job, operands.d)};
}

void write_result(const GemmJob& job, HostTensor d, const std::string& spec, std::ostream& err) {
  std::ranges::fill(bytes_of(d, job.rest), std::byte{0});
  if (is_npy(spec) && !fits_npy(d.dtype)) {
    err << "note: D is " << numeric::word(d.dtype) << ", which .npy does not have: " << spec
        << " holds the same values as f32.\n";
    d = convert(d, DType::f32);
  }
  write_tensor(spec, d);
}

}  // namespace warpwright::cli
