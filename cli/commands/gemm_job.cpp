#include "cli/commands/gemm_job.h"

#include <tuple>
#include <utility>

#include "cli/commands/gemm_arguments.h"
#include "cli/commands/gemm_tensors.h"
#include "cli/commands/operand_files.h"

namespace warpwright::cli {
namespace {

// What the arguments say without a look at the files.
void read_words(const GemmOptions& o, GemmJob& job) {
  job.alpha = parse_scalar("alpha", o.alpha, 1.0F);
  job.beta = parse_scalar("beta", o.beta, 0.0F);
  if (!o.c.empty() && o.beta.empty()) {
    throw InputError("C is given but beta is not, and its default is 0: give --beta too.");
  }
  if (o.batch) {
    if (*o.batch < 1) {
      throw InputError("--batch is " + std::to_string(*o.batch) +
                       "; the nearest legal value is 1.");
    }
    job.batch = *o.batch;
    job.is_batch = true;
  }
  std::tie(job.a_transposed, job.b_transposed) = parse_layout(o.layout);
  job.scaling = parse_scaling(o.scaling);
  job.accumulation = parse_accumulation(o.accumulation);
  job.epilogue.activation = parse_activation(o.activation);
  job.epilogue.gated = o.gated;
  if (o.gated && o.activation.empty()) job.epilogue.activation = Activation::silu;
  job.epilogue.bias = parse_bias(o.bias).first;
  job.choices = parse_choices(o);
  job.uses_tuning = !o.no_tuning;
}

void choose_types(const GemmOptions& o, const std::optional<std::pair<DType, DType>>& operands,
                  const std::optional<DType>& result, GemmJob& job) {
  std::tie(job.a_type, job.b_type) =
      operands.value_or(job.a.bytes.empty() ? std::pair(DType::bf16, DType::bf16)
                                            : types_of_files(job.a.dtype, job.b.dtype));
  std::optional<TensorSpec> out;
  if (!o.out.empty()) out = parse_spec(o.out);
  const bool to_npy = out && out->kind == TensorSpec::Kind::npy;
  job.result = result.value_or(to_npy ? DType::f32 : natural_result(job.a_type));
  if (to_npy && job.result != DType::f32 && job.result != DType::f16) {
    const std::string name(numeric::name(job.result));
    throw InputError("D as " + name + " cannot be written to " + o.out + ": .npy has no " + name +
                     "; choose --d-dtype f32 or fp16, or --out FILE.safetensors:NAME.");
  }
}

// An operand as it is stored.
MatrixView stored_view(HostTensor& t, std::int64_t rows, std::int64_t columns, bool transposed) {
  MatrixView view = matrix(t.bytes.data(), t.dtype, rows, columns);
  if (transposed) {
    view.row_stride = 1;
    view.column_stride = rows;
  }
  if (t.shape.size() == 3) {
    view.batch = t.shape[0];
    view.batch_stride = rows * columns;
  }
  return view;
}

std::int64_t batch_stride(const HostTensor& t, std::int64_t rows, std::int64_t columns) {
  return t.shape.size() == 3 && t.shape[0] > 1 ? rows * columns : 0;
}

MatrixCodes codes_of(const HostTensor& t, bool transposed = false) {
  const std::size_t rank = t.shape.size();
  return {t.dtype, t.bytes.data(), transposed,
          batch_stride(t, t.shape[rank - 2], t.shape[rank - 1])};
}

}  // namespace

GemmJob read_job(const GemmOptions& o) {
  GemmJob job;
  read_words(o, job);
  std::optional<std::pair<DType, DType>> operands;
  if (!o.dtype.empty()) operands = parse_operand_types(o.dtype);
  std::optional<DType> result;
  if (!o.d_dtype.empty()) result = parse_result_type(o.d_dtype);
  if (!o.out.empty()) static_cast<void>(parse_spec(o.out));
  read_matrices(o, job);
  choose_types(o, operands, result, job);
  read_vectors(o, job);
  return job;
}

GemmProblem problem_of(const GemmJob& job) {
  GemmProblem p = packed_problem(job.m, job.n, job.k, job.a_type, job.result, job.reads_c());
  p.b = job.b_type;
  p.batch = job.batch;
  p.reads_ab = job.alpha != 0.0F && job.k > 0;
  p.scaling = job.scaling;
  p.accumulation = job.scaling == Scaling::block ? Accumulation::promoted : job.accumulation;
  p.epilogue = job.epilogue;
  if (job.epilogue.bias != Bias::none) p.bias = job.bias.dtype;
  p.scales_d = job.scale_d.has_value();
  const auto transpose = [](std::int64_t rows, std::int64_t& row, std::int64_t& column) {
    row = 1;
    column = rows;
  };
  if (job.a_transposed) transpose(job.m, p.a_row_stride, p.a_column_stride);
  if (job.b_transposed) transpose(job.n, p.b_row_stride, p.b_column_stride);
  p.c_row_stride = p.d_row_stride = job.result_columns();
  p.a_batch_stride = batch_stride(job.a, job.m, job.k);
  p.b_batch_stride = batch_stride(job.b, job.n, job.k);
  if (job.reads_c()) p.c_batch_stride = batch_stride(job.c, job.m, job.result_columns());
  if (job.batch > 1) p.d_batch_stride = job.m * job.result_columns();
  return p;
}

PlanWithOrigin plan_job(const GemmJob& job, const DeviceFacts& facts, std::ostream& err) {
  return plan_with_tuning(problem_of(job), facts, job.choices, job.uses_tuning, err);
}

HostTensor poisoned_result(const GemmJob& job) {
  const std::int64_t columns = job.result_columns();
  HostTensor d{job.result, {job.m, columns}, {}};
  if (job.is_batch) d.shape.insert(d.shape.begin(), job.batch);
  d.bytes.assign(static_cast<std::size_t>(d.elements() * (numeric::bits(job.result) / 8)),
                 std::byte{0xff});
  return d;
}

GemmOperands operands_of(GemmJob& job, HostTensor& d) {
  GemmOperands o;
  o.a = stored_view(job.a, job.m, job.k, job.a_transposed);
  o.b = stored_view(job.b, job.n, job.k, job.b_transposed);
  if (job.reads_c()) o.c = packed_view(job.c);
  o.d = packed_view(d);
  o.alpha = job.alpha;
  o.beta = job.beta;
  o.scaling = job.scaling;
  o.accumulation = job.accumulation;
  if (job.scaling != Scaling::none) {
    o.scale_a = packed_view(job.scale_a);
    o.scale_b = packed_view(job.scale_b);
  }
  if (job.scale_d) o.scale_d = packed_view(*job.scale_d);
  o.epilogue = job.epilogue;
  if (job.epilogue.bias != Bias::none) o.bias = packed_view(job.bias);
  return o;
}

GemmCheck check_of(const GemmJob& job, DType type, const void* codes) {
  GemmCheck c;
  c.m = job.m;
  c.n = job.n;
  c.k = job.k;
  c.batch = job.batch;
  c.a = codes_of(job.a, job.a_transposed);
  c.b = codes_of(job.b, job.b_transposed);
  if (job.reads_c()) c.c = codes_of(job.c);
  c.d = {type, codes, false, job.m * job.result_columns()};
  c.alpha = static_cast<double>(job.alpha);
  c.beta = static_cast<double>(job.beta);
  c.scaling = job.scaling;
  c.accumulation = job.accumulation;
  if (job.scaling != Scaling::none) {
    c.scale_a = codes_of(job.scale_a);
    c.scale_b = codes_of(job.scale_b);
  }
  if (job.scale_d) c.scale_d = codes_of(*job.scale_d);
  c.epilogue = job.epilogue;
  if (job.epilogue.bias != Bias::none) c.bias = codes_of(job.bias);
  return c;
}

}  // namespace warpwright::cli
