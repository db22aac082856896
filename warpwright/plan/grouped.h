// Grouped products: the rows of X fall into groups, each with a weight matrix of its own.
//   Y[offsets[g] .. offsets[g + 1]) = scaled(X[those rows] * W[g]^T)
// How long the groups are is known on the device alone, when the kernel runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/plan.h"

namespace warpwright {

/// The integers of `offsets`.
enum class OffsetType : std::uint8_t { int32, int64 };

/// How a grouped product is scaled. Scales are float32 in the operands' memory.
enum class GroupedScaling : std::uint8_t {
  none,
  tensor,      ///< one factor for X (1 x 1) and one for W (1 x 1)
  group,       ///< one factor for X, or one for each group (G x 1), and one for each group of W
  row_column,  ///< a factor for each row of X (total x 1), and for each row of W (N x 1, batch G)
  /// A factor for every 1 x 128 of X (total x ceil(K/128)) and every 128 x 128 of W (ceil(N/128) x
  /// ceil(K/128), batch G); any strides, no padding: row_stride 1 and a column_stride of total
  /// rounded up to 4 is as good as row_stride ceil(K/128)
  block,
};

/// The tensors of one grouped product. X, W and Y are row-major and do not overlap.
struct GroupedOperands {
  MatrixView x = {};  ///< total x K
  MatrixView w = {};  ///< N x K, batch G
  MatrixView y = {};  ///< total x N
  /// G + 1 of them, in the operands' memory: where the groups begin, and where the last one ends.
  /// Read by the kernel alone. Rows of Y in no group are left as they are. Offsets below 0 or above
  /// total count as 0 and total; a group that ends before it begins is empty.
  const void* offsets = nullptr;
  OffsetType offset_type = OffsetType::int32;
  float alpha = 1.0F;
  GroupedScaling scaling = GroupedScaling::none;
  Accumulation accumulation = Accumulation::fast;
  MatrixView scale_x = {};  ///< f32, of the shape that `scaling` says
  MatrixView scale_w = {};
};

/// What a grouped plan is made for: extents, types and strides, no addresses and no lengths.
struct GroupedProblem {
  std::int64_t total = 0;  ///< rows of X and Y
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 0;
  DType x = DType::bf16;
  DType w = DType::bf16;
  DType y = DType::bf16;
  OffsetType offsets = OffsetType::int32;
  GroupedScaling scaling = GroupedScaling::none;
  Accumulation accumulation = Accumulation::fast;
  /// Strides in elements (see MatrixView); of X, W and Y the column stride is 1.
  std::int64_t x_row_stride = 0;
  std::int64_t w_row_stride = 0;
  std::int64_t w_batch_stride = 0;
  std::int64_t y_row_stride = 0;
  int y_alignment = 16;  ///< bytes that divide Y's address (at most 16 is of interest)
  /// A hint for the choice of a kernel: tokens in a group that has any. 0: total / groups. Nothing
  /// depends on it but speed.
  double expected_tokens = 0;
};

/// The problem of packed tensors.
GroupedProblem packed_grouped_problem(std::int64_t total, std::int64_t n, std::int64_t k,
                                      std::int64_t groups, DType operand, DType result);

/// The problem that `operands` pose; refuses what the host can see that no plan could serve. It
/// reads no offsets.
Result<GroupedProblem> describe_grouped(const GroupedOperands& operands);

/// What the caller fixes instead of leaving it to the plan.
struct GroupedChoices {
  std::optional<atom::ClusterShape> cluster = {};  ///< over the tile's rows and columns
  std::optional<int> tile_tokens = {};
  std::optional<bool> swapped = {};
  std::optional<kernel::Grouping> search = {};  ///< how CTAs find their tiles
  std::optional<std::string> kernel = {};       ///< an instance by its name
  /// A tensor map for each group, or one for all tokens. Left open, or false: plans have one,
  /// unless `kernel` names a kernel with a map a group; `candidates_grouped` lists both when left
  /// open.
  std::optional<bool> group_maps = {};
};

/// A decision to run one grouped kernel in one way: an immutable value without pointers.
struct GroupedPlan {
  GroupedProblem problem;
  DeviceFacts device;
  kernel::GemmConfig config;
  atom::ClusterShape cluster;
  std::string kernel;      ///< the instance's name
  int ctas = 0;            ///< of the persistent grid; 0 when there is nothing to do
  int band = 1;            ///< token tiles of a group that are taken together (L2)
  bool by_vectors = true;  ///< Y is written 16 bytes a lane, but for the ends of its rows
  int map_ctas = 0;        ///< of the kernel that makes a map a group first; 0 where there is none
  /// A function of the kernel, the groups and the device alone: room for what the check of the
  /// offsets says, and for a map of X and of Y a group where the kernel has them.
  std::int64_t workspace_bytes = 0;
  double cost = 0;     ///< predicted seconds for groups of the expected length
  std::string reason;  ///< why this kernel, in a sentence

  /// How the kernel walks over the groups, for offsets at an address.
  [[nodiscard]] tile::GroupedTiles tiles(const void* offsets) const;
  /// Tokens and weights of a CTA tile.
  [[nodiscard]] int tile_tokens() const;
  [[nodiscard]] int tile_weights() const;
  /// The expected tokens of a group: the problem's hint, or the mean.
  [[nodiscard]] double expected_tokens() const;
  /// CTA tiles if all groups have the expected length.
  [[nodiscard]] std::int64_t expected_tiles() const;
  /// Seconds the roofs allow for groups of any length (0 on the model, which has none).
  [[nodiscard]] double compute_seconds() const;
  [[nodiscard]] double memory_seconds() const;
  [[nodiscard]] Bound bound() const;
  [[nodiscard]] std::string name() const;
  /// Every kind of barrier of the kernel.
  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers() const;
  /// The whole plan for a reader, with the reason of the choice.
  [[nodiscard]] std::string explain() const;
};

/// A plan for `problem` on a device, or the reason why there is none.
Result<GroupedPlan> plan_grouped(const GroupedProblem& problem, const DeviceFacts& device,
                                 const GroupedChoices& choices = {});

/// Every plan that could serve `problem`, the one that `plan_grouped` would choose first.
Result<std::vector<GroupedPlan>> candidates_grouped(const GroupedProblem& problem,
                                                    const DeviceFacts& device,
                                                    const GroupedChoices& choices = {});

/// `describe_grouped`, then `plan_grouped`.
Result<GroupedPlan> plan_grouped(const GroupedOperands& operands, const DeviceFacts& device,
                                 double expected_tokens = 0, const GroupedChoices& choices = {});

/// Why `operands` cannot be given to a launch of `plan`, or nothing.
[[nodiscard]] std::optional<Refusal> mismatch(const GroupedPlan& plan,
                                              const GroupedOperands& operands);

/// What a launch that checks its offsets leaves in the workspace, as a sentence; nothing when all
/// is well. `status` is the workspace's first word, copied to the host.
[[nodiscard]] std::optional<std::string> offsets_fault(std::uint32_t status);

/// The word of GroupedScaling for it, and of kernel::Grouping.
const char* scaling_name(GroupedScaling scaling);
const char* search_name(kernel::Grouping search);

}  // namespace warpwright
