// The way from the command line to bench/, which only builds with the CUDA side have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "bench/moe_bench.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::cli {

/// Times `plan` and cuBLASLt in one run on CUDA device `index`, on copies of `operands` (in host
/// memory). Throws InputError where that cannot be done.
bench::GemmTimes bench_gemm(const Plan& plan, const GemmOperands& operands, int index);

/// bench::line.
std::string bench_line(const bench::GemmTimes& times);

/// bench::time_gemm on random operands, on CUDA device `index`. Throws InputError where there is no
/// such device; a product that cannot be timed is a refusal.
Result<bench::GemmTimes> time_product(const std::vector<Plan>& plans, int index,
                                      const bench::TimeOptions& options);

/// bench::rank_plans, likewise.
Result<std::vector<bench::RankedPlan>> rank_products(const std::vector<Plan>& plans, int index,
                                                     const bench::TimeOptions& options);

/// bench::profile_gemm, likewise.
std::optional<Refusal> profile_product(const Plan& plan, int index, int number,
                                       const bench::TimeOptions& options);

/// bench::time_moe on CUDA device `index`, likewise.
Result<bench::MoeTimes> time_mixture(const MixturePlan& plan, int index,
                                     const bench::MoeTimeOptions& options);

/// Versions of the CUDA runtime and of cuBLASLt; empty in builds without them.
bench::Software bench_software();

}  // namespace warpwright::cli
