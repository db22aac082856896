// The order checker: happens-before over the generic and the asynchronous proxy, for shared and
// global memory. Internal to model/. It finds a missing edge in any schedule in which both accesses
// occur, however benign that schedule's timing was. docs/model.md has the rules and their sources.
//
// Every thread has seven clocks, all of them "which events of whom come before me":
//   order      generic accesses of others, ordered before my generic accesses
//   shared     the same, also ordered before asynchronous accesses to shared memory that I issue:
//              a proxy fence copies `order` here
//   global     likewise for global memory
//   grid       accesses by threads of other clusters, which only flags in global memory
//              (isa/memory.h) and the ends of grids order; its components are numbers of threads,
//              the same behind them for the stores by TMA that they waited for, and
//              before them the ends of grids
//   far        those of `grid` that also come before asynchronous accesses that I issue
//   executed   what has been executed before, whatever the scope or the semantics of the arrival
//              that told me. It orders what is over: asynchronous operations that somebody waited
//              for, reads. It makes no write visible.
//   passed     waits on mbarriers that have returned (its times count each thread's). All that
//              keeps a thread behind another hands it on, the warp instructions that converge too
// and two of tensor memory, whose accesses are all asynchronous and all in the order of tcgen05:
//   tensor     operations on tensor memory that come before those that I issue
//   handed     those that synchronisation has told me of: tcgen05.fence::after_thread_sync copies
//              `handed` to `tensor`, and fence::before_thread_sync the other way
// An asynchronous operation is an event of its own: the phase of the mbarrier it signals, the
// wgmma group or the bulk group it belongs to. Whoever waits for that learns of the operation's
// accesses and of nothing else.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "warpwright/model/order/order_state.h"
#include "warpwright/model/order/relation.h"
#include "warpwright/model/report/report.h"

namespace warpwright::model {

class Order {
 public:
  explicit Order(Machine& machine);

  /// Where Options::hash_order asks for it.
  std::unique_ptr<Relation> relation;

  // --- life
  void launched(Cluster& cluster);
  void exits(Thread& thread);
  void cta_exits(Cta& cta);

  // --- accesses of a thread
  void generic(Thread& by, Cta& cta, std::uint32_t offset, int bytes, bool write, Site site,
               bool atomic = false);
  /// With `releases_map` a write that hands a tensor map to TMA.
  void generic_global(Thread& by, std::uintptr_t address, std::int64_t bytes, bool write, Site site,
                      bool releases_map = false);

  /// Reads and writes, in any order with other atomic accesses.
  void atomic_global(Thread& by, std::uintptr_t address, std::int64_t bytes, Site site);

  // --- asynchronous operations
  /// The load that `copy` is; its signal will be counted on `bar`.
  void begin_load(Thread& by, Copy& copy, MBarrier& bar);
  /// The two halves of a store: reading shared memory, writing global memory.
  void begin_store(Thread& by, Copy& copy);
  std::uint32_t begin_wgmma(Thread& by, WarpgroupOrder& group, Site site);
  /// The operation touches these 16-byte pieces of shared memory, piece i at offset 16 * i. Its
  /// issuers are the current thread or, for wgmma, all 128 of its warpgroup.
  void touch(std::uint32_t operation, std::span<Thread* const> issuers, Cta& cta,
             std::span<const std::uint32_t> pieces, bool write);
  void touch_global(std::uint32_t operation, Thread& by, std::uintptr_t address, std::int64_t bytes,
                    bool write);
  /// Is any byte of the range in memory that the grid may write?
  [[nodiscard]] bool tracked(std::uintptr_t address, std::int64_t bytes) const;
  /// Nobody will use the operation's number any more.
  void end(std::uint32_t operation);
  /// A load's signal is about to be counted on `bar`.
  void signalled(Copy& copy, MBarrier& bar);
  void bulk_waited(Thread& by, int pending, bool read_only);
  /// A cp.async of the current thread's current group: the bytes it writes, and those it reads. It
  /// is generic: others need no fence for it, and it needs none for what came before.
  void copy_async(Thread& by, const ThreadCopy& copy);
  static void copies_committed(Thread& by);
  static void copies_waited(Thread& by, int pending);
  /// An arrival behind the thread's copies so far; and later it is about to be counted on `bar`.
  Commit copies_arrive(Thread& by);
  void copies_arrived(const Thread& by, const Commit& arrival, const Cta& cta, MBarrier& bar,
                      Site site);
  void wgmma_waited(std::span<Thread* const> threads, WarpgroupOrder& group, int pending);

  // --- tensor maps in global memory (order_map.cpp)
  void acquires_map(Thread& by, std::uintptr_t address);
  /// The copy that is `operation` goes through the map there, until it is over.
  void uses_map(std::uint32_t operation, Thread& by, std::uintptr_t address, Site site);

  // --- tensor memory (order_tensor.cpp)
  std::uint32_t begin_mma(Thread& by, std::uint64_t chain, Site site);
  /// A tcgen05.cp or a tcgen05.shift of the thread: it and the thread's MMAs follow each other.
  std::uint32_t begin_step(Thread& by, TensorStep step, Site site);
  /// One of the warp of `by`, a load or else a store.
  std::uint32_t begin_tmem(Thread& by, bool load, Site site);
  /// Its issuers are one thread, or the lanes of a warp.
  void touch_tmem(std::uint32_t operation, std::span<Thread* const> issuers, Cta& cta,
                  const TmemRegion& region, bool write);
  /// The lanes of a warp give the columns back.
  void deallocates(std::span<Thread* const> warp, const TmemRegion& region, Site site);
  /// All loads (or else stores) of these threads' warp are over.
  void tmem_waited(std::span<Thread* const> threads, bool loads);
  void tensor_fence(Thread& by, bool before, Site site);
  /// The thread commits; and later its MMAs are over and this is about to be counted on `bar`.
  Commit commits(Thread& by);
  void committed(const Thread& by, const Commit& commit, Cta& cta, MBarrier& bar, Site site);
  /// Does anything tell the thread that the CTA has started?
  [[nodiscard]] static bool knows_of(const Thread& by, const Cta& cta);

  // --- grids that follow each other
  /// The thread begins knowing of the ends of grids up to `complete`.
  static void begins_behind(int complete, Thread& thread);
  /// The thread knows of the end of all grids before its own.
  void waited_for_grids(Thread& by);
  [[nodiscard]] static bool knows_prerequisites(const Thread& by);

  /// The run is over: races of two tables that overlap, or of one index, are told as such.
  void tell_overlaps(std::vector<Finding>& findings) const;

  // --- synchronisation
  void initialised(Thread& by, MBarrier& bar, std::uint32_t component, std::uint32_t base);
  void init_fenced(Thread& by);
  void uses(Thread& by, Cta& cta, MBarrier& bar, const char* operation, Site site);
  /// A load of the thread reads a peer's shared memory.
  static void reads_peer(Thread& by);
  /// The thread computes with what it has read: its reads so far are over.
  void values_used(Thread& by);
  void arrives(Thread& by, Cta& cta, MBarrier& bar, int count, Scope scope, Site site);
  void phase_completed(const Cta& cta, MBarrier& bar);
  void waited(Thread& by, MBarrier& bar, Scope scope);
  /// The thread's wait saw the latest phase complete.
  void saw(Thread& by, MBarrier& bar, Site site);
  /// These threads execute one instruction together.
  void converged(std::span<Thread* const> others, Thread& last);
  void fence(Thread& by, Space space, Site site);
  /// A thread comes to a meeting; when all have come, each of `waiting` learns what all knew.
  void meets(Thread& by, MeetingOrder& meeting);
  void met(MeetingOrder& meeting, std::span<Thread* const> waiting);
  void flag_set(Thread& by, FlagOrder& flag);
  /// The same of one that adds: what others have told stays.
  void flag_added(Thread& by, FlagOrder& flag);
  void flag_waited(Thread& by, const FlagOrder& flag);
  void cluster_arrives(Thread& by, bool release, Site site);
  void cluster_completed(Cluster& cluster);
  void cluster_waited(Thread& by);

 private:
  // The place of an access: what a report says of it beside the thread's number.
  struct Place {
    Site site;
    const char* role;
    // Where threads have touched shared memory from here, in all: [low, high).
    std::uint32_t low = UINT32_MAX;
    std::uint32_t high = 0;
    // In a race from here, over a value that nobody has read, or that another line has written.
    bool overwrites = false;
  };
  // The access that is being checked.
  struct Actor {
    // Who must know: one thread, or of a warpgroup one for each set of threads that know the same.
    std::span<Thread* const> threads;
    std::span<const int> alike;  // how many each of them stands for; empty for one thread
    bool asynchronous = false;
    bool in_generic = false;  // asynchronous, and of the generic proxy
    bool is_answer = false;   // of launch control
    bool write = false;
    bool atomic = false;
    bool in_shared = true;
    bool in_tensor = false;
    bool frees = false;                // gives tensor memory back
    const AcquiredMap* map = nullptr;  // the map that it uses is read, as its thread acquired it
    Cta* cta = nullptr;                // whose shared memory
    std::uintptr_t offset = 0;         // of the whole access; for pieces in `at`
    Entry entry;
    const char* what = "";
    // Memo of the entry last found to be ordered.
    std::uint32_t ordered_who = 0;
    std::uint32_t ordered_time = 0;
    bool ordered_asynchronous = false;
    bool ordered_write = false;
    bool ordered_valid = false;
  };
  /// Threads that know the same answer the same: one of each, and how many it stands for.
  struct Distinct {
    std::array<Thread*, 128> threads{};
    std::array<int, 128> alike{};
    std::size_t count = 0;
    explicit Distinct(std::span<Thread* const> all);
    void speak_for(Actor& actor) const {
      actor.threads = {threads.data(), count};
      actor.alike = {alike.data(), count};
    }
  };
  enum class Verdict : std::uint8_t {
    ordered,
    proxy,
    read_proxy,
    scope,
    unfinished,
    race,
    unwaited,  // tensor memory: nobody waited for the operation, or nothing leads from there
    no_before,
    no_after,
    unreleased,  // tensor maps
    unacquired
  };

  /// The component of `grid` that stands for the end of a grid; that of the first one's
  /// predecessor is 0.
  static std::uint32_t end_of(int grid) { return static_cast<std::uint32_t>(grid + 1); }
  /// Is what another cluster's thread `number` did up to `time` of `component` known in `grid`?
  [[nodiscard]] bool knows_far(const Clock& grid, std::uint32_t number, std::uint32_t component,
                               std::uint32_t time) const;
  /// The component of `grid` for stores by TMA that thread `number` waited for.
  [[nodiscard]] std::uint32_t stores_of(std::uint32_t number) const {
    return machine_numbers_ + number;
  }
  /// The same for its copies by cp.async that are over.
  [[nodiscard]] std::uint32_t copies_of(std::uint32_t number) const {
    return 2 * machine_numbers_ + number;
  }
  std::uint32_t place(Site site, const char* role);
  std::uint32_t new_operation(Thread& by, const char* what, Site site);
  /// One of those that a thread hands to the tensor core.
  std::uint32_t begin_tensor(Thread& by, const char* what, Site site);
  std::uint32_t new_component(Cluster& cluster);
  void release_entry(const Entry& entry);
  void tick(Thread& by);
  static void settles(Thread& by);
  void learn_passed(Thread& by, const Clock& passed);
  /// For a thread that has `passed` waits, to which what is `executed` is over: does it know, when
  /// it arrives, that the barrier's latest phase is complete?
  static bool knows_end(const Thread& by, const Clock& passed, const Clock& executed, bool at_once,
                        const MBarrier& bar);
  /// Such an arrival is about to be counted: does it belong to this phase?
  void check_phase(const Thread& by, const Clock& passed, const Clock& executed, bool at_once,
                   int count, const Cta& cta, MBarrier& bar, Site site);
  void check_published_to_copies(Thread& by, const Copy& copy, const MBarrier& bar);

  [[nodiscard]] Verdict judge(const Thread& t, bool alone, const Actor& y, const Entry& x,
                              bool x_write) const;
  /// The same where x is of an asynchronous operation.
  [[nodiscard]] Verdict judge_operation(const Thread& t, const Actor& y, const Entry& x,
                                        bool x_write) const;
  [[nodiscard]] Verdict judge_tensor(const Thread& t, const Actor& y, const Entry& x) const;
  [[nodiscard]] Verdict judge_map(const Thread& t, const Actor& y, const Entry& x) const;
  void check(Actor& y, const Entry& x, bool x_write, std::uintptr_t at);
  /// Checks `y` against the cell's entries, then makes it one of them.
  void enter(Cell& cell, Actor& y, std::uintptr_t at);
  /// An access of `by` to global memory, of which `y` says what is its own.
  void enter_global(Thread& by, std::uintptr_t address, std::int64_t bytes, Site site, Actor& y);
  void install_read(Cell& cell, const Actor& y);
  [[nodiscard]] bool is_atomic(const Entry& x) const;
  [[nodiscard]] bool covered(const Actor& y, const Entry& x) const;
  Cell* global_cell(std::uintptr_t address);
  /// The address as an offset in an allocation: the same in every run.
  [[nodiscard]] std::uint64_t in_allocation(std::uintptr_t address) const;

  void report(const Thread& t, const Actor& y, const Entry& x, bool x_write, Verdict verdict,
              std::uintptr_t at);
  // Two accesses without an order: `t` makes the second, y; the first is x.
  struct Pair {
    const Thread& t;
    const Actor& y;
    const Entry& x;
    bool x_write;
    const Operation* op;  // that x is of; null: a thread's own access
    std::uint32_t x_number;
    std::uint32_t x_place;
  };
  // The bytes that both touch.
  struct Touched {
    std::string memory;
    std::uint64_t begin;
    int bytes;
  };
  [[nodiscard]] Touched touched(const Actor& y, const Entry& x, std::uintptr_t at) const;
  /// What a finding says, and its code; false: nothing is to be said here.
  bool explain(Finding& f, const Pair& pair, Verdict verdict) const;
  void explain_proxy(Finding& f, const Pair& pair) const;
  void explain_unfinished(Finding& f, const Pair& pair) const;
  /// For two loads that land in one place; false where they are none.
  bool explain_landing(Finding& f, const Pair& pair) const;
  void explain_race(Finding& f, const Pair& pair) const;
  void explain_scope(Finding& f, const Pair& pair) const;
  // --- causes (order_cause.cpp)
  /// Did the barrier complete the phase that the load was issued for without the load's bytes? Then
  /// the finding says so.
  bool explain_bytes(Finding& f, const Operation& load) const;
  /// Nobody, or another lane, has committed what the operation is part of: the finding says so.
  bool explain_commit(Finding& f, const Operation& op) const;
  /// Does the write y go over what another line has written?
  [[nodiscard]] bool overwrites_other(const Cell& cell, const Actor& y) const;
  /// Notes what a race says of the places of its writes.
  void note_overwriting(const Actor& y, const Entry& x, bool x_write, std::uintptr_t at);
  // What the accesses of a line touch of shared memory, in all: [low, high).
  struct Touching {
    std::uint32_t low = UINT32_MAX;
    std::uint32_t high = 0;
    bool overwrites = false;
  };
  [[nodiscard]] Touching touching(Site site) const;
  /// Is a race one of two tables that overlap, or of one index? Then the finding says so.
  bool explain_overlap(Finding& f) const;
  /// The latest arrival of thread `number` that has published `from` to `upto` of its time to a
  /// waiter, and hands on no write; null where it is not known.
  [[nodiscard]] const ThreadOrder::Weak* weak_arrival(const Cluster& cluster, std::uint32_t number,
                                                      std::uint32_t from, std::uint32_t upto) const;
  /// What a thread has read of shared memory before its time `before`, and which barrier's copies
  /// brought it.
  struct LastRead {
    std::uint32_t place = 0;  // 0: nothing
    std::uint32_t order = 0;  // larger is later
    const Operation* brought = nullptr;
  };
  [[nodiscard]] LastRead last_read(const Thread& by, std::uint32_t before) const;
  void look_at_read(const Entry& read, const Cell& cell, const Thread& by, std::uint32_t before,
                    LastRead& latest) const;
  [[nodiscard]] const Thread& thread_of(const Cluster& cluster, std::uint32_t number) const;
  /// What a finding about the use of a changed map says, and its code.
  static void explain_map(Finding& f, Verdict verdict);
  void report_tensor(const Thread& t, const Actor& y, const Entry& x, bool x_write, Verdict verdict,
                     std::uintptr_t at);
  /// Says a finding of two accesses, whose sentence is made here.
  void report_pair(Finding f, std::uint32_t x_number, std::uint32_t x_place, std::uint32_t y_number,
                   std::uint32_t y_place, const std::string& where);
  void enter_tmem(Actor& y, const TmemRegion& region);
  void report_visit(const Cta& cta, const MBarrier& bar, const BarrierOrder::Visit& v);
  void report_slip(const Cta& cta, const MBarrier& bar, const BarrierOrder::Waited& w);
  /// A thread reaches into a peer's memory.
  void visits(const Thread& by, Cta& cta, Site site);
  /// Such an access may come after the CTA's exit, unless that knew of it.
  void check_peer(const Cta& cta, const Entry& x, bool write, const Clock& ordered,
                  const Clock& executed);
  /// What the thread has waited for, and those it knows of.
  static void gather_passed(const Thread& by, Gather& into);
  [[nodiscard]] Access describe(std::uint32_t number, std::uint32_t place, bool asynchronous,
                                bool write, const char* what) const;
  [[nodiscard]] std::string thread_text(std::uint32_t number, std::uint32_t place) const;
  /// Who completes the phase after the one that `w` waited for, and the mend, for report_slip.
  [[nodiscard]] std::string slip_cause(Finding& f, const MBarrier& bar,
                                       const BarrierOrder::Waited& w) const;
  void gather(Thread& by, GatherClocks& into);
  void learn(Thread& by, const PublishedClocks& from);
  void raise(std::span<Thread* const> threads, std::uint32_t component, std::uint32_t time);

  Machine& machine_;
  std::uint32_t machine_numbers_;  // of threads, of all grids
  JoinCache joins_;
  bool flags_set_ = false;      // clusters of this run hand memory to each other
  bool global_fences_ = false;  // until there is one, nobody needs the clocks for global memory
  std::vector<Place> places_;
  std::array<std::uint32_t, 256> place_cache_{};
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_operations_;
  // Shadow of global memory that the grid may write, in pages made when they are touched.
  using Page = std::array<Cell, 256>;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_page_number_ = 0;
  Page* last_page_ = nullptr;
  std::unordered_set<std::uint64_t> reported_;
};

}  // namespace warpwright::model
