// A family of kernels as planning and devices see it. A new family is a folder of kernel/ (config,
// kernel, params, table, facts) and one of these. Internal to plan/ and device/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpwright/atom/swizzle.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/plan/families/ask.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/tile/groups.h"
#include "warpwright/tile/slot_ids.h"

namespace warpwright {

/// A batch of matrices and the box in which they are copied. Extents and strides in elements.
struct MapRequest {
  const char* tensor = "";
  const void* base = nullptr;
  DType dtype = DType::bf16;
  std::int64_t inner = 0;  ///< extent of the dimension whose neighbours are neighbours in memory
  std::int64_t outer = 0;
  std::int64_t batch = 1;
  std::int64_t outer_stride = 0;
  std::int64_t batch_stride = 0;
  int box_inner = 0;
  int box_outer = 0;
  atom::SmemSwizzle swizzle = atom::SmemSwizzle::b128;
  /// For a gated product's weights: gates and ups, a dimension of its own in front of the batch. 1:
  /// there is none.
  std::int64_t parts = 1;
  std::int64_t part_stride = 0;
  int box_parts = 1;  ///< of them in a box
  /// For elements of 4 and 6 bits: they arrive padded in shared memory, 16 in 16 bytes, as
  /// atom::OperandTile says. Those of 4 bits arrive packed otherwise; those of 6 cannot.
  bool padded = false;
  bool by_rows = false;  ///< a matrix whose rows are gathered: two dimensions, a box of one row

  // Its dimensions, 0 the innermost; strides are of all but that one, in elements.
  [[nodiscard]] constexpr int rank() const { return by_rows ? 2 : (parts > 1 ? 4 : 3); }
  [[nodiscard]] constexpr std::int64_t extent(int d) const {
    if (d < 2) return d == 0 ? inner : outer;
    return d == 2 && parts > 1 ? parts : batch;
  }
  [[nodiscard]] constexpr std::int64_t stride(int d) const {
    if (d < 2) return outer_stride;
    return d == 2 && parts > 1 ? part_stride : batch_stride;
  }
  [[nodiscard]] constexpr int box(int d) const {
    if (d < 2) return d == 0 ? box_inner : box_outer;
    return d == 2 && parts > 1 ? box_parts : 1;
  }

  friend constexpr bool operator==(const MapRequest&, const MapRequest&) = default;
};

/// How a device encodes a tensor map.
using Encode = isa::TensorMap (*)(const MapRequest& request);

/// Part of the workspace that a grid touches.
struct WorkspacePart {
  const char* name = "";
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool writable = true;
};

/// One grid of a launch: a kernel, how much of it, and its parameters.
struct Grid {
  std::string_view kernel;  ///< its name, of a table or one of those below
  int ctas = 0;
  int cluster_size = 1;
  bool in_clusters = false;  ///< launched with a cluster dimension, if of one CTA
  int threads = 0;
  int shared_bytes = 0;
  int registers = 0;
  bool multiplies = true;  ///< reads the operands and writes D; else it only prepares that
  bool clears = false;     ///< writes D though it does not multiply
  bool copies = false;     ///< reads A and B though it does not multiply
  std::array<WorkspacePart, 3> workspace{};
  std::uint32_t params_bytes = 0;
  alignas(128) std::array<std::byte, 3584> params;  // set_params makes what a launch reads

  template <class Params>
  void set_params(const Params& p) {
    static_assert(sizeof(Params) <= sizeof(params) && std::is_trivially_copyable_v<Params>);
    new (params.data()) Params(p);
    params_bytes = sizeof(Params);
  }
};

/// The grids of a launch, in their order; each depends on the one before.
struct LaunchGrids {
  std::array<Grid, 5> grids;
  int count = 0;
  /// Those of the grid that multiplies: A and B may be copies in the workspace.
  GemmOperands operands;
};

/// What a launch is given beside its operands.
struct LaunchMemory {
  void* workspace = nullptr;
  bool check_offsets = false;
  bool zero_rest = false;
  /// For groups: offsets and weights are complete when the grid starts, though the one before may
  /// still run. For kernels that ask early (KernelFacts::asks_early); others wait all the same.
  bool weights_early = false;
  /// With weights_early, where the grid before writes the offsets: the slots that it sorts, which
  /// OffsetsAhead serves; else null.
  const tile::SlotIds* sorted = nullptr;
};

/// The lines of Plan::explain that differ from family to family.
struct ExplainParts {
  std::string kernel;  ///< the kernel's kind, tile, cluster, stages, sums
  std::string beside;  ///< what the family has beside these, after the barriers
  bool persistent = true;
  bool tensor_store = true;  ///< D leaves by copies, where its layout lets them
};

/// The interface of a family. All of it for plans and choices of any origin.
class Family {
 public:
  Family() = default;
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  virtual ~Family() = default;

  /// Does a device of this architecture run its kernels?
  [[nodiscard]] virtual bool runs_on(int architecture) const = 0;
  /// Do they run there too, for who asks for one by its name?
  [[nodiscard]] virtual bool can_run_on(int architecture) const { return runs_on(architecture); }
  /// Do they read A and B by TMA, at multiples of 16 bytes?
  [[nodiscard]] virtual bool uses_tma() const { return true; }
  /// The kernels of its table, those of this build first.
  [[nodiscard]] virtual const std::vector<KernelFacts>& kernels() const = 0;
  /// What its kernels are called in refusals, behind "no kernel": " of mma.sync".
  [[nodiscard]] virtual const char* whose() const { return ""; }
  /// The clusters that any of its kernels may run in.
  [[nodiscard]] virtual std::span<const atom::ClusterShape> clusters() const = 0;
  /// CTAs of a cluster that nobody asked for, at most.
  [[nodiscard]] virtual int most_cluster_ctas(const GemmProblem& /*problem*/) const { return 2; }
  /// Where the tiles of kernels like this one come from, if the plan is free; nothing where that
  /// depends on the way.
  [[nodiscard]] virtual std::optional<kernel::TileSource> usual_tiles(
      const KernelFacts& /*kernel*/) const {
    return std::nullopt;
  }
  /// What other families compute and this one does not, of a legal product.
  [[nodiscard]] virtual std::optional<Refusal> fault(const Plan& start) const = 0;
  /// The same of choices, beyond what `choices_fault` reads off the kernels.
  [[nodiscard]] virtual std::optional<Refusal> choice_fault(const GemmProblem& /*problem*/,
                                                            const PlanChoices& /*choices*/) const {
    return std::nullopt;
  }
  /// Why a kernel that is named cannot serve, where the family knows better than that it does not.
  [[nodiscard]] virtual std::optional<Refusal> named_fault(const KernelFacts& /*kernel*/,
                                                           const Ask& /*ask*/) const {
    return std::nullopt;
  }
  /// Does the kernel compute the product on that device, whatever the choices? `is_named`: for who
  /// asks for it, which opens kernels that a plan does not take by itself.
  [[nodiscard]] virtual bool serves(const KernelFacts& kernel, const Ask& ask,
                                    bool is_named) const = 0;
  /// Adds every way to run a kernel that serves, in the cluster of `plan`, with its cost. `plan` is
  /// the start with that kernel and cluster; what it is left as does not matter.
  virtual void complete(Plan& plan, const KernelFacts& kernel, const Ask& ask,
                        std::vector<Candidate>& all) const = 0;
  /// Has the costs of ways be what they take by measured times too, where any were of the family.
  virtual void correct(const Ask& /*ask*/, std::span<Candidate* const> /*ways*/) const {}
  [[nodiscard]] virtual std::vector<pipeline::BarrierRow> barriers(const Plan& plan) const = 0;
  [[nodiscard]] virtual ExplainParts explain(const Plan& plan) const = 0;
  /// The grids of a launch of `plan`, with addresses bound.
  virtual void bind(const Plan& plan, const GemmOperands& operands, const LaunchMemory& memory,
                    Encode encode, LaunchGrids& out) const = 0;
};

/// A family whose kernels have configurations of this type.
template <class Config>
class FamilyOf : public Family {
 public:
  [[nodiscard]] const std::vector<KernelFacts>& kernels() const override {
    static const auto all = facts_of<Config>();
    return all;
  }

 protected:
  /// The configuration of one of `kernels()`.
  [[nodiscard]] const Config& config_of(const KernelFacts& kernel) const {
    return *configs_of<Config>()[static_cast<std::size_t>(&kernel - kernels().data())];
  }
  [[nodiscard]] const Config& config_of(const Plan& plan) const {
    return config_named<Config>(plan.kernel);
  }
};

/// The kernel that clears the rows of D in no group, before all others.
inline constexpr std::string_view zero_rows_kernel = "zero_rows";

/// The kernel that checks the numbers of tokens by index, before the one that reads them.
inline constexpr std::string_view check_rows_kernel = "check_rows";

/// The offsets of a product in groups, as its kernels read them.
tile::GroupOffsets group_offsets(const GemmProblem& problem, const Groups& groups);

/// The kernel that copies A and B to where TMA can read them.
inline constexpr std::string_view copy_rows_kernel = "copy_rows";

/// The kernels of a mixture of experts beside its products (kernel/moe/): that which sorts the
/// slots, that which puts tokens into the order of experts, that which does both, that which gates
/// the rows between the products, that which adds up what became of them.
inline constexpr std::string_view sort_slots_kernel = "sort_slots";
inline constexpr std::string_view sort_gather_kernel = "sort_gather";
inline constexpr std::string_view gather_rows_kernel = "gather_rows";
inline constexpr std::string_view gate_rows_kernel = "gate_rows";
inline constexpr std::string_view sum_slots_kernel = "sum_slots";

/// All grids of a launch of `plan`, with addresses bound.
void bind_launch(const Plan& plan, const GemmOperands& operands, const LaunchMemory& memory,
                 Encode encode, LaunchGrids& out);

/// The grid of a plan's own kernel, without parameters.
Grid grid_of(const Plan& plan);

/// All of them, in the order of kernel/families.h.
std::span<const Family* const> families();

// <family>_family(): each by its name.
#define WW_FAMILY(Family_, family, ...) const Family& family##_family();
WW_FAMILIES(WW_FAMILY)
#undef WW_FAMILY

/// The family that serves these choices on a device, or null: that of the kernel they name, where
/// its kernels run there, else the device's own.
const Family* family_of(const DeviceFacts& device, const PlanChoices& choices);
/// The family of a plan's kernel. Only for plans that have one.
const Family& family_of(const Plan& plan);

}  // namespace warpwright
