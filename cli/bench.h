// `gemm --bench`: the product's time on a GPU beside that of cuBLASLt.
#pragma once

#include <ostream>

#include "warpwright/plan/plan.h"

namespace warpwright::cli {

/// Times `plan` and cuBLASLt in one run on CUDA device `index`, on copies of `operands` (packed, in
/// host memory), and prints one line on `out`. Throws InputError where that cannot be done.
void bench_gemm(const Plan& plan, const GemmOperands& operands, int index, std::ostream& out);

}  // namespace warpwright::cli
