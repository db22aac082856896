// What the commands on a product share, dense or in groups: their arguments, and the product that
// these describe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "cli/compute/block_scaled.h"
#include "cli/compute/check.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::cli {

/// The arguments as they were typed; empty texts were not given.
struct GemmOptions : RunOptions {
  bool is_grouped = false;              ///< `grouped`: the rows fall into groups
  std::string a, b, c, out;             ///< tensors in files (see parse_spec)
  std::vector<std::int64_t> random;     ///< M, N and K instead of files
  std::optional<std::int64_t> m, n, k;  ///< one by one (M only of `explain`)
  std::optional<std::int64_t> batch;
  std::string layout;
  std::string dtype, d_dtype;
  std::string alpha, beta;
  std::string scaling, block, accumulation;
  std::string weights, sums;  ///< of packed weights
  std::optional<int> group;
  bool zero_points = false;
  bool or_fp8 = false;  ///< packed weights, or fp8 of the same values
  std::string scale_a, scale_b, scale_d;
  std::string bias, activation, gate_up;
  bool gated = false;
  GateOptions gate;
  std::string quantise_d;
  std::optional<int> tile_m, tile_n;
  std::string schedule, swap_ab, kernel;
  std::optional<bool> pair;         ///< MMAs of two SMs (Blackwell)
  std::string scheduler;            ///< static; dynamic (Hopper); one, clc (Blackwell)
  std::optional<int> accumulators;  ///< in tensor memory (Blackwell)
  bool batch_invariant = false;
  bool no_tuning = false;
  std::string scales_major;   ///< k or mn: how block scales of A lie
  std::string scales_layout;  ///< linear or tiles: how those lie that the tensor core multiplies
  bool in_place = false;      ///< C is D's memory
  std::optional<std::int64_t> pitch;  ///< elements from row to row
  bool check = false;
  bool bench = false;
  bool json = false;
  std::string configs;  ///< of `predict`: how many ways are listed
  // Only for groups:
  std::optional<std::int64_t> groups;  ///< of random tensors, with n and k
  std::optional<std::int64_t> total;   ///< rows of random tensors, where that is more than tokens
  std::string tokens;                  ///< see token_lengths; or a file of lengths
  std::string offsets;      ///< int32 or int64; or a file of offsets, instead of `tokens`
  std::string bad_offsets;  ///< decreasing or beyond
  std::string rows_index;   ///< random:TOKENS; or a file of integers
  std::optional<int> rows_divisor;
  std::optional<double> expected_tokens;
  std::string expected_lengths;  ///< see `parse_spread`
  std::optional<int> tile_tokens;
  std::string search;
  bool check_offsets = false;  ///< of `check` too
  bool zero_rest = false;      ///< of `check`: rows in no group become 0
  int repeat = 0;              ///< launches that are timed on a GPU
};

/// An option that may name a tensor's file.
struct TensorOption {
  const char* name;
  std::string GemmOptions::*file;
  const char* values = nullptr;  ///< of a tensor of the epilogue; others are added with what they
  const char* help = nullptr;    ///< go with
};
inline constexpr TensorOption tensor_options[] = {
    {"--a", &GemmOptions::a},
    {"--b", &GemmOptions::b},
    {"--c", &GemmOptions::c},
    {"--scale-a", &GemmOptions::scale_a},
    {"--scale-b", &GemmOptions::scale_b},
    {"--rows-index", &GemmOptions::rows_index},
    {"--scale-d", &GemmOptions::scale_d, "X|FILE", "factor of an 8-bit D (default 1)"},
    {"--bias", &GemmOptions::bias, "rows|columns[=FILE]",
     "a value added to each row (M) or column (N) of the product, random without a file"},
};

/// Rows [begin, end) of A and D.
struct RowRange {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t count() const { return end - begin; }
};

/// The scales of A or B that a file has, as it has them, which the tensor core multiplies.
struct ScalesOfFile {
  bool in_tiles = false;  ///< as kernels read them (facts/block_scales.h), else row by row
  HostTensor tensor;      ///< a byte each, of the format's type; for plain tokens f32
  std::string from = {};  ///< what they were, where a scale of the file served more
  /// What `warpwright pack` wrote beside the codes: then it is not asked for, and this is the
  /// factor of the codes, a part of alpha.
  std::optional<float> packed_alpha = {};
};

/// A tensor that an epilogue reads: which of the product, and its values.
struct EpilogueTensor {
  MatrixView GemmOperands::*view;
  HostTensor tensor;
  bool of_rows = false;  ///< has it a value for each row of D?
};

/// One product with all choices made. Its tensors have their shapes, [batch x] rows x columns, and
/// those of files their content, as it lies there, until `load` ran.
struct GemmJob {
  /// What is multiplied. It has addresses once `operands_of` ran.
  GemmOperands product;
  bool is_batch = false;      ///< --batch was given: D has three dimensions
  bool d_for_npy = false;     ///< D is f32 for a .npy file, where a kernel gives that
  bool a_transposed = false;  ///< A is stored K x M
  bool b_transposed = false;  ///< B is stored K x N
  bool in_place = false;      ///< C's values lie in D
  /// Elements from one row in memory to the next, of those tensors whose rows are shorter and may
  /// be so far apart; 0: no gaps.
  std::int64_t pitch = 0;
  PlanChoices choices;
  bool uses_tuning = true;
  HostTensor a, b, c;
  /// A packed tensor: `b` has only their shape.
  std::vector<std::byte> packed_b;
  /// For which B is made as fp8, when it is loaded (fp8_weights.h).
  std::optional<PackedWeights> fp8_of;
  /// With scales that the tensor core multiplies `a` and `b` have f32, of which these are the codes
  /// and scales, and the scales as kernels read them. Where a file has their scales, `a` and `b`
  /// are its codes.
  MicroTensor micro_a, micro_b;
  std::optional<ScalesOfFile> scales_of_a, scales_of_b;
  std::vector<std::byte> tiles_a, tiles_b;
  HostTensor scale_a, scale_b;       ///< f32, with `scaling`
  std::int64_t block = scale_block;  ///< of blockwise: rows of B, and K, that a scale serves
  /// Block scales of A lie with the tokens of a block side by side: scale_a once more, so.
  bool scales_by_tokens = false;
  std::vector<std::byte> side_by_side;
  std::vector<EpilogueTensor> epilogue;
  HostTensor d_scales;         ///< of a D that is quantised; poisoned by `load`
  std::vector<RowRange> rows;  ///< of each group, as the kernel has to take its offsets; for a
                               ///< dense product all of them
  RowRange rest;               ///< rows in no group, behind all others
  bool zero_rest = false;      ///< these become 0
  std::vector<std::int64_t> offsets;    ///< of groups, as the kernel gets them
  std::vector<std::byte> offset_bytes;  ///< of the product's type, once loaded
  /// With groups.rows_divisor: which rows of A those of D read; 0 where it is drawn, until then.
  std::vector<std::int32_t> index;
  bool draws_index = false;
  bool checks_index = false;  ///< somebody looks whether all name rows of A

  [[nodiscard]] const char* command() const { return product.is_grouped() ? "grouped" : "gemm"; }
  [[nodiscard]] bool reads_c() const { return product.beta != 0.0F; }
  [[nodiscard]] bool is_block_scaled() const { return product.scaling == Scaling::block_scaled; }
  [[nodiscard]] std::int64_t result_columns() const { return warpwright::result_columns(product); }
  /// For the product: D of a gated one has n / 2 columns.
  void set_extents(std::int64_t m, std::int64_t n, std::int64_t k);
  /// Rows that are computed, of one of the batch, and those of each group.
  [[nodiscard]] std::int64_t tokens() const { return product.m() - rest.count(); }
  [[nodiscard]] std::vector<std::int64_t> lengths() const;
};

/// Reads and checks the arguments and the files they name. Throws InputError with one sentence.
GemmJob read_job(const GemmOptions& options);
/// D is what kernels give for such operands, where f32 was taken for a .npy file and none gives it.
void take_natural_result(GemmJob& job);

/// Refuses what this machine's memory cannot hold. Throws InputError.
void check_memory(const GemmJob& job);

/// How tensors without content are drawn.
enum class Draw : std::uint8_t {
  normal,
  telling,  ///< normal, but that bits of D tell in which order terms were added (compute/mirror.h)
};

/// Makes the job's tensors what the kernel multiplies. Those of files are rounded to the operands'
/// type (C to D's), others are random; rows of these in no group are NaN, so that it shows when
/// they get into a product, and so is what lies between padded rows. Says on `err` what the user
/// may not expect of it. Throws InputError when they would not fit this machine's memory.
void load(GemmJob& job, std::uint64_t seed, std::ostream& err, Draw draw = Draw::normal);

/// A tensor for the job's result, with the gaps between its rows, poisoned, so that an element that
/// nobody stores shows: bytes of 0xff, NaN in every type. In place it has the values of C.
HostTensor poisoned_result(const GemmJob& job);

/// The product of a loaded job in host memory, with `d` for its result.
GemmOperands operands_of(GemmJob& job, HostTensor& d);

/// How a result compares.
struct JobCheck {
  CheckResult elements;      ///< of all groups, against products in float64 (see check_gemm)
  std::int64_t touched = 0;  ///< rows in no group that are no longer as they were
  std::int64_t gaps = 0;     ///< rows with bytes behind their end that are no longer poisoned
  [[nodiscard]] bool passed() const { return elements.passed && touched == 0 && gaps == 0; }
};

/// What it found, in sentences.
std::string describe(const JobCheck& check, const GemmJob& job);

/// Compares the result of a loaded job's operands, which poisoned_result made. `progress` is called
/// with the share done.
JobCheck check_job(const GemmJob& job, const GemmOperands& operands,
                   const std::function<void(double)>& progress = {});

/// Writes a complete result to the file that `spec` names: rows in no group as zeros, and what .npy
/// does not have as f32, which it says on `err`. Throws InputError.
void write_result(const GemmJob& job, HostTensor d, const std::string& spec, std::ostream& err);

}  // namespace warpwright::cli
