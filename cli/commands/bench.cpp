#include "cli/commands/bench.h"

#include "cli/files/tensor_file.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {

#if WARPWRIGHT_HAS_CUDA

namespace {

void use(int index) {
  if (const auto refusal = device::use_cuda_device(index)) throw InputError(refusal->reason);
}

}  // namespace

bench::GemmTimes bench_gemm(const Plan& plan, const GemmOperands& operands, int index) {
  use(index);
  const Result<bench::GemmTimes> times = bench::time_gemm({plan}, &operands);
  if (!times) throw InputError(times.reason());
  return *times;
}

std::string bench_line(const bench::GemmTimes& times) {
  return bench::line(times);
}

Result<bench::GemmTimes> time_product(const std::vector<Plan>& plans, int index,
                                      const bench::TimeOptions& options) {
  use(index);
  return bench::time_gemm(plans, nullptr, options);
}

Result<std::vector<bench::RankedPlan>> rank_products(const std::vector<Plan>& plans, int index,
                                                     const bench::TimeOptions& options) {
  use(index);
  return bench::rank_plans(plans, options);
}

Result<bench::GroupedTimes> time_grouped_product(const std::vector<GroupedPlan>& plans,
                                                 const std::vector<std::int64_t>& lengths,
                                                 int index, const bench::TimeOptions& options) {
  use(index);
  return bench::time_grouped(plans, lengths, options);
}

bench::Software bench_software() {
  return bench::software();
}

#else

bench::GemmTimes bench_gemm(const Plan& /*plan*/, const GemmOperands& /*operands*/, int index) {
  throw InputError(device::cuda_device(index).reason());
}

std::string bench_line(const bench::GemmTimes& /*times*/) {
  return {};
}

Result<bench::GemmTimes> time_product(const std::vector<Plan>& /*plans*/, int index,
                                      const bench::TimeOptions& /*options*/) {
  throw InputError(device::cuda_device(index).reason());
}

Result<std::vector<bench::RankedPlan>> rank_products(const std::vector<Plan>& /*plans*/, int index,
                                                     const bench::TimeOptions& /*options*/) {
  throw InputError(device::cuda_device(index).reason());
}

Result<bench::GroupedTimes> time_grouped_product(const std::vector<GroupedPlan>& /*plans*/,
                                                 const std::vector<std::int64_t>& /*lengths*/,
                                                 int index, const bench::TimeOptions& /*options*/) {
  throw InputError(device::cuda_device(index).reason());
}

bench::Software bench_software() {
  return {};
}

#endif

}  // namespace warpwright::cli
