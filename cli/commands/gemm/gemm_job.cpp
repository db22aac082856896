#include "cli/commands/gemm/gemm_job.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <tuple>
#include <utility>

#include "cli/commands/gemm/fp8_weights.h"
#include "cli/commands/gemm/gemm_arguments.h"
#include "cli/commands/gemm/gemm_tensors.h"
#include "cli/commands/gemm/micro_files.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/commands/gemm/quantised_result.h"
#include "cli/compute/mirror.h"
#include "cli/compute/packing.h"
#include "cli/compute/random.h"
#include "cli/compute/words.h"
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
  kStreamEpilogue = 6,  // of its first tensor
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

// Has it no content yet? Then it is random.
bool is_open(const HostTensor& t) {
  return t.bytes.empty() && !t.shape.empty();
}

void choose_types(const GemmOptions& o, const std::optional<std::pair<DType, DType>>& operands,
                  const std::optional<DType>& result, GemmJob& job) {
  if (job.product.packed) {
    std::tie(job.product.a.dtype, job.product.b.dtype) =
        std::pair(operands ? operands->first : job.product.packed->format.tokens,
                  job.product.packed->format.code);
  } else {
    std::tie(job.product.a.dtype, job.product.b.dtype) =
        operands.value_or(job.a.bytes.empty() ? std::pair(DType::bf16, DType::bf16)
                                              : types_of_files(job.a.dtype, job.b.dtype));
  }
  // Not all kernels give f32: of those that do not a .npy file gets what they give, widened.
  job.d_for_npy = !result && is_npy(o.out) && !job.product.is_grouped() && !job.is_block_scaled() &&
                  !job.product.is_quantised() && !job.product.packed;
  job.product.d.dtype =
      result.value_or(job.product.is_quantised() ? form_of(job.product.epilogue.quantise).codes
                      : job.d_for_npy            ? DType::f32
                                                 : natural_result(job.product.a.dtype));
}

// Elements from row to row of a tensor in memory, with the gaps that are asked for. Rows of
// operands begin at multiples of 16 bytes, or stay as they are.
std::int64_t pitch_of(const GemmJob& job, const HostTensor& t, std::optional<DType> operand = {}) {
  const std::int64_t columns = t.shape.empty() ? 0 : t.shape.back();
  if (job.pitch <= columns) return columns;
  if (operand && (job.product.packed && *operand == job.product.packed->format.code))
    return columns;
  if (operand && (job.is_block_scaled() || job.pitch * size_of(*operand) % 16 != 0)) return columns;
  return job.pitch;
}

// A tensor as it is stored, of the type that it will have.
MatrixView stored(const HostTensor& t, DType type, bool transposed = false,
                  std::int64_t pitch = 0) {
  if (t.shape.empty()) return {nullptr, MatrixShape{type}};
  MatrixView view = packed_view(t);
  view.data = nullptr;
  view.dtype = type;
  if (pitch > view.columns) {
    view.row_stride = pitch;
    if (view.batch_stride != 0) view.batch_stride = view.rows * pitch;
  }
  if (!transposed) return view;
  std::swap(view.rows, view.columns);
  std::swap(view.row_stride, view.column_stride);
  return view;
}

// How the tensors of a product are to lie, as far as that is said.
void read_places(const GemmOptions& o, GemmJob& job) {
  job.in_place = o.in_place;
  job.zero_rest = o.zero_rest;
  if (job.in_place && !job.reads_c()) {
    throw InputError("--in-place puts " + as_tensor("C") + " into D's memory, and there is no C: " +
                     as_rule("give --c FILE, or --beta with random matrices") + ".");
  }
  if (job.in_place && job.is_batch && job.c.shape.size() < 3) {
    throw InputError(
        "--in-place puts " + as_tensor("C") + " into D's memory, and " + o.c +
        " is one matrix for all of the batch: " + as_rule("it must have a matrix for each") + ".");
  }
  job.pitch = o.pitch.value_or(0);
  if (o.pitch && *o.pitch < job.result_columns()) {
    throw InputError("--pitch is " + std::to_string(*o.pitch) + ", and the rows of " +
                     as_tensor("D") + " are " + std::to_string(job.result_columns()) +
                     " elements long; the nearest legal value is " +
                     as_nearest(std::to_string(job.result_columns())) + ".");
  }
  if (!o.scales_major.empty() && job.product.scaling != Scaling::blockwise) {
    throw InputError(
        "--scales-major is said of block scales: " + as_rule("give --scaling blockwise too") + ".");
  }
  job.scales_by_tokens = job.product.scaling == Scaling::blockwise && is_open(job.scale_a);
  choose<bool>(job.scales_by_tokens, "--scales-major", o.scales_major,
               {{"k", false}, {"mn", true}});
}

// Where the tensors of a product will lie.
void lay_out(GemmJob& job) {
  GemmOperands& o = job.product;
  o.a = stored(job.a, o.a.dtype, job.a_transposed, pitch_of(job, job.a, o.a.dtype));
  o.b = stored(job.b, o.b.dtype, job.b_transposed, pitch_of(job, job.b, o.b.dtype));
  if (job.reads_c()) o.c = stored(job.c, o.d.dtype, false, pitch_of(job, job.c));
  MatrixView d = matrix(nullptr, o.d.dtype, o.d.rows, job.result_columns());
  d.batch = o.d.batch;
  d.row_stride = std::max(d.columns, job.pitch);
  d.batch_stride = d.rows * d.row_stride;
  o.d = d;
  if (!job.is_block_scaled()) {
    o.scale_a = stored(job.scale_a, DType::f32);
    o.scale_b = stored(job.scale_b, DType::f32);
  }
  for (const EpilogueTensor& t : job.epilogue) o.*t.view = stored(t.tensor, t.tensor.dtype);
  if (o.is_quantised()) {
    const MatrixShape scales = d_scales_shape(problem_of(o));
    job.d_scales = {scales.dtype, {scales.rows, scales.columns}, {}};
    if (job.is_batch) job.d_scales.shape.insert(job.d_scales.shape.begin(), o.d.batch);
    o.d_scales = stored(job.d_scales, scales.dtype);
  }
}

// The bytes of rows [begin, end) of a matrix; for whole batches where there are no groups.
std::span<std::byte> bytes_of(HostTensor& t, const RowRange& rows) {
  if (rows.count() == 0) return {};
  const std::int64_t row = t.shape.back() * size_of(t.dtype);
  return std::span(t.bytes).subspan(static_cast<std::size_t>(rows.begin * row),
                                    static_cast<std::size_t>(rows.count() * row));
}

// Random packed weights: normal ones, quantised.
void pack_random(GemmJob& job, std::uint64_t seed, const std::optional<Mirror>& mirror) {
  const PackedFormat& format = (job.fp8_of ? job.fp8_of : job.product.packed)->format;
  HostTensor wide = random_normal(DType::f32, job.b.shape, seed, kStreamB);
  if (mirror) repeat(wide, *mirror);
  job.packed_b = pack_weights(wide, format);
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

bool all_are(std::byte byte, const std::byte* from, std::int64_t count) {
  return std::all_of(from, from + count, [byte](std::byte b) { return b == byte; });
}

// Rows of a result in no group that are not as they were made, or not 0 where that is asked for.
std::int64_t touched_rows(const GemmJob& job, const MatrixView& d) {
  const std::int64_t pitch = numeric::packed_bytes(d.dtype, d.row_stride);
  const std::int64_t row = numeric::packed_bytes(d.dtype, d.columns);
  const auto* bytes = static_cast<const std::byte*>(d.data);
  std::int64_t touched = 0;
  for (std::int64_t i = job.rest.begin; i < job.rest.end; ++i) {
    const std::byte* at = bytes + i * pitch;
    const bool same = job.zero_rest  ? all_are(std::byte{0}, at, row)
                      : job.in_place ? std::equal(at, at + row, job.c.bytes.data() + i * pitch)
                                     : all_are(kPoison, at, row);
    touched += same ? 0 : 1;
  }
  return touched;
}

// Rows of a result behind whose end something was written. Behind the last one there is no gap.
std::int64_t touched_gaps(const MatrixView& d) {
  const std::int64_t pitch = numeric::packed_bytes(d.dtype, d.row_stride);
  const std::int64_t row = numeric::packed_bytes(d.dtype, d.columns);
  const auto* bytes = static_cast<const std::byte*>(d.data);
  std::int64_t touched = 0;
  for (std::int64_t i = 0; pitch > row && i + 1 < d.batch * d.rows; ++i) {
    touched += all_are(kPoison, bytes + i * pitch + row, pitch - row) ? 0 : 1;
  }
  return touched;
}

// A tensor with rows of `pitch` elements instead: longer ones poisoned at their ends, shorter ones
// cut.
void set_pitch(HostTensor& t, std::int64_t pitch) {
  if (t.shape.empty() || t.shape.back() == pitch) return;
  const std::int64_t rows = t.shape.back() == 0 ? 0 : t.elements() / t.shape.back();
  const std::int64_t from = numeric::packed_bytes(t.dtype, t.shape.back());
  const std::int64_t to = numeric::packed_bytes(t.dtype, pitch);
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows * to), kPoison);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(t.bytes.data() + row * from, std::min(from, to), bytes.data() + row * to);
  }
  t.bytes = std::move(bytes);
  t.shape.back() = pitch;
}

// The two stretches of K whose terms cancel, where A and B are drawn so.
std::optional<Mirror> drawn_mirror(const GemmJob& job, std::uint64_t seed, Draw draw) {
  if (draw == Draw::normal || job.product.a.dtype == DType::s8) return std::nullopt;
  if (!job.a.bytes.empty() || !job.b.bytes.empty() || !job.packed_b.empty()) return std::nullopt;
  // All of a group of weights, or a block, for they share a scale.
  const bool shared =
      job.product.packed || job.product.scaling == Scaling::blockwise || job.is_block_scaled();
  return mirror_of(job.product.k(), shared ? scale_block : 32, seed);
}

// Slots in any order: none twice while there are others.
void draw_index(GemmJob& job, std::uint64_t seed, Draw draw) {
  if (!job.product.groups || !job.draws_index) return;
  const auto slots = static_cast<std::size_t>(job.product.a.rows) *
                     static_cast<std::size_t>(job.product.groups->rows_divisor);
  // Some rows are of no token, as where a router left a slot out. A check of the numbers, which is
  // told what it must say, tells of those.
  const bool has_none = draw == Draw::telling || !job.checks_index;
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> all(slots);
  for (std::size_t i = 0; i < job.index.size(); ++i) {
    const std::size_t at = i % slots;
    if (at == 0) std::iota(all.begin(), all.end(), 0);
    std::swap(all[at], all[at + random() % (slots - at)]);
    job.index[i] = has_none && i % 8 == 7 ? -1 : all[at];
  }
}

// The scales of A or B that the tensor core multiplies, in tiles: of one matrix where that serves
// a batch.
MatrixShape tiles_shape(const GemmJob& job, bool of_a) {
  MatrixShape shape = scale_shape(problem_of(job.product), of_a);
  if ((of_a ? job.product.a : job.product.b).batch > 1) return shape;
  shape.batch = 1;
  shape.batch_stride = 0;
  return shape;
}

// The codes and scales of A or B: those of files, or made of values.
MicroTensor micro_of(const GemmJob& job, bool of_a) {
  const HostTensor& t = of_a ? job.a : job.b;
  const auto& scales = of_a ? job.scales_of_a : job.scales_of_b;
  if (!scales) return quantise(t, *micro_format_of(job.product, of_a));
  return {{t.bytes.begin(), t.bytes.end()}, scales->tensor.bytes};
}

void lay_out_scales(GemmJob& job) {
  const GemmOperands& p = job.product;
  std::vector<ScaleRows> groups;
  std::vector<std::int64_t> index;
  if (p.groups) {
    for (const RowRange& r : job.rows) groups.push_back({r.begin, r.end});
  }
  for (const std::int32_t slot : job.index) {
    const std::int64_t token = slot < 0 ? -1 : slot / p.groups->rows_divisor;
    index.push_back(token < p.a.rows ? token : -1);
  }
  const auto blocks = [&](bool of_a) {
    return ScaleReach::count(p.k(), scale_reach(p, of_a).depth);
  };
  const auto in_tiles = [](const std::optional<ScalesOfFile>& scales) {
    return scales && scales->in_tiles;
  };
  job.tiles_a = has_plain_tokens(p)         ? job.micro_a.scales
                : in_tiles(job.scales_of_a) ? job.scales_of_a->tensor.bytes
                                            : scale_tiles(job.micro_a, tiles_shape(job, true),
                                                          p.m(), blocks(true), groups, index);
  std::vector<ScaleRows> parts;  // gates, and what they are for
  std::vector<std::int64_t> order;
  if (p.is_gated()) {
    parts = {{0, p.n() / 2}, {p.n() / 2, p.n()}};
    const GatePlaces places = gate_places(p);
    for (std::int64_t i = 0; i < p.n(); ++i) {
      const std::int64_t row = i % (p.n() / 2);
      order.push_back(row * places.step + i / (p.n() / 2) * places.apart);
    }
  }
  job.tiles_b = in_tiles(job.scales_of_b) ? job.scales_of_b->tensor.bytes
                                          : scale_tiles(job.micro_b, tiles_shape(job, false), p.n(),
                                                        blocks(false), parts, order);
}

// The scales of a product, as far as they are random.
void load_scales(GemmJob& job, std::uint64_t seed, const std::optional<Mirror>& mirror) {
  const auto make = [&](HostTensor& t, std::uint64_t stream) {
    if (!is_open(t)) return false;
    t = random_scales(t.shape, seed, stream);
    if (mirror && job.product.scaling == Scaling::blockwise) repeat(t, mirror->over(job.block));
    return true;
  };
  const bool by_rows = scale_reach(job.product, true).rows > 0;
  if (make(job.scale_a, kStreamScaleA) && by_rows && !job.product.is_by_index())
    std::ranges::fill(bytes_of(job.scale_a, job.rest), kPoison);
  if (job.scales_by_tokens) lay_side_by_side(job);
  make(job.scale_b, kStreamScaleB);
}

// The same of its epilogue.
void load_epilogue(GemmJob& job, std::uint64_t seed) {
  std::uint64_t stream = kStreamEpilogue;
  for (EpilogueTensor& t : job.epilogue) {
    const std::uint64_t own = stream++;
    if (!is_open(t.tensor)) continue;
    t.tensor = random_normal(DType::f32, t.tensor.shape, seed, own);
    if (t.of_rows) std::ranges::fill(bytes_of(t.tensor, job.rest), kPoison);
  }
}

// The offsets of the groups as their type has them.
void write_offsets(GemmJob& job) {
  const auto write = [&job](auto width) {
    const std::vector<decltype(width)> all(job.offsets.begin(), job.offsets.end());
    const auto bytes = std::as_bytes(std::span(all));
    job.offset_bytes.assign(bytes.begin(), bytes.end());
  };
  if (job.product.groups->type == OffsetType::int64) {
    write(std::int64_t{});
  } else {
    write(std::int32_t{});
  }
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
  read_places(o, job);
  lay_out(job);
  return job;
}

void take_natural_result(GemmJob& job) {
  job.d_for_npy = false;
  job.product.d.dtype = natural_result(job.product.a.dtype);
  lay_out(job);
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
      static_cast<double>(job.product.d.row_stride) * numeric::bits(job.product.d.dtype) / 8;
  double wanted = bytes_as(job.a, job.is_block_scaled() ? DType::f32 : job.product.a.dtype) +
                  bytes_as(job.b, job.is_block_scaled() ? DType::f32 : job.product.b.dtype) +
                  bytes_as(job.c, job.product.d.dtype) + bytes_as(job.scale_a, DType::f32) +
                  bytes_as(job.scale_b, DType::f32) + result;
  for (const EpilogueTensor& t : job.epilogue) wanted += bytes_as(t.tensor, t.tensor.dtype);
  require_memory(job.reads_c() ? "A, B, C and D" : "A, B and D", wanted,
                 job.product.is_grouped() ? "choose fewer groups or tokens, or a smaller N or K"
                                          : "choose smaller M, N or K");
}

void load(GemmJob& job, std::uint64_t seed, std::ostream& err, Draw draw) {
  check_memory(job);
  const std::optional<Mirror> mirror = drawn_mirror(job, seed, draw);
  const auto poison = [&job](HostTensor& t) { std::ranges::fill(bytes_of(t, job.rest), kPoison); };
  const bool by_index = job.product.is_by_index();
  const auto make = [&](HostTensor& t, DType type, std::uint64_t stream) {
    if (!is_open(t)) return false;
    t = random_normal(type, t.shape, seed, stream);
    if (job.is_block_scaled() && (&t == &job.a || &t == &job.b)) spread_blocks(t, seed + stream);
    return true;
  };
  const DType a_type = job.is_block_scaled() ? DType::f32 : job.product.a.dtype;
  const DType b_type = job.is_block_scaled() ? DType::f32 : job.product.b.dtype;
  if (make(job.a, a_type, kStreamA)) {
    if (mirror) weigh(job.a, *mirror, job.a_transposed);
    if (!by_index) poison(job.a);
  } else if (!job.scales_of_a) {
    round_to(job.a, a_type, "A", err);
  }
  if (job.product.packed || job.fp8_of) {
    if (job.packed_b.empty()) pack_random(job, seed, mirror);
    if (job.fp8_of) load_fp8(job);
  } else if (!make(job.b, b_type, kStreamB)) {
    if (!job.scales_of_b) round_to(job.b, b_type, "B", err);
  } else if (mirror) {
    repeat(job.b, *mirror, job.b_transposed);
  }
  if (job.is_block_scaled()) {
    job.micro_a = micro_of(job, true);
    job.micro_b = micro_of(job, false);
    tell_scales(job, err);
  }
  if (make(job.c, job.product.d.dtype, kStreamC)) {
    poison(job.c);
  } else if (job.reads_c()) {
    round_to(job.c, job.product.d.dtype, "C", err);
  }
  load_scales(job, seed, mirror);
  for (const auto& [tensor, type] : {std::pair(&job.a, std::optional(a_type)),
                                     {&job.b, std::optional(b_type)},
                                     {&job.c, std::nullopt}}) {
    set_pitch(*tensor, pitch_of(job, *tensor, type));
  }
  load_epilogue(job, seed);
  if (job.product.is_quantised()) {
    job.d_scales.bytes.assign(
        static_cast<std::size_t>(job.d_scales.elements() * size_of(job.d_scales.dtype)), kPoison);
  }
  draw_index(job, seed, draw);
  if (job.is_block_scaled()) lay_out_scales(job);
  if (job.product.groups) write_offsets(job);
}

HostTensor poisoned_result(const GemmJob& job) {
  HostTensor d{job.product.d.dtype, {job.product.m(), job.product.d.row_stride}, {}};
  if (job.is_batch) d.shape.insert(d.shape.begin(), job.product.batch());
  if (job.in_place) {
    d.bytes = job.c.bytes;
    return d;
  }
  d.bytes.assign(static_cast<std::size_t>(numeric::packed_bytes(d.dtype, d.elements())), kPoison);
  return d;
}

GemmOperands operands_of(GemmJob& job, HostTensor& d) {
  GemmOperands o = job.product;
  o.a.data = job.is_block_scaled() ? job.micro_a.codes.data() : job.a.bytes.data();
  o.b.data = job.is_block_scaled() ? job.micro_b.codes.data()
             : job.product.packed  ? job.packed_b.data() + packed::kHeaderBytes
                                   : job.b.bytes.data();
  if (job.is_block_scaled()) {
    o.scale_a = {job.tiles_a.data(), tiles_shape(job, true)};
    o.scale_b = {job.tiles_b.data(), tiles_shape(job, false)};
  } else {
    o.scale_a.data = job.scale_a.bytes.data();
    if (!job.side_by_side.empty()) o.scale_a = side_by_side_view(job);
    o.scale_b.data = job.scale_b.bytes.data();
  }
  o.d.data = d.bytes.data();
  if (job.reads_c()) o.c.data = job.in_place ? d.bytes.data() : job.c.bytes.data();
  for (EpilogueTensor& t : job.epilogue) (o.*t.view).data = t.tensor.bytes.data();
  if (o.is_quantised()) o.d_scales.data = job.d_scales.bytes.data();
  if (o.groups) o.groups->offsets = job.offset_bytes.data();
  if (o.is_by_index()) o.groups->rows = job.index.data();
  return o;
}

std::string describe(const JobCheck& check, const GemmJob& job) {
  std::string text = describe(check.elements);
  if (const std::int64_t rest = job.rest.count(); rest > 0) {
    text += " " + (check.touched == 0 ? "None" : std::to_string(check.touched)) + " of " +
            std::to_string(rest) + " rows in no group " + (check.touched > 1 ? "were" : "was") +
            (job.zero_rest ? " other than zero." : " written.");
  }
  if (check.gaps > 0)
    text += " Behind the ends of " + std::to_string(check.gaps) + " rows something was written.";
  return text;
}

JobCheck check_job(const GemmJob& job, const GemmOperands& operands,
                   const std::function<void(double)>& progress) {
  GemmOperands o = operands;
  if (job.in_place) o.c.data = const_cast<std::byte*>(job.c.bytes.data());  // as D was before
  return {check_gemm(o, {.progress = progress}), touched_rows(job, o.d), touched_gaps(o.d)};
}

void write_result(const GemmJob& job, HostTensor d, const std::string& spec, std::ostream& err) {
  set_pitch(d, job.result_columns());
  std::ranges::fill(bytes_of(d, job.rest), std::byte{0});
  if (job.product.is_quantised()) {
    if (!is_npy(spec)) return write_quantised(job, d, spec);
    err << "note: D is quantised: " << spec << " holds its values, codes times scales, as f32.\n";
    return write_tensor(spec, values_of(job, d));
  }
  if (is_npy(spec) && !fits_npy(d.dtype)) {
    err << "note: D is " << numeric::word(d.dtype) << ", which .npy does not have: " << spec
        << " holds the same values as f32.\n";
    d = convert(d, DType::f32);
  }
  write_tensor(spec, d);
}

}  // namespace warpwright::cli
