// What `grouped`, `check grouped`, `trace grouped` and `explain grouped` share: their arguments,
// and the grouped product that these describe.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/run.h"
#include "cli/compute/check.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/grouped.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct GroupedOptions : RunOptions {
  std::string x, w, out;  ///< tensors in files (see parse_spec)
  std::string scale_x, scale_w;
  std::optional<std::int64_t> groups, n, k;  ///< of random X and W, instead of files
  std::string tokens;                        ///< see token_lengths; or a file of lengths
  std::optional<std::int64_t> total;  ///< rows of X and Y, where that is more than the tokens
  std::optional<double> expected_tokens;
  std::string dtype, y_dtype;
  std::string scaling, accumulation;
  std::string offsets;      ///< int32 or int64; or a file of offsets, instead of `tokens`
  std::string bad_offsets;  ///< decreasing or beyond
  std::string alpha;
  std::string swapped, search, kernel;
  std::optional<int> tile_tokens;
  bool check = false;
  bool check_offsets = false;
  bool json = false;
  int repeat = 0;  ///< launches that are timed on a GPU
};

/// Rows [begin, end) of X and Y.
struct TokenRows {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t count() const { return end - begin; }
};

/// One grouped product with all choices made. Its tensors have their shapes, and those of files
/// their content, as it lies there, until `load` ran.
struct GroupedJob {
  std::int64_t groups = 1, total = 0, n = 0, k = 0;
  DType x_type = DType::bf16;
  DType w_type = DType::bf16;
  DType result = DType::bf16;
  float alpha = 1.0F;
  GroupedScaling scaling = GroupedScaling::none;
  Accumulation accumulation = Accumulation::fast;
  GroupedChoices choices;
  double expected_tokens = 0;  ///< 0: not given
  OffsetType offset_type = OffsetType::int32;
  std::vector<std::int64_t> offsets;  ///< as the kernel gets them
  std::vector<TokenRows> rows;        ///< of each group, as the kernel has to take its offsets
  TokenRows rest;                     ///< rows in no group, behind all others
  HostTensor x, w;                    ///< total x K, G x N x K
  HostTensor scale_x, scale_w;        ///< f32, with `scaling`
  std::vector<std::byte> offset_bytes;

  /// Rows in groups, and groups with any.
  [[nodiscard]] std::int64_t tokens() const { return total - rest.count(); }
  [[nodiscard]] std::int64_t busy_groups() const;
};

/// Reads and checks the arguments and the files they name. Throws InputError with one sentence.
GroupedJob read_grouped_job(const GroupedOptions& options);

/// The problem that the job poses.
GroupedProblem problem_of(const GroupedJob& job);

/// The plan for the job. Throws InputError with the refusal's sentence.
GroupedPlan plan_job(const GroupedJob& job, const DeviceFacts& facts);

/// CTA tiles of the job's groups.
std::int64_t tiles_of(const GroupedJob& job, const GroupedPlan& plan);

/// Products x * w of the job, and seconds that the model takes for them (see model_time.h).
double products_of(const GroupedJob& job);
double model_seconds(const GroupedJob& job, const GroupedPlan& plan);

/// Refuses what this machine's memory cannot hold. Throws InputError.
void check_memory(const GroupedJob& job);

/// Seconds that the roofs of the plan's device allow for groups of these lengths, 0 without rates:
/// the tensor cores at their rate, or HBM with X, the weights of groups that have tokens, and Y
/// moved once.
double roof_seconds(const GroupedJob& job, const DeviceFacts& device);

/// Makes the job's tensors what the kernel multiplies. Those of files are rounded to the operands'
/// type, others are random; rows of these in no group are NaN, so that it shows when they get into
/// a product. Says on `err` what the user may not expect of it. Throws InputError when they would
/// not fit this machine's memory.
void load(GroupedJob& job, std::uint64_t seed, std::ostream& err);

/// A tensor for the job's result, poisoned: bytes of 0xff, NaN in every type.
HostTensor poisoned_result(const GroupedJob& job);

/// Writes a complete result to the file that `spec` names: rows in no group as zeros, and in .npy,
/// which has no bf16 and no 8-bit types, these as f32. Says on `err` what is not as it was
/// computed. Throws InputError.
void write_result(const GroupedJob& job, HostTensor y, const std::string& spec, std::ostream& err);

/// The operands of a loaded job, with `y` for its result.
GroupedOperands operands_of(GroupedJob& job, HostTensor& y);

/// How a result compares.
struct GroupedCheck {
  CheckResult elements;      ///< of all groups, against float64 products (see check_gemm)
  std::int64_t touched = 0;  ///< rows in no group that are no longer poisoned
  [[nodiscard]] bool passed() const { return elements.passed && touched == 0; }
};

/// Compares Y, packed rows of `type` that were poisoned before. `progress` is called with the share
/// done.
GroupedCheck check_grouped(const GroupedJob& job, DType type, const void* y,
                           const std::function<void(double)>& progress = {});

}  // namespace warpwright::cli
