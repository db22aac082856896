// What `gemm`, `check gemm`, `trace gemm` and `explain gemm` share: their arguments, and the
// product that these describe.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/run.h"
#include "cli/commands/tuned_plan.h"
#include "cli/compute/check.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/plan.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct GemmOptions : RunOptions {
  std::string a, b, c, out;             ///< tensors in files (see parse_spec)
  std::vector<std::int64_t> random;     ///< M, N and K instead of files
  std::optional<std::int64_t> m, n, k;  ///< the same one by one (only `explain`)
  std::optional<std::int64_t> batch;
  std::string layout;
  std::string dtype, d_dtype;
  std::string alpha, beta;
  std::string scaling, accumulation;
  std::string scale_a, scale_b, scale_d;
  std::string bias, activation;
  bool gated = false;
  std::optional<int> tile_m, tile_n;
  std::string schedule, swapped, kernel;
  std::optional<bool> pair;         ///< MMAs of two SMs (Blackwell)
  std::string scheduler;            ///< one, static or clc (Blackwell)
  std::optional<int> accumulators;  ///< in tensor memory (Blackwell)
  bool no_tuning = false;
  bool check = false;
  bool bench = false;
  bool json = false;
};

/// One product with all choices made. Its tensors have their shapes, [batch x] rows x columns, and
/// those of files their content, as it lies there, until `load` ran.
struct GemmJob {
  std::int64_t m = 0, n = 0, k = 0;  ///< of the product: D of a gated one has n / 2 columns
  std::int64_t batch = 1;
  bool is_batch = false;  ///< --batch was given: D has three dimensions
  DType a_type = DType::bf16;
  DType b_type = DType::bf16;
  DType result = DType::bf16;
  float alpha = 1.0F, beta = 0.0F;
  bool a_transposed = false;  ///< A is stored K x M
  bool b_transposed = false;  ///< B is stored K x N
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  Epilogue epilogue;
  PlanChoices choices;
  bool uses_tuning = true;
  HostTensor a, b, c;
  HostTensor scale_a, scale_b;  ///< f32, with `scaling`
  std::optional<HostTensor> scale_d;
  HostTensor bias;  ///< with epilogue.bias

  [[nodiscard]] bool reads_c() const { return beta != 0.0F; }
  [[nodiscard]] std::int64_t result_columns() const { return epilogue.gated ? n / 2 : n; }
};

/// Reads and checks the arguments and the files they name. Throws InputError with one sentence.
GemmJob read_job(const GemmOptions& options);

/// The problem that the job poses.
GemmProblem problem_of(const GemmJob& job);

/// The plan for the job, and where it came from: on a GPU the tuning cache may know one. Throws
/// InputError with the refusal's sentence.
PlanWithOrigin plan_job(const GemmJob& job, const DeviceFacts& facts, std::ostream& err);

/// Refuses what this machine's memory cannot hold. Throws InputError.
void check_memory(const GemmJob& job);

/// Makes the job's tensors what the kernel multiplies: random ones are made, those of files rounded
/// to the operands' type (C to D's). Says on `err` what the user may not expect of it. Throws
/// InputError when they would not fit this machine's memory.
void load(GemmJob& job, std::uint64_t seed, std::ostream& err);

/// A tensor for the job's result, poisoned, so that an element that nobody stores shows as NaN.
HostTensor poisoned_result(const GemmJob& job);

/// The operands of a loaded job, with `d` for its result.
GemmOperands operands_of(GemmJob& job, HostTensor& d);

/// The question whether these codes are the job's result.
GemmCheck check_of(const GemmJob& job, DType type, const void* codes);

}  // namespace warpwright::cli
