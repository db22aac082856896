// The plan of a mixture of experts: its steps, its two products, the layout of its workspace.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/moe/mixture.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// What the caller fixes.
struct MixtureChoices {
  /// The bits of a token's row depend only on that row, its slots and the weights.
  bool batch_invariant = false;
  std::optional<std::string> first_kernel = {};   ///< of the product with w13, by its name
  std::optional<std::string> second_kernel = {};  ///< of that with w2
  /// The first product quantises its rows itself (true), or a launch of its own does. Open: what is
  /// expected to take less; with batch_invariant the launch.
  std::optional<bool> quantises_in_epilogue = {};
  /// The first product gates its rows itself (true), or a launch of its own does, from gates and
  /// ups that were rounded to the rows' type. Open: what is expected to take less; with
  /// batch_invariant the product.
  std::optional<bool> gates_in_epilogue = {};
  /// The first product reads tokens by number (true), or they are put into the order of the experts
  /// before it. Open: what is expected to take less.
  std::optional<bool> by_index = {};
  /// Products ask for the weights of their first tiles before the grid before has ended, where
  /// MixturePlan::asks_early lets them. Open: so it is.
  std::optional<bool> early_weights = {};
  /// Few slots are sorted by the launch that puts their tokens into the order of the experts
  /// (true), or by one before it; the bits are the same. Open: it does, of up to 256 slots,
  /// and 1,024 of packed weights.
  std::optional<bool> sort_with_gather = {};
  /// Slots are sorted by three launches in so many parts, as more than half a million are: for
  /// checks, which would take too long on so many. Open: as many parts as they need.
  std::optional<int> sort_parts = {};
  /// One launch does the whole layer (true), or a launch for each step: up to 256 slots, of the
  /// weights that docs/moe.md names. With batch_invariant, which is not for weights of e4m3, the
  /// bits are the same. Else K may be added up in parts. Open: where an H200 says that it pays;
  /// with batch_invariant steps do.
  std::optional<bool> one_launch = {};

  friend bool operator==(const MixtureChoices&, const MixtureChoices&) = default;
};

/// What a launch of a mixture does, in this order; not every plan has all.
enum class MixtureStep : std::uint8_t { sort, gather, first, gate, quantise, second, sum, layer };
inline constexpr int mixture_steps = static_cast<int>(MixtureStep::layer) + 1;

/// Bytes of the workspace, from a multiple of 256.
struct MixtureBytes {
  std::int64_t at = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const MixtureBytes&, const MixtureBytes&) = default;
};

/// Where what lies in the workspace: parts that a step writes, and the workspaces of products.
struct MixtureLayout : OfParts<MixtureBytes> {
  std::array<MixtureBytes, mixture_steps> products;
  std::int64_t bytes = 0;
};

/// A step of a plan, for a reader.
struct PlannedStep {
  MixtureStep step = MixtureStep::sort;
  const char* name = "";
  std::string kernel;     ///< its name; products have that of their plan
  int launches = 1;       ///< grids
  double bytes = 0;       ///< that it moves at least, as lengths are expected
  double operations = 0;  ///< that it multiplies
  /// Seconds that memory and tensor cores at their rates take for it; 0 where these are unknown.
  double floor = 0;
  bool asks_early = false;  ///< see MixturePlan::asks_early
};

/// A decision how to run a mixture: an immutable value without pointers.
struct MixturePlan {
  MixtureProblem problem;
  DeviceFacts device;
  /// Tokens by w13, gated there or behind it. In one launch this and `second` say what is
  /// multiplied, and the kernel of the layer does it.
  Plan first;
  Plan second;  ///< by w2
  MixtureWay way;
  double cost = 0;     ///< predicted seconds, for a choice (arbitrary units on the model)
  std::string reason;  ///< why these weights, in a sentence; may be empty
  MixtureLayout layout;
  MixtureParts<PlannedMatrix> parts;

  [[nodiscard]] std::int64_t workspace_bytes() const { return layout.bytes; }
  /// The first bytes of it that are 0 before a launch, and after it.
  [[nodiscard]] std::int64_t flag_bytes() const { return layout[MixturePart::flags].bytes; }
  /// "moe by " and the names of its products' plans, or of the kernel that does all of it.
  [[nodiscard]] std::string name() const;
  /// The steps that it takes, in their order; none of 0 tokens.
  [[nodiscard]] std::vector<PlannedStep> steps() const;
  [[nodiscard]] bool takes(MixtureStep step) const;
  /// Grids of a launch.
  [[nodiscard]] int launches() const;
  /// Does the product of this step ask for weights before the grid before it has ended? Its kernel
  /// must be one that does, and it must know its first tile by then: some grid stands between the
  /// sort and it, which lets it start behind its own wait, and no grid of the product's own; or it
  /// counts the slots of experts by itself.
  [[nodiscard]] bool asks_early(MixtureStep step) const;
  /// May the first product count the slots of experts by itself, to find its first tile? That is so
  /// behind a launch that sorts and gathers few slots. Each CTA counts for itself.
  [[nodiscard]] bool counts_slots() const;
  /// The whole plan for a reader: a table of kernels with their floors.
  [[nodiscard]] std::string explain() const;
};

/// One of the two products of a plan.
struct MixtureProduct {
  // Without a declarator, which nvcc would hand to g++ in parentheses that this warns of.
  decltype(&MixturePlan::first) plan;
  decltype(&MixtureChoices::first_kernel) kernel;
  const char* weights;
};
inline constexpr MixtureProduct mixture_products[] = {
    {&MixturePlan::first, &MixtureChoices::first_kernel, "w13"},
    {&MixturePlan::second, &MixtureChoices::second_kernel, "w2"}};

/// The mixture in a line: "9 tokens x 512, top-2 of 8 experts (8 here from 0), inner 256, ...".
std::string formula(const MixtureProblem& problem);

/// A word for a step: "sort".
const char* name(MixtureStep step);

/// A plan for `problem` on a device, or the reason why there is none.
Result<MixturePlan> plan_moe(const MixtureProblem& problem, const DeviceFacts& device,
                             const MixtureChoices& choices = {});
/// `describe`, then the same.
Result<MixturePlan> plan_moe(const MixtureOperands& operands, const DeviceFacts& device,
                             const MixtureChoices& choices = {});

/// Why `operands` cannot be given to a launch of `plan`, or nothing.
[[nodiscard]] std::optional<Refusal> mismatch(const MixturePlan& plan,
                                              const MixtureOperands& operands);

/// Why a plan is not what these choices ask for, or nothing.
[[nodiscard]] std::optional<Refusal> mismatch(const MixturePlan& plan,
                                              const MixtureChoices& choices);

/// What the status word says, as a sentence; nothing when all is well.
[[nodiscard]] std::optional<std::string> ids_fault(std::uint32_t status);

}  // namespace warpwright
