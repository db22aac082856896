// The machine model as a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/model/machine.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::device {

/// A product that is launched behind another.
struct FollowingProduct {
  const Plan* plan = nullptr;
  const GemmOperands* operands = nullptr;
};

/// How a plan is run on the model.
struct ModelOptions {
  model::Mode mode = model::Mode::latest;
  std::uint64_t seed = 1;
  /// So many launches of the plan follow each other, each starting as early as programmatic
  /// dependent launch lets it, with one workspace.
  int launches = 1;
  /// Behind all of these, one launch of another product in the same workspace, with the bytes that
  /// they left there.
  std::optional<FollowingProduct> second = {};
  /// See model::Options.
  std::optional<std::vector<std::int64_t>> only;
  bool check_order = true;
  bool fence_after_reads = false;
  bool count_sites = false;
  bool stop_at_finding = false;
  std::optional<model::Mutation> mutation;
  bool hash_order = false;
  bool record_decisions = false;
  model::Exploration* exploration = nullptr;
  /// Called after every finished CTA tile with the number of tiles so far.
  std::function<void(std::int64_t)> on_tile;
  /// Filled with the run's timeline (see model::Options::trace).
  model::Trace* trace = nullptr;
  /// Filled with what its time is made of (see model::Options::work).
  Work* work = nullptr;
  /// Filled with what happens to the mbarriers (see model::Options::barrier_events).
  std::vector<model::BarrierEvent>* barrier_events = nullptr;
  /// What Mode::timed costs: where it is null, the numbers that stand for the architecture
  /// (DeviceFacts::numbers). It must outlive the run.
  const MachineNumbers* machine = nullptr;
  double cold_share = 0;  ///< see model::Options
  /// An SM that another grid holds, -1 for none: no cluster is launched there.
  int occupied_sm = -1;
  /// SMs that are there, where they are others than the plan was made for; 0: its device's.
  int sms = 0;
  /// For groups: see LaunchOptions.
  bool zero_rest = false;
  /// For groups: where the kernel says whether the offsets are in order (see offsets_fault), or
  /// null.
  std::uint32_t* offsets_status = nullptr;
  /// Beside offsets_status, of tokens by index: where the check of their numbers says which names
  /// no row of A (see rows_fault), or null.
  std::uint64_t* rows_status = nullptr;
};

/// Lets `launch` run plans for the model; including warpwright/model.h calls it.
bool use_model();

/// Runs `plan` on the model, with all checks. The report says what they found: with findings D is
/// not to be trusted. Refuses operands that are not those of the plan, and offsets of groups that
/// overlap, whose writes meet.
Result<model::Report> launch_on_model(const Plan& plan, const GemmOperands& operands,
                                      const ModelOptions& options = {});

}  // namespace warpwright::device
