#include "cli/commands/measure/bench.h"

#include "cli/files/tensor_file.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

// A build without bench/ has no device either, so that `use` lets nobody past it. What is discarded
// there is not linked.
#if WARPWRIGHT_HAS_CUDA
constexpr bool kHasBench = true;
#else
constexpr bool kHasBench = false;
#endif

void use(int index) {
  if (const auto refusal = device::use_cuda_device(index)) throw InputError(*refusal);
}

}  // namespace

bench::GemmTimes bench_gemm(const Plan& plan, const GemmOperands& operands, int index) {
  use(index);
  if constexpr (kHasBench) {
    return taken(bench::time_gemm({plan}, &operands));
  }
  return {};
}

std::string bench_line(const bench::GemmTimes& times) {
  if constexpr (kHasBench) return bench::line(times);
  return {};
}

Result<bench::GemmTimes> time_product(const std::vector<Plan>& plans, int index,
                                      const bench::TimeOptions& options) {
  use(index);
  if constexpr (kHasBench) return bench::time_gemm(plans, nullptr, options);
  return bench::GemmTimes{};
}

Result<std::vector<bench::RankedPlan>> rank_products(const std::vector<Plan>& plans, int index,
                                                     const bench::TimeOptions& options) {
  use(index);
  if constexpr (kHasBench) return bench::rank_plans(plans, options);
  return std::vector<bench::RankedPlan>{};
}

std::optional<Refusal> profile_product(const Plan& plan, int index, int number,
                                       const bench::TimeOptions& options) {
  use(index);
  if constexpr (kHasBench) return bench::profile_gemm(plan, number, options);
  return std::nullopt;
}

Result<bench::MoeTimes> time_mixture(const MixturePlan& plan, int index,
                                     const bench::MoeTimeOptions& options) {
  use(index);
  if constexpr (kHasBench) return bench::time_moe(plan, options);
  return bench::MoeTimes{};
}

bench::Software bench_software() {
  if constexpr (kHasBench) return bench::software();
  return {};
}

}  // namespace warpwright::cli
