// A layer of experts as a program: the steps that plans may take, each a row of the table in
// steps.cpp. Plans, their costs and workspaces, launches on both kinds of devices, explain,
// predict, bench and check go over these rows. A new way to do a layer is a field of MixtureWay and
// a row, or a few, that are there when it is taken. Internal to plan/ and those above.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright {

class MixtureBinding;
struct MixtureStepGrids;

/// Some of the parts of a mixture.
class PartSet {
 public:
  constexpr PartSet() = default;
  constexpr PartSet(std::initializer_list<MixturePart> parts) {
    for (const MixturePart part : parts) bits_ |= bit(part);
  }
  friend constexpr PartSet operator|(PartSet a, PartSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  [[nodiscard]] constexpr bool has(MixturePart part) const { return (bits_ & bit(part)) != 0; }

 private:
  static constexpr std::uint32_t bit(MixturePart part) { return 1U << static_cast<int>(part); }
  std::uint32_t bits_ = 0;
};

/// A product as a step: whose plan it is, what it is planned for, and its operands.
struct StepProduct : MixtureProduct {
  GemmProblem (*problem)(const MixtureProblem& m, const MixtureParts<PlannedMatrix>& parts,
                         MixtureWay way);
  GemmOperands (*operands)(const MixtureOperands& m, const MixtureParts<MatrixView>& parts,
                           MixtureWay way);
};

/// A step, as some plans take it: a product, or a kernel of its own.
struct StepRow {
  MixtureStep step;
  const char* name;
  const StepProduct* product = nullptr;
  std::string_view kernel = {};            ///< of a step that is no product
  bool (*there)(const MixturePlan& plan);  ///< does a plan with tokens take it so?
  PartSet reads = {};
  PartSet writes = {};  ///< what is in the workspace, some row there writes

  // What follows is for kernels only.
  void (*bind)(const MixtureBinding& binding, MixtureStepGrids& out) = nullptr;
  int (*grids)(const MixturePlan& plan) = nullptr;  ///< how many; null: one
  /// Ways to memory and back, one behind the other: a number, then the rows it names. Those of the
  /// sort are ids, counts, where each expert begins, and slots.
  int trips = 2;
  bool whole = false;      ///< it does all of a layer, both products in it
  bool routes = false;     ///< only a layer with a router has it
  bool only_here = false;  ///< of rows of slots it moves only those of experts that are here
  /// Lines of explain, with the type of codes for %; the other where scales lie in tiles.
  const char* says = nullptr;
  const char* says_in_tiles = nullptr;
  std::array<const char*, 3> code = {};  ///< the words of its functions in a coverage
};

/// All of them, in the order of a launch.
std::span<const StepRow> step_rows();
/// Those that a plan takes; none of 0 tokens.
std::vector<std::reference_wrapper<const StepRow>> rows_of(const MixturePlan& plan);

/// Does a plan with tokens take it?
bool is_there(const StepRow& row, const MixturePlan& plan);

/// Bytes that a row moves at least, as the plan expects lengths.
double bytes_of(const MixturePlan& plan, const StepRow& row);
/// See MixturePlan::asks_early.
bool asks_early(const MixturePlan& plan, const StepRow& row);
/// The workspace of a plan whose products are planned.
MixtureLayout layout_of(const MixturePlan& plan);

}  // namespace warpwright
