// What `gemm` and `explain gemm` share: their arguments, and the product that these describe.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/check.h"
#include "cli/tensor_file.h"
#include "warpwright/plan/plan.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct GemmOptions {
  std::string a, b, c, out;             ///< tensors in files (see parse_spec)
  std::vector<std::int64_t> random;     ///< M, N and K instead of files
  std::optional<std::int64_t> m, n, k;  ///< the same one by one (only `explain`)
  std::string device = "model";
  std::string dtype, d_dtype;
  std::string alpha, beta;
  std::string cluster;
  std::optional<int> tile_n;
  std::optional<bool> pair;         ///< MMAs of two SMs (Blackwell)
  std::string scheduler;            ///< one, static or clc (Blackwell)
  std::optional<int> accumulators;  ///< in tensor memory (Blackwell)
  std::string mode;
  std::uint64_t seed = 1;
  bool check = false;
  bool bench = false;
  std::string as;  ///< whose kernels run on the model; `explain` plans for that device itself
};

/// Where a product runs.
struct DeviceChoice {
  bool is_model = true;
  int index = 0;  ///< of the CUDA device
};

/// One product with all choices made. Its tensors are as they lie in the files until `load` ran.
struct GemmJob {
  std::int64_t m = 0, n = 0, k = 0;
  DType operand = DType::bf16;
  DType result = DType::bf16;
  float alpha = 1.0F, beta = 0.0F;
  PlanChoices choices;
  bool is_random = false;
  HostTensor a, b, c;

  [[nodiscard]] bool reads_c() const { return beta != 0.0F; }
};

/// "model", "cuda" or "cuda:i". Throws InputError.
DeviceChoice parse_device(const std::string& text);

/// Facts of the device; refuses one that is not here. Throws InputError.
DeviceFacts facts_of(const DeviceChoice& device);

/// Facts of the device that `options` name, with `sms` SMs if it is the model: its architecture is
/// then that of `options.as`. A GPU of another architecture than `options.as` is refused. Throws
/// InputError.
DeviceFacts facts_of(const GemmOptions& options, int sms = 8);

/// What is known of the device `name`: h200, b200 or model. Throws InputError.
DeviceFacts facts_as(const std::string& name);

/// Reads and checks the arguments and the files they name. Throws InputError with one sentence.
GemmJob read_job(const GemmOptions& options);

/// The plan for the job. Throws InputError with the refusal's sentence.
Plan plan_job(const GemmJob& job, const DeviceFacts& facts);

/// Makes the job's tensors what the kernel multiplies: random ones are made, those of files rounded
/// to the operands' type (C to D's). Says on `err` what the user may not expect of it. Throws
/// InputError when they would not fit this machine's memory.
void load(GemmJob& job, std::uint64_t seed, std::ostream& err);

/// The operands of a loaded job, with `d` for its result.
GemmOperands operands_of(GemmJob& job, HostTensor& d);

/// The question whether these codes are the job's result.
GemmCheck check_of(const GemmJob& job, DType type, const void* codes);

}  // namespace warpwright::cli
