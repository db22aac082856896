#include "warpwright/device/model.h"

#include <stdexcept>
#include <vector>

#include "warpwright/device/model_blackwell.h"
#include "warpwright/device/params.h"
#include "warpwright/kernel/hopper_gemm.h"
#include "warpwright/kernel/instances.h"
#include "warpwright/model/tensor_map.h"

namespace warpwright::device {
namespace {

using Body = void (*)(const kernel::HopperGemmParams&);

Body body_for(const kernel::GemmConfig& config) {
#define WW_BODY(tag, ...) \
  if (config == kernel::tag::config) return &kernel::HopperGemm<kernel::tag>::run;
  WW_HOPPER_GEMM_INSTANCES(WW_BODY)
#undef WW_BODY
  return nullptr;
}

isa::TensorMap encode(const MapRequest& r) {
  const int element = numeric::bits(r.dtype) / 8;
  model::TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(r.base);
  f.rank = 2;
  f.extents = {static_cast<std::uint64_t>(r.columns), static_cast<std::uint64_t>(r.rows)};
  f.strides = {static_cast<std::uint64_t>(r.row_stride * element)};
  f.box = {static_cast<std::uint16_t>(r.box_columns), static_cast<std::uint16_t>(r.box_rows)};
  f.element_bytes = static_cast<std::uint8_t>(element);
  f.swizzle = atom::SmemSwizzle::b128;
  if (r.dtype == DType::f32) f.element_kind = 0;
  if (r.dtype == DType::f16) f.element_kind = 1;
  if (r.dtype == DType::bf16) f.element_kind = 2;
  if (const auto fault = model::invalid(f)) {
    throw std::logic_error(std::string("the tensor map of ") + r.tensor + ": " + *fault);
  }
  return model::encode(f);
}

// What is launched: a kernel with its parameters, and what its CTAs need.
struct Kernel {
  std::function<void()> body;
  int threads = 0;
  int shared_bytes = 0;
  int registers = 0;
};

std::optional<Kernel> hopper_kernel(const Plan& plan, const GemmOperands& operands) {
  const Body body = body_for(plan.config);
  if (body == nullptr) return std::nullopt;
  return Kernel{[body, params = make_params(plan, operands, encode)] { body(params); },
                plan.threads(), plan.shared_bytes(), kernel::launch_registers(plan.config)};
}

std::optional<Kernel> blackwell_kernel(const Plan& plan, const GemmOperands& operands) {
  const kernel::BlackwellConfig& c = *plan.blackwell;
  const BlackwellBody body =
      c.kind == atom::UmmaKind::f8f6f4 ? blackwell_f8f6f4_body(c) : blackwell_f16_body(c);
  if (body == nullptr) return std::nullopt;
  return Kernel{[body, params = make_blackwell_params(plan, operands, encode)] { body(params); },
                plan.threads(), plan.shared_bytes(), kernel::launch_registers(c)};
}

}  // namespace

Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  if (auto refusal = mismatch(plan, operands)) return *refusal;
  if (!plan.device.is_model) {
    return Refusal{"the plan was made for device " + plan.device.name +
                   "; plan for the model to run on it"};
  }
  if (plan.problem.m == 0 || plan.problem.n == 0) return model::Report{};
  const std::optional<Kernel> kernel =
      plan.blackwell ? blackwell_kernel(plan, operands) : hopper_kernel(plan, operands);
  if (!kernel) return Refusal{"the plan's configuration is not among the kernels"};

  std::vector<model::Allocation> allocations;
  const auto add = [&](const MatrixView& v, const char* name, bool writable) {
    if (v.data == nullptr || v.rows == 0 || v.columns == 0) return;
    const std::int64_t elements = (v.rows - 1) * v.row_stride + v.columns;
    allocations.push_back({v.data, elements * numeric::bits(v.dtype) / 8, name, writable});
  };
  add(operands.d, "D", true);
  if (operands.beta != 0.0F) add(operands.c, "C", false);
  if (operands.alpha != 0.0F && plan.problem.k > 0) {
    add(operands.a, "A", false);
    add(operands.b, "B", false);
  }
  const model::LaunchShape shape{.ctas = plan.ctas,
                                 .cluster_size = atom::cluster_size(plan.cluster),
                                 .threads = kernel->threads,
                                 .shared_bytes = kernel->shared_bytes,
                                 .registers_per_thread = kernel->registers};
  model::Options how;
  how.mode = options.mode;
  how.seed = options.seed;
  how.only = options.only;
  how.hash_order = options.hash_order;
  how.record_decisions = options.record_decisions;
  how.check_order = options.check_order;
  how.fence_after_reads = options.fence_after_reads;
  how.count_sites = options.count_sites;
  how.mutation = options.mutation;
  how.sms = plan.device.sms;
  how.occupied_sm = options.occupied_sm;
  how.on_tile = options.on_tile;
  how.trace = options.trace;
  return model::run(shape, how, allocations, kernel->body);
}

}  // namespace warpwright::device
