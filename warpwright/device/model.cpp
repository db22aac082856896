#include "warpwright/device/model.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "warpwright/device/params.h"
#include "warpwright/kernel/blackwell_instances.h"
#include "warpwright/kernel/instances.h"
#include "warpwright/model/tensor_map.h"

namespace warpwright::device {

// Each is defined in a translation unit of its own, which the build makes (model_instance.h).
#define WW_DECLARE(tag, ...) void run_##tag(const kernel::HopperGemmParams& params);
WW_HOPPER_GEMM_INSTANCES(WW_DECLARE)
#undef WW_DECLARE
#define WW_DECLARE(tag, ...) void run_##tag(const kernel::BlackwellGemmParams& params);
WW_BLACKWELL_GEMM_INSTANCES(WW_DECLARE)
#undef WW_DECLARE

namespace {

template <class Params>
using Body = void (*)(const Params&);

#define WW_BODY(tag, ...) \
  if (config == kernel::tag::config) return &run_##tag;
Body<kernel::HopperGemmParams> body_for(const kernel::GemmConfig& config) {
  WW_HOPPER_GEMM_INSTANCES(WW_BODY)
  return nullptr;
}
Body<kernel::BlackwellGemmParams> body_for(const kernel::BlackwellConfig& config) {
  WW_BLACKWELL_GEMM_INSTANCES(WW_BODY)
  return nullptr;
}
#undef WW_BODY

isa::TensorMap encode(const MapRequest& r) {
  const int element = numeric::bits(r.dtype) / 8;
  model::TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(r.base);
  f.rank = 3;
  f.extents = {static_cast<std::uint64_t>(r.inner), static_cast<std::uint64_t>(r.outer),
               static_cast<std::uint64_t>(r.batch)};
  f.strides = {static_cast<std::uint64_t>(r.outer_stride * element),
               static_cast<std::uint64_t>(r.batch_stride * element)};
  f.box = {static_cast<std::uint16_t>(r.box_inner), static_cast<std::uint16_t>(r.box_outer), 1};
  f.element_bytes = static_cast<std::uint8_t>(element);
  f.swizzle = r.swizzle;
  if (r.dtype == DType::f32) f.element_kind = 0;
  if (r.dtype == DType::f16) f.element_kind = 1;
  if (r.dtype == DType::bf16) f.element_kind = 2;
  if (const auto fault = model::invalid(f)) {
    throw std::logic_error(std::string("the tensor map of ") + r.tensor + ": " + *fault);
  }
  return model::encode(f);
}

// What is launched: a kernel with its parameters, and the registers of its threads.
struct Kernel {
  std::function<void()> body;
  int registers = 0;
};

template <class Config, class Params>
std::optional<Kernel> kernel_of(const Config& config, const Params& params) {
  const Body<Params> body = body_for(config);
  if (body == nullptr) return std::nullopt;
  return Kernel{[body, params] { body(params); }, kernel::launch_registers(config)};
}

// What the kernel may touch: every view from its first to behind its last element.
class Allocations {
 public:
  void add(const MatrixView& v, const char* name, bool writable = false) {
    if (v.data == nullptr || v.rows == 0 || v.columns == 0 || v.batch == 0) return;
    const std::int64_t elements = (v.rows - 1) * v.row_stride + (v.columns - 1) * v.column_stride +
                                  (v.batch - 1) * v.batch_stride + 1;
    all_.push_back({v.data, elements * numeric::bits(v.dtype) / 8, name, writable});
  }
  void add(void* data, std::int64_t bytes, const char* name) {
    if (bytes > 0) all_.push_back({data, bytes, name, true});
  }
  [[nodiscard]] const std::vector<model::Allocation>& all() const { return all_; }

 private:
  std::vector<model::Allocation> all_;
};

}  // namespace

Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options) {
  if (auto refusal = mismatch(plan, operands)) return *refusal;
  if (!plan.device.is_model) {
    return Refusal{"the plan was made for device " + plan.device.name +
                   "; plan for the model to run on it"};
  }
  if (plan.problem.m == 0 || plan.problem.n == 0) return model::Report{};
  // Flags are 0 before a launch and after it; the rest of the workspace is nobody's.
  std::vector<std::byte> workspace(static_cast<std::size_t>(plan.workspace_bytes), std::byte{0xff});
  if (plan.splits_k) {
    std::fill_n(workspace.begin(), kernel::split_flag_bytes(plan.config, plan.ctas), std::byte{0});
  }
  const std::optional<Kernel> kernel =
      plan.blackwell
          ? kernel_of(*plan.blackwell, make_blackwell_params(plan, operands, encode))
          : kernel_of(plan.config, make_params(plan, operands, workspace.data(), encode));
  if (!kernel) return Refusal{"the plan's configuration is not among the kernels"};

  Allocations allocations;
  allocations.add(operands.d, "D", true);
  if (operands.beta != 0.0F) allocations.add(operands.c, "C");
  if (operands.alpha != 0.0F && plan.problem.k > 0) {
    allocations.add(operands.a, "A");
    allocations.add(operands.b, "B");
  }
  allocations.add(operands.bias, "bias");
  allocations.add(operands.scale_a, "scale_a");
  allocations.add(operands.scale_b, "scale_b");
  allocations.add(operands.scale_d, "scale_d");
  allocations.add(workspace.data(), plan.workspace_bytes, "workspace");
  const model::LaunchShape shape{.ctas = plan.ctas,
                                 .cluster_size = plan.cluster_ctas(),
                                 .threads = plan.threads(),
                                 .shared_bytes = plan.shared_bytes(),
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
  return model::run(shape, how, allocations.all(), kernel->body);
}

}  // namespace warpwright::device
