// What the order checker keeps of threads, barriers, memory and operations. Internal to model/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "warpwright/model/clock.h"
#include "warpwright/model/intrinsics.h"
#include "warpwright/model/order/relation.h"
#include "warpwright/model/report/report.h"
#include "warpwright/model/report/site.h"

namespace warpwright::model {

struct Allocation;
struct Cluster;
struct Copy;
struct Cta;
struct MBarrier;
struct Thread;
struct ThreadCopy;
struct TmemRegion;
class Machine;

/// A tensor map in global memory, as a thread last acquired it: what it knew then.
struct AcquiredMap {
  std::uintptr_t address = 0;
  Clock order, grid;
  std::uint32_t time = 0;  ///< its own
};

/// What a thread knows, and where it stands.
struct ThreadOrder {
  Clock order, shared, global, grid, far, executed, tensor, handed, passed;
  std::uint32_t number = 0;     ///< of the thread in the grid
  std::uint32_t component = 0;  ///< of the thread in the clocks of its cluster
  /// Its own time: accesses carry it, releases publish it and move it on.
  std::uint32_t time = 1;
  std::uint32_t fenced_shared = 0;  ///< own accesses up to here are fenced, in shared memory
  std::uint32_t fenced_global = 0;
  std::uint32_t fence_time = 0;  ///< when it last fenced shared memory, 0 for never
  Site fence_site;
  std::uint32_t fence_waits = 0;  ///< how many waits had returned then
  /// It reads a peer's shared memory, and nothing says yet that the values are there; and its own
  /// time when something did say so of all before.
  bool reads_in_flight = false;
  std::uint32_t settled = 0;
  bool makes_barriers = false;  ///< has initialised mbarriers since its last proxy fence
  std::uint32_t waits = 0;      ///< waits on mbarriers that have returned
  std::uint32_t news = 0;       ///< those, and how often it has learnt of others' waits
  std::uint32_t committed = 0;  ///< bulk groups
  std::uint32_t bulk_read = 0;  ///< components of its bulk groups: sources read, all done
  std::uint32_t bulk_done = 0;
  std::uint32_t copies = 0;     ///< component of its copies by cp.async
  std::uint32_t copy_time = 0;  ///< commits of them, and arrivals behind them
  /// What `copy_time` was behind the commit of each group that no wait has covered, oldest first.
  std::deque<std::uint32_t> copy_groups;
  std::uint32_t mmas = 0;           ///< component of the tcgen05 MMAs and copies it issues
  std::uint32_t mma_time = 0;       ///< of them, issued
  std::uint32_t mma_committed = 0;  ///< of them, before its latest commit
  /// Its latest tcgen05.waits: up to which of its warp's loads or stores, and its own time then.
  struct TensorWait {
    std::uint32_t component = 0;
    std::uint32_t upto = 0;
    std::uint32_t time = 0;
  };
  std::array<TensorWait, 8> tensor_waits{};
  std::uint32_t next_tensor_wait = 0;
  Site after_site;  ///< of its last tcgen05.fence::after_thread_sync
  std::vector<AcquiredMap> maps;
  /// Its latest arrivals that hand on no write to a peer, for what is said of those (B7).
  struct Weak {
    std::uint32_t time = 0;  ///< its own, published by it
    std::uint32_t place = 0;
    const char* barrier = nullptr;  ///< name of an mbarrier; null: the cluster barrier
    int index = 0;
    bool relaxed = false;
  };
  std::array<Weak, 4> weak{};
  std::uint32_t next_weak = 0;
};

/// What an arrival hands on that comes when operations of its thread are over, of a tcgen05.commit
/// or behind cp.async: those operations, and what its thread knew to be executed.
struct Commit {
  std::uint32_t time = 0;  ///< of the last MMA or copy
  Clock executed;
  Clock handed;
  Clock passed;
};

/// The loads and stores of tensor memory of one warp.
struct WarpOrder {
  std::uint32_t loads = 0;  ///< components
  std::uint32_t stores = 0;
  std::uint32_t load_time = 0;  ///< issued
  std::uint32_t store_time = 0;
};

/// A clock that many threads add theirs to.
struct Gather {
  Clock sum;
  Clock last;  ///< the latest one added: 128 threads of a barrier often bring the same
  void add(const Clock& clock) {
    if (clock.identity() == last.identity()) return;
    sum.join(clock);
    last = clock;
  }
  Clock take() {
    last = Clock();
    return std::move(sum);
  }
};

/// Clocks that a synchronising object hands from those who arrive to those who wait.
struct GatherClocks {
  Gather order, shared, global, grid, far;
};
struct PublishedClocks {
  Clock order, shared, global, grid, far;
};

/// For a flag in global memory: what was ordered before its latest setting, in grid numbers.
struct FlagOrder {
  Clock grid, far;
  Clock passed;  ///< for waiters of the setter's cluster
  const Cluster* cluster = nullptr;
};

struct BarrierOrder {
  GatherClocks near;  ///< of this phase's arrivals from the barrier's own CTA
  GatherClocks far;   ///< of those from peers at cluster scope: for waiters at cluster scope
  Gather executed;
  Gather handed;
  Gather passed;
  PublishedClocks near_published;  ///< of the phase completed last
  PublishedClocks far_published;
  Clock executed_published;
  Clock handed_published;
  Clock passed_published;
  std::uint32_t component = 0;  ///< 0 until a copy signals it
  std::uint32_t base = 0;       ///< phases of the barriers that lived here before
  std::uint32_t latest = 0;     ///< the last phase that a copy signalled
  /// Arrivals of peers in phases that no wait has seen complete: the CTA must not exit before them.
  struct Visit {
    std::int64_t phase = 0;
    std::uint32_t number = 0;
    std::uint32_t component = 0;
    std::uint32_t time = 0;
    std::uint32_t place = 0;
    bool commit = false;  ///< by tcgen05.commit; component and time are then those of its MMAs
  };
  std::vector<Visit> visits;
  /// Waits that saw the latest phase complete: the next one must not complete before them.
  struct Waited {
    std::uint32_t number = 0;
    std::uint32_t component = 0;
    std::uint32_t waits = 0;  ///< the thread's, this one included
    std::uint32_t place = 0;
  };
  std::vector<Waited> waited;
  /// How often a thread has come back to arrive. Arrivals between which it learns of nothing are of
  /// one round.
  struct Rounds {
    std::int64_t number = 0;
    std::int64_t arrivals = 0;  ///< of the latest round
    std::uint32_t news = 0;     ///< the thread's, then
  };
  std::unordered_map<std::uint32_t, Rounds> rounds;  ///< by the thread's component
  std::uint32_t initialised = 0;                     ///< the initialiser's time then
  std::uint32_t proxied = 0;    ///< and at its first proxy fence afterwards, 0 for none
  std::uint32_t published = 0;  ///< and at its fence.mbarrier_init
};

/// For a named barrier, the cluster barrier, or the lanes of a syncwarp.
struct MeetingOrder {
  GatherClocks clocks;
  Gather executed;
  Gather handed;
  Gather passed;
};
struct ClusterOrder {
  MeetingOrder arriving;
  PublishedClocks published;
  Clock executed;
  Clock handed;
  Clock passed;
  std::uint32_t time = 1;  ///< the latest time that any thread took
  std::uint32_t next_component = 0;
  std::uint32_t first_thread = 0;     ///< number of its first thread in the grid
  std::uint32_t threads_per_cta = 0;  ///< rounded up to whole warps
  std::uint32_t threads = 0;
  /// Components of finished stores by TMA, and the threads that issue them.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stores;
  /// The same of copies by cp.async.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> copies;
  /// Is the thread of this number in the grid one of the cluster's?
  [[nodiscard]] bool has(std::uint32_t number) const { return number - first_thread < threads; }
};

struct WarpgroupOrder {
  std::uint32_t component = 0;
  std::uint32_t committed = 0;
};

/// One access, as the shadow of memory remembers it.
struct Entry {
  std::uint32_t who = 0;   ///< the thread's number, or the operation's
  std::uint32_t time = 0;  ///< of a thread
  std::uint32_t place = 0;
  std::uint16_t mask = 0;  ///< bytes of the 16; 0 is no entry
  bool asynchronous : 1 = false;
  /// For a generic write: several atomic ones (additions, draws) need no order among each other.
  bool atomic : 1 = false;
  /// For a tensor map: a generic write that releases it, or the use of one by a copy.
  bool map : 1 = false;
  /// For a generic write to shared memory: it went over what another line had written.
  bool overwrites : 1 = false;
};

/// Bytes that one Cell shadows.
inline constexpr std::uint32_t piece_bytes = 16;

/// The shadow of 16 bytes: the last write of every byte and the reads since then. Mostly there is
/// one of each.
struct Cell {
  Entry write, read;
  struct More {
    std::vector<Entry> writes, reads;
  };
  std::unique_ptr<More> more;
};

/// What a thread hands to the tensor core through tcgen05, by what follows what without more; a
/// `row_copy` is a tcgen05.cp of 4x256b.
enum class TensorStep : std::uint8_t { none, mma, copy, row_copy, shift };

/// An asynchronous operation, for as long as some shadow names it.
struct Operation {
  const Thread* issuer = nullptr;
  const char* what = "";
  const char* barrier = nullptr;  ///< name of the mbarrier that a load signals
  int barrier_index = 0;
  const MBarrier* signals = nullptr;  ///< that barrier
  std::int64_t phase = 0;             ///< its phase when the load was issued
  std::uint32_t number = 0;           ///< of the issuing thread
  std::uint32_t place = 0;
  std::uint32_t component = 0;
  std::uint32_t time = 0;  ///< of its completion in that component; 0 while it is not known
  std::uint32_t references = 0;
  bool atomic = false;
  bool generic = false;    ///< of the generic proxy
  bool is_answer = false;  ///< of launch control
  bool stores = false;     ///< the half of a store that writes
  bool copies = false;     ///< a cp.async
  /// For an MMA: its accumulator and shape. Those of one thread with one chain follow each other.
  std::uint64_t chain = 0;
  TensorStep step = TensorStep::none;
};

struct CtaOrder {
  std::vector<Cell> cells;
  std::vector<Cell> tensor;  ///< of tensor memory, by the pieces of a TmemRegion
  std::vector<WarpOrder> warps;
  Gather exited;        ///< what the threads that exited knew to be executed,
  Gather exited_order;  ///< and to be ordered
  struct Fence {
    std::uint32_t number = 0;
    std::uint32_t time = 0;
    std::uint32_t place = 0;
  };
  std::vector<Fence> fences;  ///< the latest of every warpgroup
  bool visited = false;       ///< a peer's thread has read or written its shared memory
};

}  // namespace warpwright::model
