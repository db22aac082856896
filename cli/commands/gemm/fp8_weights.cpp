#include "cli/commands/gemm/fp8_weights.h"

#include <cstring>

#include "cli/commands/gemm/operand_files.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/fp8.h"
#include "warpwright/weights/pack_e2m1.h"

namespace warpwright::cli {
namespace {

// The scales of 128 x 128 of B.
Extents scales_shape(const GemmJob& job) {
  Extents shape = job.b.shape;
  shape[shape.size() - 2] = ScaleReach::count(job.product.n(), scale_block);
  shape.back() = ScaleReach::count(job.product.k(), scale_block);
  return shape;
}

// The product of the same weights as fp8.
GemmOperands with_fp8(const GemmJob& job) {
  GemmOperands o = job.product;
  o.packed.reset();
  o.accumulation = Accumulation::promoted;
  o.b.dtype = DType::e4m3;
  const HostTensor scales{DType::f32, scales_shape(job), {}};
  o.scale_b = packed_view(scales);
  o.scale_b.data = nullptr;
  return o;
}

template <class T>
T or_refused(Result<T> result) {
  if (!result) throw InputError(result.refusal());
  return std::move(*result);
}

}  // namespace

Plan choose_weights(GemmJob& job, const DeviceFacts& facts) {
  const auto& packed = job.product.packed;
  const bool is_mxf4 = packed && packed->format.scale == DType::ue8m0;
  if (!is_mxf4 || packed->format.tokens != DType::e4m3 ||
      job.product.scaling != Scaling::blockwise) {
    throw InputError("--or-fp8 is given: " +
                     as_rule("weights of mxf4 have fp8 of the same values, with tokens of e4m3 in "
                             "blocks of 1 x 128") +
                     ", so give --weights mxf4 and --scaling blockwise.");
  }
  const GemmOperands fp8 = with_fp8(job);
  const GemmProblem both[] = {problem_of(job.product), problem_of(fp8)};
  ChosenPlan chosen = or_refused(plan_fastest(both, facts, job.choices));
  if (chosen.index == 1) {
    job.fp8_of = job.product.packed;
    job.product = fp8;
    job.scale_b = {DType::f32, scales_shape(job), {}};
  }
  return std::move(chosen.plan);
}

void load_fp8(GemmJob& job) {
  const auto read = or_refused(weights::unpack_e2m1(job.packed_b));
  weights::Fp8Weights w = or_refused(weights::as_fp8(weights::source_of(read)));
  job.b.dtype = DType::e4m3;
  job.b.bytes = std::move(w.codes);
  job.scale_b.bytes.resize(4 * w.scales.size());
  std::memcpy(job.scale_b.bytes.data(), w.scales.data(), job.scale_b.bytes.size());
  job.packed_b.clear();
}

}  // namespace warpwright::cli
