// The parts of a running machine. Internal to model/: nothing above it includes this header.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "warpwright/model/call.h"
#include "warpwright/model/explore/recorder.h"
#include "warpwright/model/fiber.h"
#include "warpwright/model/intrinsics.h"
#include "warpwright/model/machine.h"
#include "warpwright/model/memory/guarded_memory.h"
#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/model/memory/tmem.h"
#include "warpwright/model/mutation.h"
#include "warpwright/model/order/order.h"
#include "warpwright/model/report/report.h"
#include "warpwright/model/report/timing.h"
#include "warpwright/model/tensor_core.h"

namespace warpwright::model {

struct Cta;
struct Cluster;
struct Thread;
class Machine;

constexpr int warp_lanes = 32;
constexpr int warpgroup_threads = 128;
constexpr std::uint32_t poison_bits = 0x7fbadbad;  // a NaN that no arithmetic makes

/// What a blocked thread waits for, in terms that a report can print.
struct Wait {
  enum class Kind : std::uint8_t {
    none,
    mbarrier,
    named,
    cluster,
    meeting,
    bulk,
    registers,
    tensor_memory,
    flag,
    grids
  };
  Kind kind = Kind::none;
  Site site;
  Cta* cta = nullptr;        // owner of the barrier
  std::uint32_t offset = 0;  // of an mbarrier
  std::int64_t phase = 0;    // awaited phase of an mbarrier; pending groups of a bulk wait
  int id = 0;                // of a named barrier; registers or columns wanted
  std::uintptr_t word = 0;   // a flag, and where its bytes are
  const std::byte* now = nullptr;
  std::uint32_t value = 0;  // that it is to have in the bits of `mask`
  std::uint32_t mask = 0;
  bool any_other = false;  // than `value`, in place of it
  const char* what = "";   // instruction of a meeting, or on tensor memory
};

/// Copies of one cp.async.bulk.commit_group.
struct BulkGroup {
  Site site;          // of its latest copy
  int unread = 0;     // copies whose source is still to be read
  int unwritten = 0;  // copies not complete
};

/// One cp.async until it lands.
struct ThreadCopy {
  std::uint32_t offset = 0;  // in the CTA's shared memory
  std::uintptr_t from = 0;
  int bytes = 0;
  int from_bytes = 0;
  Site site;
  Moment done;               // in Mode::timed
  std::uint64_t number = 0;  // of its thread's copies, from 1
};

/// What a thread has handed to the tensor core through tcgen05, in order: an MMA, a copy to tensor
/// memory, a shift there, or the arrival that a commit makes on one barrier.
struct TensorOp {
  enum class What : std::uint8_t { mma, copy, shift, commit };
  What what = What::mma;
  [[nodiscard]] const char* name() const {
    constexpr const char* names[] = {"tcgen05.mma", "tcgen05.cp", "tcgen05.shift",
                                     "tcgen05.commit"};
    return names[static_cast<int>(what)];
  }
  Thread* issuer = nullptr;
  Site site;
  // For an MMA, a copy or a shift.
  std::uint32_t d = 0;     // where it writes
  std::vector<Operand> a;  // of each CTA: A, what is copied, or nothing
  // For an MMA.
  atom::UmmaAtom atom;
  bool accumulate = false;
  std::vector<Operand> b;
  std::uint32_t scales_a = 0;  // in tensor memory
  std::uint32_t scales_b = 0;
  atom::ScaleIds ids;
  std::uint64_t zero_columns = 0;  // a descriptor of columns of B
  KeptLanes kept{};                // whose part of D is left as it is
  int halvings = 0;                // of D, before the product is added
  // For a copy.
  atom::TmemCopy shape = atom::TmemCopy::b32x128_warpx4;
  // For a commit: whose barrier, where, and the MMAs before it.
  Cta* cta = nullptr;
  std::uint32_t barrier = 0;
  Commit handed;               // for the order checker
  Moment done;                 // in Mode::timed
  std::uint32_t explored = 0;  // its number in the Recorder
};

/// Where a thread's MMAs stand in Mode::timed.
struct TensorPipe {
  std::int64_t start = 0;            // of the MMAs since the last commit
  Moment end;                        // of the last one
  Moment due;                        // of the last operation, a commit too
  std::vector<atom::UmmaAtom> mmas;  // since the last commit
  std::vector<Cta*> ctas;
};

/// A load or store of tensor memory by a warp, until its tcgen05.wait.
struct TmemOp {
  bool load = true;
  std::array<TmemAccess, warp_lanes> lanes{};
  Site site;
  bool executed = false;
  std::vector<float> values;  // by lanes: stored, or read and not yet given to the registers
  Moment done;
};

struct Thread {
  Cta* cta = nullptr;
  int index = 0;
  const char* role = "thread";
  const Call* call = nullptr;  // the innermost function it says it is in
  Fiber fiber;
  Wait wait;
  bool exited = false;
  std::int64_t cluster_generation = -1;  // generation this thread arrived in, or -1
  int failed_polls = 0;                  // tests of barriers in a row that were answered "not yet"
  // Loads: the latest few, how many in a row were among them, and all since the thread last
  // blocked or stored to another place than the latest few.
  using Load = std::pair<std::uintptr_t, std::uint64_t>;  // its place and value
  std::array<Load, 4> latest_loads{};
  std::uint32_t next_load = 0;
  std::int64_t load_repeats = 0;
  std::int64_t loads = 0;
  std::array<std::uintptr_t, 4> latest_stores{};
  std::uint32_t next_store = 0;
  void stores_to(std::uintptr_t at) {
    if (std::ranges::find(latest_stores, at) != latest_stores.end()) return;
    latest_stores[next_store++ % 4] = at;
    loads = load_repeats = 0;
  }
  std::uint64_t progress = 0;     // of the machine, when it asked last for what had not come
  bool leaves_registers = false;  // a mutant: its latest wait names none
  // For what is said of a hang, or of a copy that nobody waited for: its latest tcgen05.mma, the
  // latest commit of MMAs and one of no MMA, the latest bulk commit of no copy, and its latest wait
  // on an mbarrier.
  Site mma_site;
  Site commit_site;
  Site bare_commit_site;
  Site bare_bulk_commit_site;
  struct Waited {
    const MBarrier* barrier = nullptr;
    std::int64_t phase = 0;
    Site site;
  };
  Waited waited;
  std::uint32_t fence_epoch = 0;  // wgmma fences executed
  std::shared_ptr<BulkGroup> open_group;
  std::deque<std::shared_ptr<BulkGroup>> groups;
  // For cp.async: copies of the current group and of the closed ones, oldest first, that have not
  // landed.
  std::vector<ThreadCopy> open_copies;
  std::deque<std::vector<ThreadCopy>> copy_groups;
  std::uint64_t warp_calls = 0;  // of instructions of whole warps that nobody waits in
  int groups_of_tile = 0;        // that it has committed since its tile in the trace, `copies_tile`
  std::string copies_tile;
  std::uint64_t copies_started = 0;
  std::deque<std::unique_ptr<TensorOp>> tensor_ops;
  TensorPipe tensor_pipe;
  bool peers_run = false;   // it has passed the cluster barrier
  Moment clock;             // of Mode::timed
  Moment loaded;            // when its loads of global memory are there
  int track = -1;           // in the trace; lane 0 of a warp has one
  bool wait_shown = false;  // its wait has begun in the trace
  ThreadOrder order;
  [[nodiscard]] int lane() const { return index % warp_lanes; }
  [[nodiscard]] int warp() const { return index / warp_lanes; }
};

/// A grid of the run and how far it has come.
struct GridRun {
  const GridLaunch* launch = nullptr;
  int index = 0;
  int next_cta = 0;  // to be launched
  int holding = 0;   // CTAs that have neither let the next grid start nor ended
  int running = 0;   // CTAs launched and not ended
  bool ended = false;
  std::vector<Thread*> waiting;  // for its end
  // Grids up to this one are complete, and their writes there, whenever one of its CTAs starts; the
  // first one's predecessor, which is not shown, is number -1.
  static constexpr int nothing = -2;
  int complete = nothing;
  // Some CTA lets the next grid start, or ends, before it knows that the one before has ended.
  bool lets_next_early = false;
  Site early_at;
  std::vector<Site> lets_next_at;  // its statements that let the next one start
  bool relied_on = false;          // a later grid relies on their standing behind its waits
  // For the order checker: numbers of its threads begin here, in all grids.
  std::uint32_t first_number = 0;
  std::uint32_t threads_per_cta = 0;  // rounded up to whole warps
  Clock known;                        // by its threads when they exited, of other grids
  std::size_t last_allocation = 0;
  [[nodiscard]] const LaunchShape& shape() const { return launch->shape; }
};

/// Instructions of a whole warp that give each lane what it has (isa::warp_index): on the model no
/// lane waits in them, so what its lanes have executed is compared.
struct WarpCalls {
  struct Executed {
    const char* what = nullptr;
    Site site;
    int lanes = 0;  // that have
  };
  std::deque<Executed> open;  // that not all lanes have executed, the oldest first
  std::uint64_t first = 0;    // number of the oldest among a lane's
};

/// Threads that an instruction needs together: the lanes of a warp, the warps of a warpgroup.
struct Meeting {
  const char* what = nullptr;
  Site site;
  const Call* call = nullptr;  // of the first, who still waits
  std::uint64_t path = 0;      // of that call
  int arrived = 0;
  std::array<void*, warpgroup_threads> arguments{};
  std::vector<Thread*> waiting;
};

/// What threads come to as one. Lanes that come to one `.aligned` instruction stand at one place of
/// the program; those of a syncwarp may stand at several (from sm_70 on).
struct Together {
  const char* what = "";
  bool aligned = true;
  bool queues = false;  // its time is that of a unit: only its issue costs the warp's own
};

/// A word in global memory that threads of the grid wait on.
struct Flag {
  std::vector<Thread*> waiting;
  FlagOrder order;
  // Who wrote it last, for what is said of those that wait in vain; empty: nobody.
  std::string writer;
  Site written;
};

struct Arrival {
  const Thread* thread;
  int rank;
  int count;
  Site site;
  std::uint32_t time;  // the thread's, of the order checker
  bool at_once;        // else when operations of the thread are over
};

/// Bytes that a phase of an mbarrier was told to expect, or that copies signalled to it.
struct PhaseBytes {
  const Thread* thread;
  Site site;
  const char* copy;  // the instruction that signals them; null: they are expected
  std::int64_t bytes;
};

struct MBarrier {
  std::uint32_t offset = 0;
  bool live = false;
  const char* name = "barrier";
  int index = 0;
  const char* arrivers = "";
  std::int64_t phase = 0;
  int expected = 0;
  int pending = 0;
  std::int64_t tx = 0;
  std::int64_t observed = -1;  // newest phase whose completion some wait has returned
  std::vector<Thread*> waiting;
  Site made;                      // where it was initialised
  std::vector<Arrival> arrivals;  // of the current phase
  std::vector<Arrival> before;    // of the one before
  std::vector<PhaseBytes> bytes;  // of the current phase
  std::vector<PhaseBytes> bytes_before;
  std::int64_t on_their_way = 0;  // bytes of copies that are to signal it
  // The latest phase that was complete before such copies had come, and who expected its bytes.
  struct Left {
    std::int64_t phase = -1;
    std::int64_t bytes = 0;
    Site expects;
  };
  Left left;
  // Publication of the initialisation.
  const Thread* initialiser = nullptr;
  bool fenced = false;
  std::int64_t fence_generation = 0;  // of the cluster barrier, when fenced
  std::int64_t cta_generation = 0;
  std::int64_t cluster_generation = 0;
  BarrierOrder order;
};

struct NamedBarrier {
  int expected = 0;
  int arrived = 0;
  std::uint64_t warps = 0;  // that have come and are still counted
  std::uint64_t ever = 0;   // that have come at all
  std::vector<Thread*> waiting;
  MeetingOrder order;
};

/// One wgmma in flight. Its reads of shared memory last until a wait covers it.
struct WgmmaOp {
  WgmmaRequest shape;  // of thread 0; pointers are per thread, below
  struct Accumulator* accumulator = nullptr;
  std::vector<std::uint32_t> registers_a;  // 128 x 4 when A comes from registers
  std::vector<FragmentState*> states_a;    // theirs, one a thread
  std::uint32_t base_rank = 0;
  Site site;
  bool executed = false;
  Moment done;  // when it is complete, in Mode::timed
};

/// The true values of a warpgroup's accumulator while instructions on it are in flight; the
/// threads' own registers hold a poison pattern meanwhile.
struct Accumulator {
  int n = 0;
  DType sums = DType::f32;
  int in_flight = 0;
  std::vector<float> values;  // 64 x n, row-major; s32 as its bits
  std::array<float*, warpgroup_threads> fragments{};
  std::array<FragmentState*, warpgroup_threads> states{};
};

struct Warpgroup {
  std::deque<WgmmaOp> open;                 // not committed
  std::deque<std::vector<WgmmaOp>> groups;  // committed, oldest first
  std::vector<std::unique_ptr<Accumulator>> accumulators;
  int registers = 0;  // a thread's current setmaxnreg value
  WarpgroupOrder order;
};

struct Cta {
  GridRun* grid = nullptr;
  Cluster* cluster = nullptr;
  bool holds = true;                 // the next grid may not start yet for this one's sake
  bool knows_prerequisites = false;  // one of its threads that have ended has known
  int index = 0;                     // in the grid
  int rank = 0;                      // in the cluster
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> defined;     // a byte a byte
  std::vector<std::uint16_t> readers;    // asynchronous reads in flight, per 16 bytes
  std::vector<std::uint16_t> writers;    // asynchronous writes in flight, per 16 bytes
  std::vector<std::int16_t> barrier_at;  // per 8 bytes: index into barriers, or -1
  std::deque<MBarrier> barriers;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Meeting> warp_meetings;
  std::vector<WarpCalls> warp_calls;
  std::vector<std::deque<TmemOp>> tmem_ops;  // of every warp
  Tmem tmem;
  std::vector<Meeting> warpgroup_meetings;
  std::deque<Warpgroup> warpgroups;
  std::array<NamedBarrier, 16> named;
  std::int64_t barrier_generation = 0;  // completions of named barriers
  int live_threads = 0;
  int free_registers = 0;
  std::vector<Thread*> register_waiters;
  // CLC: answers that nobody has read, by offset, and whether one that said no was seen.
  std::vector<std::uint32_t> unread_answers;
  bool launch_refused = false;
  int sm = 0;  // where it runs
  CtaOrder order;
  // In Mode::timed: its SM's units, when sums of mma.sync are there, by warps and places of
  // registers, and the engines' tracks in the trace.
  SmUnits* units = nullptr;
  using SumsReady = std::array<std::pair<const void*, Until>, 64>;
  std::vector<SumsReady> sums_ready;
  int loads_track = -1;
  int copies_track = -1;
  int fragments_track = -1;
  int stores_track = -1;
  int tensor_track = -1;
};

struct Cluster {
  GridRun* grid = nullptr;
  std::vector<std::unique_ptr<Cta>> ctas;
  int slot = 0;                 // which SMs: slot * cluster size, and on
  std::int64_t generation = 0;  // of the cluster barrier
  int arrived = 0;
  int live_threads = 0;
  std::vector<Thread*> waiting;
  ClusterOrder order;
};

/// A bulk TMA copy between its instants. A multicast load is one of these for every destination;
/// they share the data read from the source.
struct Copy {
  enum class Kind : std::uint8_t { load, store };
  enum class Stage : std::uint8_t { issued, read, written };
  Kind kind = Kind::load;
  Stage stage = Stage::issued;
  bool reduce_add = false;
  /// What a load writes: a box of a tensor, or bytes as they lie; or, without TMA, the
  /// answer to a request of CLC, or what a thread's registers held. Or nothing: it is the arrival
  /// that waits for a thread's copies by cp.async.
  enum class From : std::uint8_t { tensor, bytes, queue, registers, thread };
  From from = From::tensor;
  TensorMapFields map;
  CopyMode mode = CopyMode::tile;
  std::array<int, TensorMapFields::max_rank> coords{};  // of rows: a column, and they
  Cta* cta = nullptr;                                   // whose shared memory
  std::uint32_t offset = 0;                             // in it
  std::uint32_t barrier = 0;                            // offset, for a load
  Cta* signals = nullptr;                               // whose barrier
  int bytes = 0;                                        // of global memory: what a load signals
  int reach = 0;                                        // of shared memory, from `offset` on
  std::shared_ptr<std::vector<std::byte>> data;         // as it lies in global memory, row by row
  std::shared_ptr<BulkGroup> group;
  const Thread* issuer = nullptr;
  std::uintptr_t map_at = 0;  // where its map lies in global memory; 0 for a kernel's parameter
  Site site;
  Moment start;  // when the engine begins and ends to move it, in Mode::timed
  Moment stop;
  int destinations = 1;       // of the load, this one among them
  Clock passed;               // waits that came before it was issued
  std::uint32_t reading = 0;  // operations of the order checker: a load is the first
  std::uint32_t writing = 0;
  // For an arrival behind cp.async: the thread, how many of its copies, and what it hands on.
  Thread* copier = nullptr;
  std::uint64_t copies = 0;
  Commit handed;
  std::uint32_t explored = 0;  // its number in the Recorder

  /// Whether TMA carries it out.
  [[nodiscard]] bool by_engine() const { return from == From::tensor || from == From::bytes; }
  /// The instruction that it is, with its article, and without.
  [[nodiscard]] const char* what() const {
    const bool rows = mode == CopyMode::rows;
    if (kind == Kind::store && reduce_add) return "a tensor reduce-add";
    if (kind == Kind::store) return rows ? "a tensor scatter" : "a tensor store";
    if (rows) return "a tensor gather";
    constexpr const char* loads[] = {"a tensor load", "a bulk load", "a try_cancel", "a st.async",
                                     "a cp.async.mbarrier.arrive"};
    return loads[static_cast<int>(from)];
  }
  [[nodiscard]] const char* instruction() const { return what() + 2; }
  [[nodiscard]] const char* verb() const { return mode == CopyMode::rows ? "gather" : "load"; }
};

/// Thrown inside a fiber to leave the kernel after a finding that allows no way on.
struct Stop {};

class Machine {
 public:
  Machine(const std::vector<GridLaunch>& grids, const Options& options);
  Report run();

  // --- services of the parts
  void finding(Check check, const std::string& sentence, Site site, bool follows = false);
  /// The same with the two accesses it is about.
  void report(Finding finding);
  [[noreturn]] void fatal(Check check, const std::string& sentence, Site site);
  /// Suspends the current thread until `wake`.
  void block(const Wait& wait);
  /// The current thread's, for the barrier's current phase.
  [[nodiscard]] Wait wait_for(const MBarrier& bar, Site site) const;
  /// The current thread has waited for a phase: a finding, and true, where the next one is complete
  /// too.
  bool look_for_stale_parity(const MBarrier& bar, std::int64_t awaited, Site site);
  void show_wait(Thread& thread);
  void wake(Thread& thread);
  void wake_all(std::vector<Thread*>& threads);
  /// The current thread's test of a barrier said "not yet". A loop of such tests lets the others go
  /// on, and is reported when nothing else happens any more.
  void poll_failed(const Cta& cta, const MBarrier& bar, Site site);
  /// Lets another thread run first (random mode).
  void maybe_yield();
  /// A thread that asked in vain lets the others run before it asks again.
  void ask_again_later();
  /// Has nothing happened but such questions since the current thread's latest one?
  bool in_vain();
  /// Decisions of Mode::random, by seed: true in `percent` of 100; one of 0 to count - 1.
  bool chance(int percent);
  std::size_t pick(std::size_t count);
  /// Says what the latest decision did, for a replay that keeps few of them.
  void note(const std::string& what);

  /// True in the last of `members` threads to come; the others wait, in `meeting.waiting`, until
  /// that one has them woken.
  bool gather(Meeting& meeting, int members, Site site, const Together& together);
  /// The current thread executes what its whole warp must, and does not wait for the others.
  void executed_by_all(const char* what, Site site);
  /// Collects `argument` of every member; the last one to come runs `action` on all of them.
  void meet(Meeting& meeting, int members, int slot, Site site, const Together& together,
            void* argument, const std::function<void(std::span<void*>)>& action);
  /// Those who wait at a meeting go on.
  void let_go(Meeting& meeting);
  /// A thread that waits at a meeting waits for something else from now on.
  void wait_on(Thread& thread, const Wait& wait);
  /// The lane, of 32, that elect.sync elects: the ISA promises one, and the same one each time.
  /// Schedules that try what is allowed elect another than the lowest, by seed.
  [[nodiscard]] int elected() const;

  // --- sites and mutants (mutation.h)
  /// Counts one execution of a synchronising statement by the current thread. Returns the mutation
  /// that breaks it, or null.
  const Mutation* sync(SyncKind kind, Site site, const char* barrier = "", int value = 0,
                       bool cluster_scope = false);
  /// The barrier that was initialised last has this name.
  void name_site(const char* barrier) { sites_.name_init(barrier); }
  /// Runs `act` as if the CTA's thread `index` (modulo its threads) executed it: a mutant that
  /// moves a statement.
  void as_other(int index, const std::function<void()>& act);

  // --- shared and global memory (memory.cpp)
  Cta& owner(std::uint32_t address, const char* operation, Site site);
  void check_shared(Cta& cta, std::uint32_t offset, int bytes, const char* operation, Site site);
  void check_global(GridRun& grid, std::uintptr_t address, std::int64_t bytes, bool write,
                    const char* operation, Site site);
  /// The current thread touches global memory, or issues a copy that does: it must know that the
  /// grids before its own have ended, unless they leave that memory as it is.
  /// For a thread that does not know that the grids before its own have ended.
  void check_prerequisites(std::uintptr_t address, bool write, const char* operation, Site site);

  /// The current thread has loaded `value`: is it a loop that waits for another one?
  void watch_load(std::uintptr_t at, const void* value, int bytes, Site site);
  /// "bytes 4 to 7 of D", for an address in global memory, or else in shared memory.
  [[nodiscard]] std::string memory_text(std::uintptr_t at, int bytes) const;
  /// The bytes of global memory that kernels know as `address`.
  [[nodiscard]] std::byte* bytes_at(std::uintptr_t address);
  /// Shared memory as the given lane of the current warp reads it.
  void load_shared(Thread& by, std::uint32_t address, void* to, int bytes, Site site);

  // --- tensor maps in global memory (map_update.cpp)
  /// Where a map lies in memory that the grid may touch; 0 for one elsewhere, a parameter.
  [[nodiscard]] std::uintptr_t map_in_memory(const TensorMap& map) const;
  /// A map was copied there without a release, or with one that makes up for it.
  void map_written(std::uintptr_t at, bool released, Site site);
  /// The grid ends: all maps that it wrote must be released.
  void maps_at_end();

  /// The flag at a global address, made when first used.
  Flag& flag(void* address, const char* operation, Site site);
  /// The current thread has written it.
  void flag_written(Flag& flag, Site site);

  // --- barriers (barrier.cpp)
  MBarrier& barrier(std::uint32_t address, const char* operation, bool may_be_remote, Site site);
  MBarrier& barrier_of(Cta& cta, std::uint32_t offset, const char* operation, Site site);
  void arrive(Cta& cta, MBarrier& bar, const Thread& by, int count, bool drop, Site site,
              bool at_once = true);
  void complete_tx(Cta& cta, MBarrier& bar, const Copy& copy);
  /// Adds to Options::barrier_events, if that is asked for.
  void note_barrier(BarrierEvent::Kind kind, const Cta& cta, const MBarrier& bar, const Thread* by,
                    std::int64_t amount, Site site);
  void settle(const Cta& cta, MBarrier& bar);
  /// A wait of the current thread's sees the phase complete.
  void observe(MBarrier& bar, std::int64_t phase, Scope scope, Site site);
  void cluster_settle(Cluster& cluster);

  // --- TMA (tma.cpp)
  void issue(std::unique_ptr<Copy> copy);
  /// Its first instant comes when the mode says.
  void send(std::unique_ptr<Copy> copy);
  /// Gives the order checker the accesses of a copy that the current thread issues.
  void prove(Copy& copy);
  /// Moves a copy to its next instant; true when it is done.
  bool advance(Copy& copy);
  /// The instants: a copy reads its source, writes its destination, and says that it is over.
  void read_global(Copy& load);
  void write_shared(Copy& load);
  void read_shared(Copy& store);
  void write_global(const Copy& store);
  void end_copy(Copy& copy);
  void mark(Copy& copy, int change);
  /// Until some store of the grid reaches its next instant; the caller looks again.
  void block_for_bulk(Site site);
  /// Where orders are explored: a store takes place when its thread waits for it.
  void finish_stores(const Thread& of, int pending, bool read_only);

  // --- copies by threads (copy_async.cpp)
  /// The copy's bytes are there.
  void land(Cta& cta, const ThreadCopy& copy);
  /// Some of the thread's copies, where the schedule lets them land early.
  void land_some(Thread& thread);
  /// The thread exits: nothing may be on its way.
  void copies_exit(Thread& thread);
  /// The thread's copies that `arrival` is behind land, and it arrives.
  void arrive_behind_copies(const Copy& arrival);
  /// Counts (+1) or no longer counts (-1) the 16-byte pieces that a copy writes.
  static void mark(Cta& cta, const ThreadCopy& copy, int change);

  // --- tensor core (tensor_core.cpp)
  void execute(Cta& cta, WgmmaOp& op);
  void retire(Cta& cta, Warpgroup& group, std::vector<WgmmaOp>& ops, Site site);
  void execute_some(Cta& cta, Warpgroup& group);
  static std::array<Thread*, warpgroup_threads> warpgroup_of(const Thread& thread);
  /// Marks (+1) or unmarks (-1) the 16-byte pieces that an MMA reads.
  static void mark_operand(const Operand& operand, int change);
  /// Can the MMA that the current thread issues read this operand? Returns the numbers of its
  /// 16-byte pieces, until the next call.
  std::span<const std::uint32_t> check_operand(const Operand& operand, const char* what, Site site);
  void take_operands(Cta& cta, const WgmmaOp& op);
  static void release_operands(Cta& cta, const WgmmaOp& op);

  /// FragmentState::writer for the instruction at `site`: "a wait covers the wgmma at a.h:5 that ".
  const char* writer(const char* wait, const char* instruction, const char* does, Site site);
  /// The place of the instruction that such a text speaks of.
  [[nodiscard]] Site place_of(const char* writer) const;

  // --- tcgen05 (tcgen05.cpp, tmem.cpp)
  /// The CTAs that an instruction of this group works for: the current one, or the pair's, even one
  /// first.
  std::vector<Cta*> group(int ctas, const char* what, Site site);
  void issue(std::unique_ptr<TensorOp> op);
  /// Carries out the oldest operation of the thread's; true when it has no more.
  bool advance(Thread& issuer);
  static void execute(const TensorOp& op);
  void signal(const TensorOp& op);
  void check_tmem(Cta& cta, const TmemRegion& region, const char* what, Site site);
  void execute(Cta& cta, TmemOp& op);
  /// A CTA ends: nothing of it may be in use.
  void tensor_exits(Cta& cta);

  // --- CLC (clc.cpp)
  /// Puts `copy` of 16 bytes that come from no tensor on its way to shared memory: to `to` of this
  /// CTA, signalled at `barrier` of it.
  void write_async(std::unique_ptr<Copy> copy, Cta& cta, std::uint32_t to, std::uint32_t barrier,
                   Site site);
  /// The answer to a request: takes the next cluster off the queue, if there is one.
  LaunchAnswer cancel_next(GridRun& grid);

  // --- time and trace (timing.cpp)
  [[nodiscard]] bool timed() const { return options_.mode == Mode::timed; }
  /// The current time: nominal cycles in Mode::timed, scheduler steps otherwise.
  [[nodiscard]] Moment now() const;
  /// The current thread takes this long (Mode::timed).
  void spend(const Cost& cost) {
    if (timed()) current_->clock = after(current_->clock, cost);
  }
  /// The moment so much later.
  [[nodiscard]] Moment after(Moment moment, const Cost& cost) {
    return {moment.at + cost.clocks, step(moment.step, cost.key, cost.amount)};
  }
  /// The step of a cost behind another, where steps are recorded.
  Step step(Step before, CostKey key, double amount) {
    return options_.work != nullptr ? paths_.add(before, key, amount) : 0;
  }
  [[nodiscard]] const Costs& costs() const { return costs_; }
  /// What units of the current thread's SM take (Mode::timed): bytes that a warp reads or writes in
  /// shared memory together, as fragments of an MMA or otherwise; a load or store of global memory,
  /// whose value is asked for when the thread stores something; a cp.async, whose end it returns;
  /// an mma.sync.
  void use_shared(int bytes);
  void read_fragments(int bytes);
  void use_global(int bytes, bool store);
  void settle_loads();
  Moment use_copy_path(int bytes);
  void use_tensor_core(const atom::Mma& mma, const void* sums);
  /// The current thread goes on at `time` (Mode::timed), a slice `why` in the trace until then.
  void sleep_until(Moment time, const char* why);
  /// Places the instants of a copy, or of a committed group of wgmmas, in time.
  void schedule(Copy& copy);
  void schedule(Cta& cta, const Thread& leader, Warpgroup& group);
  void schedule(TensorOp& op);
  void show(Thread& issuer);
  void show_copy(Thread& issuer, std::int64_t start, std::int64_t stop);
  void mark_begin(const std::string& name);
  void mark_end();
  void rename_track(const Thread& thread);

  // --- causes: what is said of counts that do not add up (report/causes.cpp)
  /// "the arrivals of consumer 0 at a.h:5 (4 threads)", for those of one phase.
  [[nodiscard]] std::string arrivals_text(const std::vector<Arrival>& arrivals) const;
  /// "Phase 0 was completed by ...; it counts 2 a phase since FILE:LINE", of its latest phase.
  /// "word 3 of flags in global memory to be 1: it is 0 (...)", of a thread that waits for it.
  [[nodiscard]] std::string flag_text(const Wait& wait) const;
  [[nodiscard]] std::string completion_text(const MBarrier& bar) const;
  /// The transaction bytes of the current phase: what was expected, and what came.
  [[nodiscard]] std::string bytes_text(const Cta& cta, const MBarrier& bar) const;
  /// They do not add up.
  [[nodiscard]] Finding bytes_finding(const Cta& cta, const MBarrier& bar,
                                      std::string sentence) const;
  /// The current thread's latest wait, where a fresh barrier let it pass; else nothing.
  [[nodiscard]] std::string fresh_wait_text() const;
  /// The same of a thread that meets bytes in flight, or what it should have done.
  [[nodiscard]] std::string in_flight_text() const;
  /// What an arrival on a phase that has all of its arrivals comes behind.
  [[nodiscard]] std::string early_arrival_text(const MBarrier& bar, const Thread& by) const;
  /// Another lane of the thread's warp that has committed nothing, `at` being where: null for none.
  [[nodiscard]] static const Thread* bare_commit(const Thread& of, Site Thread::*at);

  [[nodiscard]] std::string who(const Thread& thread) const;
  [[nodiscard]] std::string barrier_text(const Cta& cta, const MBarrier& bar) const;
  [[nodiscard]] std::string copies_into(const Cta& cta, std::uint32_t offset, int bytes) const;

  Thread& current() { return *current_; }
  /// For the current thread's grid.
  const LaunchShape& shape() const { return current_->cta->grid->shape(); }
  const Options& options() const { return options_; }
  /// For all grids; writable where one of them may write.
  const std::vector<Allocation>& allocations() const { return allocations_; }
  /// The grid whose thread has this number, and the one before a grid that is not the first.
  [[nodiscard]] const GridRun& grid_of(std::uint32_t number) const;
  [[nodiscard]] const GridRun& grid_before(const GridRun& grid) const {
    return grids_[static_cast<std::size_t>(grid.index) - 1];
  }
  /// One behind the number of the last thread of all grids.
  [[nodiscard]] std::uint32_t end_of_numbers() const {
    const GridRun& last = grids_.back();
    return last.first_number + last.threads_per_cta * static_cast<std::uint32_t>(last.shape().ctas);
  }
  /// "launch 2, CTA 3, warp 1, lane 0", as far as there are several.
  std::string place_text(const GridRun& grid, std::uint32_t cta, std::uint32_t thread) const;
  /// Until the grid before the current thread's has ended.
  void wait_for_grids(Site site);
  /// The CTA does not keep the next grid from starting any more.
  static void let_next_start(Cta& cta);
  /// The current thread says so of its own; with `as_if_early` as if it had not waited.
  void launch_dependents(bool as_if_early, Site site);
  Statistics statistics;
  std::unique_ptr<Order> order;       // null: no order checking
  std::unique_ptr<Recorder> explore;  // null: nobody asks for an order (Options::exploration)

 private:
  /// The number of the next decision, or nothing where a replay lets it take its default.
  std::optional<std::uint64_t> decide();
  void launch_cluster(GridRun& grid, int slot);
  void thread_exits(Thread& thread);
  void calls_exit(const Thread& thread);
  /// The thread exits: its bulk stores must be committed, and have read.
  void stores_exit(const Thread& thread);
  void throws(Thread& thread, const char* what);
  void cta_exits(Cta& cta);
  void resume(Thread& thread);
  bool advance_one();
  [[nodiscard]] bool in_flight() const { return !copies_.empty() || !tensor_issuers_.empty(); }
  /// Does anything in flight reach into this cluster?
  [[nodiscard]] bool in_use(const Cluster& cluster) const;
  [[nodiscard]] int free_slot(const GridRun& grid) const;
  [[nodiscard]] bool may_start(const GridRun& grid) const;
  /// GridRun::complete of a grid that is about to start.
  [[nodiscard]] int complete_before(const GridRun& grid) const;
  void lets_next_early(GridRun& grid, Site site);
  /// Where grids up to `complete` have ended when one of these CTAs starts: is there none that may
  /// still touch this memory, but the grid before?
  [[nodiscard]] bool is_complete(const GridRun& grid, int complete, std::uintptr_t address,
                                 bool write) const;
  /// A thread of the grid touches memory that is complete by where a grid before lets it start.
  void rely_on_grid_before(const GridRun& grid, std::uintptr_t address, bool write);
  void launch_what_fits();
  void end_grids();
  void make_ready(Thread& thread);
  void start_clock(Cta& cta);
  [[nodiscard]] int slots_of(const GridRun& grid) const;
  SmUnits& units_of_sm(int sm);
  /// A unit that works on from there, and the moment when a thread behind it goes on, or a clock
  /// after `from` at least.
  Until busy(Until from, CostKey key, double amount, double clocks);
  Moment at_least_a_clock(Moment from, Until until);
  [[nodiscard]] Cost wake_delay(const Thread& thread) const;
  [[nodiscard]] Cost together_cost(int members, const Together& together) const;
  void show_mma(const Cta& cta, std::int64_t start, std::int64_t stop);
  /// Lets something happen, and says whether to go on before the residents are looked at again.
  bool step();
  bool step_timed();
  bool step_starving();
  bool step_exploring();
  bool advance_explored();
  bool advance_explored(std::size_t at);
  void choose_agent();
  void run_to_the_end();
  Report take_report();
  [[nodiscard]] bool held_back(const Cta& cta) const;
  [[nodiscard]] bool held_back(const Thread& thread) const;
  [[nodiscard]] std::string wait_name(const Wait& wait) const;
  // report/deadlock.cpp
  void report_deadlock();
  void report_bytes_left();
  std::string wait_text(const Wait& wait) const;

  std::deque<GridRun> grids_;
  Guard* guard_ = nullptr;
  Options options_;
  std::vector<Allocation> allocations_;
  bool kept_ = true;  // the latest decision was random, not the default
  std::vector<std::string> decided_;
  std::vector<std::uint32_t> decisions_;  // made by the scheduler, and by each thread
  std::vector<std::int64_t> made_;
  int landing_percent_ = 20;  // of steps in which a copy moves on, mode random; drawn by seed
  SiteTable sites_;
  bool moved_ = false;  // a mutant acts for another lane: it must not yield in its place
  struct Writer {
    const char* instruction;
    Site site;
    std::string text;
  };
  std::deque<Writer> writers_;
  std::vector<Finding> findings_;
  bool garbled_ = false;      // a finding says that bytes are not what they should be
  bool left_behind_ = false;  // or that a grid has left memory so
  bool stopped_ = false;
  bool interrupted_ = false;

  std::vector<std::unique_ptr<Cluster>> clusters_;  // resident
  std::deque<Thread*> ready_;
  std::uint64_t progress_ = 0;    // operations in flight, and threads that went on
  std::deque<Thread*> starving_;  // those that could go on and are held back, in Mode::starve
  std::vector<std::unique_ptr<Copy>> copies_;  // in flight, oldest first
  std::vector<Thread*> tensor_issuers_;        // threads whose tcgen05 operations are in flight
  std::vector<Thread*> bulk_waiters_;
  std::unordered_map<std::uintptr_t, Flag> flags_;  // in global memory
  std::unordered_map<std::uintptr_t, Site> unreleased_maps_;
  std::vector<Thread*> pollers_;  // asked a barrier in vain, more than once
  Thread* current_ = nullptr;

  Costs costs_;
  PathLog paths_;
  std::deque<SmUnits> sm_units_;

  // Mode::timed: what happens next, earliest first; `order` makes ties deterministic.
  template <class T>
  struct Due {
    Moment time;
    std::uint64_t order;
    T* what;
    bool operator>(const Due& other) const {
      return time.at != other.time.at ? time.at > other.time.at : order > other.order;
    }
  };
  template <class T>
  using Agenda = std::priority_queue<Due<T>, std::vector<Due<T>>, std::greater<>>;
  Agenda<Thread> due_threads_;
  Agenda<Copy> due_copies_;
  Agenda<Thread> due_tensor_;  // whose oldest tcgen05 operation is over
  std::uint64_t orders_ = 0;
  Moment time_;              // of the newest instant of a copy, or exit of a CTA
  bool look_again_ = false;  // an SM may have become free
  bool stuck_ = false;       // the latest step of an exploration found nobody to go on
  TraceBuilder builder_;     // used only when options_.trace is set
};

/// The machine that runs on this OS thread. Valid inside kernel code only.
Machine& machine();

/// What the synchronising instructions of intrinsics.h do, once statements.cpp has counted them as
/// sites and decided that they are not the mutant.
namespace act {
void name_barrier(std::uint32_t address, const char* name, int index, const char* arrivers);
void mbarrier_init(std::uint32_t address, int count, Site site);
void mbarrier_expect(std::uint32_t address, int bytes, Site site);
void mbarrier_arrive(std::uint32_t address, int count, bool drop, Scope scope, Site site);
bool mbarrier_test(std::uint32_t address, int parity, bool may_suspend, Scope scope, Site site);
void flag_set(void* flag, std::uint32_t value, Site site);
void flag_clear(void* flag, Site site);
std::uint32_t flag_wait(void* flag, std::uint32_t value, std::uint32_t mask, Site site);
/// `ordered`: it releases and acquires.
enum class Counted : std::uint8_t { in_order, released, relaxed };
std::uint32_t flag_count(void* flag, std::uint32_t by, Counted how, Site site);
std::uint32_t draw(std::uint32_t* counter, std::uint32_t last, Site site);
void store_async(std::uint32_t to, const void* value, std::uint32_t barrier, Site site);
void mbarrier_wait(std::uint32_t address, int parity, Scope scope, Site site);
void launch_dependents(bool as_if_early, Site site);
void wait_for_grids(Site site);
void fence_mbarrier_init(Site site);
void fence_proxy_async(Space space, Site site);
void tensor_load(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                 std::uint32_t destination, std::uint32_t barrier, std::uint16_t multicast,
                 int ctas, Site site);
void bulk_commit(Site site);
void bulk_wait(int pending, bool read_only, Site site);
void copy_async_commit();
void copy_async_wait(int pending);
void copy_async_arrive(std::uint32_t barrier, Site site);
void replace_map_base(std::uint32_t map, std::uint64_t base, Site site);
void replace_map_extent(std::uint32_t map, int dimension, std::uint32_t extent, Site site);
void release_map(TensorMap* to, std::uint32_t from, bool effective, Site site);
void acquire_map(const TensorMap* map, Site site);
void wgmma_fence(Site site);
void wgmma_commit(Site site);
void wgmma_wait(int pending, Site site);
void named_barrier(int id, int threads, bool wait, Site site);
void cluster_arrive(bool release, Site site);
void cluster_wait(Site site);
void sync_warp(Site site);
void tcgen05_allocate(std::uint32_t to, int columns, int ctas, Site site);
void tcgen05_deallocate(std::uint32_t address, int columns, int ctas, Site site);
void tcgen05_relinquish(int ctas, bool effective, Site site);
void tcgen05_copy(const TmemCopyRequest& request, Site site);
void tcgen05_shift(std::uint32_t address, int ctas, Site site);
void tcgen05_commit(std::uint32_t barrier, std::uint16_t multicast, int ctas, Site site);
void tcgen05_fence(bool before, Site site);
void tcgen05_wait(bool loads, Site site);
void try_cancel(std::uint32_t answer, std::uint32_t barrier, bool multicast, Site site);
}  // namespace act

/// Runs `action` when all lanes of the current warp have come.
void meet_warp(const Together& together, Site site, void* argument,
               const std::function<void(std::span<void*>)>& action);
inline void meet_warp(const char* what, Site site, void* argument,
                      const std::function<void(std::span<void*>)>& action) {
  meet_warp(Together{what}, site, argument, action);
}
/// Lanes of the current warp: fewer than 32 in the last one of some CTAs.
int lanes_of_warp();
/// For instructions that the last warp of a CTA cannot execute with fewer than 32 threads.
void whole_warp(const char* what, Site site);

}  // namespace warpwright::model
