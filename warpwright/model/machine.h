// The machine model: one grid of CTAs on a few SMs, every CUDA thread a fiber, every asynchronous
// instruction an agent with instants of its own. Functional and deterministic for a seed.
//
// isa/ calls the functions of intrinsics.h, which act on the current thread of the current machine;
// a test or a device calls `run`. The parts of a machine are declared here only for them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/model/mutation.h"
#include "warpwright/model/report/barrier_event.h"
#include "warpwright/model/report/report.h"
#include "warpwright/model/report/trace.h"

namespace warpwright {
struct Work;  // facts/costs.h
}
namespace warpwright::model {
struct Exploration;  // explore/exploration.h
}

namespace warpwright::model {

/// When the instants of asynchronous operations fall.
enum class Mode : std::uint8_t {
  eager,   ///< everything completes where it is issued
  latest,  ///< nothing completes before some thread cannot go on without it
  random,  ///< anywhere the rules allow, by seed; threads interleave at random too
  starve,  ///< one CTA, one warp, or TMA, by seed, is held back as long as any other
           ///< can go on; TMA is prompt elsewhere
  timed,   ///< by a virtual clock, with the costs of Options::machine
};

/// A byte range of global memory that the grid may touch. Accesses outside all ranges are findings.
struct Allocation {
  void* base = nullptr;
  std::int64_t bytes = 0;
  std::string name;
  bool writable = true;
  /// No grid before this one writes it: a dependent grid may read it before it waits.
  bool constant = false;
  /// Where its bytes are when `base` is closed while a kernel runs (GuardedMemory): then an access
  /// through a raw pointer, which nothing else could see, is a finding.
  std::byte* memory = nullptr;
};

/// What is launched. A one-dimensional grid of clusters of `cluster_size` consecutive CTAs.
struct LaunchShape {
  int ctas = 1;
  int cluster_size = 1;
  /// Launched with a cluster dimension, if of one CTA. st.async is an illegal instruction without.
  bool in_clusters = true;
  int threads = 32;
  int shared_bytes = 0;
  /// Registers a thread has at launch (what __launch_bounds__ gives): the CTA's setmaxnreg pool.
  int registers_per_thread = 255;
  /// CTAs that an SM holds at once: in Mode::timed they share its units. In other modes one CTA has
  /// an SM.
  int ctas_per_sm = 1;
};

/// One of several grids that are launched one after the other on the same memory.
struct GridLaunch {
  LaunchShape shape;
  std::vector<Allocation> allocations;
  std::function<void()> body;  ///< one thread of it
  /// Launched as programmatic dependent launch does: its CTAs start as soon as all CTAs of the grid
  /// before it have called launch_dependents or ended (and on SMs of their own: the overlap is as
  /// large as it can be). Until its threads have waited for the grids before, or met one that has,
  /// they may touch memory that is constant, and of the rest what no grid touches that may still
  /// run. Where every CTA of the grid before lets it start behind its own wait, only that grid
  /// may; else also all that may run beside that one. The first of all has a predecessor that is
  /// not shown and may touch anything; it has ended when the first waits for it.
  bool dependent = false;
  /// For a trace of several grids.
  std::string name = {};
  /// Called when the grid has ended and its writes are there, before a grid that depends on it
  /// goes on: what is wrong with what it left, or nothing.
  std::function<std::optional<Finding>()> ended;
};

/// How it is run.
struct Options {
  Mode mode = Mode::latest;
  std::uint64_t seed = 1;
  /// SMs of the machine: how many CTAs are resident at once (at least one cluster always is).
  int sms = 8;
  /// An SM that another grid holds: no cluster of this one is launched there (none where it would
  /// leave no SM at all); -1 for none.
  int occupied_sm = -1;
  /// Lets try_wait answer false although the phase is complete, as the hardware's time limit may.
  bool spurious_try_wait = true;
  /// In Mode::random: lists the decisions that the run made (Report::decisions).
  bool record_decisions = false;
  /// In Mode::random: the only decisions, by name and sorted, that are made at random; every other
  /// takes its default (nobody yields, first come first served, nothing lands early). What is left
  /// of a schedule when its reducer is done.
  std::optional<std::vector<std::int64_t>> only;
  /// Proves the order of all accesses to shared and global memory (order.h).
  bool check_order = true;
  /// The one disputed rule: a generic read, handed over, then an asynchronous write of the bytes.
  /// The ISA lets only a proxy fence order them; most kernels have none and rely on the read being
  /// over. True reports a missing fence as P2; before an answer of launch control it always is one.
  bool fence_after_reads = false;
  /// Condenses the happens-before relation into a number (Report::order_hash).
  bool hash_order = false;
  /// Counts every synchronising statement that runs (Report::sites).
  bool count_sites = false;
  /// Ends the run soon after the first finding.
  bool stop_at_finding = false;
  /// Breaks one of them.
  std::optional<Mutation> mutation;
  /// Called after every finished tile with the number of tiles so far.
  std::function<void(std::int64_t)> on_tile;
  /// What Mode::timed costs: an H200's numbers where it is null. It must outlive the run.
  const MachineNumbers* machine = nullptr;
  /// In Mode::timed: of what is loaded, the part (0 to 1) that comes from memory, not from L2.
  double cold_share = 0;
  /// In Mode::timed: filled with what the run's time is made of.
  Work* work = nullptr;
  /// Filled with the run's events. Complete in Mode::timed; in other modes time counts scheduler
  /// steps and the engines stay empty.
  Trace* trace = nullptr;
  /// In Mode::latest: the order in which synchronising operations are to come, and filled with the
  /// one in which they came. For an Explorer (explore/explorer.h).
  Exploration* exploration = nullptr;
  /// Filled with what happens to the mbarriers, in the order of the run.
  std::vector<BarrierEvent>* barrier_events = nullptr;
};

/// Runs `thread_body` once for every thread of the grid and reports what the checks found. The body
/// is the kernel: it reads its own indices through isa/. Findings that leave no way to go on
/// (a deadlock, a wild address) end the run early. Throws std::invalid_argument for a launch shape
/// no machine accepts.
Report run(const LaunchShape& shape, const Options& options,
           const std::vector<Allocation>& allocations, const std::function<void()>& thread_body);

/// Runs grids in the order in which a stream has them.
Report run(const std::vector<GridLaunch>& grids, const Options& options);

/// What `run` throws when it was interrupted. Memory keeps what the grid had written.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("the run on the model was interrupted") {}
};

/// While it lives, runs of this thread ask `wanted`, which does not throw, twenty times a second on
/// the thread's own stack whether to end: for programs that answer Ctrl-C.
class Interruptible {
 public:
  explicit Interruptible(std::function<bool()> wanted);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Asks, if that is due.
  bool is_interrupted();

 private:
  std::function<bool()> wanted_;
  std::chrono::steady_clock::time_point next_;
  Interruptible* outer_;
};

/// Offset at which dynamic shared memory starts: the driver keeps the first KiB (as on sm_90).
inline constexpr std::uint32_t shared_base_offset = 1024;
/// Largest dynamic shared memory of one CTA, in bytes (227 KiB on sm_90 and sm_100).
inline constexpr int max_shared_bytes = 227 * 1024;

}  // namespace warpwright::model
