// Ask first: a problem and the facts of a device give a Plan, or a refusal that says what would be
// legal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/atom/cluster.h"
#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/hopper/config.h"
#include "warpwright/pipeline/declaration.h"
#include "warpwright/plan/device_facts.h"
#include "warpwright/plan/problem.h"
#include "warpwright/tile/raster.h"

namespace warpwright {

/// What a plan is made for: extents, types and strides, no addresses.
struct GemmProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType d = DType::bf16;
  DType c = DType::bf16;  ///< only with `reads_c`
  bool reads_c = false;   ///< beta is not 0
  bool reads_ab = true;   ///< alpha and k are not 0
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  Epilogue epilogue;
  DType bias = DType::f32;  ///< only with epilogue.bias
  bool scales_d = false;    ///< there is a scale_d
  /// Strides in elements (see MatrixView).
  std::int64_t a_row_stride = 0;
  std::int64_t b_row_stride = 0;
  std::int64_t c_row_stride = 0;
  std::int64_t d_row_stride = 0;
  std::int64_t a_column_stride = 1;
  std::int64_t b_column_stride = 1;
  std::int64_t c_column_stride = 1;
  std::int64_t d_column_stride = 1;
  /// From matrix to matrix; 0 where all of the batch share one.
  std::int64_t a_batch_stride = 0;
  std::int64_t b_batch_stride = 0;
  std::int64_t c_batch_stride = 0;
  std::int64_t d_batch_stride = 0;
  /// Bytes that divide the addresses of C and D, as far as known (at most 16 is of interest).
  int c_alignment = 16;
  int d_alignment = 16;
};

/// The problem of a packed m x n x k product.
GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType operand,
                           DType result, bool reads_c = false);

/// Columns of D: n, or half of it when the epilogue is gated.
constexpr std::int64_t result_columns(const GemmProblem& p) {
  return p.epilogue.gated ? p.n / 2 : p.n;
}

/// Floating-point operations: 2 M N K for each of the batch.
double operations(const GemmProblem& p);

/// Bytes of A, B, C, D, scales and bias, each moved once; what the whole batch shares counts once.
double moved_bytes(const GemmProblem& p);

/// Operations a second of the device's tensor cores on elements of `type`: 8-bit ones go twice as
/// fast as 16-bit ones. 0 where nobody knows.
double tensor_rate(const DeviceFacts& device, DType type);

/// The problem that `operands` pose; refuses what no plan could serve (shapes that do not agree, a
/// null or misaligned pointer, a NaN scalar, a D that overlaps an input).
Result<GemmProblem> describe(const GemmOperands& operands);

/// What the caller fixes instead of leaving it to the plan.
struct PlanChoices {
  std::optional<atom::ClusterShape> cluster = {};
  std::optional<int> tile_m = {};
  std::optional<int> tile_n = {};
  std::optional<kernel::Schedule> schedule = {};  ///< Hopper alone
  std::optional<bool> swapped = {};        ///< Hopper alone: tokens on wgmma's N (see GemmConfig)
  std::optional<std::string> kernel = {};  ///< an instance by its name (kernel/hopper/table.h)
  std::optional<int> ctas = {};            ///< of the grid; with split K also how finely it is cut
  std::optional<int> cluster_k = {};       ///< Hopper alone: CTAs of a cluster that share a tile
  // Blackwell alone:
  std::optional<bool> pair = {};                 ///< MMAs of two SMs, or of one
  std::optional<kernel::TileSource> tiles = {};  ///< where the tiles come from
  std::optional<int> accumulators = {};          ///< in tensor memory
};

/// How D leaves and C enters the kernel.
enum class EpiloguePath : std::uint8_t { none, copy_engine, elements };

/// Which roof bounds a plan.
enum class Bound : std::uint8_t { tensor_cores, memory };

/// Extents of a tile.
struct TileShape {
  int m = 0;
  int n = 0;
  int k = 0;
};

/// A decision to run one kernel in one way: an immutable value without pointers. Copy it, keep it,
/// use it from any thread.
struct Plan {
  GemmProblem problem;
  DeviceFacts device;
  kernel::GemmConfig config;                         ///< of a Hopper kernel
  std::optional<kernel::BlackwellConfig> blackwell;  ///< of a Blackwell kernel: there is one then
  atom::ClusterShape cluster;
  tile::Raster raster;
  int ctas = 0;  ///< of the grid, which is persistent but where a cluster has one tile or launch
                 ///< control is in use; 0 when there is nothing to do
  EpiloguePath d_path = EpiloguePath::copy_engine;
  EpiloguePath c_path = EpiloguePath::none;
  std::int64_t workspace_bytes = 0;
  std::string kernel;     ///< the instance's name
  int cluster_k = 1;      ///< CTAs of a cluster that share a tile along K (`cluster` is then 1x1)
  bool splits_k = false;  ///< tiles are cut along K and their parts added up in the workspace
  double cost = 0;        ///< predicted seconds (arbitrary units on the model)

  /// Rows and columns of the product that one CTA computes, and K of a stage.
  [[nodiscard]] TileShape tile() const;
  /// CTAs of a cluster of the launch.
  [[nodiscard]] int cluster_ctas() const { return atom::cluster_size(cluster) * cluster_k; }
  /// CTA tiles of the output.
  [[nodiscard]] std::int64_t tiles() const;
  /// Rounds in which the grid takes its tiles.
  [[nodiscard]] double waves() const;
  /// Seconds the roofs allow (0 on the model, which has none).
  [[nodiscard]] double compute_seconds() const;
  [[nodiscard]] double memory_seconds() const;
  [[nodiscard]] Bound bound() const;
  /// Is this the configuration of the plan's kernel?
  [[nodiscard]] bool runs(const kernel::GemmConfig& c) const { return !blackwell && c == config; }
  [[nodiscard]] bool runs(const kernel::BlackwellConfig& c) const { return blackwell == c; }
  /// What a CTA of the kernel needs, and which part a warp of it plays.
  [[nodiscard]] int threads() const;
  [[nodiscard]] int shared_bytes() const;
  [[nodiscard]] const char* role_of_warp(int warp) const;
  /// "bf16_bf16_128x256x64_s4_c2x1": the configuration in one word.
  [[nodiscard]] std::string name() const;
  /// Every kind of barrier of the kernel.
  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers() const;
  /// The whole plan for a reader: tile, cluster, stages, shared-memory map, roles and barriers,
  /// waves and the bound.
  [[nodiscard]] std::string explain() const;
};

/// A plan for `problem` on a device, or the reason why there is none. Takes no device and touches
/// none; the same arguments give the same plan.
Result<Plan> plan(const GemmProblem& problem, const DeviceFacts& device,
                  const PlanChoices& choices = {});

/// Every plan that could serve `problem`, the one that `plan` would choose first, the others by
/// predicted cost: what `tune` measures. Refuses as `plan` does.
Result<std::vector<Plan>> candidates(const GemmProblem& problem, const DeviceFacts& device,
                                     const PlanChoices& choices = {});

/// `describe`, then `plan`.
Result<Plan> plan(const GemmOperands& operands, const DeviceFacts& device,
                  const PlanChoices& choices = {});

/// Why `workspace` of `bytes` bytes cannot be given to a launch of `plan`, or nothing.
[[nodiscard]] std::optional<Refusal> workspace_fault(const Plan& plan, const void* workspace,
                                                     std::int64_t bytes);

/// Why `operands` cannot be given to a launch of `plan`, or nothing.
[[nodiscard]] std::optional<Refusal> mismatch(const Plan& plan, const GemmOperands& operands);

}  // namespace warpwright
