#include "cli/commands/gemm/fp8_weights.h"

#include <cstring>
#include <utility>

#include "cli/commands/gemm/operand_files.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/fp8.h"
#include "warpwright/weights/pack.h"

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

}  // namespace

void require_fp8_form(const std::optional<PackedWeights>& packed, Scaling scaling) {
  const bool is_mxf4 = packed && packed->format.scale == DType::ue8m0;
  if (is_mxf4 && packed->format.tokens == DType::e4m3 && scaling == Scaling::blockwise) return;
  throw InputError("--or-fp8 is given: " +
                   as_rule("weights of mxf4 have fp8 of the same values, with tokens of e4m3 in "
                           "blocks of 1 x 128") +
                   ", so give --weights mxf4 and --scaling blockwise.");
}

Fp8Tensors fp8_of(std::span<const std::byte> packed) {
  const auto read = taken(weights::unpack(packed));
  weights::Fp8Weights w = taken(weights::as_fp8(weights::source_of(read)));
  const auto [experts, n, k] = w.extents;
  Fp8Tensors made{{DType::e4m3, {experts, n, k}, std::move(w.codes)},
                  {DType::f32,
                   {experts, ScaleReach::count(n, scale_block), ScaleReach::count(k, scale_block)},
                   {}}};
  made.scales.bytes.resize(4 * w.scales.size());
  std::memcpy(made.scales.bytes.data(), w.scales.data(), made.scales.bytes.size());
  return made;
}

Plan choose_weights(GemmJob& job, const DeviceFacts& facts) {
  require_fp8_form(job.product.packed, job.product.scaling);
  const GemmOperands fp8 = with_fp8(job);
  const GemmProblem both[] = {problem_of(job.product), problem_of(fp8)};
  ChosenPlan chosen = taken(plan_fastest(both, facts, job.choices));
  if (chosen.index == 1) {
    job.fp8_of = job.product.packed;
    job.product = fp8;
    job.scale_b = {DType::f32, scales_shape(job), {}};
  }
  return std::move(chosen.plan);
}

void load_fp8(GemmJob& job) {
  Fp8Tensors fp8 = fp8_of(job.packed_b);
  job.b.dtype = DType::e4m3;
  job.b.bytes = std::move(fp8.codes.bytes);
  job.scale_b.bytes = std::move(fp8.scales.bytes);
  job.packed_b.clear();
}

}  // namespace warpwright::cli
