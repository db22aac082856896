// Ask first: a problem and the facts of a device give a Plan, or a refusal that says what would be
// legal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/atom/cluster.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/facts/raster.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// The problem of a packed m x n x k product.
GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType operand,
                           DType result, bool reads_c = false);

/// The problem of packed tensors in groups, of `total` rows in all.
GemmProblem packed_grouped_problem(std::int64_t total, std::int64_t n, std::int64_t k,
                                   std::int64_t groups, DType operand, DType result);

/// The rows that a group with any is expected to have: the hint, or the mean. 0 without groups.
double expected_tokens(const GemmProblem& p);
/// The groups that are expected to have any.
double busy_groups(const GemmProblem& p);

/// Floating-point operations: 2 M N K for each of the batch; for groups for all rows.
double operations(const GemmProblem& p);

/// Bytes of A, B, C, D, scales and bias, each moved once; what the whole batch shares counts once.
double moved_bytes(const GemmProblem& p);

/// Operations a second of the device's tensor cores on elements of `type`: 8-bit ones go twice as
/// fast as 16-bit ones. 0 where nobody knows.
double tensor_rate(const DeviceFacts& device, DType type);

/// Whether the addresses of operands are to be read: before there is memory they are null.
enum class Addresses : std::uint8_t { known, unknown };

/// Known, where every tensor that has extents has one, and groups have offsets.
Addresses addresses_of(const GemmOperands& operands);

/// The problem that `operands` pose; refuses what no plan could serve (shapes that do not agree, a
/// null or misaligned pointer, a NaN scalar, a D that overlaps an input). Without addresses a
/// tensor that is left out has no extents.
Result<GemmProblem> describe(const GemmOperands& operands, Addresses addresses = Addresses::known);

/// What the caller fixes instead of leaving it to the plan. What a family of kernels does not know
/// is refused.
struct PlanChoices {
  /// The bits of a row of D depend on that row of A (and C, its scales and bias) and on B only:
  /// not on M, the batch, other rows, or how rows fall into groups. Every plan of the same N, K,
  /// types and epilogue keeps to it: each adds up K in the same order, in one CTA.
  bool batch_invariant = false;
  std::optional<atom::ClusterShape> cluster = {};
  /// For clusters that `cluster` does not fix. Left open: 2, or 8 of a dense product on Hopper
  /// whose rows of A or B begin at no multiples of 128 bytes, which L2 then answers most often.
  std::optional<int> most_cluster_ctas = {};
  std::optional<int> tile_m = {};
  std::optional<int> tile_n = {};
  std::optional<std::string> kernel = {};  ///< by its name (warpwright/kernel/*/*table.h)
  std::optional<int> ctas = {};            ///< of the grid; with split K also how finely it is cut
  /// Where the tiles come from: of Hopper's, static persistent tiles or drawn.
  std::optional<kernel::TileSource> tiles = {};
  // Only Hopper, but for `swap_ab` (schedules: with a producer on sm_120 too):
  std::optional<kernel::Schedule> schedule = {};
  std::optional<bool> swap_ab = {};   ///< tokens on N (see GemmConfig, BlackwellConfig)
  std::optional<int> cluster_k = {};  ///< CTAs of a cluster that share a tile
  // Only products in groups:
  std::optional<int> tile_tokens = {};
  std::optional<kernel::Grouping> search = {};  ///< how CTAs find their tiles
  // Only Blackwell:
  std::optional<bool> pair = {};         ///< MMAs of two SMs, or of one
  std::optional<int> accumulators = {};  ///< in tensor memory

  friend bool operator==(const PlanChoices&, const PlanChoices&) = default;
};

/// How D leaves and C enters the kernel.
enum class EpiloguePath : std::uint8_t { none, tma, elements };

/// A or B that TMA cannot read where it lies, as a launch first copies it into the
/// workspace. Strides in elements.
struct OperandCopy {
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
  std::int64_t batch_stride = 0;
  std::int64_t at = 0;  ///< bytes from the begin of the workspace, a multiple of 256
  std::int64_t bytes = 0;

  friend bool operator==(const OperandCopy&, const OperandCopy&) = default;
};

/// Which roof bounds a plan.
enum class Bound : std::uint8_t { tensor_cores, memory };

/// A decision to run one kernel in one way: an immutable value without pointers. Copy it, keep it,
/// use it from any thread.
struct Plan {
  GemmProblem problem;
  DeviceFacts device;
  std::string kernel;  ///< its name; `facts` has the rest
  atom::ClusterShape cluster;
  int cluster_k = 1;  ///< CTAs of a cluster that share a tile along K (`cluster` is then 1x1)
  /// The walk over the output. For groups, whose lengths are known only on the device: the tiles
  /// that are expected of all of them, one group behind the other.
  tile::Raster raster;
  int ctas = 0;  ///< of the grid, which is persistent but where a cluster has one tile or launch
                 ///< control is in use; 0 when there is nothing to do
  /// Where its tiles come from. Drawn ones take a counter in the workspace; a launch without a
  /// workspace walks over static persistent tiles instead.
  kernel::TileSource tile_source = kernel::TileSource::static_persistent;
  std::optional<OperandCopy> a_copy = {};  ///< where A is copied first
  std::optional<OperandCopy> b_copy = {};
  EpiloguePath d_path = EpiloguePath::tma;
  EpiloguePath c_path = EpiloguePath::none;
  std::int64_t workspace_bytes = 0;
  std::int64_t flag_bytes = 0;  ///< of them, in front: flags, 0 before a launch and after it
  double cost = 0;              ///< predicted seconds (arbitrary units on the model)
  std::string reason;           ///< why this kernel, in a sentence; may be empty

  /// What the kernel is. Empty facts where there is no kernel.
  [[nodiscard]] const KernelFacts& facts() const;
  /// Rows and columns of the product that one CTA computes, and K of a stage.
  [[nodiscard]] TileShape tile() const { return facts().tile; }
  /// CTAs of a cluster of the launch.
  [[nodiscard]] int cluster_ctas() const { return atom::cluster_size(cluster) * cluster_k; }
  /// CTA tiles of the output; for groups, those that are expected.
  [[nodiscard]] std::int64_t tiles() const;
  /// Rounds in which the grid takes its tiles.
  [[nodiscard]] double waves() const;
  /// Seconds the roofs allow (0 on the model, which has none).
  [[nodiscard]] double compute_seconds() const;
  [[nodiscard]] double memory_seconds() const;
  [[nodiscard]] Bound bound() const;
  /// "hopper_bf16_bf16_128x256_c2x1": the configuration in one word; "..._static" where tiles that
  /// could be drawn are static persistent tiles.
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

/// Why `operands` cannot be given to a launch of `plan`, or nothing.
[[nodiscard]] std::optional<Refusal> mismatch(const Plan& plan, const GemmOperands& operands);

/// Why `plan` is not what `choices` ask for, or nothing.
[[nodiscard]] std::optional<Refusal> mismatch(const Plan& plan, const PlanChoices& choices);

/// What a launch that checks the offsets of its groups leaves in the workspace, as a sentence;
/// nothing when all is well. `status` is that word; launch.h has the function that reads it.
[[nodiscard]] std::optional<std::string> offsets_fault(std::uint32_t status);

/// The same of tokens by index: the first row whose number names no row of A. The lower half of
/// `status` is one more than the row, the upper half the number, as two's complement; 0 is nothing.
[[nodiscard]] std::optional<std::string> rows_fault(std::uint64_t status, const GemmProblem& p);

/// The word of facts/kernel.h for it.
const char* search_name(kernel::Grouping search);

}  // namespace warpwright
